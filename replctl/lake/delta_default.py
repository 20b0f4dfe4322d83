"""Use the defaults of a Delta table's columns for new rows, if they are plain literals.  Other
defaults are expressions of Spark's SQL, which replctl does not evaluate.

Delta's protocol, section "Default Columns": the writer supplies the values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from replctl.catalog.pg_class import Column
from replctl.errors import PostgresError
from replctl.expr import nodes
from replctl.types.numeric import precision_and_scale
from replctl.types.text import canonical

_INTEGERS = ("int2", "int4", "int8")
_TEXTS = ("text", "varchar")
_NUMBER = re.compile(r"-?\d+(?:\.(\d+))?", re.ASCII)
#: A backslash begins an escape in Spark, but not in PostgreSQL.
_TEXT = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_DATE = re.compile(r"DATE\s*'(\d{4}-\d\d-\d\d)'", re.ASCII | re.IGNORECASE)
_BOOLEANS = {"true": "t", "false": "f"}


def with_delta_default(column: Column, name: str, defaults: Mapping[str, str]) -> Column:
    """Return a column with the default of the Delta table, if the relation's column has none.  A
    default that is not a literal becomes the column's `foreign_default`.

    Args:
        name: the name of the column in the Delta table.
        defaults: the defaults of the Delta table, by column name.
    """
    text = defaults.get(name)
    if text is None or column.has_default or column.generated or column.identity:
        return column
    default = literal_default(column, text)
    if default is None:
        return replace(column, foreign_default=text)
    return replace(column, default=default)


def literal_default(column: Column, text: str) -> nodes.Const | None:
    """Return the value of a default; None if it is not a plain literal of the column's type."""
    text = text.strip()
    if text.lower() == "null":
        return nodes.Const(column.type, None, column.typmod, column.collation)
    found = _literal(column, text)
    if found is None:
        return None
    try:
        value = canonical(column.type, found, column.typmod)
    except PostgresError:  # the type has another range in Spark
        return None
    return nodes.Const(column.type, value, column.typmod, column.collation)


def _literal(column: Column, text: str) -> str | None:
    """Convert a literal of Spark's SQL to PostgreSQL's text; None if it is not a plain literal."""
    if column.type == "bool":
        return _BOOLEANS.get(text.lower())
    if column.type == "date":
        date = _DATE.fullmatch(text)
        return None if date is None else date[1]
    if column.type in _TEXTS:
        quoted = _TEXT.fullmatch(text)
        return None if quoted is None else quoted[1] if quoted[1] is not None else quoted[2]
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    digits = len(number[1] or "")
    if column.type in _INTEGERS or column.type == "float4":
        return None if digits else text
    if column.type == "numeric" and column.typmod >= 0:
        return None if digits > precision_and_scale(column.typmod)[1] else text
    return text if column.type in ("float8", "numeric") else None
