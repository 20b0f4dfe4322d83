"""Count days of the proleptic Gregorian calendar.  Year 0 is 1 BC, as in astronomy."""

from __future__ import annotations

UNIX_EPOCH_JULIAN = 2440588  # Julian day of 1970-01-01
POSTGRES_EPOCH = 10957  # days from 1970-01-01 to 2000-01-01, PostgreSQL's own epoch

_DAYS_OF_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_OF_ERA = 146097  # 400 years


def days_from_date(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01: (2000, 3, 1) -> 11017.  A month or day that is too large counts
    into the next year or month.
    """
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    if month <= 2:  # years that begin in March have their leap day at the end
        year -= 1
        month += 12
    day_of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719468


def date_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day: 11017 -> (2000, 3, 1)."""
    era, day = divmod(days + 719468, _DAYS_OF_ERA)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    return (
        year + era * 400 + (month >= 10),
        month + 3 if month < 10 else month - 9,
        day - (153 * month + 2) // 5 + 1,
    )


def days_of_month(year: int, month: int) -> int:
    """Return the number of days of a month: (2024, 2) -> 29."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _DAYS_OF_MONTH[month - 1]


def is_valid_julian(year: int, month: int) -> bool:
    """Return whether a date has a Julian day: 4714-11 BC to 5874898-05 (IS_VALID_JULIAN in
    timestamp.h)."""
    return (-4713, 11) <= (year, month) < (5874898, 6)
