"""Intervals: (months, days, microseconds) (PostgreSQL's timestamp.c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from replctl.adt.float_ import rint
from replctl.errors import DatetimeFieldOverflow, DivisionByZero, NumericValueOutOfRange
from replctl.types.date import USECS_PER_DAY
from replctl.types.interval import INFINITY, MINUS_INFINITY, Interval

_SECOND = 1_000_000
_MONTH_DAYS = 30


def is_infinite(value: Interval) -> bool:
    return value in (INFINITY, MINUS_INFINITY)


def key(value: Interval) -> int:
    """Return a key for comparisons: a month counts as 30 days, and a day as 24 hours."""
    months, days, micros = value
    return (months * _MONTH_DAYS + days) * USECS_PER_DAY + micros


def checked(months: int, days: int, micros: int) -> Interval:
    """Return an interval; refuse fields out of range, or fields that happen to mean infinity."""
    value = (months, days, micros)
    fits = -(2**31) <= months < 2**31 and -(2**31) <= days < 2**31 and -(2**63) <= micros < 2**63
    if not fits or is_infinite(value):
        raise DatetimeFieldOverflow("interval out of range")
    return value


def negative(value: Interval) -> Interval:
    if is_infinite(value):
        return MINUS_INFINITY if value == INFINITY else INFINITY
    return checked(*(-part for part in value))


def add(a: Interval, b: Interval) -> Interval:
    """Add two intervals field by field.  An infinity plus a finite interval is the infinity;
    opposite infinities are an error.
    """
    if is_infinite(a):
        if is_infinite(b) and a != b:
            raise DatetimeFieldOverflow("interval out of range")
        return a
    if is_infinite(b):
        return b
    return checked(a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Interval, b: Interval) -> Interval:
    return (
        add(a, negative(b))
        if is_infinite(b) or is_infinite(a)
        else checked(a[0] - b[0], a[1] - b[1], a[2] - b[2])
    )


def _rounded_micros(value: float) -> float:
    """Round seconds to microseconds (TSROUND)."""
    return rint(value * 1e6) / 1e6


def _scaled(value: Interval, months: float, days: float, micros: float) -> Interval:
    """Return an interval of multiplied fields: fractions of months become days, and fractions of
    days become microseconds.
    """
    for part in (months, days):
        if math.isnan(part) or not -(2**31) <= part <= 2**31 - 1:
            raise DatetimeFieldOverflow("interval out of range")
    whole_months, whole_days = int(months), int(days)
    day_fraction = _rounded_micros((months - whole_months) * _MONTH_DAYS)
    extra_days = int(day_fraction)
    seconds = _rounded_micros((days - whole_days + day_fraction - extra_days) * 86400.0)
    if abs(seconds) >= 86400:
        extra_days += int(seconds / 86400)
        seconds -= int(seconds / 86400) * 86400
    total = rint(micros + seconds * 1e6)
    if math.isnan(total) or not -(2.0**63) <= total < 2.0**63:
        raise DatetimeFieldOverflow("interval out of range")
    return checked(whole_months, whole_days + extra_days, int(total))


def multiply(value: Interval, factor: float) -> Interval:
    if math.isnan(factor):
        raise DatetimeFieldOverflow("interval out of range")
    if is_infinite(value):
        if factor == 0:
            raise DatetimeFieldOverflow("interval out of range")
        return value if factor > 0 else negative(value)
    if math.isinf(factor):
        sign = (key(value) > 0) - (key(value) < 0)
        if sign == 0:
            raise DatetimeFieldOverflow("interval out of range")
        return INFINITY if sign * factor > 0 else MINUS_INFINITY
    return _scaled(value, value[0] * factor, value[1] * factor, value[2] * factor)


def divide(value: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise DivisionByZero("division by zero")
    if math.isnan(divisor):
        raise DatetimeFieldOverflow("interval out of range")
    if is_infinite(value):
        if math.isinf(divisor):
            raise DatetimeFieldOverflow("interval out of range")
        return value if divisor > 0 else negative(value)
    return _scaled(value, value[0] / divisor, value[1] / divisor, value[2] / divisor)


def _carried(high: int, low: int, size: int) -> tuple[int, int]:
    """Move whole units of `low` to `high`, towards zero."""
    whole = abs(low) // size * (1 if low >= 0 else -1)
    return high + whole, low - whole * size


def _same_sign(high: int, low: int, size: int) -> tuple[int, int]:
    if high > 0 and low < 0:
        return high - 1, low + size
    if high < 0 and low > 0:
        return high + 1, low - size
    return high, low


def justify_hours(value: Interval) -> Interval:
    if is_infinite(value):
        return value
    months, days, micros = value
    days, micros = _same_sign(*_carried(days, micros, USECS_PER_DAY), USECS_PER_DAY)
    return checked(months, days, micros)


def justify_days(value: Interval) -> Interval:
    if is_infinite(value):
        return value
    months, days, micros = value
    months, days = _same_sign(*_carried(months, days, _MONTH_DAYS), _MONTH_DAYS)
    return checked(months, days, micros)


def justify_interval(value: Interval) -> Interval:
    if is_infinite(value):
        return value
    months, days, micros = value
    if (days > 0 and micros > 0) or (days < 0 and micros < 0):
        months, days = _carried(months, days, _MONTH_DAYS)
    days, micros = _carried(days, micros, USECS_PER_DAY)
    months, days = _carried(months, days, _MONTH_DAYS)
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + _MONTH_DAYS
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - _MONTH_DAYS
    days, micros = _same_sign(days, micros, USECS_PER_DAY)
    return checked(months, days, micros)


def make_interval(
    years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float
) -> Interval:
    if math.isinf(seconds) or math.isnan(seconds):
        raise DatetimeFieldOverflow("interval out of range")
    months, days = years * 12 + months, weeks * 7 + days
    micros = (hours * 3600 + minutes * 60) * _SECOND
    checked(months, days, micros)
    if math.isinf(seconds * 1e6):
        raise NumericValueOutOfRange("value out of range: overflow")
    return checked(months, days, micros + int(rint(seconds * 1e6)))


def epoch(value: Interval) -> Decimal:
    """Return the length of an interval in seconds; a year has 365.25 days here."""
    months, days, micros = value
    years, rest = abs(months) // 12, abs(months) % 12
    sign = -1 if months < 0 else 1
    # Count quarters of a day, because they are integers.
    quarters = sign * (years * 1461 + rest * 120) + days * 4
    return Decimal(quarters * 21600 * _SECOND + micros).scaleb(-6)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "interval_pl": add,
    "interval_mi": subtract,
    "interval_um": negative,
    "interval_mul": multiply,
    "mul_d_interval": lambda factor, value: multiply(value, factor),
    "interval_div": divide,
    "interval_justify_hours": justify_hours,
    "interval_justify_days": justify_days,
    "interval_justify_interval": justify_interval,
    "interval_finite": lambda value: not is_infinite(value),
    "interval_larger": lambda a, b: a if key(a) > key(b) else b,
    "interval_smaller": lambda a, b: a if key(a) < key(b) else b,
    "make_interval": make_interval,
}
