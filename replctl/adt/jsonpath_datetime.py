"""Dates and times in jsonpath: .datetime(), .date(), .time(3) and similar methods, for strings in
forms of ISO 8601 (PostgreSQL's jsonpath_exec.c, and parse_datetime() in formatting.c).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, NamedTuple

from replctl.adt import datetime_arithmetic, timetz
from replctl.adt.jsonpath_method import Failure
from replctl.adt.range_check import finite_date, finite_timestamp
from replctl.errors import (
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidJsonDatetimeArgument,
)
from replctl.types import builtin, text
from replctl.types.date import USECS_PER_DAY
from replctl.types.jsonpath_node import Method
from replctl.types.julian import days_from_date, days_of_month
from replctl.types.text_form import BLANKS
from replctl.types.timezone import abbreviation
from replctl.types.type_modifier import typmod_in

_SECOND = 1_000_000
_INTEGER = r"([ \t\n\v\f\r]*+[+-]?[0-9]++)"  # the input of strtol()
_DATE = rf"{_INTEGER}-{_INTEGER}-{_INTEGER}"
_TIME = rf"{_INTEGER}:{_INTEGER}:{_INTEGER}(?:\.{_INTEGER})?"
_ZONE = rf"(?:([A-Za-z]+)|([+ -]?){_INTEGER}(?::{_INTEGER})?)?"
_MOMENT = re.compile(rf"(?:{_DATE})?(?:(?(1)[ T]){_TIME}{_ZONE})?[{BLANKS}]*")

#: The methods that return a fixed type, and this type.
_TARGETS = {
    "date": "date",
    "time": "time",
    "time_tz": "timetz",
    "timestamp": "timestamp",
    "timestamp_tz": "timestamptz",
}
METHODS = ("datetime", *_TARGETS)


class Moment(NamedTuple):
    """A date, time or timestamp; a timestamptz also has its original offset, in seconds east."""

    type_name: str
    value: Any
    east: int = 0

    @property
    def sql_name(self) -> str:
        """Return the result of .type(): `time without time zone`."""
        return builtin.types()[self.type_name].sql_name

    def json(self) -> str:
        """Return the form in JSON: `2024-01-05T12:34:56+01:00`."""
        match self.type_name:
            case "timetz":
                return text.render("time", self.value[0]) + _offset(-self.value[1])
            case "timestamptz":
                local = text.render("timestamp", self.value + self.east * _SECOND)
                clock, blank, era = local.replace(" ", "T", 1).partition(" ")
                return clock + _offset(self.east) + blank + era
            case "timestamp":
                return text.render("timestamp", self.value).replace(" ", "T", 1)
        return text.render(self.type_name, self.value)


def _offset(east: int) -> str:
    hours, minutes = divmod(abs(east) // 60, 60)
    return f"{'-' if east < 0 else '+'}{hours:02}:{minutes:02}"


def call(method: Method, item: Any) -> Moment:
    """Return the result of a method for an item.

    Raises:
        Failure: the method cannot be applied to the item.
        FeatureNotSupported: the conversion depends on the time zone (an error in PostgreSQL, too).
    """
    name = method.name
    if not isinstance(item, str):
        raise _failure(f"jsonpath item method .{name}() can only be applied to a string")
    if name == "datetime":
        moment = _parsed(item)
        if moment is None:
            hint = "Use a datetime template argument to specify the input data format."
            raise _failure(f'datetime format is not recognized: "{item}"', hint)
        return moment
    (precision,) = method.arguments or (None,)
    assert not isinstance(precision, str)
    if precision is not None and not -(2**31) <= precision < 2**31:
        raise _failure(
            f"time precision of jsonpath item method .{name}() is out of range for type integer"
        )
    moment = _parsed(item)
    converted = None if moment is None else _converted(moment, _TARGETS[name])
    if converted is None:
        raise _failure(f'{name} format is not recognized: "{item}"')
    return converted if precision is None else _rounded(converted, precision)


def _failure(message: str, hint: str | None = None) -> Failure:
    return Failure(InvalidJsonDatetimeArgument(message, hint=hint))


def _rounded(moment: Moment, precision: Decimal) -> Moment:
    typmod = typmod_in(moment.type_name, (str(precision),))
    value = text.coerce_typmod(moment.type_name, moment.value, typmod, explicit=True)
    return moment._replace(value=value)


def _parsed(shown: str) -> Moment | None:
    """Parse a date, a time, or both separated by a blank or T; a time may have a zone.  Return None
    for other texts.
    """
    match = _MOMENT.fullmatch(shown)
    if match is None or (match[1] is None and match[4] is None):
        return None
    try:
        return _moment(match)
    except DatetimeFieldOverflow:  # the next format may fit
        return None


def _moment(match: re.Match[str]) -> Moment | None:
    days = None
    if match[1] is not None:
        days = _days(*(int(match[i]) for i in (1, 2, 3)))
        if days is None:
            return None
        if match[4] is None:
            return Moment("date", finite_date(days))
    clock = _clock(match)
    if clock is None:
        return None
    if match[8] is None and match[10] is None:
        if days is None:
            return Moment("time", clock)
        return Moment("timestamp", finite_timestamp(days * USECS_PER_DAY + clock))
    east = _east(match, (days or 0) * 86400 + clock // _SECOND)
    if east is None:
        return None
    if days is None:
        return Moment("timetz", (clock, -east))
    micros = finite_timestamp(days * USECS_PER_DAY + clock - east * _SECOND)
    return Moment("timestamptz", micros, east)


def _days(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970-01-01; None for an invalid date.  Years -1 and 0 both mean 1 BC; a
    month or day of 0 counts as 1.
    """
    year, month, day = year + 1 if year < 0 else year, month or 1, day or 1
    if not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return None
    return days_from_date(year, month, day)


def _clock(match: re.Match[str]) -> int | None:
    hour, minute, second = (int(match[i]) for i in (4, 5, 6))
    fraction = match[7]
    # Blanks before the digits count as digits: `. 5` is .05.
    micros = 0 if fraction is None else int(fraction) * 10 ** max(6 - len(fraction), 0)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < _SECOND):
        return None
    return ((hour * 60 + minute) * 60 + second) * _SECOND + micros


def _east(match: re.Match[str], local_seconds: int) -> int | None:
    """Return the offset of a zone: an abbreviation, or hours and minutes; None if it is invalid."""
    if match[8] is not None:
        known = abbreviation(match[8].lower())
        return None if known is None else known.zone.offset(local_seconds)
    hours, minutes = int(match[10]), int(match[11] or 0)
    if not (0 <= hours <= 15 and 0 <= minutes < 60):
        return None
    return (hours * 3600 + minutes * 60) * (-1 if match[9] == "-" else 1)


def _needs_zone(source: str, target: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"cannot convert value from {source} to {target} without time zone usage",
        hint="Use *_tz() function for time zone support.",
    )


def _converted(moment: Moment, target: str) -> Moment | None:
    """Cast a moment to another type; return None if there is no such cast."""
    source, value = moment.type_name, moment.value
    if source == target:
        return moment
    match source, target:
        case "timestamp", "date":
            return Moment(target, datetime_arithmetic.timestamp_to_date(value))
        case "timestamp", "time":
            return Moment(target, value % USECS_PER_DAY)
        case "timestamptz", "timetz":
            return Moment(target, (value % USECS_PER_DAY, 0))
        case "date", "timestamp":
            return Moment(target, datetime_arithmetic.date_to_timestamp(value))
        case ("timestamptz", "date" | "time" | "timestamp") | ("timetz", "time"):
            raise _needs_zone(source, target)
        case ("time", "timetz") | ("date" | "timestamp", "timestamptz"):
            raise _needs_zone(source, target)
    return None


def order(a: Moment, b: Moment) -> int | None:
    """Return -1, 0 or 1 for the order of two values; None for a date and a time of day."""
    of_day = ("time", "timetz")
    if (a.type_name in of_day) != (b.type_name in of_day):
        return None
    for one, other in ((a, b), (b, a)):
        if not one.type_name.endswith("tz") and other.type_name.endswith("tz"):
            raise _needs_zone(one.type_name, other.type_name)
    first, second = _key(a), _key(b)
    return int(first > second) - int(first < second)


def _key(moment: Moment) -> Any:
    if moment.type_name == "timetz":
        return timetz.key(moment.value)
    if moment.type_name == "date":
        return datetime_arithmetic.compare_key_of_date(moment.value)
    return moment.value
