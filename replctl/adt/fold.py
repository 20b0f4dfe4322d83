"""Fold constants in expressions (PostgreSQL's eval_const_expressions() in clauses.c).

An error in a folded part fails the query even if no row reaches that part: `CASE WHEN b THEN 1/0
END` fails for every row.  A dropped part cannot fail: a strict function of NULL is NULL, whatever
its other arguments are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from replctl.adt import interpret
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes
from replctl.types import builtin
from replctl.types import text as type_text
from replctl.types.function_kind import Volatility

_CONCATENATIONS = ("textanycat", "anytextcat")
_TEXT_CONCATENATION = 654  # the OID of text || text
_TRUE, _FALSE = nodes.Const("bool", "t"), nodes.Const("bool", "f")
#: Types whose input functions depend on settings.  The input functions of all arrays do, too.
_STABLE_INPUT = frozenset(
    "date time timestamp timestamptz timetz interval money regproc regprocedure regoper regoperator"
    " regclass regcollation regtype regrole regnamespace regconfig regdictionary int4range numrange"
    " tsrange tstzrange daterange int8range int4multirange nummultirange tsmultirange"
    " tstzmultirange datemultirange int8multirange xml record aclitem".split()
)
_IMMUTABLE_OUTPUT = frozenset(["time", "timetz", "xml"])


def simplified(expr: nodes.Expr) -> nodes.Expr:
    """Fold constants: `a + (1 + 1)` becomes `a + 2`; the value for each row is the same.

    Raises:
        PostgresError: a part without columns fails.
    """
    result: nodes.Expr = _simplified(expr, None)
    return result


def _simplified(expr: Any, operand: nodes.Const | None) -> Any:
    """Return a folded expression; `operand` is the value of Param(0), if it is known."""
    match expr:
        case nodes.Var() | nodes.Const() | nodes.SubLink():
            return expr
        case nodes.Param(number=0):
            return expr if operand is None else operand
        case nodes.BoolExpr(op="and" | "or"):
            return _and_or(expr, operand)
        case nodes.CaseExpr():
            return _case(expr, operand)
        case nodes.CoalesceExpr():
            return _coalesce(expr, operand)
        case nodes.NullTest(is_row=True, arg=nodes.RowExpr()):
            return _row_null_test(expr, operand)
        # Fold only the argument: in the rest, Param(0) is an element or the checked value.
        case nodes.ArrayCoerceExpr() | nodes.CoerceToDomain():
            whole: nodes.Expr = dataclasses.replace(expr, arg=_simplified(expr.arg, operand))
        case _:
            whole = _with_simplified_children(expr, operand)
    return _known(whole)


def _with_simplified_children(expr: Any, operand: nodes.Const | None) -> Any:
    def child(value: Any) -> Any:
        return _simplified(value, operand) if isinstance(value, nodes.Node) else value

    changes: dict[str, Any] = {}
    for name in nodes.field_names(expr):
        value = getattr(expr, name)
        changes[name] = tuple(map(child, value)) if isinstance(value, tuple) else child(value)
    return dataclasses.replace(expr, **changes)


def _known(expr: nodes.Expr) -> nodes.Expr:
    """Fold an expression whose children are folded: return a constant if possible."""
    match expr:
        case nodes.OpExpr(args=args):
            return _call(expr, _operator(expr.operator_oid, expr.name), args)
        case nodes.FuncExpr(returns_set=False):
            call = _inlined(expr)
            return _call(call, builtin.function_by_oid().get(call.function_oid), call.args)
        case nodes.DistinctExpr(args=args):
            return _distinct(expr, args)
        case nodes.NullIfExpr(args=(first, second)):
            if _is_null(first) or _is_null(second):
                return first
            return _call(expr, _operator(expr.operator_oid, "="), (first, second))
        case nodes.ScalarArrayOpExpr(args=args):
            operator = _operator(expr.operator_oid, expr.name)
            return _value(expr, args) if _is_immutable(operator) else expr
        case nodes.BoolExpr(args=args) | nodes.MinMaxExpr(args=args):
            return _value(expr, args)
        case nodes.NullTest(arg=nodes.Const(value=value), is_row=False):
            return _TRUE if (value is None) is expr.is_null else _FALSE
        case nodes.BooleanTest(arg=arg) | nodes.RelabelType(arg=arg) | nodes.CollateExpr(arg=arg):
            return _value(expr, (arg,))
        case nodes.ArrayExpr(elements=elements):
            return _value(expr, elements)
        case nodes.SubscriptingRef():
            return _value(expr, [item for item in nodes.children(expr) if item is not None])
        case nodes.CoerceViaIO(arg=arg):
            if _is_null(arg):
                return _null(expr)
            is_immutable = has_immutable_output(arg.type) and has_immutable_input(expr.type)
            return _value(expr, (arg,)) if is_immutable else expr
        case nodes.ArrayCoerceExpr(arg=arg):
            return _value(expr, (arg,)) if _is_immutable_element(expr.element) else expr
        case nodes.CoerceToDomain(arg=arg) if expr.domain:
            return _checked(expr, arg)
    return expr


def _checked(expr: nodes.CoerceToDomain, arg: nodes.Expr) -> nodes.Expr:
    """Return the value of a cast to a domain, or the cast itself if the domain refuses the value.
    In that case, the query fails only if a row reaches the cast, because PostgreSQL does not
    compute it in advance.
    """
    try:
        return _value(expr, (arg,))
    except PostgresError:  # the statement may never evaluate it, so its error comes at run time
        return expr


def _inlined(expr: nodes.FuncExpr) -> nodes.FuncExpr:
    """Replace the lengths in OVERLAPS by ends, `start + length`, because PostgreSQL inlines this
    SQL function (inline_function() in clauses.c).  A failing sum then fails before later parts.
    """
    function = builtin.function_by_oid().get(expr.function_oid)
    if function is None or function.name != "overlaps":
        return expr
    start_type = function.argument_types[0]
    plus = next(
        operator
        for operator in builtin.operators()["+"]
        if (operator.left, operator.right) == (start_type, "interval")
    )
    args = list(expr.args)
    for number in (1, 3):
        if function.argument_types[number] == "interval":
            start, length = args[number - 1], args[number]
            end = nodes.OpExpr(plus.oid, "+", plus.function, plus.result, (start, length))
            args[number] = _known(end)
    by_ends = next(
        found
        for found in builtin.functions()["overlaps"]
        if found.argument_types == (start_type,) * 4
    )
    return dataclasses.replace(expr, function_oid=by_ends.oid, args=tuple(args))


def _call(
    expr: nodes.OpExpr | nodes.FuncExpr | nodes.NullIfExpr,
    function: builtin.Function | builtin.Operator | None,
    args: Sequence[nodes.Expr],
) -> nodes.Expr:
    if function is None:
        return expr
    if not isinstance(expr, nodes.NullIfExpr):
        if function.is_strict and any(map(_is_null, args)):
            return _null(expr)
        contained = _contained(expr, args)
        if contained is not None:
            return contained
        if _function_name(expr) in _CONCATENATIONS:
            return _concatenation(expr, args)
    return _value(expr, args) if _is_immutable(function) else expr


def _value(expr: nodes.Expr, args: Iterable[nodes.Expr]) -> nodes.Expr:
    """Return the value of an expression if all operands are constants; else the expression."""
    if not all(isinstance(arg, nodes.Const) for arg in args):
        return expr
    if not type_text.is_supported(expr.type):  # a user-defined type, or the name of an object
        return expr
    try:
        compute = interpret.compiled(expr)
    except FeatureNotSupported:  # Python cannot compute it
        return expr
    value = compute(())
    if value is None:
        return _null(expr)
    shown = type_text.render(expr.type, value)
    return nodes.Const(expr.type, shown, nodes.typmod(expr), nodes.collation(expr), pos=expr.pos)


def _contained(
    expr: nodes.OpExpr | nodes.FuncExpr, args: Sequence[nodes.Expr]
) -> nodes.Const | None:
    """Decide `element <@ range` by the range alone.  An empty range contains nothing.  An unbounded
    range contains everything, even NULL (find_simplified_clause in rangetypes.c).
    """
    match _function_name(expr), args:
        case ("elem_contained_by_range", (_, nodes.Const(value=str() as text))) | (
            "range_contains_elem",
            (nodes.Const(value=str() as text), _),
        ):
            return {"empty": _FALSE, "(,)": _TRUE}.get(text)
    return None


def _function_name(expr: nodes.OpExpr | nodes.FuncExpr) -> str:
    return expr.function if isinstance(expr, nodes.OpExpr) else expr.name


def _concatenation(expr: nodes.OpExpr | nodes.FuncExpr, args: Sequence[nodes.Expr]) -> nodes.Expr:
    """Fold `text || anything`, an SQL function that casts the other operand to text."""
    texts = tuple(_known(_as_text(arg)) for arg in args)
    return _known(
        nodes.OpExpr(
            _TEXT_CONCATENATION,
            "||",
            "textcat",
            "text",
            texts,
            expr.collation,
            expr.input_collation,
            pos=expr.pos,
        )
    )


def _as_text(expr: nodes.Expr) -> nodes.Expr:
    if expr.type == "text":
        return expr
    cast = builtin.casts().get((expr.type, "text"))
    if cast is None:
        return nodes.CoerceViaIO(expr, "text", "explicit", "default")
    if cast.function is None:
        return nodes.RelabelType(expr, "text", form="explicit", collation="default")
    return nodes.FuncExpr(
        cast.function_oid, cast.function, "text", (expr,), "explicit", collation="default"
    )


def _null(expr: nodes.Expr) -> nodes.Const:
    return nodes.Const(expr.type, None, nodes.typmod(expr), nodes.collation(expr), pos=expr.pos)


def _and_or(expr: nodes.BoolExpr, operand: nodes.Const | None) -> nodes.Expr:
    """Fold AND or OR: stop at the first constant that decides the result, and drop constants that
    cannot change it.
    """
    deciding = "t" if expr.op == "or" else "f"
    kept: list[nodes.Expr] = []
    has_null = False
    for arg in expr.args:
        item: nodes.Expr = _simplified(arg, operand)
        if not isinstance(item, nodes.Const):
            kept.append(item)
        elif item.value == deciding:
            return item
        elif item.value is None:
            has_null = True
    if has_null:
        kept.append(nodes.Const("bool", None))
    if not kept:
        return _FALSE if expr.op == "or" else _TRUE
    return kept[0] if len(kept) == 1 else dataclasses.replace(expr, args=tuple(kept))


def _case(expr: nodes.CaseExpr, operand: nodes.Const | None) -> nodes.Expr:
    """Fold a CASE, without looking at branches that no row reaches."""
    tested = None if expr.arg is None else _simplified(expr.arg, operand)
    inner = tested if isinstance(tested, nodes.Const) else None
    whens: list[nodes.CaseWhen] = []
    default: nodes.Expr | None = None
    for when in expr.whens:
        condition = _simplified(when.condition, inner if expr.arg is not None else operand)
        if isinstance(condition, nodes.Const) and condition.value != "t":
            continue
        result = _simplified(when.result, operand)
        if isinstance(condition, nodes.Const):
            default = result
            break
        whens.append(dataclasses.replace(when, condition=condition, result=result))
    if default is None:
        default = _simplified(expr.default, operand)
    if not whens:
        return default
    tested = None if inner is not None else tested
    return dataclasses.replace(expr, arg=tested, whens=tuple(whens), default=default)


def _coalesce(expr: nodes.CoalesceExpr, operand: nodes.Const | None) -> nodes.Expr:
    kept: list[nodes.Expr] = []
    for arg in expr.args:
        item: nodes.Expr = _simplified(arg, operand)
        if _is_null(item):
            continue
        kept.append(item)
        if isinstance(item, nodes.Const):
            break
    if not kept:
        return _null(expr)
    return kept[0] if len(kept) == 1 else dataclasses.replace(expr, args=tuple(kept))


def _row_null_test(expr: nodes.NullTest, operand: nodes.Const | None) -> nodes.Expr:
    """Fold a test: `ROW(1, a) IS NULL` is false, `ROW(NULL, a) IS NULL` is `a IS NULL`."""
    assert isinstance(expr.arg, nodes.RowExpr)
    kept = []
    for arg in expr.arg.args:
        item: nodes.Expr = _simplified(arg, operand)
        if not isinstance(item, nodes.Const):
            kept.append(item)
        elif (item.value is None) is not expr.is_null:
            return _FALSE
    if not kept:
        return _TRUE
    return dataclasses.replace(expr, arg=dataclasses.replace(expr.arg, args=tuple(kept)))


def _distinct(expr: nodes.DistinctExpr, args: Sequence[nodes.Expr]) -> nodes.Expr:
    nulls = [_is_null(arg) for arg in args]
    if all(nulls):
        return _FALSE
    if any(nulls) and all(isinstance(arg, nodes.Const) for arg in args):
        return _TRUE
    return _value(expr, args) if _is_immutable(_operator(expr.operator_oid, "=")) else expr


def _is_null(expr: nodes.Expr) -> bool:
    return isinstance(expr, nodes.Const) and expr.value is None


def _operator(oid: int, name: str) -> builtin.Operator | None:
    group = builtin.operators().get(name, ())
    return next((operator for operator in group if operator.oid == oid), None)


def _is_immutable(function: builtin.Function | builtin.Operator | None) -> bool:
    return function is not None and function.volatility == Volatility.IMMUTABLE


def _is_immutable_element(element: nodes.Expr) -> bool:
    """Return whether the cast of an array's element is immutable."""
    return all(
        _is_immutable(builtin.function_by_oid().get(node.function_oid))
        if isinstance(node, nodes.FuncExpr)
        else has_immutable_output(node.arg.type) and has_immutable_input(node.type)
        if isinstance(node, nodes.CoerceViaIO)
        else True
        for node in nodes.walk(element)
    )


def has_immutable_input(type_: str) -> bool:
    """Return whether the input function of a type is immutable."""
    known = builtin.types().get(type_)
    return known is not None and not known.is_array and type_ not in _STABLE_INPUT


def has_immutable_output(type_: str) -> bool:
    """Return whether the output function of a type is immutable."""
    return has_immutable_input(type_) or type_ in _IMMUTABLE_OUTPUT
