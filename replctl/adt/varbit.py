"""Bit strings: str of 0 and 1 (PostgreSQL's varbit.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replctl.adt.range_check import int4
from replctl.adt.varlena import substring
from replctl.errors import (
    ArraySubscriptError,
    InvalidParameterValue,
    NumericValueOutOfRange,
    StringDataLengthMismatch,
    SubstringError,
)


def _logical(verb: str, function: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def apply(a: str, b: str) -> str:
        if len(a) != len(b):
            raise StringDataLengthMismatch(f"cannot {verb} bit strings of different sizes")
        return "".join(str(function(int(x), int(y))) for x, y in zip(a, b, strict=True))

    return apply


def _shift(bits: str, count: int) -> str:
    """Shift to the left; to the right if `count` is negative."""
    if count >= 0:
        return bits[count:] + "0" * min(count, len(bits))
    return "0" * min(-count, len(bits)) + bits[:count]


def _not(bits: str) -> str:
    return bits.translate({48: 49, 49: 48})


def _get(bits: str, index: int) -> int:
    return int(bits[_index(bits, index)])


def _index(bits: str, index: int) -> int:
    if not 0 <= index < len(bits):
        raise ArraySubscriptError(f"bit index {index} out of valid range (0..{len(bits) - 1})")
    return index


def _set(bits: str, index: int, new: int) -> str:
    _index(bits, index)
    if new not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    return f"{bits[:index]}{new}{bits[index + 1 :]}"


def _overlay(bits: str, new: str, start: int, count: int | None = None) -> str:
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    count = len(new) if count is None else count
    return bits[: start - 1] + new + bits[max(int4(start + count), 1) - 1 :]


def _from_integer(size: int) -> Callable[[int, int], str]:
    """Return the cast of an integer to bit(n): its lowest bits, after copies of its sign."""

    def convert(value: int, typmod: int) -> str:
        length = typmod if typmod > 0 else 1
        bits = format(value & ((1 << size) - 1), f"0{size}b")
        sign = "1" if value < 0 else "0"
        return bits[size - length :] if length <= size else sign * (length - size) + bits

    return convert


def _to_integer(size: int, name: str) -> Callable[[str], int]:
    def convert(bits: str) -> int:
        if len(bits) > size:
            raise NumericValueOutOfRange(f"{name} out of range")
        value = int(bits or "0", 2)
        return value - (1 << size) if value >> (size - 1) else value

    return convert


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bit_and": _logical("AND", lambda a, b: a & b),
    "bit_or": _logical("OR", lambda a, b: a | b),
    "bitxor": _logical("XOR", lambda a, b: a ^ b),
    "bitnot": _not,
    "bitshiftleft": _shift,
    "bitshiftright": lambda bits, count: _shift(bits, -count),
    "bitcat": lambda a, b: a + b,
    "bitlength": len,
    "bit_length(bit)": len,
    "bitoctetlength": lambda bits: (len(bits) + 7) // 8,
    "bitsubstr": substring,
    "bitsubstr_no_len": substring,
    "bitposition": lambda bits, part: (bits.find(part) + 1) if bits else 0,
    "bitgetbit": _get,
    "bitsetbit": _set,
    "bitoverlay": _overlay,
    "bitoverlay_no_len": _overlay,
    "bit_bit_count": lambda bits: bits.count("1"),
    "bitfromint4": _from_integer(32),
    "bitfromint8": _from_integer(64),
    "bittoint4": _to_integer(32, "integer"),
    "bittoint8": _to_integer(64, "bigint"),
}
