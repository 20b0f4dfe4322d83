"""Expressions that a Delta table stores for its rows; Spark evaluates them unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replctl.spark.data_type import quote_name
from replctl.spark.values import StoredExpr


def used_columns(expr: StoredExpr) -> list[tuple[str, int]]:
    """Return the columns that an expression may use: its text contains their names."""
    text = expr.text.lower()
    return [(name, attnum) for name, attnum in expr.columns if name.lower() in text]


def stored_sql_of(expr: StoredExpr, column: Callable[[int], str]) -> str:
    """Return the SQL of an expression with other columns in place of the table's columns.

    `a > 0`, a in w1  becomes  transform(array(named_struct('f0', w1)),
    `values` -> transform(array(`values`.f0), `a` -> (a > 0))[0])[0]

    The parameters of lambda functions give each value its name in the text.  The outermost lambda
    has one struct of all values, because a column of the surrounding query may have the same name.

    Args:
        column: returns the SQL of a column, given its attnum.
    """
    used = used_columns(expr)
    if not used:
        return f"({expr.text})"
    whole = quote_name(_free_name([name for name, _attnum in used], expr.text))
    text = f"({expr.text})"
    for i, (name, _attnum) in enumerate(used):
        text = f"transform(array({whole}.f{i}), {quote_name(name)} -> {text})[0]"
    values = ", ".join(f"'f{i}', {column(attnum)}" for i, (_name, attnum) in enumerate(used))
    return f"transform(array(named_struct({values})), {whole} -> {text})[0]"


def _free_name(names: Sequence[str], text: str) -> str:
    """Return a name that is no column's name and does not occur in a text."""
    found, taken = "values", {name.lower() for name in names}
    while found in taken or found in text.lower():
        found += "_"
    return found
