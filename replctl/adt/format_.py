"""format(): insert values into a text (text_format in varlena.c)."""

from __future__ import annotations

import re

from replctl.errors import InvalidParameterValue, NullValueNotAllowed, NumericValueOutOfRange
from replctl.types.integer import decimal_int, int4in
from replctl.types.quote import quote_identifier, quote_literal

_SPECIFIER = re.compile(
    r"%(?:(?P<percent>%)|(?:(?P<position>\d+)\$)?(?P<minus>-+)?"
    r"(?P<width>\d+|\*(?:(?P<source>\d+)\$)?)?(?P<kind>.)?)",
    re.DOTALL,
)


def format_text(template: str, *values: str | None) -> str:
    """Replace `%s`, `%I` and `%L` by plain values, identifiers and literals.

    Raises:
        NumericValueOutOfRange: a number in a specifier is too large (22003).
        InvalidParameterValue: a specifier is not valid, or there is no value for it (22023).
        NullValueNotAllowed: an identifier is NULL (22004).
    """
    place = 0

    def argument(position: str | None) -> str | None:
        nonlocal place
        if position is not None and _number(position) == 0:
            raise InvalidParameterValue(
                "format specifies argument 0, but arguments are numbered from 1"
            )
        place = place + 1 if position is None else _number(position)
        if place > len(values):
            raise InvalidParameterValue("too few arguments for format()")
        return values[place - 1]

    def shown(match: re.Match[str]) -> str:
        if match["percent"]:
            return "%"
        kind = match["kind"]
        if kind is None:
            raise _malformed("unterminated format() type specifier")
        width = match["width"]
        if width is not None and width.startswith("*"):
            width = argument(match["source"]) or "0"
        if kind not in "sIL":
            raise _malformed(f'unrecognized format() type specifier "{kind}"')
        value = _converted(kind, argument(match["position"]))
        is_given = bool(match["width"]) and not match["width"].startswith("*")
        size = _number(width or "0") if is_given else int4in(width or "0")
        is_left = bool(match["minus"]) or size < 0
        return value.ljust(abs(size)) if is_left else value.rjust(size)

    return _SPECIFIER.sub(shown, template)


def _malformed(message: str) -> InvalidParameterValue:
    return InvalidParameterValue(message, hint='For a single "%" use "%%".')


def _number(digits: str) -> int:
    number = decimal_int(digits)
    if number >= 2**31:
        raise NumericValueOutOfRange("number is out of range")
    return number


def _converted(kind: str, value: str | None) -> str:
    if kind == "L":
        return "NULL" if value is None else quote_literal(value)
    if value is None:
        if kind == "I":
            raise NullValueNotAllowed("null values cannot be formatted as an SQL identifier")
        return ""
    return quote_identifier(value) if kind == "I" else value
