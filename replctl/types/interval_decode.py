"""Decode the fields of `1 year 2 mons 4:05:06` or `1-2 3 4:05:06` to months, days and microseconds.

The rules are those of PostgreSQL's DecodeInterval() in datetime.c, with the session's
IntervalStyle.
"""

from __future__ import annotations

import re

from replctl.types import interval_field
from replctl.types.datetime_field import (
    INT4_MAX,
    WORD_LENGTH,
    WORDS,
    BadFormat,
    Field,
    FieldOverflow,
    Kind,
    parse_clock,
    parse_fraction,
)
from replctl.types.integer import decimal_int
from replctl.types.value_format import current_format

USECS_PER_SECOND = 1_000_000
USECS_PER_MINUTE = 60 * USECS_PER_SECOND
USECS_PER_HOUR = 60 * USECS_PER_MINUTE
USECS_PER_DAY = 24 * USECS_PER_HOUR

_INT4 = range(-INT4_MAX - 1, INT4_MAX + 1)
_INT8 = range(-(2**63), 2**63)

#: The unit of each word; a quarter and a time zone have no effect.
_UNITS = {
    word: unit
    for unit, words in {
        "microsecond": "us usec usecond useconds usecs microsecon",
        "millisecond": "ms msec msecond mseconds msecs millisecon",
        "second": "s sec second seconds secs",
        "minute": "m mm min mins minute minutes",
        "hour": "h hour hours hr hrs",
        "day": "d day days",
        "week": "w week weeks",
        "month": "mon mons month months",
        "year": "y year years yr yrs",
        "decade": "dec decade decades decs",
        "century": "c cent centuries century",
        "millennium": "mil mils millennia millennium",
        "quarter": "qtr quarter",
        "timezone": "timezone timezone_h timezone_m",
    }.items()
    for word in words.split()
}
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": USECS_PER_SECOND,
    "minute": USECS_PER_MINUTE,
    "hour": USECS_PER_HOUR,
}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_CLOCK = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})

_IMPLIED_UNITS = {
    interval_field.YEAR: "year",
    interval_field.MONTH: "month",
    interval_field.YEAR | interval_field.MONTH: "month",
    interval_field.DAY: "day",
    interval_field.HOUR: "hour",
    interval_field.DAY | interval_field.HOUR: "hour",
    interval_field.MINUTE: "minute",
    interval_field.HOUR | interval_field.MINUTE: "minute",
    interval_field.DAY | interval_field.HOUR | interval_field.MINUTE: "minute",
}
_NUMBER = re.compile(r"([+-]?\d*)(.*)", re.DOTALL | re.ASCII)
_MONTHS_BEHIND_YEARS = re.compile(r"([+-]?\d+)?", re.ASCII)


class IntervalSum:
    """Adds up the fields of an interval.

    Most methods add a number of one unit, and raise FieldOverflow as the server does.
    """

    def __init__(self) -> None:
        self._years = self._months = self._days = self._microseconds = 0

    def total(self) -> tuple[int, int, int]:
        """Return (months, days, microseconds)."""
        return self._years * 12 + self._months, self._days, self._microseconds

    def set_microseconds(self, microseconds: int, sign: int) -> None:
        """Set the time.  This drops the times of fields that were read before it: `2:00 1.5 days`
        is 1 day 02:00.
        """
        self._microseconds = microseconds
        self._check()
        self._microseconds *= sign

    def negate(self) -> None:
        """Negate every field.

        Raises:
            FieldOverflow: a field is the smallest number of its type, which has no negative.
        """
        self._years, self._months, self._days = -self._years, -self._months, -self._days
        self._microseconds = -self._microseconds
        self._check()

    def add_microseconds(self, whole: int, fraction: float, unit: int) -> None:
        if whole * unit not in _INT8:
            raise FieldOverflow
        self._microseconds += whole * unit
        self._check()
        self.add_fraction_of_microseconds(fraction, unit)

    def add_fraction_of_microseconds(self, fraction: float, unit: int) -> None:
        scaled = fraction * unit
        microseconds = int(scaled)
        rest = scaled - microseconds
        self._microseconds += microseconds + (rest > 0.5) - (rest < -0.5)
        self._check()

    def add_days(self, whole: int, unit: int = 1) -> None:
        self._check_int4(whole * unit)
        self._days += whole * unit
        self._check()

    def add_fraction_of_days(self, fraction: float, unit: int) -> None:
        scaled = fraction * unit
        days = int(scaled)
        self._days += days
        self._check()
        self.add_fraction_of_microseconds(scaled - days, USECS_PER_DAY)

    def add_months(self, whole: int, fraction: float) -> None:
        self._check_int4(whole)
        self._months += whole
        self._check()
        self.add_fraction_of_days(fraction, 30)

    def add_years(self, whole: int, fraction: float, unit: int = 1) -> None:
        self._check_int4(whole * unit)
        self._years += whole * unit
        self._months += round(fraction * unit * 12)
        self._check()

    def _check(self) -> None:
        self._check_int4(self._years)
        self._check_int4(self._months)
        self._check_int4(self._days)
        if self._microseconds not in _INT8:
            raise FieldOverflow

    @staticmethod
    def _check_int4(number: int) -> None:
        if number not in _INT4:
            raise FieldOverflow


def decode_interval(fields: list[Field], fields_of_type: int) -> IntervalSum | str:
    """Decode an interval such as `1 year 2 mons -3 days 04:05:06 ago`.

    Args:
        fields_of_type: the fields of the type (a mask of interval_field), which decide the unit of
            a number without a unit.

    Returns:
        The sum, or `infinity` or `-infinity`.

    Raises:
        BadFormat, FieldOverflow: the fields are not an interval, or are too large.
    """
    first, *others = (field.text for field in fields) if fields else ("",)
    is_negative = (
        current_format().interval_style == "sql_standard"
        and first.startswith("-")
        and not any(text.startswith(("-", "+")) for text in others)
    )
    decoder = _Decoder(fields_of_type, is_negative)
    for position, field in enumerate(reversed(fields)):
        decoder.take(field, is_last=position == 0)
    return decoder.finish()


class _Decoder:
    """Reads the fields from right to left, because a unit follows its number.

    Args:
        is_negative: all numbers are negative, because the only sign of an SQL standard literal
            applies to all.
    """

    def __init__(self, fields_of_type: int, is_negative: bool) -> None:
        self._fields_of_type = fields_of_type
        self._is_negative = is_negative
        self._found: set[str] = set()
        self._unit = ""  # the unit of the next number
        self._unit_is_pending = False
        self._is_ago = False
        self._infinity = ""
        self._sum = IntervalSum()

    def take(self, field: Field, is_last: bool) -> None:
        match field.kind:
            case Kind.TIME:
                self._take_clock(field.text, -1 if self._is_negative else 1)
            case Kind.ZONE if ":" in field.text:
                self._take_signed_clock(field.text)
            case Kind.ZONE | Kind.DATE | Kind.NUMBER:
                self._take_number(field.text)
            case Kind.WORD | Kind.SPECIAL:
                self._take_word(field.text, is_last)

    def finish(self) -> IntervalSum | str:
        if not self._found or self._unit_is_pending:
            raise BadFormat
        if self._is_ago:
            self._sum.negate()
        return self._infinity or self._sum

    def _add_found(self, units: frozenset[str] | set[str]) -> None:
        """Record the units that a field has set.

        Raises:
            BadFormat: one of the units was already set.
        """
        if units & self._found:
            raise BadFormat
        self._found |= units

    def _take_clock(self, text: str, sign: int) -> None:
        is_minute_to_second = self._fields_of_type == interval_field.MINUTE | interval_field.SECOND
        hour, minute, second, microsecond = parse_clock(text, is_minute_to_second)
        seconds = (hour * 60 + minute) * 60 + second
        self._sum.set_microseconds(seconds * USECS_PER_SECOND + microsecond, sign)
        self._add_found(_CLOCK)
        self._unit = "day"
        self._unit_is_pending = False

    def _take_signed_clock(self, text: str) -> None:
        try:
            self._take_clock(text[1:], -1 if text[0] == "-" else 1)
        except (BadFormat, FieldOverflow):
            self._take_number(text)  # this raises the right error

    def _take_number(self, text: str) -> None:
        unit = self._unit or _IMPLIED_UNITS.get(self._fields_of_type, "second")
        match = _NUMBER.fullmatch(text)
        assert match is not None  # the pattern matches every text
        digits, rest = match.groups()
        whole = decimal_int(digits)
        if whole not in _INT8:
            raise FieldOverflow
        sign = -1 if text[0] == "-" else 1
        fraction = 0.0
        if rest[:1] == "-":
            whole = whole * 12 + sign * self._months_behind_years(rest[1:])
            unit = "month"
            if whole not in _INT8:
                raise FieldOverflow
        elif rest[:1] == ".":
            fraction = sign * parse_fraction(rest)
        elif rest:
            raise BadFormat
        if self._is_negative:
            whole, fraction = -abs(whole), -abs(fraction)
        self._add(whole, fraction, unit)
        self._unit = "day" if unit == "hour" else unit
        self._unit_is_pending = False

    def _months_behind_years(self, text: str) -> int:
        """Return the second number of `1-2`."""
        match = _MONTHS_BEHIND_YEARS.match(text)
        assert match is not None  # the pattern also matches an empty text
        months = decimal_int(match[0])
        if not 0 <= months < 12:
            raise FieldOverflow
        if match.end() < len(text):
            raise BadFormat
        return months

    def _add(self, whole: int, fraction: float, unit: str) -> None:
        found = {unit}
        if unit in _MICROSECONDS:
            self._sum.add_microseconds(whole, fraction, _MICROSECONDS[unit])
            if unit == "second" and fraction:
                found |= {"millisecond", "microsecond"}
        elif unit == "day":
            self._sum.add_days(whole)
            self._sum.add_fraction_of_microseconds(fraction, USECS_PER_DAY)
        elif unit == "week":
            self._sum.add_days(whole, 7)
            self._sum.add_fraction_of_days(fraction, 7)
        elif unit == "month":
            self._sum.add_months(whole, fraction)
        elif unit in _YEARS:
            self._sum.add_years(whole, fraction, _YEARS[unit])
        else:
            raise BadFormat
        self._add_found(found)

    def _take_word(self, word: str, is_last: bool) -> None:
        if self._unit_is_pending:
            raise BadFormat
        word = word[:WORD_LENGTH]
        meaning, value = WORDS.get(word, ("", ""))
        if word in _UNITS or meaning == "unit":
            self._unit = _UNITS.get(word, str(value))
            self._unit_is_pending = True
        elif meaning == "ignored":
            self._unit = ""
        elif word == "ago" and is_last:
            self._is_ago = True
            self._unit = word  # not a unit: the next number needs another one
        elif value in ("infinity", "-infinity") and is_last:
            self._infinity = str(value)
            self._unit = word
            self._add_found(_CLOCK | {"year", "month", "day"})
        else:
            raise BadFormat
