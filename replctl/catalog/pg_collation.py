"""Read and write user-defined collations. namespace.py looks them up by name."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class UserCollation:
    """A row of pg_collation: a copy of the built-in collation `source`."""

    oid: int
    name: str
    schema_oid: int
    owner: int
    source: str


def list_collations(catalog: Catalog) -> list[UserCollation]:
    """Return all user-defined collations of the database, in their order of creation."""
    table = schema.pg_collation
    return [
        UserCollation(
            int(row.oid), row.collname, int(row.collnamespace), int(row.collowner), row.collsource
        )
        for row in catalog.select(table, order_by=[table.c.oid])
    ]


def insert_collation(catalog: Catalog, collation: UserCollation) -> None:
    """Add a collation."""
    catalog.insert(
        schema.pg_collation,
        oid=collation.oid,
        collname=collation.name,
        collnamespace=collation.schema_oid,
        collowner=collation.owner,
        collsource=collation.source,
    )


def delete_collation(catalog: Catalog, oid: int) -> None:
    """Remove a collation."""
    catalog.delete(schema.pg_collation, schema.pg_collation.c.oid == oid)
