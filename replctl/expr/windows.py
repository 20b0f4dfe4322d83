"""Calls with OVER.  PostgreSQL's transformWindowFuncCall() in parse_agg.c and
transformWindowDefinitions() in parse_clause.c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from replctl.errors import (
    FeatureNotSupported,
    PostgresError,
    UndefinedObject,
    WindowingError,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.cast_path import UNKNOWN
from replctl.expr.coerce import Coercion
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
    error = analyzer.context.window_error(raw.pos)
    if error is not None:
        raise error
    definition = _definition(analyzer, raw.over)
    order_by = _order_by(analyzer, definition)
    return nodes.WindowFunc(
        call.function.oid,
        call.function.name,
        call.result,
        call.args,
        raw.over.name,
        _partition_by(analyzer, definition),
        order_by,
        definition.frame,
        raw.is_star,
        call.function.kind == FunctionKind.AGGREGATE,
        call.is_variadic,
        call.condition,
        offsets=_offsets(analyzer, definition, order_by),
        base=definition.ref_name,
        copies_order=definition.ref_name is not None and not raw.over.order_by,
        pos=raw.pos,
    )


def window_clauses(analyzer: Analyzer) -> tuple[nodes.WindowClause, ...]:
    """Return the entries of the WINDOW clause.

    Raises:
        WindowingError, UndefinedObject: an entry is wrong.
    """
    result = []
    for raw, definition in zip(analyzer.windows, _extended(analyzer.windows), strict=True):
        assert raw.name is not None
        order_by = _order_by(analyzer, definition)
        clause = nodes.WindowClause(
            raw.name,
            _partition_by(analyzer, definition),
            order_by,
            raw.frame,
            _offsets(analyzer, definition, order_by),
            raw.ref_name,
            raw.ref_name is not None and not raw.order_by,
        )
        result.append(clause)
    return tuple(result)


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
    for arg in call.args:
        for node in nodes.walk(arg):
            if isinstance(node, nodes.WindowFunc):
                raise WindowingError("window function calls cannot be nested", position=node.pos)


def _definition(analyzer: Analyzer, over: ast.WindowDef) -> ast.WindowDef:
    """Return the window of OVER, which may have a name, or extend another: OVER (w ORDER BY
    ...).
    """
    name = over.name or over.ref_name
    if name is None:
        return over
    for found in _extended(analyzer.windows):
        if found.name == name:
            return found if over.name is not None else _extension(over, found)
    raise _undefined(name, over.pos)


def _extended(windows: Sequence[ast.WindowDef]) -> Iterator[ast.WindowDef]:
    """Yield the entries of a WINDOW clause with the clauses that they copy from earlier ones."""
    earlier: dict[str, ast.WindowDef] = {}
    for window in windows:
        name = window.name
        assert name is not None
        if name in earlier:
            raise WindowingError(f'window "{name}" is already defined', position=window.pos)
        if window.ref_name is not None:
            if window.ref_name not in earlier:
                raise _undefined(window.ref_name, window.pos)
            window = _extension(window, earlier[window.ref_name])
        earlier[name] = window
        yield window


def _undefined(name: str, pos: int) -> PostgresError:
    return UndefinedObject(f'window "{name}" does not exist', position=pos)


def _extension(window: ast.WindowDef, base: ast.WindowDef) -> ast.WindowDef:
    """Return a window with the clauses that it copies from `base`."""
    for clause, is_wrong in (
        ("PARTITION BY", window.partition_by),
        ("ORDER BY", window.order_by and base.order_by),
    ):
        if is_wrong:
            raise WindowingError(
                f'cannot override {clause} clause of window "{base.name}"', position=window.pos
            )
    if base.frame:
        is_bare = window.name is None and not window.order_by and not window.frame
        raise WindowingError(
            f'cannot copy window "{base.name}" because it has a frame clause',
            hint="Omit the parentheses in this OVER clause." if is_bare else None,
            position=window.pos,
        )
    order_by = window.order_by or base.order_by
    return dataclasses.replace(window, partition_by=base.partition_by, order_by=order_by)


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


#: The types of offsets with RANGE, by the type of the column (the in_range functions of btree).
_RANGE_OFFSETS = {
    "int2": ("int2", "int4", "int8"),
    "int4": ("int4", "int2", "int8"),
    "int8": ("int8",),
    "float4": ("float8",),
    "float8": ("float8",),
    "numeric": ("numeric",),
    "date": ("interval",),
    "time": ("interval",),
    "timetz": ("interval",),
    "timestamp": ("interval",),
    "timestamptz": ("interval",),
    "interval": ("interval",),
}


def _offsets(
    analyzer: Analyzer, definition: ast.WindowDef, order_by: tuple[nodes.SortKey, ...]
) -> tuple[nodes.Expr, ...]:
    """Return the offsets of a frame (transformFrameOffset).

    Raises:
        WindowingError: the frame needs an ORDER BY clause.
        FeatureNotSupported: RANGE has no offsets of this type.
    """
    mode = definition.frame.partition(" ")[0]
    if mode == "RANGE" and definition.offsets and len(order_by) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=definition.pos,
        )
    if mode == "GROUPS" and not order_by:
        raise WindowingError("GROUPS mode requires an ORDER BY clause", position=definition.pos)
    result = []
    for raw in definition.offsets:
        expr = analyzer.expr(raw)
        type_ = "int8" if mode != "RANGE" else _range_type(analyzer.coercion, order_by[0], expr)
        result.append(analyzer.coercion.to_specific(expr, type_, mode))
    return tuple(result)


def _range_type(coercion: Coercion, key: nodes.SortKey, offset: nodes.Expr) -> str:
    """Return the type to which RANGE casts its offset."""
    column = coercion.types.base(key.expr.type)
    types = _RANGE_OFFSETS.get(column, ())
    message = (
        "RANGE with offset PRECEDING/FOLLOWING is not supported for column type"
        f" {coercion.types.format(_SORTED_AS.get(column, column))}"
    )
    if not types:
        raise FeatureNotSupported(message, position=expr_location(offset))
    wanted = column if offset.type == UNKNOWN else offset.type
    if wanted in types:
        return wanted
    if not coercion.can_coerce_implicitly(offset.type, types[0]):
        raise FeatureNotSupported(
            f"{message} and offset type {coercion.types.format(offset.type)}",
            hint="Cast the offset value to an appropriate type.",
            position=expr_location(offset),
        )
    return types[0]


#: Types that sort as another type does.
_SORTED_AS = {"varchar": "text", "cidr": "inet"}
