"""Pass stored values through the input functions of their types.

Other programs can write any text into a column that replctl stores as text.  PostgreSQL's types
have one stored form for each value: a uuid in lower case, jsonb with sorted keys, char(n) with all
its blanks.  Comparisons in Spark rely on it.
"""

from __future__ import annotations

from replctl.expr import object_identifier
from replctl.spark.data_type import decimal_of, element_type, quote, wire
from replctl.spark.text_conversion import fitted_sql
from replctl.spark.values import TableColumn
from replctl.types import text
from replctl.types.delta_type import is_native

#: Types whose values are valid in all stored forms.
_ALWAYS_VALID = frozenset(
    [
        *("bool", "int2", "int4", "int8", "float4", "float8", "bytea", "pg_lsn"),
        *("date", "timestamp", "timestamptz", "text", "unknown"),
    ]
)
_WITH_LENGTH = ("varchar", "bpchar")


def needs_input(type_name: str, typmod: int) -> bool:
    """Return whether the storage of a type accepts values that its input function refuses or
    changes.  The subscriber checks the labels of enums and the fields of rows."""
    element = element_type(type_name) or type_name
    if element in _ALWAYS_VALID or is_native(element) or element in object_identifier.TYPES:
        return False
    if element in _WITH_LENGTH:
        return typmod >= 0
    if element == "numeric":
        return decimal_of(typmod) is None
    return not element.startswith("@") and text.is_supported(element)


def input_sql(column: TableColumn, stored: str) -> str:
    """Return SQL that reads a stored value with the input function of the column's type.

    Args:
        stored: SQL of the stored value.
    """
    type_name, typmod = column.text_of or (column.type, column.typmod)
    place = f"The value is in {column.input_of}."
    if type_name in _WITH_LENGTH:
        return fitted_sql(stored, type_name, typmod, place)
    form = wire(type_name, typmod)
    read = f"replctl_stored_{type_name}({form.to_wire.format(stored)}, {typmod}, {quote(place)})"
    return form.from_wire.format(read)
