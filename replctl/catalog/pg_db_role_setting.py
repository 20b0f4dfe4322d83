"""Read and write the initial settings of sessions, by role and database."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Row

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog

EVERY = 0  # stands for every database or every role


def stored_settings(catalog: Catalog, database_oid: int, role_oid: int) -> dict[str, str]:
    """Return the settings of a role in a database, in their stored order.  Either OID may be
    EVERY.
    """
    table = schema.pg_db_role_setting
    row = catalog.first(table, table.c.setdatabase == database_oid, table.c.setrole == role_oid)
    return {} if row is None else _settings_of(row)


def _settings_of(row: Row[Any]) -> dict[str, str]:
    pairs = (item.partition("=") for item in json.loads(row.setconfig))
    return {name: value for name, _equals, value in pairs}


def put_settings(
    catalog: Catalog, database_oid: int, role_oid: int, settings: dict[str, str]
) -> None:
    """Replace the settings of a role in a database.  An empty dict removes them."""
    table = schema.pg_db_role_setting
    where = (table.c.setdatabase == database_oid, table.c.setrole == role_oid)
    catalog.delete(table, *where)
    if settings:
        config = json.dumps([f"{name}={value}" for name, value in settings.items()])
        catalog.insert(table, setdatabase=database_oid, setrole=role_oid, setconfig=config)


def settings_at_start(catalog: Catalog, database_oid: int, role_oid: int) -> dict[str, str]:
    """Return the initial settings of a session.  If several settings have one name, the first of
    these wins: of the role in this database, of the role, of the database, of all sessions
    (process_settings).
    """
    table = schema.pg_db_role_setting
    rows = catalog.select(
        table,
        table.c.setdatabase.in_((EVERY, database_oid)),
        table.c.setrole.in_((EVERY, role_oid)),
    )
    found: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: (row.setrole != EVERY, row.setdatabase != EVERY)):
        found |= _settings_of(row)
    return found


def delete_settings_of_role(catalog: Catalog, role_oid: int) -> None:
    """Remove the settings of a dropped role."""
    table = schema.pg_db_role_setting
    catalog.delete(table, table.c.setrole == role_oid)


def delete_settings_of_database(catalog: Catalog, database_oid: int) -> None:
    """Remove the settings of a dropped database."""
    table = schema.pg_db_role_setting
    catalog.delete(table, table.c.setdatabase == database_oid)
