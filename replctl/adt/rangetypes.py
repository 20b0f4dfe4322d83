"""Ranges as canonical texts (PostgreSQL's rangetypes.c)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from replctl.adt import numeric_arithmetic
from replctl.errors import DataError, SqlSyntaxError
from replctl.record import dataclass
from replctl.types import text as type_text
from replctl.types.ranges import Bound, Range, Subtype, range_in, range_out

#: The element type of each range type.
ELEMENTS = {"int4range": "int4", "int8range": "int8", "numrange": "numeric", "daterange": "date",
            "tsrange": "timestamp", "tstzrange": "timestamptz"}  # fmt: skip
_FLAGS = ("[]", "[)", "(]", "()")

#: A sortable bound: -1 or 1 if it is infinite, else 0; its value; 1 or -1 if it excludes the value
#: and so lies just after or before it.
Place: TypeAlias = tuple[int, Any, int]


@dataclass(frozen=True, slots=True)
class RangeType:
    """A range type, and the key that sorts its elements."""

    name: str
    key: Callable[[Any], Any]

    def load(self, text: str) -> Range | None:
        return _load(self.name, text)

    def dump(self, value: Range | None) -> str:
        """Return the canonical text: write discrete bounds as [), and a range without elements as
        empty.
        """
        return type_text.canonical(self.name, range_out(value, _subtype(self.name)))

    def low(self, value: Range) -> Place:
        bound = value.lower
        return (
            (-1, 0, 0)
            if bound.value is None
            else (0, self.key(bound.value), 1 - bound.is_inclusive)
        )

    def high(self, value: Range) -> Place:
        bound = value.upper
        return (
            (1, 0, 0) if bound.value is None else (0, self.key(bound.value), bound.is_inclusive - 1)
        )


def _subtype(name: str) -> Subtype:
    element = ELEMENTS[name]
    return Subtype(
        lambda text, now: type_text.parse(element, text),
        lambda value: type_text.render(element, value),
        key=numeric_arithmetic.key if element == "numeric" else _same,
    )


def _same(value: Any) -> Any:
    return value


@lru_cache(2000)
def _load(name: str, text: str) -> Range | None:
    return range_in(text, _subtype(name), None)


def sort_key(kind: RangeType) -> Callable[[str], Any]:
    """Return a key that sorts the empty range first, and others by lower and then upper bound."""

    def key(text: str) -> Any:
        value = kind.load(text)
        return (0,) if value is None else (1, kind.low(value), kind.high(value))

    return key


def _contains(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    if b is None or a is None:
        return b is None
    return kind.low(a) <= kind.low(b) and kind.high(a) >= kind.high(b)


def _contains_element(kind: RangeType, a: Range | None, value: Any) -> bool:
    if a is None:
        return False
    place = (0, kind.key(value), 0)
    return kind.low(a) <= place <= kind.high(a)


def _overlaps(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    if a is None or b is None:
        return False
    return kind.low(a) <= kind.high(b) and kind.low(b) <= kind.high(a)


def _before(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    return a is not None and b is not None and kind.high(a) < kind.low(b)


def _touch(kind: RangeType, upper: Bound, lower: Bound) -> bool:
    if upper.value is None or lower.value is None:
        return False
    return (
        kind.key(upper.value) == kind.key(lower.value) and upper.is_inclusive != lower.is_inclusive
    )


def _adjacent(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    if a is None or b is None:
        return False
    return _touch(kind, a.upper, b.lower) or _touch(kind, b.upper, a.lower)


def _over_left(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    return a is not None and b is not None and kind.high(a) <= kind.high(b)


def _over_right(kind: RangeType, a: Range | None, b: Range | None) -> bool:
    return a is not None and b is not None and kind.low(a) >= kind.low(b)


def _spanning(kind: RangeType, a: Range, b: Range) -> Range:
    return Range(
        a.lower if kind.low(a) <= kind.low(b) else b.lower,
        a.upper if kind.high(a) >= kind.high(b) else b.upper,
    )


def _union(kind: RangeType, a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None:
        return a or b
    if not _overlaps(kind, a, b) and not _adjacent(kind, a, b):
        raise DataError("result of range union would not be contiguous")
    return _spanning(kind, a, b)


def _merge(kind: RangeType, a: Range | None, b: Range | None) -> Range | None:
    return a or b if a is None or b is None else _spanning(kind, a, b)


def _intersect(kind: RangeType, a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None or not _overlaps(kind, a, b):
        return None
    return Range(
        a.lower if kind.low(a) >= kind.low(b) else b.lower,
        a.upper if kind.high(a) <= kind.high(b) else b.upper,
    )


def _minus(kind: RangeType, a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None or not _overlaps(kind, a, b):
        return a
    left, right = kind.low(a) < kind.low(b), kind.high(a) > kind.high(b)
    if left and right:
        raise DataError("result of range difference would not be contiguous")
    if left:
        return Range(a.lower, Bound(b.lower.value, not b.lower.is_inclusive))
    if right:
        return Range(Bound(b.upper.value, not b.upper.is_inclusive), a.upper)
    return None


def construct(kind: RangeType, lower: Any, upper: Any, flags: str | None = "[)") -> str:
    """Implement int4range(1, 5, '[]')."""
    if flags is None:
        raise DataError("range constructor flags argument must not be null")
    if flags not in _FLAGS:
        raise SqlSyntaxError(
            "invalid range bound flags", hint='Valid values are "[]", "[)", "(]", and "()".'
        )
    opening, closing = flags[0], flags[1]
    bounds = (
        Bound(lower, opening == "[" and lower is not None),
        Bound(upper, closing == "]" and upper is not None),
    )
    return kind.dump(Range(*bounds))


def _ranges(function: Callable[..., Any], *, gives_range: bool = False) -> Callable[..., Any]:
    """Return a function that takes a range type, and returns `function` for two ranges as texts."""

    def of_type(kind: RangeType) -> Callable[..., Any]:
        if gives_range:
            return lambda a, b: kind.dump(function(kind, kind.load(a), kind.load(b)))
        return lambda a, b: function(kind, kind.load(a), kind.load(b))

    return of_type


def _bound(read: Callable[[Range], Any], empty: Any) -> Callable[..., Any]:
    """Return an entry of `TYPED`: it parses the range, and applies `read` to it.

    Args:
        empty: the result for an empty range.
    """

    def of_type(kind: RangeType) -> Callable[..., Any]:
        def apply(text: str) -> Any:
            value = kind.load(text)
            return empty if value is None else read(value)

        return apply

    return of_type


#: Functions by their names in pg_proc.prosrc.  Each entry takes the range type.
TYPED: dict[str, Callable[[RangeType], Callable[..., Any]]] = {
    "range_constructor2": lambda kind: lambda a, b: construct(kind, a, b),
    "range_constructor3": lambda kind: lambda a, b, flags: construct(kind, a, b, flags),
    "range_contains": _ranges(_contains),
    "range_contained_by": _ranges(lambda kind, a, b: _contains(kind, b, a)),
    "range_contains_elem": lambda kind: (
        lambda a, value: _contains_element(kind, kind.load(a), value)
    ),
    "elem_contained_by_range": lambda kind: (
        lambda value, a: _contains_element(kind, kind.load(a), value)
    ),
    "range_overlaps": _ranges(_overlaps),
    "range_before": _ranges(_before),
    "range_after": _ranges(lambda kind, a, b: _before(kind, b, a)),
    "range_adjacent": _ranges(_adjacent),
    "range_overleft": _ranges(_over_left),
    "range_overright": _ranges(_over_right),
    "range_union": _ranges(_union, gives_range=True),
    "range_merge": _ranges(_merge, gives_range=True),
    "range_intersect": _ranges(_intersect, gives_range=True),
    "range_minus": _ranges(_minus, gives_range=True),
    "range_lower": _bound(lambda value: value.lower.value, None),
    "range_upper": _bound(lambda value: value.upper.value, None),
    "range_empty": lambda kind: lambda text: kind.load(text) is None,
    "range_lower_inc": _bound(lambda value: value.lower.is_inclusive, False),
    "range_upper_inc": _bound(lambda value: value.upper.is_inclusive, False),
    "range_lower_inf": _bound(lambda value: value.lower.value is None, False),
    "range_upper_inf": _bound(lambda value: value.upper.value is None, False),
}
