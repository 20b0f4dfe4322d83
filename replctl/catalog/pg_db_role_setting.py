"""Settings that sessions of a role, or in a database, begin with."""

from __future__ import annotations

import json

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog

EVERY = 0  # database, or role


def stored_settings(catalog: Catalog, database_oid: int, role_oid: int) -> dict[str, str]:
    """Return what was said for a role in a database, either of which may be EVERY, in its order."""
    table = schema.pg_db_role_setting
    row = catalog.first(table, table.c.setdatabase == database_oid, table.c.setrole == role_oid)
    if row is None:
        return {}
    pairs = (item.partition("=") for item in json.loads(row.setconfig))
    return {name: value for name, _equals, value in pairs}


def put_settings(
    catalog: Catalog, database_oid: int, role_oid: int, settings: dict[str, str]
) -> None:
    """Say it again; nothing, if there are no settings."""
    table = schema.pg_db_role_setting
    where = (table.c.setdatabase == database_oid, table.c.setrole == role_oid)
    catalog.delete(table, *where)
    if settings:
        config = json.dumps([f"{name}={value}" for name, value in settings.items()])
        catalog.insert(table, setdatabase=database_oid, setrole=role_oid, setconfig=config)


def settings_at_start(catalog: Catalog, database_oid: int, role_oid: int) -> dict[str, str]:
    """Return what a session begins with: what was said for the role in this database is before what
    was said for the role, that before the database's, that before everybody's
    (process_settings)."""
    found: dict[str, str] = {}
    for place in (
        (EVERY, EVERY),
        (database_oid, EVERY),
        (EVERY, role_oid),
        (database_oid, role_oid),
    ):
        found |= stored_settings(catalog, *place)
    return found


def delete_settings_of_role(catalog: Catalog, role_oid: int) -> None:
    """A role goes."""
    table = schema.pg_db_role_setting
    catalog.delete(table, table.c.setrole == role_oid)


def delete_settings_of_database(catalog: Catalog, database_oid: int) -> None:
    """A database goes."""
    table = schema.pg_db_role_setting
    catalog.delete(table, table.c.setdatabase == database_oid)
