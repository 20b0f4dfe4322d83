"""Evaluates an expression in a SELECT without tables, for rows in VALUES.  SQLite runs the SELECT,
and calls the evaluator."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes
from replctl.expr.environment import Column
from replctl.functions.function_context import function_context
from replctl.query.sqlite import is_answerable, run_query
from replctl.query.tree import FromSubquery, Output, Query
from replctl.session import Session

Row = Sequence[str | None]


def values_of_select(
    session: Session, expr: nodes.Expr, columns: Sequence[Column], rows: Sequence[Row]
) -> list[str]:
    """Return for each row `=text`, `!SQLSTATE message`, or NULL.

    Args:
        expr: an expression of columns of the first item of FROM.
        rows: their values, as canonical texts.
    """
    try:
        return _selected(session, expr, columns, rows)
    except PostgresError:  # find the rows that fail
        return [_of_row(session, expr, columns, row) for row in rows]


def _of_row(session: Session, expr: nodes.Expr, columns: Sequence[Column], row: Row) -> str:
    try:
        (result,) = _selected(session, expr, columns, [row])
    except PostgresError as error:
        return f"!{error.sqlstate} {error.message}"
    return result


def _selected(
    session: Session, expr: nodes.Expr, columns: Sequence[Column], rows: Sequence[Row]
) -> list[str]:
    """Return the values of `SELECT expr FROM (VALUES ...) AS t`."""
    names = tuple(
        Output(c.name, nodes.Var(c.attnum, c.type, c.typmod, c.collation, varno=0)) for c in columns
    )
    values = tuple(
        tuple(
            nodes.Const(column.type, item, column.typmod, column.collation)
            for column, item in zip(columns, row, strict=True)
        )
        for row in rows
    )
    query = Query((Output("v", expr),), (FromSubquery(1, Query(names, values=values)),))
    with session.read() as catalog:
        context = function_context(session, catalog)
        if not is_answerable(query, context.environment):
            raise FeatureNotSupported("a function is unknown to SQLite's side")
        found = run_query(query, context)
    return ["NULL" if value is None else f"={value}" for (value,) in found]


def is_same(expected: str, actual: str) -> bool:
    """Return whether a row's result equals that of the server, which has no message."""
    return actual == expected or (expected.startswith("!") and actual.startswith(f"{expected} "))
