"""Map the columns of Delta tables of other owners to columns of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replctl.catalog.pg_class import Column
from replctl.lake.delta_log import protocol_at, table_properties
from replctl.lake.table_metadata import nested_names, physical_name
from replctl.record import dataclass
from replctl.spark import storage_type
from replctl.types import delta_type
from replctl.types.numeric import numeric_typmod
from replctl.types.text_length import text_length

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
#: Key in the metadata of a field: the collations of its texts, by path.  Texts without a collation
#: are compared by bytes.
_COLLATIONS = "__COLLATIONS"
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeltaColumn:
    """A column of a Delta table in PostgreSQL's terms.

    Attributes:
        physical_name: the column's name in data files; None if it is `name`.
        field_names: the names in data files of the fields of its STRUCTs (nested_names).
    """

    name: str
    type: str
    typmod: int
    not_null: bool
    physical_name: str | None = None
    field_names: str | None = None


def delta_settings(location: str) -> dict[str, str]:
    """Return the properties of the Delta table at `location`, and the requirements of its protocol
    for readers and writers, by name.
    """
    required = {
        name: ", ".join(sorted(value)) if isinstance(value, list) else str(value)
        for name, value in protocol_at(location).items()
        if value is not None
    }
    return {**table_properties(location), **required}


def collation_of(type_name: str) -> str | None:
    """Return the default collation of columns of a type; None if the type has no collation."""
    return (
        "default"
        if type_name in ("text", "varchar", "bpchar", "_text", "_varchar", "_bpchar")
        else None
    )


def is_void(field: Mapping[str, Any]) -> bool:
    """Return whether a column of a Delta schema has the type void.  Each of its values is NULL."""
    return field["type"] in ("void", "null")


def delta_type_shown(field: Mapping[str, Any]) -> str:
    """Return the type of a Delta column in the form that messages show."""
    declared = field["type"]
    native = delta_type.declared(declared)
    if native is not None and native.is_native:
        return native.text
    length = text_length(field)
    if length is not None:
        return length.shown
    name = declared if isinstance(declared, str) else str(declared.get("type", "?"))
    collations = sorted(set(_collations(field)))
    return f"{name} collate {collations[0]}" if collations else name


def _collations(field: Mapping[str, Any]) -> list[str]:
    """Return the collations of a column's texts.  Spark compares texts by these collations, but
    PostgreSQL does not.
    """
    details = field.get("metadata")
    found = details.get(_COLLATIONS) if isinstance(details, dict) else None
    return [str(name) for name in found.values()] if isinstance(found, dict) else []


def readable_column(field: Mapping[str, Any]) -> DeltaColumn | None:
    """Return a column of a Delta schema as a column of PostgreSQL; None if its type has no
    counterpart there.
    """
    found = _type(field["type"])
    length = text_length(field)
    if length is not None and found in (("text", -1), ("_text", -1)):
        found = length.type
    if found is None or _collations(field):
        return None
    not_null = not field.get("nullable", True)
    physical = stored_physical_name(field)
    return DeltaColumn(field["name"], *found, not_null, physical, nested_names(field))


def relation_column(found: DeltaColumn, attnum: int, name: str | None = None) -> Column:
    """Return the column of a relation for a column of its Delta table.

    Args:
        name: the name in the relation; None for the name in the Delta table.
    """
    return Column(
        attnum,
        name or found.name,
        found.type,
        found.typmod,
        collation_of(found.type),
        found.not_null,
        field_names=found.field_names,
    )


def is_stored_alike(found: DeltaColumn, column: Column) -> bool:
    """Return whether a column of a Delta table has the storage type of a relation's column."""
    stored = storage_type(found.type, found.typmod)
    return stored == storage_type(column.type, column.typmod)


def stored_physical_name(field: Mapping[str, Any]) -> str | None:
    """Return the name of a column in data files; None if it equals the column's own name."""
    physical = physical_name(field)
    return None if physical == field["name"] else physical


def _type(declared: Any) -> tuple[str, int] | None:
    """Return a Delta type as (type name, typmod)."""
    native = delta_type.declared(declared)
    if native is not None and native.is_native:
        return delta_type.native_type_name(native.text), -1
    if isinstance(declared, dict):
        element = _type(declared["elementType"]) if declared.get("type") == "array" else None
        return None if element is None else (f"_{element[0]}", element[1])
    if declared in _SIMPLE:
        return _SIMPLE[declared], -1
    decimal = _DECIMAL.fullmatch(declared)
    if decimal:
        return "numeric", numeric_typmod(int(decimal[1]), int(decimal[2]))
    return None
