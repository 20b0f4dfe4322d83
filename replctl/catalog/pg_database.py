"""Databases of the cluster."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog


def current_database(catalog: Catalog) -> str:
    """Return the name of the catalog's own database."""
    table = schema.pg_database
    row = catalog.first(table, table.c.oid == catalog.database_oid)
    assert row is not None
    return str(row.datname)
