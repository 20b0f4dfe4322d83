"""Read the databases of the cluster (pg_database)."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog


def current_database(catalog: Catalog) -> str:
    """Return the name of the database that `catalog` belongs to."""
    table = schema.pg_database
    row = catalog.first(table, table.c.oid == catalog.database_oid)
    assert row is not None
    return str(row.datname)
