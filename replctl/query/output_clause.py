"""Analyse LIMIT, and the clauses that may name output columns: ORDER BY, GROUP BY and DISTINCT.

This module corresponds to PostgreSQL's parse_clause.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    SqlSyntaxError,
)
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.context import ExprContext
from replctl.expr.error_location import expr_location, raw_location
from replctl.expr.sorting import check_equality, known_type, sort_key
from replctl.parser import ast
from replctl.query.range_table import FromScope, RangeTableEntry
from replctl.query.tree import OrderItem, Output, Query


def _index_of(expr: nodes.Expr, outputs: Sequence[Output]) -> int | None:
    return next((i for i, output in enumerate(outputs) if output.expr == expr), None)


def _output_by_name_or_number(
    raw: ast.RawExpr, outputs: Sequence[Output], clause: str, analyzer: Analyzer
) -> int | None:
    """Return the index of the output column that an item names or numbers; None for expressions
    (findTargetlistEntrySQL92).

    Raises:
        AmbiguousColumn: several different columns have the name.
        InvalidColumnReference: no column has the number.
        SqlSyntaxError: the item is a constant, but not an integer.
    """
    if isinstance(raw, ast.ColumnRef) and len(raw.fields) == 1 and not raw.is_star:
        name = raw.fields[0]
        found = [i for i, o in enumerate(outputs) if o.name == name and not o.is_junk]
        if len({outputs[i].expr for i in found}) > 1:
            raise AmbiguousColumn(f'{clause} "{name}" is ambiguous', position=raw.pos)
        return found[0] if found else None
    if isinstance(raw, ast.Constant):
        if raw.kind != "integer" or raw.value is None:
            raise SqlSyntaxError(f"non-integer constant in {clause}", position=raw.pos)
        number = int(raw.value)
        if not 1 <= number <= sum(not output.is_junk for output in outputs):
            raise InvalidColumnReference(
                f"{clause} position {number} is not in select list", position=raw.pos
            )
        return number - 1
    return None


def with_tail(query: Query, statement: ast.SelectStmt, analyzer: Analyzer) -> Query:
    """Add ORDER BY and LIMIT to a VALUES list or a set operation; they may only use output
    columns.

    Raises:
        FeatureNotSupported: ORDER BY has an expression.
    """
    items, invalid = [], None
    for raw in statement.order_by:
        index = _output_by_name_or_number(raw.expr, query.outputs, "ORDER BY", analyzer)
        if index is None:  # an error in the expression comes before the refusal
            index = _index_of(_over_outputs(raw.expr, query, analyzer), query.outputs)
        if index is None:
            invalid = invalid or raw.expr
        else:
            key = sort_key(analyzer.coercion, query.outputs[index].expr, raw)
            items.append(OrderItem(index, key))
    if invalid is not None and query.values:
        raise FeatureNotSupported(
            "expressions in ORDER BY of VALUES are not supported",
            hint="Move VALUES into a FROM clause: SELECT * FROM (VALUES (...)) AS v ORDER BY ...",
            position=raw_location(invalid),
        )
    if invalid is not None:
        raise FeatureNotSupported(
            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            detail="Only result column names can be used, not expressions or functions.",
            hint="Add the expression/function to every SELECT, or move the UNION into a FROM"
            " clause.",
            position=raw_location(invalid),
        )
    return replace(
        query,
        order_by=tuple(items),
        limit=limit_clause(statement.limit, analyzer, ExprContext.LIMIT),
        offset=limit_clause(statement.offset, analyzer, ExprContext.OFFSET),
    )


def _over_outputs(raw: ast.RawExpr, query: Query, analyzer: Analyzer) -> nodes.Expr:
    """Return an expression over the output columns of a set operation or of VALUES
    (transformSetOperationStmt, transformValuesClause).
    """
    assert isinstance(analyzer.scope, FromScope)
    inner, columns = analyzer.scope, tuple((output.name, output.expr) for output in query.outputs)
    entries = (RangeTableEntry("*VALUES*", 0, columns),) if query.values else ()
    analyzer.scope = replace(inner, entries=entries, columns=columns)
    with analyzer.in_context(ExprContext.ORDER_BY):
        expr = analyzer.expr(raw)
    analyzer.scope = inner
    return expr


def order_by_clause(
    statement: ast.SelectStmt, outputs: list[Output], analyzer: Analyzer
) -> tuple[list[Output], list[tuple[int, nodes.SortKey]]]:
    """Return the output columns, and the sort keys with the indexes of their columns. Add a hidden
    column for each key that is not an output column."""
    result: list[tuple[int, nodes.SortKey]] = []
    outputs = list(outputs)
    for raw in statement.order_by:
        index = _output_by_name_or_number(raw.expr, outputs, "ORDER BY", analyzer)
        if index is None:
            with analyzer.in_context(ExprContext.ORDER_BY):
                expr = known_type(analyzer.coercion, analyzer.expr(raw.expr))
            index = _index_of(expr, outputs)
            if index is None:
                index = len(outputs)
                outputs.append(Output("", expr, is_junk=True))
        key = sort_key(analyzer.coercion, outputs[index].expr, raw)
        outputs[index] = replace(outputs[index], expr=key.expr)
        result.append((index, key))
    return outputs, result


def group_by_clause(
    statement: ast.SelectStmt, outputs: Sequence[Output], analyzer: Analyzer
) -> list[nodes.Expr]:
    """Return the expressions of GROUP BY without duplicates."""
    result: list[nodes.Expr] = []
    for raw in statement.group_by:
        assert not isinstance(raw, ast.GroupingSet)
        expr = _group_item(raw, outputs, analyzer)
        check_equality(analyzer.coercion, expr, raw)
        if expr not in result:
            result.append(expr)
    return result


def _group_item(raw: ast.RawExpr, outputs: Sequence[Output], analyzer: Analyzer) -> nodes.Expr:
    """Return an expression of GROUP BY. A name means a column of FROM if there is one, else an
    output column."""
    is_name = isinstance(raw, ast.ColumnRef) and len(raw.fields) == 1
    with analyzer.in_context(ExprContext.GROUP_BY):
        if is_name and isinstance(raw, ast.ColumnRef):
            column = analyzer.scope.find_column(raw.fields[0], analyzer.context, raw.pos)
            if column is not None:
                return column
        index = _output_by_name_or_number(raw, outputs, "GROUP BY", analyzer)
        if index is not None:
            return outputs[index].expr
        return known_type(analyzer.coercion, analyzer.expr(raw))


def distinct_clause(
    statement: ast.SelectStmt,
    outputs: Sequence[Output],
    order_by: Sequence[tuple[int, nodes.SortKey]],
    analyzer: Analyzer,
) -> tuple[int, ...] | None:
    """Return the indexes of the columns in DISTINCT ON; () for DISTINCT, None without DISTINCT."""
    if statement.distinct is None:
        return None
    if not statement.distinct:
        for index, key in order_by:
            if outputs[index].is_junk:
                raise InvalidColumnReference(
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position=expr_location(key.expr),
                )
        for output in outputs:
            check_equality(analyzer.coercion, output.expr)
        return ()
    indexes = []
    for raw in statement.distinct:
        place = _output_by_name_or_number(raw, outputs, "DISTINCT ON", analyzer)
        if place is None:
            with analyzer.in_context(ExprContext.DISTINCT_ON):
                expr = known_type(analyzer.coercion, analyzer.expr(raw))
            place = _index_of(expr, outputs)
        else:
            expr = outputs[place].expr
        check_equality(analyzer.coercion, expr, raw)
        if place is None:
            raise FeatureNotSupported(
                "SELECT DISTINCT ON expressions that are not in the select list are not supported",
                position=raw_location(raw),
            )
        indexes.append(place)
    leading = [index for index, _key in order_by[: len(indexes)]]
    if order_by and set(leading) != set(indexes[: len(leading)]):
        raise InvalidColumnReference(
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            position=raw_location(statement.distinct[0]),
        )
    return tuple(indexes)


def limit_clause(
    raw: ast.RawExpr | None, analyzer: Analyzer, context: ExprContext
) -> nodes.Expr | None:
    """Return the expression of LIMIT or OFFSET; None if it is missing or NULL."""
    if raw is None or (isinstance(raw, ast.Constant) and raw.kind == "null"):
        return None
    name = context.title
    with analyzer.in_context(context):
        expr = analyzer.coercion.to_specific(analyzer.expr(raw), "int8", name)
    for node in nodes.walk(expr):
        if isinstance(node, nodes.Var):
            raise InvalidColumnReference(
                f"argument of {name} must not contain variables", position=node.pos
            )
    return expr
