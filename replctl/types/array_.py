"""Arrays of any element type (PostgreSQL's arrayfuncs.c).

A value is a list of element values, with None for NULL.  An array of several dimensions is a list
of lists, the empty array is `[]`, and an array with a lower bound other than 1 is a `BoundedArray`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from replctl.errors import ArraySubscriptError, InvalidTextRepresentation, ProgramLimitExceeded
from replctl.record import dataclass
from replctl.types.integer import decimal_int
from replctl.types.text_form import BLANKS, TextForm

MAX_DIMENSIONS = 6  # MAXDIM in array.h
MAX_SIZE = (2**30 - 1) // 8  # MaxArraySize
_INT4 = range(-(2**31), 2**31)

_DIMENSION = re.compile(r"[+-]?[0-9]+")
_SPECIAL = re.compile(r'["\\{}\s]', re.ASCII)
_BLANK = re.compile(r"\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BoundedArray:
    """An array with a lower bound other than 1, in its canonical text: `[0:1]={a,b}`."""

    text: str


ArrayValue: TypeAlias = list[Any] | BoundedArray
Read: TypeAlias = Callable[[str], Any]


def array_form(element: TextForm, delimiter: str) -> TextForm:
    """Return the input, output and coercion of arrays of `element`."""

    def parse(text: str, typmod: int, now: datetime | None) -> ArrayValue:
        return array_in(text, delimiter, lambda item: element.parse(item, typmod, now), render)

    def render(value: ArrayValue) -> str:
        if isinstance(value, BoundedArray):
            return value.text
        return array_out(value, delimiter, element.render)

    def coerce(value: ArrayValue, typmod: int, explicit: bool) -> ArrayValue:
        def read(item: str) -> Any:
            return element.coerce(element.parse(item, -1, None), typmod, explicit)

        if isinstance(value, BoundedArray):
            return array_in(value.text, delimiter, read, render)
        return _map_elements(value, lambda item: element.coerce(item, typmod, explicit))

    return TextForm(parse, render, coerce)


def array_in(
    text: str, delimiter: str, read: Read, render: Callable[[list[Any]], str]
) -> ArrayValue:
    """Parse an array: `{1,NULL}` becomes [1, None]; `[0:1]={1,2}` becomes a BoundedArray.

    Args:
        read, render: the input function of an element, and the output function of an array whose
            lower bounds are 1.

    Raises:
        InvalidTextRepresentation: `text` is not an array; `read` may raise other errors.
        ArraySubscriptError, ProgramLimitExceeded: the dimensions of the array are not valid.
    """
    # Almost all arrays have one dimension and no quotes.
    if text[:1] == "{" and text[-1:] == "}" and not _SPECIAL.search(text, 1, len(text) - 1):
        items = text[1:-1].split(delimiter)
        if all(items):
            return [None if item.upper() == "NULL" else read(item) for item in items]
    bounds, start = _dimensions(text)
    lengths = [upper - lower + 1 for lower, upper in bounds]
    elements = _Elements(text, start, delimiter, read, lengths).parse()
    if any(lower != 1 for lower, _ in bounds):
        shown = "".join(f"[{lower}:{upper}]" for lower, upper in bounds)
        return BoundedArray(f"{shown}={render(elements)}")
    return elements


def array_out(value: list[Any], delimiter: str, render: Callable[[Any], str]) -> str:
    """Print an array: [1, None, 2] becomes `{1,NULL,2}`; ambiguous items are quoted.

    Args:
        render: the output function of an element.
    """
    shown = []
    for item in value:
        if item is None:
            shown.append("NULL")
        elif isinstance(item, list):
            shown.append(array_out(item, delimiter, render))
        else:
            text = render(item)
            if not text or text.upper() == "NULL" or delimiter in text or _SPECIAL.search(text):
                text = text.replace("\\", "\\\\").replace('"', '\\"')
                text = f'"{text}"'
            shown.append(text)
    return f"{{{delimiter.join(shown)}}}"


class _Elements:
    """Reads the text of an array between its outermost braces, from left to right."""

    def __init__(
        self, text: str, start: int, delimiter: str, read: Read, lengths: list[int]
    ) -> None:
        self._text = text
        self._position = start  # position of a left brace
        self._delimiter = delimiter
        self._read = read
        self._has_dimensions = bool(lengths)
        self._lengths: list[int | None] = [*lengths]  # of each level; None if not known yet
        self._are_levels_known = self._has_dimensions

    def parse(self) -> list[Any]:
        """Return the nested lists.

        Raises:
            InvalidTextRepresentation, ProgramLimitExceeded: see array_in.
        """
        root: list[Any] = []
        open_lists: list[list[Any]] = [root]
        has_items = False
        expects_delimiter = False
        while True:
            self._skip_blanks()
            char = self._text[self._position : self._position + 1]
            if char == "{":
                if expects_delimiter:
                    raise self._unexpected(char)
                self._open_level(len(open_lists))
                open_lists.append([])
            elif char == "}":
                ended = open_lists.pop()
                if ended and not expects_delimiter:
                    raise self._unexpected(char)
                open_lists[-1].append(ended)
                self._close_level(len(open_lists) - 1, len(ended))
                expects_delimiter = True
                if len(open_lists) == 1:
                    break
            elif char == self._delimiter:
                if not expects_delimiter:
                    raise self._unexpected(char)
                self._position += 1
                expects_delimiter = False
            else:
                open_lists[-1].append(self._item(char, expects_delimiter=expects_delimiter))
                has_items = True
                if len(open_lists) - 1 != len(self._lengths):
                    raise self._mismatch()
                expects_delimiter = True
        if self._text[self._position :].strip(BLANKS):
            raise _malformed(self._text, "Junk after closing right brace.")
        result: list[Any] = root[0]
        return result if has_items else []

    def _item(self, first: str, *, expects_delimiter: bool) -> Any:
        """Read an element.

        Args:
            first: the first character of the element.
        """
        item = self._quoted() if first == '"' else self._unquoted()
        if expects_delimiter:
            raise _malformed(self._text, "Unexpected array element.")
        value = None if item is None else self._read(item)
        self._are_levels_known = True
        return value

    def _open_level(self, level: int) -> None:
        if level > MAX_DIMENSIONS:
            raise _too_many_dimensions()
        if level > len(self._lengths):
            if self._are_levels_known:
                raise self._mismatch()
            self._lengths.append(None)
        self._position += 1

    def _close_level(self, level: int, length: int) -> None:
        if self._lengths[level] is None:
            self._lengths[level] = length
        elif self._lengths[level] != length:
            raise self._mismatch()
        self._position += 1

    def _quoted(self) -> str:
        chars = []
        self._position += 1
        while (char := self._next()) != '"':
            chars.append(self._next() if char == "\\" else char)
        self._skip_blanks()
        if self._peek() not in ("{", "}", self._delimiter):
            raise _malformed(self._text, "Incorrectly quoted array element.")
        return "".join(chars)

    def _unquoted(self) -> str | None:
        """Read an unquoted element, up to a delimiter or a right brace.  Blanks at its end count
        only if they are escaped.
        """
        chars: list[str] = []
        length = 0
        has_escapes = False
        while (char := self._peek()) not in ("}", self._delimiter):
            if char == "{":
                raise self._unexpected(char)
            if char == '"':
                raise _malformed(self._text, "Incorrectly quoted array element.")
            self._position += 1
            if char == "\\":
                char = self._next()
                has_escapes = True
                chars.append(char)
                length = len(chars)
            else:
                chars.append(char)
                length = length if char in BLANKS else len(chars)
        item = "".join(chars[:length])
        return None if item.upper() == "NULL" and not has_escapes else item

    def _peek(self) -> str:
        if self._position >= len(self._text):
            raise _malformed(self._text, "Unexpected end of input.")
        return self._text[self._position]

    def _next(self) -> str:
        char = self._peek()
        self._position += 1
        return char

    def _skip_blanks(self) -> None:
        self._position = _skip_blanks(self._text, self._position)

    def _unexpected(self, char: str) -> InvalidTextRepresentation:
        return _malformed(self._text, f'Unexpected "{char}" character.')

    def _mismatch(self) -> InvalidTextRepresentation:
        if self._has_dimensions:
            return _malformed(self._text, "Specified array dimensions do not match array contents.")
        return _malformed(
            self._text,
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        )


def _dimensions(text: str) -> tuple[list[tuple[int, int]], int]:
    """Return the bounds of each dimension, and the position of the first brace.

    `[0:1][2]={{..` -> ([(0, 1), (1, 2)], 9)
    """
    bounds: list[tuple[int, int]] = []
    position = _skip_blanks(text, 0)
    while text[position : position + 1] == "[":
        if len(bounds) >= MAX_DIMENSIONS:
            raise _too_many_dimensions()
        lower, position = _bound(
            text, position + 1, '"[" must introduce explicitly-specified array dimensions.'
        )
        upper = lower
        if text[position : position + 1] == ":":
            upper, position = _bound(text, position + 1, "Missing array dimension value.")
        else:
            lower = 1
        if text[position : position + 1] != "]":
            raise _malformed(text, 'Missing "]" after array dimensions.')
        bounds.append(_checked_bounds(lower, upper))
        position = _skip_blanks(text, position + 1)
    if bounds:
        if text[position : position + 1] != "=":
            raise _malformed(text, 'Missing "=" after array dimensions.')
        position = _skip_blanks(text, position + 1)
    if text[position : position + 1] != "{":
        raise _malformed(
            text,
            'Array contents must start with "{".'
            if bounds
            else 'Array value must start with "{" or dimension information.',
        )
    return bounds, position


def _bound(text: str, position: int, complaint: str) -> tuple[int, int]:
    match = _DIMENSION.match(text, position)
    if match is None:
        raise _malformed(text, complaint)
    bound = decimal_int(match[0])
    if bound not in _INT4:
        raise ProgramLimitExceeded("array bound is out of integer range")
    return bound, match.end()


def _checked_bounds(lower: int, upper: int) -> tuple[int, int]:
    if upper < lower:
        raise ArraySubscriptError("upper bound cannot be less than lower bound")
    if upper == _INT4[-1]:
        raise ProgramLimitExceeded(f"array upper bound is too large: {upper}")
    if upper - lower + 1 not in _INT4:
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({MAX_SIZE})")
    return lower, upper


def _map_elements(value: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    return [
        item
        if item is None
        else _map_elements(item, function)
        if isinstance(item, list)
        else function(item)
        for item in value
    ]


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    assert match is not None  # the pattern also matches an empty text
    return match.end()


def _malformed(text: str, detail: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation(f'malformed array literal: "{text}"', detail=detail)


def _too_many_dimensions() -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        f"number of array dimensions exceeds the maximum allowed ({MAX_DIMENSIONS})"
    )
