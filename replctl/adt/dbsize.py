"""Sizes with units (PostgreSQL's dbsize.c)."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any

from replctl.adt import numeric_arithmetic
from replctl.errors import InvalidParameterValue
from replctl.types.numeric import numeric_in, numeric_out
from replctl.types.text_form import BLANKS

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_FIRST_LIMIT = 10 * 1024
_LIMIT = 20 * 1024 - 1  # in half units, for rounding
_NUMBER = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]\s*[+-]?[0-9]+)?)(.*)", re.DOTALL
)


def pretty_size(size: int) -> str:
    """Implement pg_size_pretty(bigint): bytes, or the largest unit of which 10 fit into the
    size.
    """
    return _pretty(size, _halved)


def _pretty(size: Any, halve: Callable[[Any, int], Any]) -> str:
    """Return a size in the smallest unit that makes it less than 10240.

    Args:
        halve: divides by a power of two, towards zero.
    """
    if abs(size) < _FIRST_LIMIT:
        return f"{size} bytes"
    size = halve(size, 9)
    for unit in _UNITS[1:]:
        if abs(size) < _LIMIT or unit == _UNITS[-1]:
            break
        size = halve(size, 10)
    rounded = Decimal(halve(size + (1 if size >= 0 else -1), 1))
    return f"{rounded:f} {unit}"  # str() refuses thousands of digits


def _halved(size: int, bits: int) -> int:
    return abs(size) >> bits if size >= 0 else -(abs(size) >> bits)


def _pretty_numeric(size: Decimal) -> str:
    if not size.is_finite():
        return f"{numeric_out(size)} {_UNITS[-1]}"
    if abs(size) < _FIRST_LIMIT:
        return f"{numeric_out(size)} bytes"
    return _pretty(int(numeric_arithmetic.rounded(size, 0, ROUND_DOWN)), _halved)


def _bytes(text: str) -> int:
    """Implement pg_size_bytes()."""
    error = f'invalid size: "{text}"'
    match = _NUMBER.match(text.lstrip(BLANKS))
    if match is None:
        raise InvalidParameterValue(error)
    number, unit = numeric_in(match[1]), match[2].strip(BLANKS)
    names = [name.lower() for name in _UNITS]
    if not unit or unit.lower() == "b":
        power = 0
    elif unit.lower() in names:
        power = names.index(unit.lower())
    else:
        raise InvalidParameterValue(
            error,
            detail=f'Invalid size unit: "{unit}".',
            hint='Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".',
        )
    size = numeric_arithmetic.multiply(number, Decimal(1024**power))
    return numeric_arithmetic.FUNCTIONS["numeric_int8"](size)  # type: ignore[no-any-return]


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_size_pretty": pretty_size,
    "pg_size_pretty_numeric": _pretty_numeric,
    "pg_size_bytes": _bytes,
}
