"""numeric in Spark: as DECIMAL while the precision is known and fits 38 digits, else as exact text.

Text is computed with by functions of ours (python_functions.py), which Spark runs in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark.data_type import quote
from replctl.spark.sql_value import SqlValue
from replctl.types.numeric import precision_and_scale

NumericFunction: TypeAlias = Callable[[Sequence[SqlValue], Sequence[nodes.Const | None]], SqlValue]
_MAX = 38
_INTEGER_DIGITS = {"int2": 5, "int4": 10, "int8": 19}


def numeric_literal(value: str) -> SqlValue:
    """A constant, as a DECIMAL just wide enough, else as text."""
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


def comparison(operator: str, left: SqlValue, right: SqlValue) -> SqlValue:
    """`left operator right` of numerics: exact, NaN the greatest and equal to itself."""
    a, b = same_type([left, right])
    if a.decimal is not None:
        return SqlValue(f"({a.text} {operator} {b.text})", "bool", "BOOLEAN")
    return SqlValue(f"(replctl_numeric_cmp({a.text}, {b.text}) {operator} 0)", "bool", "BOOLEAN")


def is_distinct(left: SqlValue, right: SqlValue) -> SqlValue:
    """`left IS DISTINCT FROM right`."""
    a, b = same_type([left, right])
    if a.decimal is not None:
        return SqlValue(f"(NOT ({a.text} <=> {b.text}))", "bool", "BOOLEAN")
    equal = f"coalesce(replctl_numeric_cmp({a.text}, {b.text}) = 0, {a.text} IS NULL AND {b.text} IS NULL)"
    return SqlValue(f"(NOT {equal})", "bool", "BOOLEAN")


def same_type(args: Sequence[SqlValue]) -> list[SqlValue]:
    """All as one DECIMAL that holds each exactly, or all as text."""
    decimals = [arg.decimal for arg in args]
    if all(decimal is not None for decimal in decimals):
        scale = max(s for _p, s in decimals)  # type: ignore[misc]
        whole = max(p - s for p, s in decimals)  # type: ignore[misc]
        if whole + scale <= _MAX:
            target = f"DECIMAL({max(whole + scale, 1)},{scale})"
            return [
                arg
                if arg.spark == target
                else SqlValue(f"CAST({arg.text} AS {target})", arg.type, target)
                for arg in args
            ]
    return [as_text(arg) for arg in args]


def as_text(value: SqlValue) -> SqlValue:
    """A numeric as exact text."""
    if value.decimal is None:
        return value
    return SqlValue(f"CAST({value.text} AS STRING)", "numeric", "STRING")


def sort_key(value: SqlValue) -> str:
    """Text that sorts as the numbers do."""
    return f"replctl_numeric_key({as_text(value).text})"


def sum_or_average(expr: nodes.Aggref, value: SqlValue, distinct: str, condition: str) -> SqlValue:
    """sum() and avg(): integers give bigint or numeric, floats double, numerics numeric."""
    argument = f"{distinct}{value.text}"
    if value.type in ("float4", "float8"):
        spark = "FLOAT" if expr.type == "float4" else "DOUBLE"
        return SqlValue(f"CAST({expr.name}({argument}){condition} AS {spark})", expr.type, spark)
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
                f"replctl_numeric('div', CAST({total} AS STRING), CAST({count} AS STRING))",
                "numeric",
                "STRING",
            )
    if value.type == "numeric":
        values = f"collect_list({distinct}{as_text(value).text}){condition}"
        return SqlValue(f"replctl_numeric_{expr.name}({values})", "numeric", "STRING")
    raise FeatureNotSupported(f"{expr.name} of type {value.type} is not supported")


def _decimal(text: str, precision: int, scale: int) -> SqlValue:
    return SqlValue(text, "numeric", f"DECIMAL({precision},{scale})")


def _by_text(operation: str, *args: SqlValue) -> SqlValue:
    texts = [as_text(arg).text for arg in args] + ["CAST(NULL AS STRING)"] * (2 - len(args))
    return SqlValue(f"replctl_numeric({quote(operation)}, {', '.join(texts)})", "numeric", "STRING")


def _arithmetic(
    operation: str, sign: str, size: Callable[[int, int, int, int], tuple[int, int]]
) -> NumericFunction:
    """An operation that Spark's DECIMAL does exactly while the result fits; `size` gives its (p, s)."""

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        left, right = args
        if left.decimal is not None and right.decimal is not None:
            precision, scale = size(*left.decimal, *right.decimal)
            if precision <= _MAX:
                return _decimal(f"({left.text} {sign} {right.text})", precision, scale)
        return _by_text(operation, left, right)

    return translate


def _sum_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    scale = max(s1, s2)
    return max(p1 - s1, p2 - s2) + scale + 1, scale


def _product_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    return p1 + p2 + 1, s1 + s2


def _remainder_size(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    """Spark's own type of %: only where it keeps all digits."""
    scale = max(s1, s2)
    return (
        (min(p1 - s1, p2 - s2) + scale, scale)
        if max(p1 - s1, p2 - s2) + scale <= _MAX
        else (_MAX + 1, scale)
    )


def _div(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    return _by_text("div", *args)


def _unary(operation: str, template: str, grow: int = 0) -> NumericFunction:
    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        (value,) = args
        if value.decimal is not None and value.decimal[0] + grow <= _MAX:
            precision, scale = value.decimal
            return _decimal(f"({template.format(value.text)})", precision + grow, scale)
        return _by_text(operation, value)

    return translate


def _from_integer(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    precision = _INTEGER_DIGITS[args[0].type]
    return _decimal(f"CAST({args[0].text} AS DECIMAL({precision},0))", precision, 0)


def _from_float(operation: str) -> NumericFunction:
    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        return SqlValue(f"replctl_{operation}({args[0].text})", "numeric", "STRING")

    return translate


def _to_integer(target: str, spark: str) -> NumericFunction:
    """Half away from zero, then in range or an error."""

    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        value = args[0]
        if value.decimal is not None:
            return SqlValue(f"CAST(round({value.text}, 0) AS {spark})", target, spark)
        return SqlValue(f"CAST(replctl_numeric_{target}({value.text}) AS {spark})", target, spark)

    return translate


def _to_float(target: str, spark: str) -> NumericFunction:
    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        return SqlValue(f"CAST({as_text(args[0]).text} AS {spark})", target, spark)

    return translate


def _coerce(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
    """Length coercion numeric(p,s): rounds half away from zero, refuses what has too many digits."""
    typmod = constants[1]
    assert typmod is not None
    assert typmod.value is not None
    value = args[0]
    precision, scale = precision_and_scale(int(typmod.value))
    fits = precision <= _MAX and 0 <= scale <= precision
    checked = SqlValue(
        f"replctl_numeric_coerce({as_text(value).text}, {typmod.value})", "numeric", "STRING"
    )
    if not fits:
        return checked
    if (
        value.decimal is not None
        and value.decimal[0] - value.decimal[1] <= precision - scale
        and value.decimal[1] <= scale
    ):
        return _decimal(f"CAST({value.text} AS DECIMAL({precision},{scale}))", precision, scale)
    return _decimal(f"CAST({checked.text} AS DECIMAL({precision},{scale}))", precision, scale)


def _round(operation: str) -> NumericFunction:
    def translate(args: Sequence[SqlValue], constants: Sequence[nodes.Const | None]) -> SqlValue:
        digits = SqlValue("'0'", "numeric", "STRING") if len(args) == 1 else args[1]
        shown = digits.text if len(args) == 1 else f"CAST({digits.text} AS STRING)"
        return SqlValue(
            f"replctl_numeric({quote(operation)}, {as_text(args[0]).text}, {shown})",
            "numeric",
            "STRING",
        )

    return translate


#: prosrc -> translation.
FUNCTIONS: dict[str, NumericFunction] = {
    "numeric_add": _arithmetic("add", "+", _sum_size),
    "numeric_sub": _arithmetic("sub", "-", _sum_size),
    "numeric_mul": _arithmetic("mul", "*", _product_size),
    "numeric_mod": _arithmetic("mod", "%", _remainder_size),
    "numeric_div": _div,
    "numeric_uminus": _unary("neg", "-{0}"),
    "numeric_uplus": _unary("pos", "{0}"),
    "numeric_abs": _unary("abs", "abs({0})"),
    "numeric_sign": lambda args, constants: _by_text("sign", *args),
    "numeric_ceil": lambda args, constants: _by_text("ceil", *args),
    "numeric_floor": lambda args, constants: _by_text("floor", *args),
    "numeric_round": _round("round"),
    "numeric_trunc": _round("trunc"),
    "int2_numeric": _from_integer,
    "int4_numeric": _from_integer,
    "int8_numeric": _from_integer,
    "float4_numeric": _from_float("float4_numeric"),
    "float8_numeric": _from_float("float8_numeric"),
    "numeric_int2": _to_integer("int2", "SMALLINT"),
    "numeric_int4": _to_integer("int4", "INT"),
    "numeric_int8": _to_integer("int8", "BIGINT"),
    "numeric_float4": _to_float("float4", "FLOAT"),
    "numeric_float8": _to_float("float8", "DOUBLE"),
    "numeric": _coerce,
}
