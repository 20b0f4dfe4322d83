"""Analyse `f(x)`: a function, a cast, a field of a row, an aggregate or a window function.
PostgreSQL's ParseFuncOrColumn() in parse_func.c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.errors import (
    AmbiguousFunction,
    DatatypeMismatch,
    FeatureNotSupported,
    PostgresError,
    SqlSyntaxError,
    TooManyArguments,
    UndefinedFunction,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.aggregates import (
    ORDERED_SET_AGGREGATES,
    check_ordered_set_call,
    make_aggregate,
    unify_hypothetical_args,
)
from replctl.expr.cast_path import UNKNOWN, CastContext
from replctl.expr.coerce import Manner
from replctl.expr.context import ExprContext
from replctl.expr.error_location import expr_location, list_location
from replctl.expr.function_candidates import (
    Call,
    FoundFunction,
    NoFunction,
    ResolvedCall,
    find_function,
)
from replctl.expr.polymorphic import resolve
from replctl.expr.windows import make_window_function
from replctl.parser import ast
from replctl.types.function_kind import FunctionKind

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer

_MAX_ARGUMENTS = 100  # FUNC_MAX_ARGS
_PLAIN = ast.FuncCall((), ())


def function_call(analyzer: Analyzer, raw: ast.FuncCall) -> nodes.Expr:
    """Return the expression of a call.

    Raises:
        PostgresError: there is no such function, or its arguments or its place are wrong.
    """
    last_set = analyzer.last_set
    args = [_argument(analyzer, arg) for arg in raw.args]
    if raw.within_group:
        with analyzer.in_context(ExprContext.ORDER_BY):
            args += [analyzer.expr(key.expr) for key in raw.order_by]
    condition = None
    if raw.filter is not None:
        with analyzer.in_context(ExprContext.FILTER):
            condition = analyzer.boolean(raw.filter, "FILTER")
    found = _find(analyzer, raw, args)
    if isinstance(found, NoFunction) and found.reason == "none" and _may_be_field(raw, args):
        field = _field(analyzer, raw.name[0], args[0], raw.pos)
        if field is not None:
            return field
    if isinstance(found, NoFunction) and found.reason != "cast":
        raise _no_function(analyzer, found, raw, args)
    return _apply(analyzer, found, raw, args, condition, last_set)


def field_or_function(
    analyzer: Analyzer, name: str, row: nodes.Expr, last_set: nodes.Expr | None, pos: int
) -> nodes.Expr | None:
    """Return the field `row.name` or, if there is no such field, the call `name(row)`; None if
    there is neither.

    Args:
        last_set: the last set-returning call before the row was analysed.
    """
    raw = ast.FuncCall((name,), (), pos=pos)
    if analyzer.coercion.types.is_row(row.type):
        field = _field(analyzer, name, row, pos)
        if field is not None:
            return field
    found = _find(analyzer, raw, [row])
    if isinstance(found, NoFunction) and found.reason != "cast":
        return None
    return _apply(analyzer, found, raw, [row], None, last_set)


def row_fields(analyzer: Analyzer, row: nodes.Expr) -> list[tuple[str, str, int, str | None]]:
    """Return the names, types, modifiers and collations of a row's fields; [] if unknown."""
    types = analyzer.coercion.types
    columns = types.columns(row.type)
    if columns is not None:
        return [(column.name, column.type, column.typmod, column.collation) for column in columns]
    match row:
        case nodes.RowExpr(args=args):
            return [
                (f"f{i}", arg.type, nodes.typmod(arg), types.collation(arg.type))
                for i, arg in enumerate(args, 1)
            ]
        case nodes.FuncExpr(function_oid=oid):
            found = analyzer.environment.function(oid).columns
            return [(name, type_, -1, types.collation(type_)) for name, type_ in found]
        case _:
            return []


# -- finding the function


def _argument(analyzer: Analyzer, raw: ast.RawExpr | ast.NamedArg) -> nodes.Expr:
    if not isinstance(raw, ast.NamedArg):
        return analyzer.expr(raw)
    arg = analyzer.expr(raw.arg)
    return nodes.NamedArgExpr(arg, raw.name, arg.type, pos=raw.pos)


def _find(
    analyzer: Analyzer, raw: ast.FuncCall, args: Sequence[nodes.Expr]
) -> FoundFunction | NoFunction:
    if len(args) > _MAX_ARGUMENTS:
        raise TooManyArguments(
            f"cannot pass more than {_MAX_ARGUMENTS} arguments to a function", position=raw.pos
        )
    is_literal = len(args) == 1 and isinstance(args[0], nodes.Const) and args[0].type == UNKNOWN
    call = Call(
        raw.name,
        tuple(arg.type for arg in args),
        _argument_names(args),
        expand_variadic=not raw.is_variadic,
        literal=is_literal,
    )
    try:
        return find_function(analyzer.coercion, call)
    except PostgresError as error:
        error.position = raw.pos
        raise


def _argument_names(args: Sequence[nodes.Expr]) -> tuple[str, ...]:
    names: list[str] = []
    for arg in args:
        if isinstance(arg, nodes.NamedArgExpr):
            if arg.name in names:
                raise SqlSyntaxError(
                    f'argument name "{arg.name}" used more than once', position=arg.pos
                )
            names.append(arg.name)
        elif names:
            raise SqlSyntaxError(
                "positional argument cannot follow named argument", position=expr_location(arg)
            )
    return tuple(names)


def _signature(analyzer: Analyzer, raw: ast.FuncCall, args: Sequence[nodes.Expr]) -> str:
    """Return a call in the form of messages: `f(integer, b => text)`."""
    shown = []
    for arg in args:
        label = f"{arg.name} => " if isinstance(arg, nodes.NamedArgExpr) else ""
        shown.append(label + analyzer.coercion.types.format(arg.type))
    return f"{'.'.join(raw.name)}({', '.join(shown)})"


def _no_function(
    analyzer: Analyzer, found: NoFunction, raw: ast.FuncCall, args: Sequence[nodes.Expr]
) -> PostgresError:
    signature = _signature(analyzer, raw, args)
    if found.reason == "ambiguous":
        return AmbiguousFunction(
            f"function {signature} is not unique",
            hint="Could not choose a best candidate function. "
            "You might need to add explicit type casts.",
            position=raw.pos,
        )
    if len(raw.order_by) > 1 and not raw.within_group:
        hint = (
            "No aggregate function matches the given name and argument types. "
            "Perhaps you misplaced ORDER BY; ORDER BY must appear after all regular arguments of "
            "the aggregate."
        )
    else:
        hint = (
            "No function matches the given name and argument types. "
            "You might need to add explicit type casts."
        )
    return UndefinedFunction(f"function {signature} does not exist", hint=hint, position=raw.pos)


# -- building the expression


def _apply(
    analyzer: Analyzer,
    found: FoundFunction | NoFunction,
    raw: ast.FuncCall,
    args: Sequence[nodes.Expr],
    condition: nodes.Expr | None,
    last_set: nodes.Expr | None,
) -> nodes.Expr:
    """Return the typed expression of a call, given the result of the search for its function."""
    if isinstance(found, NoFunction):
        _check_plain(raw)
        manner = Manner(CastContext.EXPLICIT, "call", raw.pos)
        return analyzer.coercion.to_type(args[0], found.cast_to, -1, manner)
    function = found.function
    _check_kind(analyzer, found, raw, args)
    if function.name in ORDERED_SET_AGGREGATES and raw.within_group:
        args = unify_hypothetical_args(analyzer.coercion, function, args, len(raw.order_by))
    call = _resolve(analyzer, found, raw, args, condition)
    if function.returns_set:
        _check_set(analyzer, last_set, raw.pos)
    if raw.over is not None:
        return make_window_function(analyzer, call, last_set)
    if function.kind == FunctionKind.AGGREGATE:
        _check_aggregate(call)
        return make_aggregate(analyzer, call)
    expr = nodes.FuncExpr(
        function.oid,
        function.name,
        call.result,
        call.args,
        raw.format,
        call.is_variadic,
        function.returns_set,
        pos=raw.pos,
    )
    if function.returns_set:
        analyzer.last_set = expr
    return expr


def _resolve(
    analyzer: Analyzer,
    found: FoundFunction,
    raw: ast.FuncCall,
    args: Sequence[nodes.Expr],
    condition: nodes.Expr | None,
) -> ResolvedCall:
    """Return the call with its arguments cast.  Put those for a VARIADIC parameter in an array."""
    function = found.function
    given = (*(arg.type for arg in args), *found.default_types)
    declared, result = resolve(
        analyzer.coercion, given, (*found.args, *found.default_types), function.result
    )
    typed = analyzer.coercion.arguments(args, declared[: len(args)])
    is_variadic = raw.is_variadic and function.variadic is not None
    if found.variadic_count and function.variadic != "any":
        typed = _gathered(analyzer, typed, found.variadic_count)
        is_variadic = True
    elif is_variadic and function.variadic == "any":
        last = args[-1].type
        if last == UNKNOWN or analyzer.coercion.types.base_element(last) is None:
            raise DatatypeMismatch(
                "VARIADIC argument must be an array", position=expr_location(typed[-1])
            )
    return ResolvedCall(raw, function, result, typed, is_variadic, condition)


def _gathered(
    analyzer: Analyzer, args: tuple[nodes.Expr, ...], count: int
) -> tuple[nodes.Expr, ...]:
    """Return the arguments, with the last `count` of them replaced by one array, for VARIADIC."""
    items = args[-count:]
    location = list_location(items)
    element = items[0].type
    array = analyzer.coercion.types.array(element)
    if array is None:
        shown = analyzer.coercion.types.format(element)
        raise UndefinedObject(f"could not find array type for data type {shown}", position=location)
    return (*args[:-count], nodes.ArrayExpr(array, element, items, pos=location))


# -- checking the clauses


def _check_kind(
    analyzer: Analyzer, found: FoundFunction, raw: ast.FuncCall, args: Sequence[nodes.Expr]
) -> None:
    """Check that the call's clauses fit the function: plain, aggregate or window function."""
    shown = ".".join(raw.name)
    match found.function.kind:
        case FunctionKind.PROCEDURE:
            raise WrongObjectType(
                f"{_signature(analyzer, raw, args)} is a procedure",
                hint="To call a procedure, use CALL.",
                position=raw.pos,
            )
        case FunctionKind.FUNCTION:
            _check_plain(raw)
        case FunctionKind.WINDOW if raw.over is None:
            raise WrongObjectType(
                f"window function {shown} requires an OVER clause", position=raw.pos
            )
        case FunctionKind.WINDOW if raw.within_group:
            raise WrongObjectType(
                f"window function {shown} cannot have WITHIN GROUP", position=raw.pos
            )
        case FunctionKind.AGGREGATE if found.function.name in ORDERED_SET_AGGREGATES:
            check_ordered_set_call(found, raw, len(args), _signature(analyzer, raw, args))
        case FunctionKind.AGGREGATE if raw.within_group:
            raise WrongObjectType(
                f"{shown} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
                position=raw.pos,
            )


def _check_plain(raw: ast.FuncCall) -> None:
    """Check that a plain function has no clauses of aggregates or window functions."""
    shown = ".".join(raw.name)
    for is_there, what in (
        (raw.is_star, f"{shown}(*)"),
        (raw.is_distinct, "DISTINCT"),
        (raw.within_group, "WITHIN GROUP"),
        (raw.order_by, "ORDER BY"),
        (raw.filter is not None, "FILTER"),
    ):
        if is_there:
            raise WrongObjectType(
                f"{what} specified, but {shown} is not an aggregate function", position=raw.pos
            )
    if raw.over is not None:
        raise WrongObjectType(
            f"OVER specified, but {shown} is not a window function nor an aggregate function",
            position=raw.pos,
        )


def _check_aggregate(call: ResolvedCall) -> None:
    raw = call.raw
    if not call.args and not raw.is_star and not raw.within_group:
        raise WrongObjectType(
            f"{call.name}(*) must be used to call a parameterless aggregate function",
            position=raw.pos,
        )
    if any(isinstance(arg, nodes.NamedArgExpr) for arg in call.args):
        raise FeatureNotSupported("aggregates cannot use named arguments", position=raw.pos)


def _check_set(analyzer: Analyzer, last_set: nodes.Expr | None, pos: int) -> None:
    """Check that a set-returning function is allowed here (check_srf_call_placement)."""
    error = analyzer.context.set_error(pos)
    if error is not None:
        raise error
    if analyzer.context is not ExprContext.FROM_FUNCTION:
        return
    inner = analyzer.last_set
    if inner is not None and inner is not last_set:
        raise FeatureNotSupported(
            "set-returning functions must appear at top level of FROM",
            position=expr_location(inner),
        )


# -- fields


def _may_be_field(raw: ast.FuncCall, args: Sequence[nodes.Expr]) -> bool:
    """Return whether a call may mean `field(row)`: one argument, and no clauses of functions."""
    is_bare = dataclasses.replace(raw, name=(), args=(), format="call") == _PLAIN
    is_named = len(args) == 1 and isinstance(args[0], nodes.NamedArgExpr)
    return is_bare and not is_named and len(raw.name) == 1 and len(args) == 1


def _field(analyzer: Analyzer, name: str, row: nodes.Expr, pos: int) -> nodes.Expr | None:
    """Return a field of a row; None if there is no field of this name (ParseComplexProjection)."""
    if not analyzer.coercion.types.is_row(row.type):
        return None
    if isinstance(row, nodes.Var) and row.attnum == 0:
        relation = analyzer.scope.relation_of(row)
        if relation is not None:
            return relation.find_column(name, analyzer.context, pos)
    for number, (label, type_, typmod, collation) in enumerate(row_fields(analyzer, row), 1):
        if label == name:
            return nodes.FieldSelect(row, number, name, type_, typmod, collation, pos=pos)
    return None
