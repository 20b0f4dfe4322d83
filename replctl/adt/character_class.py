"""The classes of characters that regular expressions and initcap() know, as in collation
C.UTF-8."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

#: PostgreSQL's digits and hexadecimal digits are those of ASCII.
_SMALL = {"digit": ((0x30, 0x39),), "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))}


@cache
def ranges(name: str) -> tuple[tuple[int, int], ...]:
    """The code points of a class (alpha, alnum, space ...), as ranges.

    Raises:
        KeyError: there is no such class.
    """
    return _SMALL.get(name) or _tables()[name]


@cache
def members(name: str) -> frozenset[str]:
    """The characters of a class."""
    return frozenset(chr(code) for low, high in ranges(name) for code in range(low, high + 1))


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
