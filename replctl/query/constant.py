"""Casts of constants, computed at once, so that plain values need no engine to be evaluated."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from replctl.errors import NumericValueOutOfRange
from replctl.expr import nodes
from replctl.types import text
from replctl.types.numeric import numeric_out

#: Casts that change nothing but the type: every value of the first has the same text in the second.
_WIDENING = {
    "int2": ("int4", "int8", "numeric", "float4", "float8"),
    "int4": ("int8", "numeric", "float8", "oid"),
    "int8": ("numeric",),
    "numeric": ("float4", "float8"),
    "float4": (),
}
_INTEGERS = {"int2": ("smallint", 15), "int4": ("integer", 31), "int8": ("bigint", 63)}
_LENGTH_COERCIONS = frozenset(
    ["numeric", "varchar", "bpchar", "timestamp", "timestamptz", "time", "interval"]
)


def folded(expr: nodes.Expr) -> nodes.Expr:
    """`CAST('1.555' AS numeric(3,2))` -> the constant 1.56; an expression that is no such cast as
    it is.

    Raises:
        DataError: the type modifier does not allow the value.
        NumericValueOutOfRange: an integer type does not hold it.
    """
    match expr:
        case nodes.RelabelType(arg=arg):
            inner = folded(arg)
            if isinstance(inner, nodes.Const):
                return replace(inner, type=expr.type, typmod=expr.typmod, collation=expr.collation)
        case nodes.FuncExpr(args=(first, *rest), form=("implicit" | "explicit")):
            inner = folded(first)
            if not isinstance(inner, nodes.Const):
                return expr
            if inner.value is None:
                return nodes.Const(expr.type, None, nodes.typmod(expr), expr.collation)
            if not rest:
                return _cast(expr, inner)
            if expr.name in _LENGTH_COERCIONS and inner.type == expr.type:
                return _length_coercion(expr, inner)
    return expr


def _cast(expr: nodes.FuncExpr, const: nodes.Const) -> nodes.Expr:
    assert const.value is not None
    if expr.type in _WIDENING.get(const.type, ()):
        return nodes.Const(expr.type, text.canonical(expr.type, const.value))
    if expr.type in _INTEGERS and const.type in (*_INTEGERS, "numeric"):
        number = Decimal(const.value)
        name, bits = _INTEGERS[expr.type]
        if not number.is_finite():
            raise NumericValueOutOfRange(f"cannot convert {numeric_out(number).lower()} to {name}")
        rounded = int(number.to_integral_value(ROUND_HALF_UP))
        if not -(2**bits) <= rounded < 2**bits:
            raise NumericValueOutOfRange(f"{name} out of range")
        return nodes.Const(expr.type, str(rounded))
    return expr


def _length_coercion(expr: nodes.FuncExpr, const: nodes.Const) -> nodes.Expr:
    typmod = expr.args[1]
    if not isinstance(typmod, nodes.Const) or typmod.value is None or const.value is None:
        return expr
    is_explicit = (
        len(expr.args) > 2 and isinstance(expr.args[2], nodes.Const) and expr.args[2].value == "t"
    )
    modifier = int(typmod.value)
    value = text.parse(expr.type, const.value)
    coerced = text.coerce_typmod(expr.type, value, modifier, explicit=is_explicit)
    return nodes.Const(expr.type, text.render(expr.type, coerced), modifier, expr.collation)
