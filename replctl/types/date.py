"""date, time and timetz (PostgreSQL's date.c).

A date is the number of days since 1970-01-01.  A time is the number of microseconds of the day,
including 24:00:00.  A timetz is the pair of a time and seconds west of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TypeAlias

from replctl.errors import DatetimeFieldOverflow
from replctl.types.datetime_decode import Decoder
from replctl.types.datetime_field import DatetimeFault, datetime_error, split_fields
from replctl.types.julian import (
    UNIX_EPOCH_JULIAN,
    date_from_days,
    days_from_date,
    days_of_month,
    is_valid_julian,
)
from replctl.types.text_form import TextForm
from replctl.types.time_decode import TimeDecoder
from replctl.types.timestamp_decode import TimestampDecoder

TimeTz: TypeAlias = tuple[int, int]

DATE_INFINITY, DATE_MINUS_INFINITY = 2**31 - 1, -(2**31)
USECS_PER_DAY = 86_400_000_000

_ROUNDING_STEPS = (1_000_000, 100_000, 10_000, 1000, 100, 10, 1)  # by the number of kept digits

FIRST_DATE = -UNIX_EPOCH_JULIAN  # Julian day 0
LAST_DATE = 2147483493 - UNIX_EPOCH_JULIAN  # before DATE_END_JULIAN in timestamp.h
_BUFFER = 129  # bytes of the buffer for fields in date_in and time_in

_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_ISO_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)


def date_in(text: str, typmod: int = -1, now: datetime | None = None) -> int:
    """Parse a date: `January 8, 1999` -> 10599.

    Raises:
        InvalidDatetimeFormat, InvalidParameterValue: `text` is not a date, or its zone is unknown.
        DatetimeFieldOverflow, InvalidTimeZoneDisplacementValue: a field or the date is out of
            range.
    """
    match = _ISO_DATE.fullmatch(text)
    if match:
        year, month, day = int(match[1]), int(match[2]), int(match[3])
        if year and 1 <= month <= 12 and 1 <= day <= days_of_month(year, month):
            return days_from_date(year, month, day)
    try:
        decoder = TimestampDecoder(split_fields(text, _BUFFER), transaction_time(now))
        decoder.decode()
    except DatetimeFault as fault:
        raise datetime_error(fault, text, "date") from fault
    match decoder.special:
        case "epoch":
            return 0
        case "infinity":
            return DATE_INFINITY
        case "-infinity":
            return DATE_MINUS_INFINITY
    if is_valid_julian(decoder.year, decoder.month):
        days = days_from_date(decoder.year, decoder.month, decoder.day)
        if FIRST_DATE <= days <= LAST_DATE:
            return days
    raise DatetimeFieldOverflow(f'date out of range: "{text}"')


def date_out(value: int) -> str:
    """Print a date: 10599 -> `1999-01-08`; a year before Christ ends in ` BC`."""
    if value in (DATE_INFINITY, DATE_MINUS_INFINITY):
        return "infinity" if value > 0 else "-infinity"
    text, era = date_and_era(value)
    return text + era


def time_in(text: str, typmod: int = -1, now: datetime | None = None) -> int:
    """Parse a time: `4:05 PM` -> 57900000000.

    Raises:
        InvalidDatetimeFormat, InvalidParameterValue: `text` is not a time, or its zone is unknown.
        DatetimeFieldOverflow, InvalidTimeZoneDisplacementValue: a field is out of range.
    """
    match = _ISO_TIME.fullmatch(text)
    clock = clock_of(match, 1) if match else None
    if clock is None:
        clock = _decode_time(text, now, "time").clock.microseconds
    return clock if typmod < 0 else time(clock, typmod)


def time_out(value: int) -> str:
    """Print a time: 57900000000 -> `16:05:00`; trailing zeros of the fraction are omitted."""
    seconds, microseconds = divmod(value, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{text}.{microseconds:06}".rstrip("0") if microseconds else text


def timetz_in(text: str, typmod: int = -1, now: datetime | None = None) -> TimeTz:
    """Parse a time with its zone: `04:05-08` -> (14700000000, 28800).

    Raises:
        DataError: see time_in.
    """
    decoder = _decode_time(text, now, "time with time zone")
    value = (decoder.clock.microseconds, decoder.zone.seconds_west)
    return value if typmod < 0 else timetz(value, typmod)


def timetz_out(value: TimeTz) -> str:
    """Print a time with its zone: (14700000000, 28800) -> `04:05:00-08`."""
    clock, seconds_west = value
    return time_out(clock) + utc_offset(-seconds_west)


def utc_offset(seconds_east: int) -> str:
    """Print an offset: -12600 -> `-03:30`; zero minutes and seconds are omitted
    (EncodeTimezone).
    """
    minutes, seconds = divmod(abs(seconds_east), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{'-' if seconds_east < 0 else '+'}{hours:02}"
    if minutes or seconds:
        text += f":{minutes:02}"
    return f"{text}:{seconds:02}" if seconds else text


def time(value: int, typmod: int, explicit: bool = False) -> int:
    """Round microseconds to `typmod` digits: (43200700000, 0) -> 43201000000."""
    return round_microseconds(value, typmod)


def timetz(value: TimeTz, typmod: int, explicit: bool = False) -> TimeTz:
    """Round like time(), and keep the zone."""
    clock, seconds_west = value
    return round_microseconds(clock, typmod), seconds_west


def round_microseconds(value: int, digits: int) -> int:
    """Round to `digits` digits of a second, half away from zero: (1555000, 2) -> 1560000."""
    step = _ROUNDING_STEPS[digits]
    if value < 0:
        return -((-value + step // 2) // step * step)
    return (value + step // 2) // step * step


def date_and_era(days: int) -> tuple[str, str]:
    """Split a date into date and era: -719893 -> (`0002-01-01`, ` BC`).  In a timestamp, the era
    comes after the zone.
    """
    year, month, day = date_from_days(days)
    if year > 0:
        return f"{year:04}-{month:02}-{day:02}", ""
    return f"{1 - year:04}-{month:02}-{day:02}", " BC"


def clock_of(match: re.Match[str], group: int) -> int | None:
    """Return the time in a match as microseconds, 14706700000 for `04:05:06.7`; None if a number is
    out of range.

    Args:
        group: the first of the four groups for hours, minutes, seconds and fraction.
    """
    hour, minute, second = int(match[group]), int(match[group + 1]), int(match[group + 2])
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = match[group + 3]
    microseconds = int(fraction.ljust(6, "0")) if fraction else 0
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + microseconds


def transaction_time(now: datetime | None) -> datetime:
    """Return the transaction's time in UTC, or the current time if `now` is None."""
    return datetime.now(UTC) if now is None else now.astimezone(UTC)


def _decode_time(text: str, now: datetime | None, sql_name: str) -> Decoder:
    try:
        decoder = TimeDecoder(split_fields(text, _BUFFER), transaction_time(now))
        decoder.decode()
    except DatetimeFault as fault:
        raise datetime_error(fault, text, sql_name) from fault
    return decoder


FORMS = {
    "date": TextForm(date_in, date_out),
    "time": TextForm(time_in, time_out, time),
    "timetz": TextForm(timetz_in, timetz_out, timetz),
}
