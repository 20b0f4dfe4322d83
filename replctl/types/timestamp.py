"""timestamp and timestamptz (PostgreSQL's timestamp.c).

A value is the number of microseconds since 1970-01-01 00:00, in UTC for timestamptz.  PostgreSQL
counts from 2000, so its range ends thirty years later.  replctl refuses timestamps of these years,
from 294247-01-10 on, because they do not fit into 64 bits.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from replctl.errors import DatetimeFieldOverflow, FeatureNotSupported
from replctl.types.date import (
    USECS_PER_DAY,
    clock_of,
    date_and_era,
    round_microseconds,
    time_out,
    transaction_time,
)
from replctl.types.datetime_field import DatetimeFault, datetime_error, split_fields
from replctl.types.julian import (
    POSTGRES_EPOCH,
    days_from_date,
    days_of_month,
    is_valid_julian,
)
from replctl.types.text_form import TextForm
from replctl.types.timestamp_decode import TimestampDecoder
from replctl.types.value_format import current_format

INFINITY, MINUS_INFINITY = 2**63 - 1, -(2**63)

_EPOCH = POSTGRES_EPOCH * USECS_PER_DAY
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -211813488000000000 + _EPOCH  # MIN_TIMESTAMP in timestamp.h
_END = 9223371331200000000 + _EPOCH  # END_TIMESTAMP
_BUFFER = 153  # bytes of the buffer for fields in timestamp_in

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::?\d\d)?|Z)?)?",
    re.ASCII,
)


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970-01-01."""
    return (moment - _UNIX_EPOCH) // timedelta(microseconds=1)


def timestamp_in(text: str, typmod: int = -1, now: datetime | None = None) -> int:
    """Parse a timestamp, and ignore a zone: `1999-01-08 04:05:06.789` -> 915768306789000.

    Raises:
        InvalidDatetimeFormat, InvalidParameterValue: `text` is not a timestamp, or its zone is
            unknown.
        DatetimeFieldOverflow, InvalidTimeZoneDisplacementValue: a field or the value is out of
            range.
        FeatureNotSupported: the value is after 294247-01-10 04:00:54.775806.
    """
    return _parse(text, typmod, now, is_utc=False)


def timestamptz_in(text: str, typmod: int = -1, now: datetime | None = None) -> int:
    """Parse a timestamp with a zone: `1999-01-08 04:05:06 -8` -> 915797106000000.

    Raises:
        DataError, FeatureNotSupported: see timestamp_in.
    """
    return _parse(text, typmod, now, is_utc=True)


def timestamp_out(value: int) -> str:
    """Print a timestamp without a zone: 915768306789000 -> `1999-01-08 04:05:06.789`."""
    return _render(value, "")


def timestamptz_out(value: int) -> str:
    """Print a timestamp with a zone: 915768306789000 -> `1999-01-08 04:05:06.789+00`."""
    return _render(value, "+00")


def timestamp(value: int, typmod: int, explicit: bool = False) -> int:
    """Round to a precision, such as timestamp(0): (915768306789000, 0) -> 915768307000000.

    Raises:
        FeatureNotSupported: the rounded time is not supported.
    """
    if value in (INFINITY, MINUS_INFINITY):
        return value
    # A half is rounded away from zero, and PostgreSQL's zero is its epoch.
    return _supported(round_microseconds(value - _EPOCH, typmod) + _EPOCH)


def _parse(text: str, typmod: int, now: datetime | None, is_utc: bool) -> int:
    match = _ISO.fullmatch(text)
    if match and is_utc and match[8] is None and not current_format().is_utc:
        match = None  # the session's zone applies
    value = _iso_value(match, is_utc) if match else None
    if value is None:
        value = _decode(text, now, is_utc)
    return value if typmod < 0 else timestamp(value, typmod)


def _iso_value(match: re.Match[str], is_utc: bool) -> int | None:
    """Return the value of an ISO timestamp; None if a field is out of range."""
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not (year and 1 <= month <= 12 and 1 <= day <= days_of_month(year, month)):
        return None
    value = days_from_date(year, month, day) * USECS_PER_DAY
    if match[4] is None:
        return value
    clock = clock_of(match, 4)
    zone = match[8]
    if clock is None:
        return None
    if zone is None or zone == "Z" or not is_utc:
        return value + clock if zone is None or zone in ("Z", "+00") else None
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 15 or minutes > 59:
        return None
    west = (hours * 60 + minutes) * 60_000_000
    return value + clock + (west if zone[0] == "-" else -west)


def _decode(text: str, now: datetime | None, is_utc: bool) -> int:
    sql_name = "timestamp with time zone" if is_utc else "timestamp"
    try:
        decoder = TimestampDecoder(split_fields(text, _BUFFER), transaction_time(now))
        decoder.decode()
    except DatetimeFault as fault:
        raise datetime_error(fault, text, sql_name) from fault
    match decoder.special:
        case "epoch":
            return 0
        case "infinity":
            return INFINITY
        case "-infinity":
            return MINUS_INFINITY
    if is_valid_julian(decoder.year, decoder.month):
        days = days_from_date(decoder.year, decoder.month, decoder.day)
        value = days * USECS_PER_DAY + decoder.clock.microseconds
        if is_utc:
            value += decoder.zone.seconds_west * 1_000_000
        if _FIRST <= value < _END:
            return _supported(value)
    raise DatetimeFieldOverflow(f'timestamp out of range: "{text}"')


def _supported(value: int) -> int:
    if value >= INFINITY:
        raise FeatureNotSupported("timestamps after 294247-01-10 04:00:54.775806 are not supported")
    return value


def _render(value: int, zone: str) -> str:
    if value in (INFINITY, MINUS_INFINITY):
        return "infinity" if value > 0 else "-infinity"
    days, clock = divmod(value, USECS_PER_DAY)
    date, era = date_and_era(days)
    return f"{date} {time_out(clock)}{zone}{era}"


FORMS = {
    "timestamp": TextForm(timestamp_in, timestamp_out, timestamp),
    "timestamptz": TextForm(timestamptz_in, timestamptz_out, timestamp),
}
