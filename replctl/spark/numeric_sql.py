"""numeric in Spark: a DECIMAL if the precision is known and at most 38 digits, else exact text.
Only Python computes with these texts (python_program.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark.data_type import decimal_of, quote
from replctl.spark.sql_value import SqlValue, raise_error_sql
from replctl.types.character import TYPMOD_HEADER

NumericFunction: TypeAlias = Callable[[Sequence[SqlValue], Sequence[nodes.Const | None]], SqlValue]
_MAX = 38
_INTEGER_DIGITS = {"int2": 5, "int4": 10, "int8": 19}


def numeric_literal(value: str) -> SqlValue:
    """Return a constant as a DECIMAL with exactly its digits, or as text if it does not fit."""
    number = Decimal(value)
    if number.is_finite():
        _sign, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        scale = max(-exponent, 0)
        precision = max(len(digits) + max(exponent, 0), scale, 1)
        if precision <= _MAX:
            return _decimal(
                f"CAST({quote(value)} AS DECIMAL({precision},{scale}))", precision, scale
            )
    return SqlValue(quote(value), "numeric", "STRING")


def comparison_operands(left: SqlValue, right: SqlValue) -> tuple[str, str]:
    """Return SQL of two numerics in a form that Spark can compare.

    Raises:
        FeatureNotSupported: no DECIMAL type can represent both.
    """
    a, b = same_type([left, right], by_value=True)
    return a.text, b.text


def same_type(args: Sequence[SqlValue], *, by_value: bool) -> list[SqlValue]:
    """Convert values to one DECIMAL type that represents each exactly.

    Args:
        by_value: only the values matter, not their trailing zeros.

    Raises:
        FeatureNotSupported: no DECIMAL type can represent all values.
    """
    decimals = [arg.decimal for arg in args]
    known = [decimal for decimal in decimals if decimal is not None]
    scale = max((s for _p, s in known), default=0)
    whole = max((p - s for p, s in known), default=0)
    shown_alike = by_value or all(s == scale for _p, s in known)
    if len(known) < len(decimals) or whole + scale > _MAX or not shown_alike:
        raise FeatureNotSupported("numeric values without a common precision are not supported")
    target = f"DECIMAL({max(whole + scale, 1)},{scale})"
    return [
        arg if arg.spark == target else SqlValue(f"CAST({arg.text} AS {target})", arg.type, target)
        for arg in args
    ]


def from_integer(value: SqlValue) -> SqlValue:
    """Convert an integer to a numeric; return other values unchanged."""
    if value.type not in _INTEGER_DIGITS:
        return value
    precision = _INTEGER_DIGITS[value.type]
    return _decimal(f"CAST({value.text} AS DECIMAL({precision},0))", precision, 0)


def as_text(value: SqlValue) -> SqlValue:
    """Convert a numeric to exact text."""
    if value.decimal is None:
        return value
    return SqlValue(f"CAST({value.text} AS STRING)", "numeric", "STRING")


def sort_key(value: SqlValue) -> str:
    """Return SQL of a text that sorts like the numbers."""
    return f"replctl_numeric_key({as_text(value).text})"


def sum_or_average(expr: nodes.Aggref, value: SqlValue, distinct: str, condition: str) -> SqlValue:
    """Translate sum() and avg().  For integers the result is a bigint or a numeric, for numerics a
    numeric, and for floats a double or, for the sum of reals, a real."""
    argument = f"{distinct}{value.text}"
    if value.type in ("float4", "float8"):
        return _of_floats(expr.name, expr.type, value, distinct, condition)
    if expr.name == "sum" and value.type in ("int2", "int4"):
        return SqlValue(f"sum({argument}){condition}", "int8", "BIGINT")
    if value.type in _INTEGER_DIGITS or value.decimal is not None:
        precision, scale = value.decimal or (_INTEGER_DIGITS[value.type], 0)
        if precision <= 28:
            total = f"sum({distinct}CAST({value.text} AS DECIMAL({precision},{scale}))){condition}"
            if expr.name == "sum":
                return SqlValue(total, "numeric", f"DECIMAL({precision + 10},{scale})")
            count = f"count({argument}){condition}"
            return SqlValue(
                f"replctl_numeric_divide(CAST({total} AS STRING),"
                f" CAST(nullif({count}, 0) AS STRING))",
                "numeric",
                "STRING",
            )
    if value.type == "numeric" and not distinct:
        values = f"collect_list({as_text(value).text}){condition}"
        return SqlValue(
            f"replctl_numeric_{expr.name}(nullif({values}, array()))", "numeric", "STRING"
        )
    raise FeatureNotSupported(f"{expr.name} of type {value.type} is not supported")


def _of_floats(name: str, type_: str, value: SqlValue, distinct: str, condition: str) -> SqlValue:
    """Translate sum() or avg() of floats.  A sum of reals has single precision; an overflow of
    doubles is an error."""
    if type_ == "float4":
        if distinct:
            raise FeatureNotSupported("sum(DISTINCT real) is not supported")
        listed = f"nullif(collect_list({value.text}){condition}, array())"
        add = "(sum_, item_) -> CAST(sum_ + item_ AS FLOAT)"
        return SqlValue(f"aggregate({listed}, CAST('-0' AS FLOAT), {add})", type_, "FLOAT")
    item = f"CAST({value.text} AS DOUBLE)"
    total, largest = (f"{f}({distinct}{item}){condition}" for f in (name, "max"))
    zeros = "" if name == "avg" else _negative_zeros(item, condition)
    smallest = f"min({distinct}{item}){condition}"
    infinity = "double('Infinity')"
    error = raise_error_sql("22003", "value out of range: overflow")
    return SqlValue(
        f"(CASE {zeros}WHEN abs({total}) = {infinity} AND {largest} <> {infinity}"
        f" AND {smallest} <> -{infinity} THEN {error} ELSE {total} END)",
        type_,
        "DOUBLE",
    )


def _negative_zeros(item: str, condition: str) -> str:
    """Return the case of sum() for a group of -0 only: Spark begins with 0, PostgreSQL with the
    first value.  Only zeros are formatted as text.
    """
    is_negative = f"{item} = 0D AND CAST({item} AS STRING) = '-0.0'"
    return f"WHEN bool_and({is_negative}){condition} THEN double('-0') "


def _decimal(text: str, precision: int, scale: int) -> SqlValue:
    return SqlValue(text, "numeric", f"DECIMAL({precision},{scale})")


def _no_decimal(what: str) -> FeatureNotSupported:
    return FeatureNotSupported(f"{what} of numeric is not supported in Spark's DECIMAL")


def _arithmetic(
    sign: str, size: Callable[[int, int, int, int], tuple[int, int]]
) -> NumericFunction:
    """Return the translation of an operation.  Spark's DECIMAL is exact if the result fits.

    Args:
        size: returns the precision and scale of the result.
    """

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        left, right = args
        if left.decimal is None or right.decimal is None:
            raise _no_decimal(sign)
        precision, scale = size(*left.decimal, *right.decimal)
        if precision > _MAX:
            raise _no_decimal(sign)
        return _decimal(f"({left.text} {sign} {right.text})", precision, scale)

    return translate


def _sum_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    scale = max(s1, s2)
    return max(p1 - s1, p2 - s2) + scale + 1, scale


def _product_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    return p1 + p2 + 1, s1 + s2


def _remainder_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    """Return the precision and scale of % in Spark; a precision that is too large if Spark would
    lose digits."""
    scale = max(s1, s2)
    return (
        (min(p1 - s1, p2 - s2) + scale, scale)
        if max(p1 - s1, p2 - s2) + scale <= _MAX
        else (_MAX + 1, scale)
    )


def _unary(template: str) -> NumericFunction:
    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        (value,) = args
        if value.decimal is None:
            raise _no_decimal(template)
        return _decimal(f"({template.format(value.text)})", *value.decimal)

    return translate


def _from_integer(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    return from_integer(args[0])


def _to_integer(target: str, spark: str) -> NumericFunction:
    """Return a cast that rounds half away from zero, with an error for values out of range."""

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        value = args[0]
        if value.decimal is None:
            raise _no_decimal("conversion")
        return SqlValue(f"CAST(round({value.text}, 0) AS {spark})", target, spark)

    return translate


def _to_float(target: str, spark: str) -> NumericFunction:
    """Return a cast to the nearest float, through text."""

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        if args[0].decimal is None:
            raise _no_decimal("conversion")
        return SqlValue(f"CAST({as_text(args[0]).text} AS {spark})", target, spark)

    return translate


def _coerce(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    """Coerce to numeric(p,s): round half away from zero, and refuse values with too many digits."""
    typmod = constants[1]
    if typmod is None or typmod.value is None or int(typmod.value) < TYPMOD_HEADER:
        raise FeatureNotSupported("a precision that is not constant is not supported")
    value = args[0]
    decimal = decimal_of(int(typmod.value))
    if decimal is None or value.decimal is None:
        raise _no_decimal("length coercion")
    precision, scale = decimal
    return _decimal(f"CAST({value.text} AS DECIMAL({precision},{scale}))", precision, scale)


def _whole(function: str) -> NumericFunction:
    """Return the translation of ceil() or floor()."""

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        decimal = args[0].decimal
        if decimal is None or decimal[0] - decimal[1] >= _MAX:
            raise _no_decimal(function)
        precision = decimal[0] - decimal[1] + 1
        return _decimal(f"CAST({function}({args[0].text}) AS DECIMAL({precision},0))", precision, 0)

    return translate


def _round(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    """Translate round(x), or round(x, n) for a constant n."""
    decimal = args[0].decimal
    given = constants[1] if len(args) > 1 else None
    places = (
        0 if len(args) == 1 else None if given is None or given.value is None else int(given.value)
    )
    if decimal is None or places is None or places < 0:
        raise _no_decimal("round")
    precision, scale = decimal
    wide = precision - scale + 1 + places
    if wide > _MAX or precision >= _MAX:
        raise _no_decimal("round")
    rounded = f"round({args[0].text}, {places})" if places < scale else args[0].text
    return _decimal(f"CAST({rounded} AS DECIMAL({wide},{places}))", wide, places)


#: prosrc -> translation.
FUNCTIONS: dict[str, NumericFunction] = {
    "numeric_add": _arithmetic("+", _sum_size),
    "numeric_sub": _arithmetic("-", _sum_size),
    "numeric_mul": _arithmetic("*", _product_size),
    "numeric_mod": _arithmetic("%", _remainder_size),
    "numeric_uminus": _unary("-{0}"),
    "numeric_uplus": _unary("{0}"),
    "numeric_abs": _unary("abs({0})"),
    "numeric_ceil": _whole("ceil"),
    "numeric_floor": _whole("floor"),
    "numeric_round": _round,
    "round(numeric)": _round,
    "int2_numeric": _from_integer,
    "int4_numeric": _from_integer,
    "int8_numeric": _from_integer,
    "numeric_int2": _to_integer("int2", "SMALLINT"),
    "numeric_int4": _to_integer("int4", "INT"),
    "numeric_int8": _to_integer("int8", "BIGINT"),
    "numeric_float4": _to_float("float4", "FLOAT"),
    "numeric_float8": _to_float("float8", "DOUBLE"),
    "numeric": _coerce,
}

#: Functions whose result's value does not depend on the trailing zeros of their arguments.
BY_VALUE = frozenset(
    ["numeric_add", "numeric_sub", "numeric_mul", "numeric_uminus", "numeric_uplus", "numeric_abs"]
)
