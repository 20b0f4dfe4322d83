"""interval: PostgreSQL's timestamp.c and datetime.c, with IntervalStyle postgres.

A value is a tuple (months, days, microseconds).  In infinity each field is the largest number of
its type, in -infinity the smallest.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from replctl.errors import DatetimeFieldOverflow
from replctl.types import interval_field
from replctl.types.date import round_microseconds
from replctl.types.datetime_field import BadFormat, DatetimeFault, datetime_error, split_fields
from replctl.types.interval_decode import (
    USECS_PER_HOUR,
    USECS_PER_MINUTE,
    USECS_PER_SECOND,
    IntervalSum,
    decode_interval,
)
from replctl.types.interval_field import FULL_PRECISION, range_and_precision
from replctl.types.interval_iso import decode_iso_interval
from replctl.types.text_form import TextForm

Interval: TypeAlias = tuple[int, int, int]

INFINITY: Interval = (2**31 - 1, 2**31 - 1, 2**63 - 1)
MINUS_INFINITY: Interval = (-(2**31), -(2**31), -(2**63))

_BUFFER = 256  # bytes of the buffer for fields in interval_in


def interval_in(text: str, typmod: int = -1, now: datetime | None = None) -> Interval:
    """Parse an interval: `1 year 2 mons -3 days 04:05:06` -> (14, -3, 14706000000).

    Raises:
        InvalidDatetimeFormat: `text` is not an interval.
        IntervalFieldOverflow, DatetimeFieldOverflow: a field or the interval is too large.
    """
    fields_of_type, _ = range_and_precision(typmod)
    try:
        total = _decode(text, fields_of_type)
    except DatetimeFault as fault:
        raise datetime_error(fault, text, "interval") from fault
    if isinstance(total, str):
        return INFINITY if total == "infinity" else MINUS_INFINITY
    value = total.total()
    if not -(2**31) <= value[0] < 2**31:
        raise DatetimeFieldOverflow("interval out of range")
    return value if typmod < 0 else interval(value, typmod)


def interval_out(value: Interval) -> str:
    """Print an interval: (14, -3, 14706000000) -> `1 year 2 mons -3 days +04:05:06`."""
    if value in (INFINITY, MINUS_INFINITY):
        return "infinity" if value == INFINITY else "-infinity"
    months, days, microseconds = value
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    parts = []
    was_negative = False  # a positive number after a negative one shows its sign
    for number, unit in ((sign * years, "year"), (sign * months, "mon"), (days, "day")):
        if number:
            plus = "+" if was_negative and number > 0 else ""
            parts.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            was_negative = number < 0
    if microseconds or not parts:
        parts.append(_clock_text(microseconds, "+" if was_negative else ""))
    return " ".join(parts)


def interval(value: Interval, typmod: int, explicit: bool = False) -> Interval:
    """Apply a modifier, such as interval(0).

    ((0, 1, 14706789000), 0x7FFF0000) -> (0, 1, 14707000000)

    Raises:
        DatetimeFieldOverflow: the rounded value is too large.
    """
    if value in (INFINITY, MINUS_INFINITY):
        return value
    fields, precision = range_and_precision(typmod)
    months, days, microseconds = value
    if fields == interval_field.YEAR:
        return _truncate(months, 12), 0, 0
    if fields in (interval_field.MONTH, interval_field.YEAR | interval_field.MONTH):
        return months, 0, 0
    if fields == interval_field.DAY:
        return months, days, 0
    if not fields & interval_field.SECOND:
        unit = USECS_PER_MINUTE if fields & interval_field.MINUTE else USECS_PER_HOUR
        microseconds = _truncate(microseconds, unit)
    if precision != FULL_PRECISION:
        half_a_step = 10 ** (6 - precision) // 2
        if not half_a_step - 2**63 <= microseconds < 2**63 - half_a_step:
            raise DatetimeFieldOverflow("interval out of range")
        microseconds = round_microseconds(microseconds, precision)
    return months, days, microseconds


def _decode(text: str, fields_of_type: int) -> IntervalSum | str:
    try:
        return decode_interval(split_fields(text, _BUFFER), fields_of_type)
    except BadFormat:  # PostgreSQL tries this form second
        return decode_iso_interval(text)


def _truncate(number: int, unit: int) -> int:
    """Truncate a number toward zero to a multiple of a unit: (-125, 60) -> -120."""
    return number - number % unit if number >= 0 else number + -number % unit


def _clock_text(microseconds: int, plus: str) -> str:
    """Print a time: (-14706500000, `+`) -> `-04:05:06.5`; hours have any number of digits."""
    seconds, fraction = divmod(abs(microseconds), USECS_PER_SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if microseconds < 0 else plus
    text = f"{sign}{hours:02}:{minutes:02}:{seconds:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


FORMS = {"interval": TextForm(interval_in, interval_out, interval)}
