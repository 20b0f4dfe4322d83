"""Read the databases of the cluster (pg_database)."""

from __future__ import annotations

from sqlalchemy import Connection, select

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog

#: The collation of all databases: by code point.
COLLATION = "C.utf8"


def current_database(catalog: Catalog) -> str:
    """Return the name of the database that `catalog` belongs to."""
    table = schema.pg_database
    row = catalog.first(table, table.c.oid == catalog.database_oid)
    assert row is not None
    return str(row.datname)


def is_template(catalog: Catalog, oid: int) -> bool:
    """Return whether a database is a template for new databases."""
    table = schema.pg_database
    return catalog.first(table, table.c.oid == oid, table.c.datistemplate) is not None


def allows_connections(catalog: Catalog) -> bool:
    """Return whether roles can connect to the database that `catalog` belongs to."""
    table = schema.pg_database
    row = catalog.first(table, table.c.oid == catalog.database_oid, table.c.datallowconn)
    return row is not None


def database_exists(catalog: Catalog, oid: int) -> bool:
    """Return whether there is a database with this OID."""
    return catalog.first(schema.pg_database, schema.pg_database.c.oid == oid) is not None


def recorded_databases(connection: Connection) -> set[int]:
    """Return the OIDs of the databases in any version of the catalog: also of those that an open
    transaction creates, and of dropped ones that VACUUM has not forgotten yet.
    """
    return set(connection.execute(select(schema.pg_database.c.oid)).scalars())


def find_database(catalog: Catalog, name: str) -> int | None:
    """Return the OID of the database of that name; None if there is none."""
    row = catalog.first(schema.pg_database, schema.pg_database.c.datname == name)
    return None if row is None else int(row.oid)
