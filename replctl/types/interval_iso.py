"""ISO 8601 durations: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.

The rules are those of PostgreSQL's DecodeISO8601Interval() in datetime.c.
"""

from __future__ import annotations

import math
import re

from replctl.errors import DataError
from replctl.types.datetime_field import BadFormat, FieldOverflow
from replctl.types.floating import float8_prefix
from replctl.types.interval_decode import (
    USECS_PER_DAY,
    USECS_PER_HOUR,
    USECS_PER_MINUTE,
    USECS_PER_SECOND,
    IntervalSum,
)

_MAX_NUMBER = 1e15


def decode_iso_interval(text: str) -> IntervalSum:
    """Decode a duration: `P1Y2M` is 14 months.

    Raises:
        BadFormat, FieldOverflow: `text` is not a duration, or is too large.
    """
    if len(text) < 2 or text[0] != "P":
        raise BadFormat
    decoder = _Decoder(text)
    decoder.decode()
    return decoder.sum


class _Decoder:
    def __init__(self, text: str) -> None:
        self.sum = IntervalSum()
        self._text = text
        self._position = 1
        self._is_date = True  # before the T
        self._has_field = False  # in this part: date or time

    def decode(self) -> None:
        while self._position < len(self._text):
            if self._peek() == "T":
                self._position += 1
                self._begin_time()
            elif self._is_date:
                self._take_date_field()
            else:
                self._take_time_field()

    def _begin_time(self) -> None:
        self._is_date = False
        self._has_field = False

    def _take_date_field(self) -> None:
        start = self._position
        whole, fraction = self._number()
        unit = self._next()
        if unit == "Y":
            self.sum.add_years(whole, fraction)
        elif unit == "M":
            self.sum.add_months(whole, fraction)
        elif unit == "W":
            self.sum.add_days(whole, 7)
            self.sum.add_fraction_of_days(fraction, 7)
        elif unit == "D":
            self._add_days(whole, fraction)
        elif unit in ("T", "") and self._is_run_together(start, 8):
            years, months, days = _split(whole)
            self.sum.add_years(years, 0.0)
            self.sum.add_months(months, 0.0)
            self._add_days(days, fraction)
            self._begin_time()
            return
        elif unit in ("T", "", "-"):
            self._take_alternative_date(whole, fraction, unit)
            return
        else:
            raise BadFormat
        self._has_field = True

    def _take_alternative_date(self, years: int, fraction: float, delimiter: str) -> None:
        """Add years, months and days, as in `0001-02-03`.  The last ones may be missing."""
        if self._has_field:
            raise BadFormat
        self.sum.add_years(years, fraction)
        if delimiter == "-":
            self.sum.add_months(*self._number())
            delimiter = self._next()
        if delimiter == "-":
            self._add_days(*self._number())
            delimiter = self._next()
            if delimiter == "-":
                raise BadFormat
        if delimiter not in ("T", ""):
            raise BadFormat
        self._begin_time()

    def _take_time_field(self) -> None:
        start = self._position
        whole, fraction = self._number()
        unit = self._next()
        if unit == "H":
            self.sum.add_microseconds(whole, fraction, USECS_PER_HOUR)
        elif unit == "M":
            self.sum.add_microseconds(whole, fraction, USECS_PER_MINUTE)
        elif unit == "S":
            self.sum.add_microseconds(whole, fraction, USECS_PER_SECOND)
        elif unit == "" and self._is_run_together(start, 6):
            hours, minutes, seconds = _split(whole)
            self.sum.add_microseconds(hours, 0.0, USECS_PER_HOUR)
            self.sum.add_microseconds(minutes, 0.0, USECS_PER_MINUTE)
            self.sum.add_microseconds(seconds, 0.0, USECS_PER_SECOND)
            # The server treats the fraction as one of a microsecond: PT040506.789 is
            # 04:05:06.000001.
            self.sum.add_fraction_of_microseconds(fraction, 1)
        elif unit in ("", ":"):
            self._take_alternative_time(whole, fraction, unit)
        else:
            raise BadFormat
        self._has_field = True

    def _take_alternative_time(self, hours: int, fraction: float, delimiter: str) -> None:
        """Add hours, minutes and seconds, as in `04:05:06`.  The last ones may be missing."""
        if self._has_field:
            raise BadFormat
        self.sum.add_microseconds(hours, fraction, USECS_PER_HOUR)
        for unit in (USECS_PER_MINUTE, USECS_PER_SECOND):
            if delimiter == "":
                return
            if delimiter != ":":
                raise BadFormat
            self.sum.add_microseconds(*self._number(), unit)
            delimiter = self._next()
        if delimiter:
            raise BadFormat

    def _add_days(self, whole: int, fraction: float) -> None:
        self.sum.add_days(whole)
        self.sum.add_fraction_of_microseconds(fraction, USECS_PER_DAY)

    def _is_run_together(self, start: int, width: int) -> bool:
        digits = re.match(r"-?(\d*)", self._text[start:], re.ASCII)
        return not self._has_field and digits is not None and len(digits[1]) == width

    def _number(self) -> tuple[int, float]:
        """Return the whole part and the fraction of the next number."""
        rest = self._text[self._position :]
        if re.match(r"[-.\d]", rest, re.ASCII) is None:
            raise BadFormat
        try:
            number, end = float8_prefix(rest, "", "")
        except DataError:
            raise BadFormat from None
        if not -_MAX_NUMBER <= number <= _MAX_NUMBER:
            raise FieldOverflow
        self._position += end
        whole = math.trunc(number)
        return whole, number - whole

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _next(self) -> str:
        """Return the next character; an empty text at the end."""
        char = self._peek()
        self._position += 1
        return char


def _split(number: int) -> tuple[int, int, int]:
    """Split a number into groups of digits: -10203 -> (-1, -2, -3)."""
    sign = -1 if number < 0 else 1
    rest, last = divmod(abs(number), 100)
    first, middle = divmod(rest, 100)
    return sign * first, sign * middle, sign * last
