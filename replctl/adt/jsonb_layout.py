"""Compute positions in the binary form of a jsonb, which jsonpath's .keyvalue() shows.

PostgreSQL's jsonb.h: a container consists of a word, a word for each key and value, then the keys,
then the values.  Numbers and containers begin at multiples of four bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from replctl.types.numeric import base_10000

_WORD = 4


def offset(base: Any, part: Any) -> int:
    """Return the number of bytes from the beginning of `base` to a container in it.

    Args:
        part: the object or array itself, not an equal one; it may be `base`.
    """
    return next(place for place, found in _containers(base, 0) if found is part)


def _containers(value: Any, start: int) -> Iterator[tuple[int, Any]]:
    """Yield all containers in a container, including itself, with their positions."""
    yield start, value
    for place, item in _places(value, start):
        if isinstance(item, dict | list):
            yield from _containers(item, place)


def _places(value: Any, start: int) -> Iterator[tuple[int, Any]]:
    """Yield the direct parts of a container with their positions."""
    keys, items = (list(value), list(value.values())) if isinstance(value, dict) else ([], value)
    place = start + _WORD * (1 + len(keys) + len(items)) + sum(len(key.encode()) for key in keys)
    for item in items:
        if isinstance(item, dict | list | Decimal):
            place = _aligned(place)
        yield place, item
        place = _end(item, place)


def _end(item: Any, start: int) -> int:
    if isinstance(item, dict | list):
        keys = list(item) if isinstance(item, dict) else []
        end = start + _WORD * (1 + len(keys) + len(item)) + sum(len(key.encode()) for key in keys)
        for place, inner in _places(item, start):
            end = _end(inner, place)
        return end
    if isinstance(item, Decimal):
        return start + _numeric_size(item)
    return start + (len(item.encode()) if isinstance(item, str) else 0)


def _numeric_size(value: Decimal) -> int:
    """Return the size of a number: a length, a header (shorter for a small scale and weight), and
    two bytes for each digit in base 10000.
    """
    digits, weight = base_10000(value) if value else ([], 0)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    is_short = -exponent <= 63 and -64 <= weight <= 63
    return _WORD + (2 if is_short else 4) + 2 * len(digits)


def _aligned(place: int) -> int:
    return -(-place // _WORD) * _WORD
