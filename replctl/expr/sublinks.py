"""Subqueries in expressions (PostgreSQL's transformSubLink() in parse_expr.c).

The analyzer has a function that analyses the queries.  This module does not look into its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from replctl.errors import FeatureNotSupported, SqlSyntaxError, UndefinedObject
from replctl.expr import nodes
from replctl.expr.error_location import leftmost, raw_location
from replctl.expr.rows import compare_rows
from replctl.parser import ast

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer


class UnanalysedSubquery(FeatureNotSupported):
    """A subquery where the analyzer cannot analyse queries; the position is that of the SubLink."""


class OutputColumn(NamedTuple):
    """A column that a subquery returns."""

    type: str
    typmod: int = -1
    collation: str | None = None


#: Analyses a subquery with the analyzer of the surrounding expression; returns the query tree and
#: its output columns.
AnalyzeQuery: TypeAlias = Callable[[ast.SelectStmt, "Analyzer"], tuple[Any, Sequence[OutputColumn]]]


def sublink(analyzer: Analyzer, raw: ast.SubLink) -> nodes.SubLink:
    """Return EXISTS (query), (query), ARRAY(query), `x op ANY (query)` or `(a, b) op (query)`.

    Raises:
        FeatureNotSupported: the place allows no subqueries.
        UnanalysedSubquery: the analyzer cannot analyse queries.
        SqlSyntaxError: the query has too many or too few columns.
    """
    error = analyzer.context.subquery_error(raw.pos)
    if error is not None:
        raise error
    if analyzer.analyze_query is None:
        raise UnanalysedSubquery("subqueries are not supported here", position=_location(raw))
    query, columns = analyzer.analyze_query(raw.query, analyzer)
    match raw.kind:
        case "exists":
            return nodes.SubLink("exists", query, "bool", pos=raw.pos)
        case "array":
            return _value(analyzer, "array", raw, query, columns)
        case "expr" if raw.test is None:
            return _value(analyzer, "expr", raw, query, columns)
        case "expr":
            return _comparison(analyzer, "row_compare", raw, query, columns)
        case kind:
            return _comparison(analyzer, kind, raw, query, columns)


def _value(
    analyzer: Analyzer,
    kind: Literal["expr", "array"],
    raw: ast.SubLink,
    query: Any,
    columns: Sequence[OutputColumn],
) -> nodes.SubLink:
    if len(columns) != 1:
        raise SqlSyntaxError("subquery must return only one column", position=raw.pos)
    type_, typmod, collation = columns[0]
    types = analyzer.coercion.types
    if kind == "array" and not types.is_array(type_):
        array = types.array(type_)
        if array is None:
            shown = types.format(type_)
            raise UndefinedObject(
                f"could not find array type for data type {shown}", position=raw.pos
            )
        type_ = array
    return nodes.SubLink(kind, query, type_, typmod=typmod, collation=collation, pos=raw.pos)


def _comparison(
    analyzer: Analyzer,
    kind: Literal["any", "all", "row_compare"],
    raw: ast.SubLink,
    query: Any,
    columns: Sequence[OutputColumn],
) -> nodes.SubLink:
    assert raw.test is not None
    test = analyzer.expr(raw.test)
    left = test.args if isinstance(test, nodes.RowExpr) else (test,)
    right = tuple(
        nodes.Param(i, column.type, column.typmod, column.collation)
        for i, column in enumerate(columns, 1)
    )
    if len(left) != len(right):
        what = "many" if len(left) < len(right) else "few"
        raise SqlSyntaxError(f"subquery has too {what} columns", position=raw.pos)
    comparison = compare_rows(analyzer.coercion, raw.operator or ("=",), left, right, raw.pos)
    return nodes.SubLink(kind, query, "bool", comparison, pos=raw.pos)


def _location(raw: ast.SubLink) -> int:
    """Return the position of a SubLink; for a compared row, the position of its first field."""
    tests = raw.test.args if isinstance(raw.test, ast.RowExpr) else (raw.test,)
    return leftmost(raw.pos, *(raw_location(test) for test in tests if test is not None))
