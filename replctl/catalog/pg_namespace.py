"""Read and write schemas (pg_namespace)."""

from __future__ import annotations

from sqlalchemy import insert, select

from replctl.catalog import schema, state_schema
from replctl.catalog.pg_default_acl import new_object_acl
from replctl.catalog.transaction import Catalog

_FIRST_TEMPORARY = 3  # as in a PostgreSQL server without other sessions


def find_schema(catalog: Catalog, name: str) -> int | None:
    """Return the OID of the schema of that name; None if it does not exist."""
    row = catalog.first(schema.pg_namespace, schema.pg_namespace.c.nspname == name)
    return None if row is None else int(row.oid)


def schema_names(catalog: Catalog) -> dict[int, str]:
    """Return the names of all schemas by OID."""
    return {int(row.oid): str(row.nspname) for row in catalog.select(schema.pg_namespace)}


def insert_schema(catalog: Catalog, name: str, owner: int) -> int:
    """Add a schema, and return its OID."""
    oid = catalog.new_oid()
    acl = new_object_acl(catalog, "schema", owner)
    catalog.insert(schema.pg_namespace, oid=oid, nspname=name, nspowner=owner, nspacl=acl)
    return oid


def insert_temporary_schema(catalog: Catalog, session_key: str, owner: int) -> str:
    """Add the schema for a session's temporary relations, and return its name."""
    names = set(schema_names(catalog).values())
    number = _FIRST_TEMPORARY
    while f"pg_temp_{number}" in names:
        number += 1
    oid, name = catalog.new_oid(), f"pg_temp_{number}"
    catalog.insert(schema.pg_namespace, oid=oid, nspname=name, nspowner=owner, nspacl=None)
    catalog.connection.execute(
        insert(state_schema.temporary_namespace).values(nspid=oid, owner=session_key)
    )
    return name


def temporary_schemas(catalog: Catalog) -> dict[int, str]:
    """Return the schemas of temporary relations, each with the key of its session."""
    names = schema_names(catalog)
    rows = catalog.connection.execute(select(state_schema.temporary_namespace))
    return {int(row.nspid): str(row.owner) for row in rows if int(row.nspid) in names}


def delete_schema(catalog: Catalog, oid: int) -> None:
    """Remove an empty schema."""
    catalog.delete(schema.pg_namespace, schema.pg_namespace.c.oid == oid)


def rename_schema(catalog: Catalog, oid: int, name: str) -> None:
    """Rename a schema."""
    catalog.update(schema.pg_namespace, schema.pg_namespace.c.oid == oid, nspname=name)
