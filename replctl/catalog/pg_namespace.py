"""Schemas."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog


def find_schema(catalog: Catalog, name: str) -> int | None:
    """The OID of the schema of that name."""
    row = catalog.first(schema.pg_namespace, schema.pg_namespace.c.nspname == name)
    return None if row is None else int(row.oid)


def schema_names(catalog: Catalog) -> dict[int, str]:
    """Names of all schemas by OID."""
    return {int(row.oid): str(row.nspname) for row in catalog.select(schema.pg_namespace)}


def insert_schema(catalog: Catalog, name: str, owner: int) -> int:
    """Add a schema; its OID."""
    oid = catalog.new_oid()
    catalog.insert(schema.pg_namespace, oid=oid, nspname=name, nspowner=owner)
    return oid


def delete_schema(catalog: Catalog, oid: int) -> None:
    """Remove a schema, which has to be empty."""
    catalog.delete(schema.pg_namespace, schema.pg_namespace.c.oid == oid)


def rename_schema(catalog: Catalog, oid: int, name: str) -> None:
    """Give a schema another name."""
    catalog.update(schema.pg_namespace, schema.pg_namespace.c.oid == oid, nspname=name)
