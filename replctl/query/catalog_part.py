"""Queries over tables and catalogs: SQLite answers the subqueries over catalogs first, then Spark
runs the rest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, TypeVar

from replctl.errors import CardinalityViolation
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.query.sqlite import is_answerable, run_query
from replctl.query.sqlite_value import canonical_form
from replctl.query.tree import (
    FromSubquery,
    FromTable,
    Output,
    Query,
    is_closed,
    tables_of,
    transform,
)
from replctl.types import text

_Part = TypeVar("_Part")


def with_answers(part: _Part, context: FunctionContext) -> _Part:
    """Return a query with the rows of subqueries that read only catalogs in place of these
    subqueries. Other references to catalogs get the list of their used columns.

    Raises:
        CardinalityViolation: a scalar subquery has several rows (21000).
        PostgresError: such a subquery fails.
    """
    used = _used_columns(part)

    def answered(node: Any) -> Any:
        match node:
            case nodes.SubLink() if _asks_catalogs(node.query, context):
                test = transform(node.test, answered)
                rows = run_query(node.query, context, form=canonical_form)
                return _answer_of(replace(node, test=test), rows)
            case FromSubquery() if _asks_catalogs(node.query, context):
                rows = run_query(node.query, context, form=canonical_form)
                return replace(node, query=query_of_rows(node.query, rows), is_lateral=False)
            case FromTable() if node.is_catalog:
                conditions = transform(node.conditions, answered)
                return replace(node, columns=used[node.varno], conditions=conditions)
        return None

    result: _Part = transform(part, answered)
    return result


def _asks_catalogs(query: Query, context: FunctionContext) -> bool:
    """Return whether SQLite can answer a query before the query around it runs: it reads
    catalogs only, and uses nothing of the outer query."""
    tables = list(tables_of(query))
    is_catalogs = bool(tables) and all(table.is_catalog for table in tables)
    return is_catalogs and is_closed(query) and is_answerable(query, context.environment)


def _used_columns(part: Any) -> defaultdict[int, frozenset[int]]:
    """Return the numbers of the used columns, by varno. If a query uses a whole row, the value is
    None: all columns. If nested queries share a varno, the result has the columns of them all.
    """
    used: defaultdict[int, Any] = defaultdict(frozenset)

    def note(node: Any) -> None:
        if isinstance(node, nodes.Var) and used[node.varno] is not None:
            used[node.varno] = used[node.varno] | {node.attnum} if node.attnum else None

    transform(part, note)
    return used


def _answer_of(link: nodes.SubLink, rows: list[list[str | None]]) -> nodes.Expr:
    match link.kind:
        case "exists":
            return nodes.Const("bool", "t" if rows else "f")
        case "expr":
            if len(rows) > 1:
                raise CardinalityViolation(
                    "more than one row returned by a subquery used as an expression"
                )
            value = rows[0][0] if rows else None
            return nodes.Const(link.type, value, link.typmod, link.collation)
        case "array":
            items = text.render("_text", [row[0] for row in rows])
            return nodes.Const(link.type, items, link.typmod, link.collation)
        case "any" | "all" if getattr(link.test, "name", "") not in ("=", "<>"):
            return _each(link, rows)
    return replace(link, query=query_of_rows(link.query, rows))


def _each(link: nodes.SubLink, rows: list[list[str | None]]) -> nodes.Expr:
    """Return comparisons with every row: `x > ANY (...)` becomes `x > 1 OR x > 2`."""
    columns = link.query.columns

    def of_row(row: list[str | None]) -> nodes.Expr:
        def value(node: Any) -> nodes.Const | None:
            if not isinstance(node, nodes.Param) or not node.number:
                return None
            column = columns[node.number - 1]
            return nodes.Const(column.type, row[node.number - 1], column.typmod, column.collation)

        test: nodes.Expr = nodes.transform(link.test, value)
        return test

    tests = (nodes.Const("bool", "tf"[link.kind == "any"]), *map(of_row, rows))
    return nodes.BoolExpr("or" if link.kind == "any" else "and", tests)


def query_of_rows(query: Query, rows: list[list[str | None]]) -> Query:
    """Return a VALUES query of the result rows of `query`, with the same columns."""
    columns = query.columns
    if not rows:
        nothing = (
            Output(c.name, nodes.Const(c.type, None, c.typmod, c.collation)) for c in columns
        )
        return Query(tuple(nothing), where=nodes.Const("bool", "f"))
    outputs = tuple(
        Output(c.name, nodes.Var(i, c.type, c.typmod, c.collation, 0))
        for i, c in enumerate(columns, start=1)
    )
    values = tuple(
        tuple(
            nodes.Const(c.type, value, c.typmod, c.collation)
            for c, value in zip(columns, row, strict=True)
        )
        for row in rows
    )
    return Query(outputs, values=values)
