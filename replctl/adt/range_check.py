"""Check that a type can hold a result."""

from __future__ import annotations

from replctl.errors import DatetimeFieldOverflow, NumericValueOutOfRange
from replctl.types.date import DATE_INFINITY, DATE_MINUS_INFINITY, FIRST_DATE, LAST_DATE
from replctl.types.timestamp import INFINITY, MINUS_INFINITY

_BITS = {"int2": 15, "int4": 31, "int8": 63}
_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}
_FIRST_TIMESTAMP = -210866803200000000  # 4714-11-24 BC


def integer(value: int, type_name: str) -> int:
    """Return `value` if it fits into the type; else raise an error."""
    if not -(1 << _BITS[type_name]) <= value < 1 << _BITS[type_name]:
        raise NumericValueOutOfRange(f"{_NAMES[type_name]} out of range")
    return value


def int4(value: int) -> int:
    """Return `value` if it fits into an integer; else raise an error."""
    return integer(value, "int4")


def finite_date(days: int) -> int:
    """Return a date in days since 1970-01-01 if it is in range; else raise an error."""
    if not FIRST_DATE <= days <= LAST_DATE:
        raise DatetimeFieldOverflow("date out of range")
    return days


def finite_timestamp(micros: int, error: str = "timestamp out of range") -> int:
    """Return a timestamp in microseconds since 1970-01-01 if it is in range; else raise an
    error.
    """
    if not _FIRST_TIMESTAMP <= micros < INFINITY:
        raise DatetimeFieldOverflow(error)
    return micros


def is_infinite_date(days: int) -> bool:
    return days in (DATE_INFINITY, DATE_MINUS_INFINITY)


def is_infinite_timestamp(micros: int) -> bool:
    return micros in (INFINITY, MINUS_INFINITY)
