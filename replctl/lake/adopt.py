"""Delta tables that others own: their columns as PostgreSQL's, at adoption and when they add
some."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from replctl.catalog import schema
from replctl.catalog.pg_class import Column, insert_column, insert_storage_column
from replctl.catalog.storage import storage_names
from replctl.catalog.transaction import Catalog, commit_transaction
from replctl.errors import FeatureNotSupported
from replctl.lake.delta_log import protocol_at, table_properties
from replctl.record import dataclass
from replctl.types.numeric import numeric_typmod

_SIMPLE = {
    "boolean": "bool",
    "byte": "int2",
    "short": "int2",
    "integer": "int4",
    "long": "int8",
    "float": "float4",
    "double": "float8",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeltaColumn:
    """A column of a Delta table as a column of PostgreSQL's."""

    name: str
    type: str
    typmod: int
    not_null: bool


def delta_settings(location: str) -> dict[str, str]:
    """Return the properties of the Delta table at `location`, and what its protocol asks of readers
    and writers, by name."""
    asked = {
        name: ", ".join(sorted(value)) if isinstance(value, list) else str(value)
        for name, value in protocol_at(location).items()
        if value is not None
    }
    return {**table_properties(location), **asked}


def adopt_new_columns(
    catalog: Catalog,
    relid: int,
    location: str,
    found: Sequence[Mapping[str, Any]],
    version: int,
) -> None:
    """Enter columns that another writer has added to a table, from that commit on.

    Args:
        found: the columns that the table has at that version (delta_log.columns_of).

    Raises:
        FeatureNotSupported: the type of a new one has no counterpart in PostgreSQL.
    """
    attribute = schema.pg_attribute
    known = storage_names(catalog, relid)
    new = [delta_column(location, field) for field in found if field["name"].lower() not in known]
    if not new:
        return
    writer = Catalog(catalog.connection, catalog.database_oid, backend=catalog.backend)
    rows = writer.select(attribute, attribute.c.attrelid == relid)
    for attnum, column in enumerate(
        new, start=max((int(row.attnum) for row in rows), default=0) + 1
    ):
        insert_column(
            writer,
            relid,
            Column(
                attnum, column.name, column.type, column.typmod, collation=collation_of(column.type)
            ),
        )
        insert_storage_column(writer, relid, attnum, column.name, version)
    commit_transaction(catalog.connection, writer.xid, changes_catalog=True)


def collation_of(type_name: str) -> str | None:
    """The collation that a column of a type has unless one is asked for."""
    return (
        "default"
        if type_name in ("text", "varchar", "bpchar", "_text", "_varchar", "_bpchar")
        else None
    )


def delta_column(location: str, field: Mapping[str, Any]) -> DeltaColumn:
    """Return a column of a Delta schema as one of PostgreSQL's.

    Raises:
        FeatureNotSupported: its type has no counterpart there; it is named.
    """
    name, declared = field["name"], field["type"]
    found = _type(declared)
    if found is None:
        shown = declared if isinstance(declared, str) else declared.get("type", "?")
        raise FeatureNotSupported(
            f'column "{name}" of the Delta table "{location}" has the type {shown}, which has no'
            " counterpart in PostgreSQL"
        )
    return DeltaColumn(name, found[0], found[1], not_null=not field.get("nullable", True))


def _type(declared: Any) -> tuple[str, int] | None:
    """A Delta type as (type name, typmod)."""
    if isinstance(declared, dict):
        if declared.get("type") != "array":
            return None
        element = _type(declared["elementType"])
        return (
            None
            if element is None or element[0].startswith("_")
            else (f"_{element[0]}", element[1])
        )
    if declared in _SIMPLE:
        return _SIMPLE[declared], -1
    decimal = _DECIMAL.fullmatch(declared)
    if decimal:
        return "numeric", numeric_typmod(int(decimal[1]), int(decimal[2]))
    return None
