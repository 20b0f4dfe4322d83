"""Integers (PostgreSQL's int.c and int8.c)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from replctl.adt.range_check import integer
from replctl.errors import DivisionByZero, NumericValueOutOfRange

_SIZES = {"2": "int2", "4": "int4", "8": "int8"}
_WIDTH = {"int2": 32, "int4": 32, "int8": 64}  # int2 is shifted like int4


def _checked(function: Callable[..., int], type_name: str) -> Callable[..., int]:
    return lambda *args: integer(function(*args), type_name)


def divide(left: int, right: int) -> int:
    """Divide towards zero."""
    if right == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """Return the remainder, with the sign of the dividend."""
    if right == 0:
        raise DivisionByZero("division by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _shift_left(type_name: str) -> Callable[[int, int], int]:
    width, bits = _WIDTH[type_name], 16 if type_name == "int2" else _WIDTH[type_name]
    return lambda value, count: _wrapped(value << (count & (width - 1)), bits)


def _shift_right(type_name: str) -> Callable[[int, int], int]:
    width = _WIDTH[type_name]
    return lambda value, count: value >> (count & (width - 1))


def _digits(base: str, bits: int) -> Callable[[int], str]:
    return lambda value: format(value & ((1 << bits) - 1), base)


def _oid(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise NumericValueOutOfRange("OID out of range")
    return value


def _arithmetic() -> dict[str, Callable[..., Any]]:
    """Return the arithmetic functions of all integer types: int4pl, int48pl, int2mod, ..."""
    functions = {"pl": operator.add, "mi": operator.sub, "mul": operator.mul, "div": divide}
    result: dict[str, Callable[..., Any]] = {}
    for first, left in _SIZES.items():
        for second, right in _SIZES.items():
            prefix = f"int{first}" if first == second else f"int{first}{second}"
            for suffix, function in functions.items():
                result[prefix + suffix] = _checked(function, max(left, right))
    for name in _SIZES.values():
        result |= {
            f"{name}mod": remainder,
            f"{name}um": _checked(operator.neg, name),
            f"{name}up": lambda value: value,
            f"{name}abs": _checked(abs, name),
            f"{name}and": operator.and_,
            f"{name}or": operator.or_,
            f"{name}xor": operator.xor,
            f"{name}not": operator.invert,
            f"{name}shl": _shift_left(name),
            f"{name}shr": _shift_right(name),
            f"{name}gcd": _checked(math.gcd, name),
            f"{name}lcm": _checked(math.lcm, name),
            f"{name}larger": max,
            f"{name}smaller": min,
            f"{name}inc": _checked(lambda value: value + 1, name),
        }
    return result


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_arithmetic(),
    "i2toi4": int,
    "i4toi2": _checked(int, "int2"),
    "int28": int,
    "int48": int,
    "int82": _checked(int, "int2"),
    "int84": _checked(int, "int4"),
    "i8tooid": _oid,
    "oidtoi8": int,
    "int4_bool": bool,
    "bool_int4": int,
    "to_hex32": _digits("x", 32),
    "to_hex64": _digits("x", 64),
    "to_oct32": _digits("o", 32),
    "to_oct64": _digits("o", 64),
    "to_bin32": _digits("b", 32),
    "to_bin64": _digits("b", 64),
    "booltext": lambda value: "true" if value else "false",
    "booland_statefunc": lambda left, right: left and right,
    "boolor_statefunc": lambda left, right: left or right,
}
