"""Arithmetic of dates, times and timestamps (PostgreSQL's date.c and timestamp.c).

The session's time zone is UTC, so timestamp and timestamptz behave the same here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from replctl.adt import interval_arithmetic
from replctl.adt.float_ import rint
from replctl.adt.range_check import (
    finite_date,
    finite_timestamp,
    is_infinite_date,
    is_infinite_timestamp,
)
from replctl.errors import DatetimeFieldOverflow, InvalidParameterValue
from replctl.types.date import DATE_INFINITY, DATE_MINUS_INFINITY, USECS_PER_DAY
from replctl.types.interval import INFINITY as INTERVAL_INFINITY
from replctl.types.interval import MINUS_INFINITY as INTERVAL_MINUS_INFINITY
from replctl.types.interval import Interval, interval_out
from replctl.types.julian import date_from_days, days_from_date, days_of_month
from replctl.types.timestamp import INFINITY, MINUS_INFINITY
from replctl.types.timezone import Zone, abbreviation, zone_named

_SECOND = 1_000_000
_END_DATE = 106751993  # days to 294277-01-01, where timestamps end


def date_to_timestamp(days: int) -> int:
    """Convert a date to a timestamp; infinite dates become infinite timestamps."""
    if is_infinite_date(days):
        return INFINITY if days == DATE_INFINITY else MINUS_INFINITY
    if days >= _END_DATE:
        raise DatetimeFieldOverflow("date out of range for timestamp")
    return finite_timestamp(days * USECS_PER_DAY)


def timestamp_to_date(micros: int) -> int:
    if is_infinite_timestamp(micros):
        return DATE_INFINITY if micros == INFINITY else DATE_MINUS_INFINITY
    return micros // USECS_PER_DAY


def compare_key_of_date(days: int) -> int:
    """Return the key for comparing a date with timestamps.  Dates after the last timestamp stay
    below infinity.
    """
    if is_infinite_date(days):
        return INFINITY if days == DATE_INFINITY else MINUS_INFINITY
    return min(days * USECS_PER_DAY, INFINITY - 1)


def _add_days(days: int, count: int) -> int:
    return days if is_infinite_date(days) else finite_date(days + count)


def _subtract_days(days: int, count: int) -> int:
    return days if is_infinite_date(days) else finite_date(days - count)


def _days_between(a: int, b: int) -> int:
    if is_infinite_date(a) or is_infinite_date(b):
        raise DatetimeFieldOverflow("cannot subtract infinite dates")
    return a - b


def plus_interval(micros: int, value: Interval) -> int:
    """Add an interval to a timestamp: first months (at most to the month's end), then days, then
    time.
    """
    if interval_arithmetic.is_infinite(value):
        infinite = INFINITY if value == INTERVAL_INFINITY else MINUS_INFINITY
        if is_infinite_timestamp(micros) and micros != infinite:
            raise DatetimeFieldOverflow("timestamp out of range")
        return infinite
    if is_infinite_timestamp(micros):
        return micros
    months, days, rest = value
    day, clock = divmod(micros, USECS_PER_DAY)
    if months:
        year, month, day_of_month = date_from_days(day)
        year, month = divmod(year * 12 + month - 1 + months, 12)
        day = days_from_date(year, month + 1, min(day_of_month, days_of_month(year, month + 1)))
    return finite_timestamp(finite_timestamp((day + days) * USECS_PER_DAY + clock) + rest)


def plus_in_zone(micros: int, value: Interval, zone_name: str) -> int:
    """Add months and then days in the local time of a zone (date_add)."""
    zone = zone_of(zone_name)
    if interval_arithmetic.is_infinite(value) or is_infinite_timestamp(micros):
        return plus_interval(micros, value)
    months, days, rest = value
    for step in ((months, 0, 0), (0, days, 0)):
        if any(step):
            local = plus_interval(micros + offset_at(zone, micros) * _SECOND, step)
            micros = finite_timestamp(local - zone.offset(local // _SECOND) * _SECOND)
    return finite_timestamp(micros + rest)


def minus_interval(micros: int, value: Interval) -> int:
    return plus_interval(micros, interval_arithmetic.negative(value))


def difference(a: int, b: int) -> Interval:
    """Return the difference of two timestamps in days and time."""
    if is_infinite_timestamp(a) or is_infinite_timestamp(b):
        return _infinite_difference(a, b)
    if not -(2**63) <= a - b < 2**63:
        raise DatetimeFieldOverflow("interval out of range")
    return interval_arithmetic.justify_hours((0, 0, a - b))


def _infinite_difference(a: int, b: int) -> Interval:
    if a == b:
        raise DatetimeFieldOverflow("interval out of range")
    is_positive = a == INFINITY or b == MINUS_INFINITY
    return INTERVAL_INFINITY if is_positive else INTERVAL_MINUS_INFINITY


def age(a: int, b: int) -> Interval:
    """Return the difference of two timestamps in calendar years, months and days
    (timestamp_age).
    """
    if is_infinite_timestamp(a) or is_infinite_timestamp(b):
        return _infinite_difference(a, b)
    sign = 1 if a >= b else -1
    (day1, clock1), (day2, clock2) = divmod(a, USECS_PER_DAY), divmod(b, USECS_PER_DAY)
    date1, date2 = date_from_days(day1), date_from_days(day2)
    years, months, days = (sign * (p - q) for p, q in zip(date1, date2, strict=True))
    micros = sign * (clock1 - clock2)
    if micros < 0:
        micros, days = micros + USECS_PER_DAY, days - 1
    while days < 0:
        # Borrow the days of the earlier date's month.
        year, month, _ = date2 if sign > 0 else date1
        days, months = days + days_of_month(year, month), months - 1
    while months < 0:
        months, years = months + 12, years - 1
    return interval_arithmetic.checked(sign * (years * 12 + months), sign * days, sign * micros)


def time_plus(time: int, value: Interval) -> int:
    if interval_arithmetic.is_infinite(value):
        raise DatetimeFieldOverflow("cannot add infinite interval to time")
    return (time + value[2]) % USECS_PER_DAY


def time_minus(time: int, value: Interval) -> int:
    if interval_arithmetic.is_infinite(value):
        raise DatetimeFieldOverflow("cannot subtract infinite interval from time")
    return (time - value[2]) % USECS_PER_DAY


def _interval_to_time(value: Interval) -> int:
    if interval_arithmetic.is_infinite(value):
        raise DatetimeFieldOverflow("cannot convert infinite interval to time")
    return value[2] % USECS_PER_DAY


def _timestamp_to_time(micros: int) -> int | None:
    return None if is_infinite_timestamp(micros) else micros % USECS_PER_DAY


def _date_and_time(days: int, time: int) -> int:
    start = date_to_timestamp(days)
    return start if is_infinite_timestamp(start) else finite_timestamp(start + time)


def make_date(year: int, month: int, day: int) -> int:
    """Return a date; a negative year is a year BC."""
    calendar_year = year if year > 0 else year + 1
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= days_of_month(calendar_year, month):
        raise DatetimeFieldOverflow(
            f"date field value out of range: {_date_text(year, month, day)}"
        )
    try:
        return finite_date(days_from_date(calendar_year, month, day))
    except DatetimeFieldOverflow:
        raise DatetimeFieldOverflow(f"date out of range: {_date_text(year, month, day)}") from None


def _date_text(year: int, month: int, day: int) -> str:
    return f"{year}-{month:02}-{day:02}"


def make_time(hour: int, minute: int, seconds: float) -> int:
    micros = rint(seconds * 1e6) if abs(seconds) < 100 else -1.0
    total = (hour * 60 + minute) * 60 * _SECOND + int(micros)
    if not (hour >= 0 and 0 <= minute < 60 and 0 <= micros <= 60_000_000) or total > USECS_PER_DAY:
        raise DatetimeFieldOverflow(
            f"time field value out of range: {hour}:{minute:02}:{seconds:02g}"
        )
    return total


def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> int:
    days = make_date(year, month, day)
    time = make_time(hour, minute, seconds)
    return finite_timestamp(days * USECS_PER_DAY + time)


def zone_of(name: str) -> Zone:
    """Return the time zone with an abbreviation or a name."""
    known = abbreviation(name.lower())
    if known is not None:
        return known.zone
    signed = name[:1] in ("+", "-")  # a POSIX specification without its name
    zone = zone_named(("posix" if signed else "") + name.lower())
    if zone is None:
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    return zone


def _local_to_utc(name: str, micros: int) -> int:
    """Implement timestamp AT TIME ZONE."""
    if is_infinite_timestamp(micros):
        return micros
    zone = zone_of(name)
    return finite_timestamp(micros - zone.offset(micros // _SECOND) * _SECOND)


def _utc_to_local(name: str, micros: int) -> int:
    """Implement timestamptz AT TIME ZONE."""
    if is_infinite_timestamp(micros):
        return micros
    zone = zone_of(name)
    return finite_timestamp(micros + offset_at(zone, micros) * _SECOND)


def offset_at(zone: Zone, micros: int) -> int:
    """Return a zone's seconds east of UTC at an instant.

    `Zone.offset` gives the later offset for a local time that clocks show twice.  The result is
    correct for both instants with this local time: the first one has the earlier offset.
    """
    fixed = zone.fixed_offset
    if fixed is not None:
        return fixed
    utc = micros // _SECOND
    before, after = zone.offset(utc - 93600), zone.offset(utc + 93600)
    if before == after:
        candidate = zone.offset(utc + before)
        return candidate if zone.offset(utc + candidate) == candidate else before
    # Search for the transition between them.
    low, high = utc - 93600, utc + 93600
    return _offset_by_bisection(zone, utc, low, high, before, after)


def _offset_by_bisection(zone: Zone, utc: int, low: int, high: int, before: int, after: int) -> int:
    """Return the offset at `utc`, given one transition between `low` and `high`.

    The transition is the first instant with the offset `after`: if `after` is added to it, the
    zone gives the resulting local time this offset.
    """
    later = max(before, after) if after > before else after
    while high - low > 1:
        middle = (low + high) // 2
        if zone.offset(middle + later) == after:
            high = middle
        else:
            low = middle
    return after if utc >= high else before


def zone_seconds(value: Interval) -> int:
    """Return the seconds east of UTC for a time zone given as an interval."""
    if interval_arithmetic.is_infinite(value):
        raise InvalidParameterValue(f'interval time zone "{interval_out(value)}" must be finite')
    if value[0] or value[1]:
        raise InvalidParameterValue(
            f'interval time zone "{interval_out(value)}" must not include months or days'
        )
    return abs(value[2]) // _SECOND * (1 if value[2] >= 0 else -1)


def _by_interval(sign: int) -> Callable[[Interval, int], int]:
    """Return the function for AT TIME ZONE with an interval."""

    def move(value: Interval, micros: int) -> int:
        if is_infinite_timestamp(micros):
            return micros
        return finite_timestamp(micros + sign * zone_seconds(value) * _SECOND)

    return move


def _from_epoch(seconds: float) -> int:
    """Implement to_timestamp(double precision)."""
    if math.isnan(seconds):
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    if math.isinf(seconds):
        return INFINITY if seconds > 0 else MINUS_INFINITY
    if not -210866803200.0 <= seconds < 9224318016000.0:
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"')
    return finite_timestamp(int(rint((seconds - 946684800) * 1e6)) + 946684800 * _SECOND)


def overlaps(start1: Any, end1: Any, start2: Any, end2: Any) -> bool | None:
    """Implement (start1, end1) OVERLAPS (start2, end2), with the standard's rules for NULL."""
    first, second = _period(start1, end1), _period(start2, end2)
    if first is None or second is None:
        return None
    (low1, high1), (low2, high2) = first, second
    if low1 == low2:
        return None if high1 is None or high2 is None else True
    if low1 < low2:
        low1, high1, low2, high2 = low2, high2, low1, high1
    # Now the second period begins first.  They overlap if it ends after the first period begins.
    if high2 is None:
        return None
    if low1 < high2:
        return True
    return None if high1 is None else False


def _overlaps_of(
    type_name: str, plus: Callable[[int, Interval], int]
) -> dict[str, Callable[..., Any]]:
    """Return the forms of OVERLAPS in which a length replaces the end of a period."""

    def end(start: int | None, value: Any, *, is_length: bool) -> Any:
        if not is_length:
            return value
        return None if start is None or value is None else plus(start, value)

    def function(first: bool, second: bool) -> Callable[..., bool | None]:
        return lambda start1, end1, start2, end2: overlaps(
            start1,
            end(start1, end1, is_length=first),
            start2,
            end(start2, end2, is_length=second),
        )

    def kind(is_length: bool) -> str:
        return "interval" if is_length else type_name

    return {
        f"overlaps({type_name},{kind(first)},{type_name},{kind(second)})": function(first, second)
        for first, second in ((True, True), (True, False), (False, True))
    }


def _period(start: Any, end: Any) -> tuple[Any, Any] | None:
    if start is None:
        start, end = end, None
    if start is None:
        return None
    if end is not None and end < start:
        start, end = end, start
    return start, end


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "date_pli": _add_days,
    "date_mii": _subtract_days,
    "integer_pl_date(int4,date)": lambda count, days: _add_days(days, count),
    "date_mi": _days_between,
    "date_finite": lambda days: not is_infinite_date(days),
    "date_larger": max,
    "date_smaller": min,
    "date_pl_interval": lambda days, value: plus_interval(date_to_timestamp(days), value),
    "date_mi_interval": lambda days, value: minus_interval(date_to_timestamp(days), value),
    "interval_pl_date(interval,date)": lambda value, days: plus_interval(
        date_to_timestamp(days), value
    ),
    **dict.fromkeys(("timestamp_pl_interval", "timestamptz_pl_interval"), plus_interval),
    **dict.fromkeys(("timestamp_mi_interval", "timestamptz_mi_interval"), minus_interval),
    **dict.fromkeys(
        (
            "interval_pl_timestamp(interval,timestamp)",
            "interval_pl_timestamptz(interval,timestamptz)",
        ),
        lambda value, micros: plus_interval(micros, value),
    ),
    "timestamp_mi": difference,
    "timestamptz_age": age,
    "timestamp_age": age,
    "timestamp_finite": lambda micros: not is_infinite_timestamp(micros),
    "timestamp_larger": max,
    "timestamp_smaller": min,
    **dict.fromkeys(("date_timestamp", "date_timestamptz"), date_to_timestamp),
    **dict.fromkeys(("timestamp_date", "timestamptz_date"), timestamp_to_date),
    **dict.fromkeys(("timestamp_timestamptz", "timestamptz_timestamp"), lambda micros: micros),
    **dict.fromkeys(("timestamp_time", "timestamptz_time"), _timestamp_to_time),
    "datetime_timestamp": _date_and_time,
    "timedate_pl(time,date)": lambda time, days: _date_and_time(days, time),
    "time_pl_interval": time_plus,
    "time_mi_interval": time_minus,
    "interval_pl_time(interval,time)": lambda value, time: time_plus(time, value),
    "time_mi_time": lambda a, b: (0, 0, a - b),
    "time_interval": lambda time: (0, 0, time),
    "interval_time": _interval_to_time,
    "time_larger": max,
    "time_smaller": min,
    "make_date": make_date,
    "make_time": make_time,
    "make_timestamp": make_timestamp,
    "make_timestamptz": make_timestamp,
    "timestamp_zone": _local_to_utc,
    "timestamptz_zone": _utc_to_local,
    "timestamp_izone": _by_interval(-1),
    "timestamptz_izone": _by_interval(1),
    "float8_timestamptz": _from_epoch,
    "timestamptz_pl_interval_at_zone": plus_in_zone,
    "timestamptz_mi_interval_at_zone": lambda micros, value, zone_name: plus_in_zone(
        micros, interval_arithmetic.negative(value), zone_name
    ),
    **_overlaps_of("timestamp", plus_interval),
    **_overlaps_of("timestamptz", plus_interval),
    **_overlaps_of("time", time_plus),
    "overlaps_timestamp": overlaps,
    "overlaps_time": overlaps,
}
