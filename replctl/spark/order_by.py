"""ORDER BY for Spark: items with NULLS FIRST or LAST, and sort keys by which Spark sorts like
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark import numeric_sql
from replctl.spark.comparison_sql import is_comparable, lsn_key
from replctl.spark.data_type import element_type
from replctl.spark.normal_form import interval_key
from replctl.spark.sql_value import SqlValue

#: Translates an expression.
Translate: TypeAlias = Callable[[nodes.Expr], SqlValue]


def sort_key(key: nodes.SortKey, translate: Translate) -> str:
    """Return an ORDER BY item.  NULLs come last unless `nulls_first` is set."""
    value = comparable(translate(key.expr))
    direction = "DESC" if key.descending else "ASC"
    return f"{sortable(value)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def sortable(value: SqlValue) -> str:
    """Return SQL of a sort key by which Spark sorts like PostgreSQL."""
    if value.type == "bpchar":
        return f"rtrim({value.text})"
    if value.type == "interval":
        return interval_key(value.text)
    if value.type == "pg_lsn":
        return lsn_key(value.text)
    if value.type == "numeric" and value.decimal is None:
        return numeric_sql.sort_key(value)
    if (
        element_type(value.type) is not None
    ):  # in arrays, NULL sorts last in PostgreSQL, but first in Spark
        return f"transform({value.text}, item_ -> struct(item_ IS NULL, item_))"
    return value.text


def comparable(value: SqlValue) -> SqlValue:
    """Return a value, after checking that Spark can sort its type like PostgreSQL.

    Raises:
        FeatureNotSupported: Spark cannot (0A000).
    """
    if not is_comparable(value):
        raise FeatureNotSupported(f"sorting by type {value.type} is not supported")
    return value
