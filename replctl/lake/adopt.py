"""Delta tables that others own: map their columns to PostgreSQL's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.lake.delta_log import protocol_at, table_properties
from replctl.lake.table_metadata import physical_name
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
    """A column of a Delta table in PostgreSQL's terms.

    Attributes:
        physical_name: its name in files, if different.
    """

    name: str
    type: str
    typmod: int
    not_null: bool
    physical_name: str | None = None


def delta_settings(location: str) -> dict[str, str]:
    """Return the properties of the Delta table at `location`, and the requirements of its protocol
    for readers and writers, by name.
    """
    asked = {
        name: ", ".join(sorted(value)) if isinstance(value, list) else str(value)
        for name, value in protocol_at(location).items()
        if value is not None
    }
    return {**table_properties(location), **asked}


def collation_of(type_name: str) -> str | None:
    """Return the default collation of a column of a type."""
    return (
        "default"
        if type_name in ("text", "varchar", "bpchar", "_text", "_varchar", "_bpchar")
        else None
    )


def delta_column(location: str, field: Mapping[str, Any]) -> DeltaColumn:
    """Return a column of a Delta schema as a column of PostgreSQL.

    Raises:
        FeatureNotSupported: its type, which the message names, has no counterpart there.
    """
    column = readable_column(field)
    if column is None:
        raise FeatureNotSupported(
            f'column "{field["name"]}" of the Delta table "{location}" has the type'
            f" {shown_type(field['type'])}, which has no counterpart in PostgreSQL"
        )
    return column


def shown_type(declared: Any) -> str:
    """Return a type of a Delta schema for messages."""
    return declared if isinstance(declared, str) else str(declared.get("type", "?"))


def readable_column(field: Mapping[str, Any]) -> DeltaColumn | None:
    """Return a column of a Delta schema as a column of PostgreSQL; None if its type has no
    counterpart there.
    """
    found = _type(field["type"])
    if found is None:
        return None
    not_null = not field.get("nullable", True)
    return DeltaColumn(field["name"], found[0], found[1], not_null, stored_physical_name(field))


def stored_physical_name(field: Mapping[str, Any]) -> str | None:
    """Return the name of a column in files, if it differs from its own."""
    physical = physical_name(field)
    return None if physical == field["name"] else physical


def _type(declared: Any) -> tuple[str, int] | None:
    """Return a Delta type as (type name, typmod)."""
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
