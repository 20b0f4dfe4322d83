"""real and double precision (PostgreSQL's float.c and float.h)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from replctl.adt.range_check import integer
from replctl.errors import (
    DivisionByZero,
    InvalidArgumentForLogarithm,
    InvalidArgumentForPowerFunction,
    InvalidArgumentForWidthBucketFunction,
    NumericValueOutOfRange,
    PostgresError,
)

_INF = math.inf
_ONE_RADIAN = math.pi / 180


def to_float4(value: float) -> float:
    """Return the nearest real; an infinity if `value` is too large."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:  # struct refuses what C rounds to infinity
        return math.copysign(_INF, value)


def _overflow() -> PostgresError:
    return NumericValueOutOfRange("value out of range: overflow")


def _underflow() -> PostgresError:
    return NumericValueOutOfRange("value out of range: underflow")


def _add(a: float, b: float) -> float:
    return a + b


def _subtract(a: float, b: float) -> float:
    return a - b


def _multiply(a: float, b: float) -> float:
    return a * b


def _divide(a: float, b: float) -> float:
    if b == 0:
        if math.isnan(a):
            return a
        raise DivisionByZero("division by zero")
    return a / b


def _arithmetic(
    function: Callable[[float, float], float], *, single: bool, can_underflow: bool
) -> Callable[[float, float], float]:
    def calculate(a: float, b: float) -> float:
        result = function(a, b)
        if single:
            result = to_float4(result)
        if math.isinf(result) and not math.isinf(a) and not math.isinf(b):
            raise _overflow()
        if result == 0 and can_underflow and a != 0 and b != 0:
            raise _underflow()
        return result

    return calculate


def _quotient(*, single: bool) -> Callable[[float, float], float]:
    def calculate(a: float, b: float) -> float:
        result = _divide(a, b)
        if single:
            result = to_float4(result)
        if math.isinf(result) and not math.isinf(a):
            raise _overflow()
        if result == 0 and a != 0 and not math.isinf(b):
            raise _underflow()
        return result

    return calculate


def _operators() -> dict[str, Callable[..., Any]]:
    result: dict[str, Callable[..., Any]] = {}
    for prefix, single in (
        ("float4", True),
        ("float8", False),
        ("float48", False),
        ("float84", False),
    ):
        result[f"{prefix}pl"] = _arithmetic(_add, single=single, can_underflow=False)
        result[f"{prefix}mi"] = _arithmetic(_subtract, single=single, can_underflow=False)
        result[f"{prefix}mul"] = _arithmetic(_multiply, single=single, can_underflow=True)
        result[f"{prefix}div"] = _quotient(single=single)
    for name in ("float4", "float8"):
        result |= {f"{name}um": lambda a: -a, f"{name}up": lambda a: a, f"{name}abs": abs}
        result |= {f"{name}larger": larger, f"{name}smaller": smaller}
    return result


def key(value: float) -> tuple[bool, float]:
    """Return a key: NaN equals itself, and is greater than all other values."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def larger(a: float, b: float) -> float:
    return a if key(a) > key(b) else b


def smaller(a: float, b: float) -> float:
    return a if key(a) < key(b) else b


def rint(value: float) -> float:
    """Round to the nearest integer, half to even."""
    if math.isinf(value) or math.isnan(value) or abs(value) >= 2**52:
        return value
    return math.copysign(float(round(value)), value)


def _to_integer(type_name: str) -> Callable[[float], int]:
    names = {"int2": "smallint", "int4": "integer", "int8": "bigint"}

    def convert(value: float) -> int:
        if math.isnan(value) or math.isinf(value):
            raise NumericValueOutOfRange(f"{names[type_name]} out of range")
        return integer(int(rint(value)), type_name)

    return convert


def _to_float4(value: float) -> float:
    result = to_float4(value)
    if math.isinf(result) and not math.isinf(value):
        raise _overflow()
    if result == 0 and value != 0:
        raise _underflow()
    return result


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """Return ceil, floor or trunc for floats; keep NaN, infinities and the sign of zero."""

    def apply(value: float) -> float:
        if math.isnan(value) or math.isinf(value):
            return value
        return math.copysign(float(function(value)), value)

    return apply


def _sign(value: float) -> float:
    return 1.0 if value > 0 else -1.0 if value < 0 else 0.0


def power(a: float, b: float) -> float:
    """Implement dpow in float.c: follow POSIX's rules; raise an error if no real result exists."""
    if math.isnan(a):
        return 1.0 if b == 0 else a
    if math.isnan(b):
        return 1.0 if a == 1 else b
    if a == 0 and b < 0:
        raise InvalidArgumentForPowerFunction("zero raised to a negative power is undefined")
    if a < 0 and math.isfinite(b) and math.floor(b) != b:
        raise InvalidArgumentForPowerFunction(
            "a negative number raised to a non-integer power yields a complex result"
        )
    try:
        result = math.pow(a, b)
    except OverflowError:
        raise _overflow() from None
    if math.isinf(a) or math.isinf(b):
        return result
    if math.isinf(result):
        raise _overflow()
    if result == 0 and a != 0:
        raise _underflow()
    return result


def _exp(value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        raise _overflow() from None
    if result == 0 and not math.isinf(value):
        raise _underflow()
    return result


def _sqrt(value: float) -> float:
    if value < 0:
        raise InvalidArgumentForPowerFunction("cannot take square root of a negative number")
    return math.sqrt(value)


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        if value == 0:
            raise InvalidArgumentForLogarithm("cannot take logarithm of zero")
        if value < 0:
            raise InvalidArgumentForLogarithm("cannot take logarithm of a negative number")
        return function(value)

    return apply


def _domain(
    function: Callable[[float], float], allowed: Callable[[float], bool]
) -> Callable[[float], float]:
    """Return `function`, extended to check its domain and to map NaN to NaN."""

    def apply(value: float) -> float:
        if math.isnan(value):
            return value
        if not allowed(value):
            raise NumericValueOutOfRange("input is out of range")
        try:
            return function(value)
        except OverflowError:  # dsinh returns an infinity, no error
            return math.copysign(_INF, value)

    return apply


def _finite(value: float) -> bool:
    return not math.isinf(value)


def _unit(value: float) -> bool:
    return -1 <= value <= 1


def _cot(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(_INF, tangent) if tangent == 0 else 1 / tangent


def _atanh(value: float) -> float:
    return math.copysign(_INF, value) if abs(value) == 1 else math.atanh(value)


def _degrees(value: float) -> float:
    result = value / _ONE_RADIAN
    if math.isinf(result) and not math.isinf(value):
        raise _overflow()
    return result


def _radians(value: float) -> float:
    result = value * _ONE_RADIAN
    if result == 0 and value != 0:
        raise _underflow()
    return result


def _anything(value: float) -> bool:
    return True


def _cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:  # dcosh returns infinity, no error
        return _INF


def width_bucket(operand: float, low: float, high: float, count: int) -> int:
    """Return the number of the equal-sized bucket that contains a value."""
    error = InvalidArgumentForWidthBucketFunction
    if count <= 0:
        raise error("count must be greater than zero")
    if math.isnan(operand) or math.isnan(low) or math.isnan(high):
        raise error("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise error("lower and upper bounds must be finite")
    if low == high:
        raise error("lower bound cannot equal upper bound")
    if low > high:
        operand, low, high = -operand, -low, -high
    if operand < low:
        return 0
    if operand >= high:
        return integer(count + 1, "int4")
    result = (
        int(count * ((operand - low) / (high - low)))
        if not math.isinf(high - low)
        else int(count * ((operand / 2 - low / 2) / (high / 2 - low / 2)))
    )
    return min(result, count - 1) + 1


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_operators(),
    **{
        f"{source}{digit}": _to_integer(f"int{digit}")
        for source in ("dtoi", "ftoi")
        for digit in "248"
    },
    **dict.fromkeys(("i2tod", "i4tod", "i8tod", "ftod"), float),
    **dict.fromkeys(("i2tof", "i4tof", "i8tof"), to_float4),
    "dtof": _to_float4,
    "dround": rint,
    "dceil": _whole(math.ceil),
    "dfloor": _whole(math.floor),
    "dtrunc": _whole(math.trunc),
    "dsign": _sign,
    "dpow": power,
    "dexp": _exp,
    "dsqrt": _sqrt,
    "dlog1": _logarithm(math.log),
    "dlog10": _logarithm(math.log10),
    "dcbrt": lambda value: math.copysign(_cube_root(abs(value)), value),
    "dpi": lambda: math.pi,
    "degrees": _degrees,
    "radians": _radians,
    "dsin": _domain(math.sin, _finite),
    "dcos": _domain(math.cos, _finite),
    "dtan": _domain(math.tan, _finite),
    "dcot": _domain(_cot, _finite),
    "dasin": _domain(math.asin, _unit),
    "dacos": _domain(math.acos, _unit),
    "datan": _domain(math.atan, _anything),
    "datan2": math.atan2,
    "dsinh": _domain(math.sinh, _anything),
    "dcosh": _domain(_cosh, _anything),
    "dtanh": _domain(math.tanh, _anything),
    "dasinh": _domain(math.asinh, _anything),
    "dacosh": _domain(math.acosh, lambda value: value >= 1),
    "datanh": _domain(_atanh, _unit),
    "derf": math.erf,
    "derfc": math.erfc,
    "width_bucket_float8": width_bucket,
}


def _cube_root(value: float) -> float:
    return math.cbrt(value) if not math.isinf(value) else value
