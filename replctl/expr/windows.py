"""Calls with OVER.  PostgreSQL's transformWindowFuncCall() in parse_agg.c and
transformWindowDefinitions() in parse_clause.c.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from replctl.errors import FeatureNotSupported, UndefinedObject, WindowingError, WrongObjectType
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.expr.error_location import expr_location
from replctl.expr.function_candidates import ResolvedCall
from replctl.expr.sorting import check_equality, known_type, sort_key
from replctl.parser import ast
from replctl.types.function_kind import FunctionKind

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer


def make_window_function(
    analyzer: Analyzer, call: ResolvedCall, last_set: nodes.Expr | None
) -> nodes.WindowFunc:
    """Return the call of a window function, or of an aggregate as a window function.

    Args:
        last_set: the last set-returning call before the arguments were analysed.

    Raises:
        WindowingError: the place does not allow window functions, or an argument contains one.
        FeatureNotSupported, WrongObjectType: a clause is allowed only for aggregates.
        UndefinedObject: there is no window of this name.
    """
    raw = call.raw
    assert raw.over is not None
    _check_clauses(analyzer, call, last_set)
    for arg in call.args:
        for node in nodes.walk(arg):
            if isinstance(node, nodes.WindowFunc):
                raise WindowingError("window function calls cannot be nested", position=node.pos)
    error = analyzer.context.window_error(raw.pos)
    if error is not None:
        raise error
    definition = _definition(analyzer, raw.over)
    return nodes.WindowFunc(
        call.function.oid,
        call.function.name,
        call.result,
        call.args,
        raw.over.name,
        _partition_by(analyzer, definition),
        _order_by(analyzer, definition),
        definition.frame,
        raw.is_star,
        call.function.kind == FunctionKind.AGGREGATE,
        call.is_variadic,
        call.condition,
        pos=raw.pos,
    )


def _check_clauses(analyzer: Analyzer, call: ResolvedCall, last_set: nodes.Expr | None) -> None:
    raw = call.raw
    is_aggregate = call.function.kind == FunctionKind.AGGREGATE
    if raw.is_distinct:
        raise FeatureNotSupported(
            "DISTINCT is not implemented for window functions", position=raw.pos
        )
    if is_aggregate and not call.args and not raw.is_star:
        raise WrongObjectType(
            f"{call.name}(*) must be used to call a parameterless aggregate function",
            position=raw.pos,
        )
    if raw.order_by:
        raise FeatureNotSupported(
            "aggregate ORDER BY is not implemented for window functions", position=raw.pos
        )
    if not is_aggregate and raw.filter is not None:
        raise FeatureNotSupported(
            "FILTER is not implemented for non-aggregate window functions", position=raw.pos
        )
    if analyzer.last_set is not last_set and analyzer.last_set is not None:
        raise FeatureNotSupported(
            "window function calls cannot contain set-returning function calls",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
            position=expr_location(analyzer.last_set),
        )


def _definition(analyzer: Analyzer, over: ast.WindowDef) -> ast.WindowDef:
    """Return the window of OVER, which may have a name, or extend another: OVER (w ORDER BY
    ...).
    """
    if over.name is not None:
        return _named(analyzer, over.name, over.pos)
    if over.ref_name is None:
        return over
    base = _named(analyzer, over.ref_name, over.pos)
    for clause, is_wrong in (
        ("PARTITION BY", over.partition_by),
        ("ORDER BY", over.order_by and base.order_by),
    ):
        if is_wrong:
            raise WindowingError(
                f'cannot override {clause} clause of window "{over.ref_name}"', position=over.pos
            )
    if base.frame:
        raise WindowingError(
            f'cannot copy window "{over.ref_name}" because it has a frame clause',
            position=over.pos,
        )
    return dataclasses.replace(
        over, partition_by=base.partition_by, order_by=over.order_by or base.order_by
    )


def _named(analyzer: Analyzer, name: str, pos: int) -> ast.WindowDef:
    definition = analyzer.windows.get(name)
    if definition is None:
        raise UndefinedObject(f'window "{name}" does not exist', position=pos)
    return _definition(analyzer, definition) if definition.ref_name else definition


def _partition_by(analyzer: Analyzer, definition: ast.WindowDef) -> tuple[nodes.Expr, ...]:
    result = []
    with analyzer.in_context(ExprContext.WINDOW_PARTITION):
        for raw in definition.partition_by:
            expr = known_type(analyzer.coercion, analyzer.expr(raw))
            check_equality(analyzer.coercion, expr)
            result.append(expr)
    return tuple(result)


def _order_by(analyzer: Analyzer, definition: ast.WindowDef) -> tuple[nodes.SortKey, ...]:
    with analyzer.in_context(ExprContext.WINDOW_ORDER):
        return tuple(
            sort_key(analyzer.coercion, analyzer.expr(raw.expr), raw) for raw in definition.order_by
        )
