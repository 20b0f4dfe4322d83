"""time with time zone: (microseconds of the day, seconds west of UTC) (PostgreSQL's date.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replctl.adt import datetime_arithmetic
from replctl.adt.range_check import finite_timestamp, is_infinite_timestamp
from replctl.types.date import USECS_PER_DAY, TimeTz
from replctl.types.interval import Interval

_SECOND = 1_000_000


def key(value: TimeTz) -> tuple[int, int]:
    """Return a key for comparisons: the time in UTC, then the zone."""
    return value[0] + value[1] * _SECOND, value[1]


def _plus_interval(value: TimeTz, span: Interval) -> TimeTz:
    return datetime_arithmetic.time_plus(value[0], span), value[1]


def _minus_interval(value: TimeTz, span: Interval) -> TimeTz:
    return datetime_arithmetic.time_minus(value[0], span), value[1]


def _date_and_time(days: int, value: TimeTz) -> int:
    start = datetime_arithmetic.date_to_timestamp(days)
    if is_infinite_timestamp(start):
        return start
    return finite_timestamp(
        start + value[0] + value[1] * _SECOND, "date out of range for timestamp"
    )


def _at_zone(zone: Interval, value: TimeTz) -> TimeTz:
    """Implement timetz AT TIME ZONE interval."""
    west = -datetime_arithmetic.zone_seconds(zone)
    return (value[0] + (value[1] - west) * _SECOND) % USECS_PER_DAY, west


def _of_timestamp(micros: int) -> TimeTz | None:
    return None if is_infinite_timestamp(micros) else (micros % USECS_PER_DAY, 0)


def _overlaps(*ends: TimeTz | None) -> bool | None:
    return datetime_arithmetic.overlaps(*(None if end is None else key(end) for end in ends))


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "timetz_pl_interval": _plus_interval,
    "timetz_mi_interval": _minus_interval,
    "interval_pl_timetz(interval,timetz)": lambda span, value: _plus_interval(value, span),
    "datetimetz_timestamptz": _date_and_time,
    "timetzdate_pl(timetz,date)": lambda value, days: _date_and_time(days, value),
    "timetz_izone": _at_zone,
    "timetz_time": lambda value: value[0],
    "time_timetz": lambda time: (time, 0),
    "timestamptz_timetz": _of_timestamp,
    "timetz_larger": lambda a, b: a if key(a) > key(b) else b,
    "timetz_smaller": lambda a, b: a if key(a) < key(b) else b,
    "overlaps_timetz": _overlaps,
}
