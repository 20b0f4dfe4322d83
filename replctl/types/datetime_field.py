"""The fields of a date, time or interval literal, their words, and their errors.

`1999-Jan-08 04:05 PST` becomes DATE `1999-jan-08`, TIME `04:05`, WORD `pst`.  PostgreSQL's
datetime.c splits a literal before it interprets the fields; the rules for delimiters are those of
its ParseDateTime().
"""

from __future__ import annotations

import re
from enum import Enum, auto

from replctl.errors import (
    DataError,
    DatetimeFieldOverflow,
    IntervalFieldOverflow,
    InvalidDatetimeFormat,
    InvalidParameterValue,
    InvalidTimeZoneDisplacementValue,
)
from replctl.record import dataclass
from replctl.types.identifier import ascii_lower
from replctl.types.integer import decimal_int

MAX_FIELDS = 25  # MAXDATEFIELDS in datetime.h
WORD_LENGTH = 10  # TOKMAXLEN: the significant characters of a word
INT4_MAX = 2**31 - 1


class Kind(Enum):
    """The shape of a field."""

    NUMBER = auto()  # digits, optionally with a point
    DATE = auto()  # digits and words with delimiters, also a zone's name
    TIME = auto()  # digits with colons
    WORD = auto()
    ZONE = auto()  # a sign and digits
    SPECIAL = auto()  # a sign and a word


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a literal; `text` is in lower case."""

    kind: Kind
    text: str


class DatetimeFault(Exception):
    """An error in a literal, which `datetime_error` converts to the server's error."""


class BadFormat(DatetimeFault):
    """The literal is not a date, time or interval."""


class FieldOverflow(DatetimeFault):
    """A field is out of range."""


class MonthDayOverflow(DatetimeFault):
    """A month or a day is out of range; their order may be wrong."""


class ZoneOverflow(DatetimeFault):
    """The offset of a time zone is out of range."""


class UnknownZone(DatetimeFault):
    """There is no time zone of that name.  The exception's argument is the name."""


def datetime_error(fault: DatetimeFault, text: str, sql_name: str) -> DataError:
    """Return the error for the literal `text` of type `sql_name`, like DateTimeParseError()."""
    match fault:
        case FieldOverflow() if sql_name == "interval":
            return IntervalFieldOverflow(f'interval field value out of range: "{text}"')
        case FieldOverflow():
            return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')
        case MonthDayOverflow():
            return DatetimeFieldOverflow(
                f'date/time field value out of range: "{text}"',
                hint='Perhaps you need a different "datestyle" setting.',
            )
        case ZoneOverflow():
            return InvalidTimeZoneDisplacementValue(
                f'time zone displacement out of range: "{text}"'
            )
        case UnknownZone():
            return InvalidParameterValue(f'time zone "{fault}" not recognized')
        case _:
            return InvalidDatetimeFormat(f'invalid input syntax for type {sql_name}: "{text}"')


_WEEKDAYS = (
    "sun sunday mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday "
    "sat saturday"
)
_MONTHS = (
    "jan january",
    "feb february",
    "mar march",
    "apr april",
    "may",
    "jun june",
    "jul july",
    "aug august",
    "sep sept september",
    "oct october",
    "nov november",
    "dec december",
)

#: The kind and the value of each word.  The keys are cut to WORD_LENGTH.
WORDS: dict[str, tuple[str, str | int]] = {
    **{word: ("reserved", word) for word in ("now", "today", "tomorrow", "yesterday", "epoch")},
    "infinity": ("reserved", "infinity"),
    "+infinity": ("reserved", "infinity"),
    "-infinity": ("reserved", "-infinity"),
    "allballs": ("reserved", "allballs"),
    "am": ("meridian", "am"),
    "pm": ("meridian", "pm"),
    "ad": ("era", "ad"),
    "bc": ("era", "bc"),
    "at": ("ignored", ""),
    "on": ("ignored", ""),
    "dst": ("dst", ""),
    "t": ("time", ""),
    **{
        word: ("month", number)
        for number, words in enumerate(_MONTHS, start=1)
        for word in words.split()
    },
    **dict.fromkeys(_WEEKDAYS.split(), ("weekday", "")),
    "j": ("unit", "julian"),
    "jd": ("unit", "julian"),
    "julian": ("unit", "julian"),
    **{word: ("unit", word) for word in ("d", "dow", "doy", "h", "isodow", "isoyear")},
    **{word: ("unit", word) for word in ("m", "mm", "s", "y")},
}

_NUMBER_OR_TIME = re.compile(r"\d+(:[\d:.]*)?", re.ASCII)
#: After the first number of a date and a delimiter: numbers with the same delimiter, or words.
_DATE_RESTS = {
    delimiter: re.compile(
        rf"{escaped}(?:(\d+)({escaped}[\d{escaped}]*)?|[a-z\d{escaped}]*)", re.ASCII
    )
    for delimiter, escaped in (("-", r"\-"), ("/", "/"), (".", r"\."))
}
_POINT_NUMBER = re.compile(r"\.\d*", re.ASCII)
_LETTERS = re.compile(r"[a-z]+")
_NAME_REST = re.compile(r"[-+/_.:a-z\d]+", re.ASCII)
_SIGN = re.compile(r"[-+]\s*", re.ASCII)
_ZONE_REST = re.compile(r"\d[\d:.-]*", re.ASCII)
_CLOCK = re.compile(r"(\d*):(-?\d+|)(?::(-?\d+|))?", re.ASCII)
_IGNORED = re.compile(r"[!-/:-@\[-`{-~]")


def split_fields(text: str, max_length: int) -> list[Field]:
    """Return the fields of a literal.

    Args:
        max_length: the size of the server's buffer, where each field needs one more byte.

    Raises:
        BadFormat: a character is invalid, there are too many fields, or the text is too long.
    """
    fields: list[Field] = []
    lower = ascii_lower(text)
    position = 0
    while position < len(lower):
        if lower[position] in " \t\n\v\f\r":
            position += 1
            continue
        field, end = _field_at(lower, position)
        if field is not None:
            fields.append(field)
        position = end
    if len(fields) > MAX_FIELDS or sum(len(field.text) + 1 for field in fields) > max_length:
        raise BadFormat
    return fields


def _field_at(text: str, start: int) -> tuple[Field | None, int]:
    """Return the field that begins at `start` (None for a delimiter), and its end."""
    if match := _NUMBER_OR_TIME.match(text, start):
        if match[1] is not None:
            return Field(Kind.TIME, match[0]), match.end()
        delimiter = text[match.end() : match.end() + 1]
        pattern = _DATE_RESTS.get(delimiter)
        rest = pattern.match(text, match.end()) if pattern else None
        if rest is None:
            return Field(Kind.NUMBER, match[0]), match.end()
        # Two numbers with a point between them are one number.
        is_number = delimiter == "." and rest[1] is not None and rest[2] is None
        return Field(Kind.NUMBER if is_number else Kind.DATE, match[0] + rest[0]), rest.end()
    if match := _POINT_NUMBER.match(text, start):
        return Field(Kind.NUMBER, match[0]), match.end()
    if match := _LETTERS.match(text, start):
        following = text[match.end() : match.end() + 1]
        is_name = following in ("-", "/", ".") or (
            (following == "+" or following in tuple("0123456789"))
            and match[0][:WORD_LENGTH] not in WORDS
        )
        rest = _NAME_REST.match(text, match.end()) if following and is_name else None
        if rest is None:
            return Field(Kind.WORD, match[0]), match.end()
        return Field(Kind.DATE, match[0] + rest[0]), rest.end()
    if match := _SIGN.match(text, start):
        if rest := _ZONE_REST.match(text, match.end()):
            return Field(Kind.ZONE, text[start] + rest[0]), rest.end()
        if rest := _LETTERS.match(text, match.end()):
            return Field(Kind.SPECIAL, text[start] + rest[0]), rest.end()
        raise BadFormat
    if _IGNORED.match(text, start):
        return None, start + 1
    raise BadFormat


def parse_int4(digits: str) -> int:
    """Parse an int4: `007`, `-7`, `` -> 7, -7, 0.

    Raises:
        FieldOverflow: the number does not fit into an int4.
    """
    value = decimal_int(digits)
    if abs(value) > INT4_MAX:
        raise FieldOverflow
    return value


def parse_fraction(text: str) -> float:
    """Parse a fraction: `.5`, `.` -> 0.5, 0.0.

    Raises:
        BadFormat: there are characters other than digits after the point.
    """
    if not text[1:]:
        return 0.0
    if not (text[1:].isascii() and text[1:].isdigit()):
        raise BadFormat
    return float(text)


def parse_microseconds(text: str) -> int:
    """Parse a fraction of a second: `.5` -> 500000.

    Raises:
        BadFormat: see parse_fraction.
    """
    return round(parse_fraction(text) * 1_000_000)


def parse_clock(text: str, is_minute_to_second: bool = False) -> tuple[int, int, int, int]:
    """Parse a time.

    `04:05:06.789`, `04:05`, `05:06.7` -> (4, 5, 6, 789000), (4, 5, 0, 0), (0, 5, 6, 700000)

    Args:
        is_minute_to_second: two numbers are minutes and seconds, even without a point.

    Raises:
        BadFormat: `text` is not a time.
        FieldOverflow: minutes or seconds are too large; the caller checks hours.
    """
    match = _CLOCK.match(text)
    if match is None:
        raise BadFormat
    hours, minutes, seconds = match.groups()
    hour = decimal_int(hours)
    if hour >= 2**63:
        raise FieldOverflow
    minute, second = parse_int4(minutes), parse_int4(seconds or "")
    fraction = text[match.end() :]
    if fraction[:1] not in ("", "."):
        raise BadFormat
    if seconds is None and (fraction or is_minute_to_second):
        hour, minute, second = 0, hour, minute
    microsecond = parse_microseconds(fraction) if fraction else 0
    if not (0 <= minute <= 59 and 0 <= second <= 60):
        raise FieldOverflow
    return hour, minute, second, microsecond
