"""The fields of `interval day to second(3)`, and their modifier (PostgreSQL's timestamp.h)."""

from __future__ import annotations

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND = (1 << bit for bit in (2, 1, 3, 10, 11, 12))
FULL_RANGE = 0x7FFF  # of an interval type without fields
FULL_PRECISION = 0xFFFF  # of an interval type without a precision

#: All masks of fields that the grammar allows, with the words after `interval`.
RANGE_NAMES = {
    YEAR: " year",
    MONTH: " month",
    DAY: " day",
    HOUR: " hour",
    MINUTE: " minute",
    SECOND: " second",
    YEAR | MONTH: " year to month",
    DAY | HOUR: " day to hour",
    DAY | HOUR | MINUTE: " day to minute",
    DAY | HOUR | MINUTE | SECOND: " day to second",
    HOUR | MINUTE: " hour to minute",
    HOUR | MINUTE | SECOND: " hour to second",
    MINUTE | SECOND: " minute to second",
    FULL_RANGE: "",
}


def interval_typmod(fields: int, precision: int) -> int:
    """Return the modifier of fields and precision: (DAY, 3) -> 524291."""
    return (fields & 0x7FFF) << 16 | precision & 0xFFFF


def range_and_precision(typmod: int) -> tuple[int, int]:
    """Return fields and precision: 524291 -> (DAY, 3); -1 -> (FULL_RANGE, FULL_PRECISION)."""
    return (typmod >> 16) & 0x7FFF, typmod & 0xFFFF
