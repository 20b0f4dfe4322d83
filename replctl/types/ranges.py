"""Ranges and multiranges of built-in types: a value is its canonical text (PostgreSQL's
rangetypes.c and multirangetypes.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from replctl.errors import (
    DataError,
    DatetimeFieldOverflow,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
)
from replctl.record import dataclass
from replctl.types import date, integer, numeric, timestamp
from replctl.types.text_form import BLANKS, TextForm

_QUOTED = re.compile(r'["\\()\[\],\s]', re.ASCII)
_RANGE_LITERAL = re.compile(
    r'empty|[\[(](?:\\.|"(?:\\.|""|[^"\\])*+"|[^\\"\])])*+[\])]', re.DOTALL | re.IGNORECASE
)
_EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of a range; `value` is None if the bound is infinite."""

    value: Any
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A range that is not empty.  None represents an empty range."""

    lower: Bound
    upper: Bound


@dataclass(frozen=True, slots=True)
class Subtype:
    """The type of the bounds of a range.

    Args:
        read, write: the input and output functions of the type.
        step: returns the next value of a discrete type.  It returns an infinite value unchanged,
            and raises an error for the last value.
        key: converts a value to a Python value that sorts like the type.
    """

    read: Callable[[str, datetime | None], Any]
    write: Callable[[Any], str]
    step: Callable[[Any], Any] | None = None
    key: Callable[[Any], Any] = lambda value: value


def range_in(text: str, subtype: Subtype, now: datetime | None) -> Range | None:
    """Parse a range: `(1,4]` and int4 give [2, 5).

    Raises:
        InvalidTextRepresentation: `text` is not a range; the subtype's input may raise other
            errors.
        DataError: the lower bound is greater than the upper one.
        NumericValueOutOfRange, DatetimeFieldOverflow: the canonical bound is out of range for its
            type.
    """
    parsed = _Literal(text).parse()
    if parsed is None:
        return None
    lower, upper = (
        Bound(None, False)
        if bound.value is None
        else replace(bound, value=subtype.read(bound.value, now))
        for bound in (parsed.lower, parsed.upper)
    )
    result = _checked(Range(lower, upper), subtype)
    if result is None or subtype.step is None:
        return result
    return _checked(_canonical(result, subtype.step), subtype)


def range_out(value: Range | None, subtype: Subtype) -> str:
    """Print a range: [2, 5) becomes `[2,5)`."""
    if value is None:
        return _EMPTY
    opening = "[" if value.lower.is_inclusive else "("
    closing = "]" if value.upper.is_inclusive else ")"
    bounds = (value.lower, value.upper)
    shown = ("" if b.value is None else _quote(subtype.write(b.value)) for b in bounds)
    return opening + ",".join(shown) + closing


def multirange_in(text: str, subtype: Subtype, now: datetime | None) -> str:
    """Return the canonical text: (`{[5,6), [1,2), [2,3)}`, int4) becomes `{[1,3),[5,6)}`.

    Raises:
        DataError: `text` is not a multirange, or one of its ranges is not valid (see range_in).
    """
    ranges = [
        item
        for literal in _range_literals(text)
        if (item := range_in(literal, subtype, now)) is not None
    ]
    ranges.sort(key=lambda item: (_lower_key(item.lower, subtype), _upper_key(item.upper, subtype)))
    merged: list[Range] = []
    for item in ranges:
        if merged and not _is_before(merged[-1], item, subtype):
            merged[-1] = _union(merged[-1], item, subtype)
        else:
            merged.append(item)
    return "{" + ",".join(range_out(item, subtype) for item in merged) + "}"


class _Literal:
    """Reads the text of a range from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse(self) -> Range | None:
        """Return the range with its bounds as text."""
        self._skip_blanks()
        if self._text[self._position : self._position + 5].lower() == _EMPTY:
            self._position += 5
            self._end('Junk after "empty" key word.')
            return None
        opening = self._next()
        if opening not in ("[", "("):
            raise self._malformed("Missing left parenthesis or bracket.")
        lower = self._bound()
        if self._next() != ",":
            raise self._malformed("Missing comma after lower bound.")
        upper = self._bound()
        closing = self._next()
        if closing not in ("]", ")"):
            raise self._malformed("Too many commas.")
        self._end("Junk after right parenthesis or bracket.")
        return Range(Bound(lower, opening == "["), Bound(upper, closing == "]"))

    def _bound(self) -> str | None:
        if self._peek() in (",", ")", "]"):
            return None
        chars: list[str] = []
        is_quoted = False
        while is_quoted or self._peek() not in (",", ")", "]"):
            char = self._next()
            if char == "\\":
                chars.append(self._next())
            elif char != '"':
                chars.append(char)
            elif is_quoted and self._peek() == '"':
                chars.append(self._next())
            else:
                is_quoted = not is_quoted
            if not char:
                raise self._malformed("Unexpected end of input.")
        return "".join(chars)

    def _end(self, complaint: str) -> None:
        self._skip_blanks()
        if self._position < len(self._text):
            raise self._malformed(complaint)

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in BLANKS:
            self._position += 1

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _next(self) -> str:
        char = self._peek()
        self._position += 1
        return char

    def _malformed(self, detail: str) -> InvalidTextRepresentation:
        return InvalidTextRepresentation(f'malformed range literal: "{self._text}"', detail=detail)


def _checked(value: Range, subtype: Subtype) -> Range | None:
    """Return the range; None if it is empty.

    Raises:
        DataError: the bounds are in the wrong order.
    """
    lower, upper = value.lower, value.upper
    if lower.value is None or upper.value is None:
        return value
    low, high = subtype.key(lower.value), subtype.key(upper.value)
    if low > high:
        raise DataError("range lower bound must be less than or equal to range upper bound")
    if low == high and not (lower.is_inclusive and upper.is_inclusive):
        return None
    return value


def _canonical(value: Range, step: Callable[[Any], Any]) -> Range:
    """Return a discrete range with an inclusive lower and an exclusive upper bound."""
    lower, upper = value.lower, value.upper
    if lower.value is not None and not lower.is_inclusive:
        following = step(lower.value)
        lower = Bound(following, following != lower.value)
    if upper.value is not None and upper.is_inclusive:
        following = step(upper.value)
        upper = Bound(following, following == upper.value)
    return Range(lower, upper)


def _lower_key(bound: Bound, subtype: Subtype) -> tuple[Any, ...]:
    if bound.value is None:
        return (0,)
    return (1, subtype.key(bound.value), not bound.is_inclusive)


def _upper_key(bound: Bound, subtype: Subtype) -> tuple[Any, ...]:
    if bound.value is None:
        return (2,)
    return (1, subtype.key(bound.value), bound.is_inclusive)


def _union(first: Range, second: Range, subtype: Subtype) -> Range:
    """Return the union of two ranges.  If two bounds are equal, such as 2.0 and 2, use the bound of
    the second range.
    """
    is_lower = _lower_key(first.lower, subtype) < _lower_key(second.lower, subtype)
    is_higher = _upper_key(first.upper, subtype) > _upper_key(second.upper, subtype)
    return Range(
        first.lower if is_lower else second.lower, first.upper if is_higher else second.upper
    )


def _is_before(first: Range, second: Range, subtype: Subtype) -> bool:
    """Return whether the first range ends before the second begins, with a gap between them."""
    upper, lower = first.upper, second.lower
    if upper.value is None or lower.value is None:
        return False
    high, low = subtype.key(upper.value), subtype.key(lower.value)
    is_touched = upper.is_inclusive or lower.is_inclusive
    return bool(high < low or (high == low and not is_touched))


def _range_literals(text: str) -> Iterator[str]:
    """Split a multirange: `{[1,2), empty,"x"]}` becomes the texts of its ranges.

    Raises:
        InvalidTextRepresentation: `text` is not a list of ranges in braces.
    """

    def malformed(detail: str) -> InvalidTextRepresentation:
        return InvalidTextRepresentation(f'malformed multirange literal: "{text}"', detail=detail)

    rest = text.lstrip(BLANKS)
    if not rest.startswith("{"):
        raise malformed("Missing left brace.")
    rest = rest[1:].lstrip(BLANKS)
    if rest.startswith("}"):
        rest = rest[1:]
    else:
        delimiter = ","
        while delimiter == ",":
            rest = rest.lstrip(BLANKS)
            match = _RANGE_LITERAL.match(rest)
            if match is None:
                unfinished = rest[:1] in ("", "[", "(")
                raise malformed(
                    "Unexpected end of input." if unfinished else "Expected range start."
                )
            yield match[0]
            rest = rest[match.end() :].lstrip(BLANKS)
            delimiter, rest = rest[:1], rest[1:]
        if delimiter != "}":
            raise malformed(
                "Expected comma or end of multirange." if delimiter else "Unexpected end of input."
            )
    if rest.strip(BLANKS):
        raise malformed("Junk after closing right brace.")


def _quote(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    doubled = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'


def _next_integer(value: int, last: int, sql_name: str) -> int:
    if value == last:
        raise NumericValueOutOfRange(f"{sql_name} out of range")
    return value + 1


def _next_date(value: int) -> int:
    if value in (date.DATE_INFINITY, date.DATE_MINUS_INFINITY):
        return value
    if value == date.LAST_DATE:
        raise DatetimeFieldOverflow("date out of range")
    return value + 1


def _numeric_key(value: Decimal) -> tuple[bool, Decimal]:
    return (True, Decimal(0)) if value.is_nan() else (False, value)  # NaN is the largest


_SUBTYPES = {
    "int4": Subtype(
        lambda text, now: integer.int4in(text),
        str,
        partial(_next_integer, last=2**31 - 1, sql_name="integer"),
    ),
    "int8": Subtype(
        lambda text, now: integer.int8in(text),
        str,
        partial(_next_integer, last=2**63 - 1, sql_name="bigint"),
    ),
    "num": Subtype(
        lambda text, now: numeric.numeric_in(text), numeric.numeric_out, key=_numeric_key
    ),
    "date": Subtype(lambda text, now: date.date_in(text, -1, now), date.date_out, _next_date),
    "ts": Subtype(lambda text, now: timestamp.timestamp_in(text, -1, now), timestamp.timestamp_out),
    "tstz": Subtype(
        lambda text, now: timestamp.timestamptz_in(text, -1, now), timestamp.timestamptz_out
    ),
}


def shown_range(name: str, text: str, write: Callable[[Any], str]) -> str:
    """Print a range or a multirange.

    Args:
        name: the name of its type.
        write: prints a bound.
        text: the canonical text of the value.
    """
    prefix = name.removesuffix("range").removesuffix("multi")
    subtype = replace(_SUBTYPES[prefix], write=write)
    literals = _range_literals(text) if name.endswith("multirange") else (text,)
    shown = [range_out(range_in(literal, subtype, None), subtype) for literal in literals]
    return f"{{{','.join(shown)}}}" if name.endswith("multirange") else shown[0]


def _range_form(subtype: Subtype) -> TextForm:
    return TextForm(lambda text, typmod, now: range_out(range_in(text, subtype, now), subtype), str)


def _multirange_form(subtype: Subtype) -> TextForm:
    return TextForm(lambda text, typmod, now: multirange_in(text, subtype, now), str)


FORMS = {
    **{f"{name}range": _range_form(subtype) for name, subtype in _SUBTYPES.items()},
    **{f"{name}multirange": _multirange_form(subtype) for name, subtype in _SUBTYPES.items()},
}
