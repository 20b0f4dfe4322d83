"""Aggregate calls, including ordered-set ones, and GROUPING (PostgreSQL's parse_agg.c)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from replctl.errors import (
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    ProgramLimitExceeded,
    UndefinedFunction,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.coerce import IMPLICIT, Coercion, stripped_implicit
from replctl.expr.common_type import common_type, common_typmod
from replctl.expr.context import ExprContext
from replctl.expr.error_location import expr_location
from replctl.expr.function_candidates import FoundFunction, ResolvedCall
from replctl.expr.sorting import check_equality, is_sortable, known_type, sort_key
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.builtin import Function

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer

_MAX_GROUPING_ARGUMENTS = 31


@dataclass(frozen=True, slots=True)
class OrderedSetAggregate:
    """The facts of pg_aggregate about an ordered-set aggregate."""

    direct_args: int
    is_hypothetical: bool = False


#: PostgreSQL's ordered-set aggregates; users cannot define others here.
ORDERED_SET_AGGREGATES = {
    "mode": OrderedSetAggregate(0),
    "percentile_cont": OrderedSetAggregate(1),
    "percentile_disc": OrderedSetAggregate(1),
    "rank": OrderedSetAggregate(1, is_hypothetical=True),
    "dense_rank": OrderedSetAggregate(1, is_hypothetical=True),
    "percent_rank": OrderedSetAggregate(1, is_hypothetical=True),
    "cume_dist": OrderedSetAggregate(1, is_hypothetical=True),
}


def make_aggregate(analyzer: Analyzer, call: ResolvedCall) -> nodes.Aggref:
    """Return the call of an aggregate function.

    Raises:
        GroupingError: the place does not allow aggregates, or an argument contains another one.
        UndefinedFunction, InvalidColumnReference: the aggregate cannot sort as required.
    """
    raw, args = call.raw, call.args
    direct: tuple[nodes.Expr, ...] = ()
    if raw.within_group:
        count = len(args) - len(raw.order_by)
        direct, args = args[:count], args[count:]
        sorted_by: Sequence[nodes.Expr] = args
    else:
        with analyzer.in_context(ExprContext.ORDER_BY):
            sorted_by = [_argument_of(args, analyzer.expr(item.expr)) for item in raw.order_by]
    keys = tuple(
        sort_key(analyzer.coercion, expr, item)
        for expr, item in zip(sorted_by, raw.order_by, strict=True)
    )
    if raw.is_distinct:
        args = tuple(known_type(analyzer.coercion, arg) for arg in args)
        _check_distinct(analyzer.coercion, args, keys)
    aggregate = nodes.Aggref(
        call.function.oid,
        call.function.name,
        call.result,
        args,
        direct,
        keys,
        raw.is_distinct,
        raw.is_star,
        call.is_variadic,
        raw.within_group,
        call.condition,
        pos=raw.pos,
    )
    return _at_its_level(analyzer, aggregate)


def grouping(analyzer: Analyzer, raw: ast.GroupingFunc) -> nodes.GroupingFunc:
    """Return GROUPING(...); the caller checks that its arguments are in GROUP BY.

    Raises:
        GroupingError: the place does not allow GROUPING.
    """
    if len(raw.args) > _MAX_GROUPING_ARGUMENTS:
        raise ProgramLimitExceeded("GROUPING must have fewer than 32 arguments", position=raw.pos)
    args = tuple(analyzer.expr(arg) for arg in raw.args)
    level = _level_of_args((), args, None)
    owner = analyzer.at_level(level)
    error = owner.context.aggregate_error(raw.pos, grouping=True)
    if error is not None:
        raise error
    owner.has_aggregates = True
    return nodes.GroupingFunc(args, level, pos=raw.pos)


def check_ordered_set_call(
    found: FoundFunction, raw: ast.FuncCall, count: int, signature: str
) -> None:
    """Check the arguments and WITHIN GROUP of an ordered-set aggregate.

    Args:
        count: the number of all arguments, including those of WITHIN GROUP.

    Raises:
        WrongObjectType: WITHIN GROUP is missing.
        FeatureNotSupported: there is an OVER clause.
        UndefinedFunction: the number of direct arguments is wrong.
    """
    shown = ".".join(raw.name)
    if not raw.within_group:
        raise WrongObjectType(
            f"WITHIN GROUP is required for ordered-set aggregate {shown}", position=raw.pos
        )
    if raw.over is not None:
        raise FeatureNotSupported(
            f"OVER is not supported for ordered-set aggregate {shown}", position=raw.pos
        )
    facts = ORDERED_SET_AGGREGATES[found.function.name]
    aggregated = len(raw.order_by)
    direct = count - aggregated
    hint = None
    if not facts.is_hypothetical and direct != facts.direct_args:
        plural = "" if facts.direct_args == 1 else "s"
        hint = (
            f"There is an ordered-set aggregate {shown}, but it requires {facts.direct_args} "
            f"direct argument{plural}, not {direct}."
        )
    elif facts.is_hypothetical and direct != aggregated:
        hint = (
            f"To use the hypothetical-set aggregate {shown}, the number of hypothetical direct "
            f"arguments (here {direct}) must match the number of ordering columns "
            f"(here {aggregated})."
        )
    if hint is not None:
        raise UndefinedFunction(f"function {signature} does not exist", hint=hint, position=raw.pos)


def unify_hypothetical_args(
    coercion: Coercion, function: Function, args: Sequence[nodes.Expr], aggregated: int
) -> Sequence[nodes.Expr]:
    """Return the arguments; cast each hypothetical value and its column to their common type.

    Args:
        aggregated: the number of arguments that are columns.
    """
    if not ORDERED_SET_AGGREGATES[function.name].is_hypothetical:
        return args
    result = list(args)
    for i in range(aggregated):
        pair = (result[i + aggregated], result[i])
        type_ = common_type(coercion, pair, "WITHIN GROUP")
        typmod = common_typmod(pair, type_)
        result[i] = coercion.to_type(result[i], type_, typmod, IMPLICIT)
        result[i + aggregated] = coercion.to_type(result[i + aggregated], type_, typmod, IMPLICIT)
    return result


def _argument_of(args: Sequence[nodes.Expr], expr: nodes.Expr) -> nodes.Expr:
    """Return the argument that equals an expression of ORDER BY except for implicit casts; if there
    is none, the expression itself (findTargetlistEntrySQL99).
    """
    if expr in args:
        return expr
    return next((arg for arg in args if expr == stripped_implicit(arg)), expr)


def _check_distinct(
    coercion: Coercion, args: Sequence[nodes.Expr], keys: Sequence[nodes.SortKey]
) -> None:
    for key in keys:
        if key.expr not in args:
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=expr_location(key.expr),
            )
    for arg in args:
        check_equality(coercion, arg)
    for arg in args:
        if not is_sortable(coercion, arg.type):
            raise UndefinedFunction(
                "could not identify an ordering operator for type "
                f"{coercion.types.format(arg.type)}",
                detail="Aggregates with DISTINCT must be able to sort their inputs.",
                position=expr_location(arg),
            )


def _at_its_level(analyzer: Analyzer, aggregate: nodes.Aggref) -> nodes.Aggref:
    """Return the aggregate with its query level: the innermost level from which it uses columns."""
    exprs = (*aggregate.args, *(key.expr for key in aggregate.order_by))
    level = _level_of_args(aggregate.direct_args, exprs, aggregate.filter)
    owner = analyzer.at_level(level)
    error = owner.context.aggregate_error(aggregate.pos)
    if error is not None:
        raise error
    owner.has_aggregates = True
    if level == 0:
        return aggregate
    return dataclasses.replace(aggregate, levels_up=level)


def _level_of_args(
    direct: Sequence[nodes.Expr], args: Sequence[nodes.Expr], condition: nodes.Expr | None
) -> int:
    """Return the query level of an aggregate, like check_agg_arguments in parse_agg.c."""
    inner = [*args, *([] if condition is None else [condition])]
    _check_contents([*inner, *direct])
    aggregate_levels = [level for _found, level in _aggregates(inner)]
    variable_levels = [level for _found, level in _variables(inner)]
    level = min((*aggregate_levels, *variable_levels), default=0)
    if level in aggregate_levels:
        raise _nested(inner, level)
    for variable, variable_level in _variables(direct):
        if variable_level < level:
            raise GroupingError(
                "outer-level aggregate cannot contain a lower-level variable in its direct "
                "arguments",
                position=variable.pos,
            )
    for _aggregate, aggregate_level in _aggregates(direct):
        if aggregate_level <= level:
            raise _nested(direct, aggregate_level)
    return level


def _nested(exprs: Iterable[nodes.Expr], level: int) -> GroupingError:
    position = next((found.pos for found, of in _aggregates(exprs) if of == level), -1)
    return GroupingError("aggregate function calls cannot be nested", position=position)


def _check_contents(exprs: Iterable[nodes.Expr]) -> None:
    for expr in exprs:
        for node in nodes.walk(expr):
            if isinstance(node, nodes.FuncExpr) and node.returns_set:
                raise FeatureNotSupported(
                    "aggregate function calls cannot contain set-returning function calls",
                    hint="You might be able to move the set-returning function into a LATERAL FROM "
                    "item.",
                    position=expr_location(node),
                )
            if isinstance(node, nodes.WindowFunc):
                raise GroupingError(
                    "aggregate function calls cannot contain window function calls",
                    position=node.pos,
                )


def _aggregates(
    exprs: Iterable[nodes.Expr],
) -> Iterator[tuple[nodes.Aggref | nodes.GroupingFunc, int]]:
    for node, level in _references(exprs):
        if isinstance(node, nodes.Aggref | nodes.GroupingFunc):
            yield node, level


def _variables(exprs: Iterable[nodes.Expr]) -> Iterator[tuple[nodes.Var, int]]:
    for node, level in _references(exprs):
        if isinstance(node, nodes.Var):
            yield node, level


def _references(exprs: Iterable[nodes.Expr]) -> Iterator[tuple[nodes.Node, int]]:
    """Yield columns and aggregates with the levels of their queries, as seen from `exprs`. Those
    that subqueries in `exprs` have of their own are left out.
    """
    for expr in exprs:
        for node, depth in _with_subqueries(expr):
            level = getattr(node, "levels_up", -1) - depth
            if level >= 0:
                yield node, level


def _with_subqueries(expr: nodes.Expr) -> Iterator[tuple[nodes.Node, int]]:
    for node in nodes.walk(expr):
        yield node, 0
        if isinstance(node, nodes.SubLink):
            yield from node.query.walk_levels(1)
