"""The character classes of regular expressions and initcap(), as in collation C.UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TypeAlias

LAST_CODE = 0x10FFFF

#: A set of code points: sorted ranges that do not touch.
Ranges: TypeAlias = tuple[tuple[int, int], ...]

#: Classes that are equal in all collations; digits are ASCII digits.
_FIXED: dict[str, Ranges] = {
    "ascii": ((0, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x9F)),
    "digit": ((0x30, 0x39),),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}


@cache
def ranges(name: str, *, ascii_only: bool = False) -> Ranges:
    """Return the code points of a class (alpha, alnum, word ...).

    Args:
        ascii_only: use collation C.

    Raises:
        KeyError: there is no such class.
    """
    if name in _FIXED:
        return _FIXED[name]
    if name == "word":
        return merged([*ranges("alnum", ascii_only=ascii_only), (0x5F, 0x5F)])
    found = _tables()[name]
    if not ascii_only:
        return found
    return tuple((low, min(high, 0x7F)) for low, high in found if low <= 0x7F)


def merged(items: Iterable[tuple[int, int]]) -> Ranges:
    """Return the same code points as sorted ranges that do not touch."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(items):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def complement(items: Ranges) -> Ranges:
    """Return the code points outside of a set."""
    result, next_low = [], 0
    for low, high in items:
        if low > next_low:
            result.append((next_low, low - 1))
        next_low = high + 1
    if next_low <= LAST_CODE:
        result.append((next_low, LAST_CODE))
    return tuple(result)


@cache
def members(name: str, *, ascii_only: bool = False) -> frozenset[str]:
    """Return the characters of a class."""
    found = ranges(name, ascii_only=ascii_only)
    return frozenset(chr(code) for low, high in found for code in range(low, high + 1))


@cache
def _tables() -> dict[str, tuple[tuple[int, int], ...]]:
    data = files("replctl.adt").joinpath("data/character_class.tsv").read_text(encoding="ascii")
    tables = {}
    for line in data.splitlines():
        name, _, items = line.partition("\t")
        tables[name] = tuple(_range(item) for item in items.split())
    return tables


def _range(item: str) -> tuple[int, int]:
    low, _, high = item.partition("-")
    return int(low, 16), int(high or low, 16)
