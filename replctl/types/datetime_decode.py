"""Decode fields to a date and a time: `1999-jan-08`, `04:05`, `pst` become 1999, 1, 8, 4, 5, 8
hours west.

The meaning of a field depends on the fields before it.  The rules are those of PostgreSQL's
DecodeDateTime() and DecodeTimeOnly() in datetime.c; the session sets the order of a date's parts
and the zone.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from replctl.types.datetime_field import (
    INT4_MAX,
    WORD_LENGTH,
    WORDS,
    BadFormat,
    Field,
    FieldOverflow,
    MonthDayOverflow,
    ZoneOverflow,
    parse_clock,
    parse_fraction,
    parse_int4,
    parse_microseconds,
)
from replctl.types.integer import decimal_int
from replctl.types.julian import (
    UNIX_EPOCH_JULIAN,
    date_from_days,
    days_from_date,
    days_of_month,
    is_valid_julian,
)
from replctl.types.timezone import FixedZone, Zone, abbreviation, local_seconds, zone_named
from replctl.types.value_format import current_format

# The bits of `found`: the parts found so far.
YEAR, MONTH, DAY, DAY_OF_YEAR, TIME, ZONE, DST_ZONE, DYNAMIC_ZONE, DST, WEEKDAY, MERIDIAN, ERA = (
    1 << bit for bit in range(12)
)
DATE = YEAR | MONTH | DAY

MAX_ZONE_HOUR = 15  # MAX_TZDISP_HOUR in timestamp.h
USECS_PER_SECOND = 1_000_000
USECS_PER_DAY = 86_400 * USECS_PER_SECOND

_DATE_PART = re.compile(r"\d+|[a-z]+", re.ASCII)
_OFFSET = re.compile(r"[-+]([-+]?\d+)?(?::([-+]?\d+)?(?::([-+]?\d+)?)?)?", re.ASCII)


class Clock:
    """The time of day; a second of 60 and a microsecond of a million are possible."""

    def __init__(self) -> None:
        self.hour = self.minute = self.second = self.microsecond = 0
        self.meridian = ""

    @property
    def seconds(self) -> int:
        """Return the time of day in whole seconds."""
        return (self.hour * 60 + self.minute) * 60 + self.second

    @property
    def microseconds(self) -> int:
        """Return the time of day in microseconds."""
        return self.seconds * USECS_PER_SECOND + self.microsecond

    def read(self, text: str) -> int:
        """Read a time such as `04:05:06.7`, and return its parts."""
        self.hour, self.minute, self.second, self.microsecond = parse_clock(text)
        if self.hour > INT4_MAX:
            raise FieldOverflow
        return TIME

    def apply_meridian(self) -> None:
        if self.meridian and self.hour > 12:
            raise FieldOverflow
        if self.meridian == "am" and self.hour == 12:
            self.hour = 0
        elif self.meridian == "pm" and self.hour != 12:
            self.hour += 12

    def check(self) -> None:
        """Check the time of day; 24:00 is valid.

        Raises:
            FieldOverflow: the time is not valid.
        """
        if self.minute > 59 or self.second > 60 or self.microseconds > USECS_PER_DAY:
            raise FieldOverflow


class DecodedZone:
    """The time zone of a literal.

    Attributes:
        seconds_west: the zone's offset, if it is constant.
        named: a zone whose offset may depend on the time.
    """

    def __init__(self) -> None:
        self.seconds_west = 0
        self.named: Zone | None = None

    def read_offset(self, text: str) -> int:
        """Read an offset: `+5:30` and `-0800` are 19800 seconds east, and 28800 west."""
        match = _OFFSET.match(text)
        assert match is not None  # a field of this kind begins with a sign
        try:
            hours, minutes, seconds = (parse_int4(number or "0") for number in match.groups())
        except FieldOverflow:
            raise ZoneOverflow from None
        if ":" not in match[0] and match.end() == len(text) and len(text) > 3:
            hours, minutes = divmod(hours, 100)
        if not (0 <= hours <= MAX_ZONE_HOUR and 0 <= minutes <= 59 and 0 <= seconds <= 59):
            raise ZoneOverflow
        if match.end() < len(text):
            raise BadFormat
        west = (hours * 60 + minutes) * 60 + seconds
        self.seconds_west = west if text[0] == "-" else -west
        return ZONE

    def read_name(self, name: str, fault: Exception) -> int:
        zone = zone_named(name)
        if zone is None:
            raise fault
        self.named = zone
        return ZONE

    def read_abbreviation(self, word: str) -> int | None:
        """Read an abbreviation: `est` is five hours west; None if `word` is not an abbreviation."""
        entry = abbreviation(word)
        if entry is None:
            return None
        if not isinstance(entry.zone, FixedZone):
            self.named = entry.zone
            return ZONE | DYNAMIC_ZONE
        self.seconds_west = -entry.zone.seconds_east
        return ZONE | DST_ZONE if entry.is_dst else ZONE

    def add_dst(self) -> int:
        """Add an hour of daylight saving time to the preceding zone, as in `MET DST`."""
        self.seconds_west -= 3600
        return DST | DST_ZONE


class Decoder:
    """The common part of both decoders; `decode()` of a subclass sets the attributes.

    Args:
        fields: the fields of the literal.
        now: the time of the transaction, in UTC.

    Attributes:
        special: `epoch`, `infinity` or `-infinity`; the other attributes are then unused.
        year, month, day: the date; year 0 is 1 BC.
        clock: the time.
        zone: the time zone.
    """

    def __init__(self, fields: list[Field], now: datetime) -> None:
        self._fields = fields
        self._format = current_format()
        self._now_west = 0
        if not self._format.is_utc:
            offset, _ = self._format.time_zone.at(int(now.timestamp()))
            now += timedelta(seconds=offset)
            self._now_west = -offset
        self._now = now
        self._found = 0
        self._label = ""  # a word that announces the next field: julian, time
        self._year_has_two_digits = False
        self._has_month_name = False
        self._is_julian = False
        self._day_of_year = 0
        self._is_bc = False
        self.special = ""
        self.year = self.month = self.day = 0
        self.clock = Clock()
        self.zone = DecodedZone()

    def _add(self, parts: int) -> None:
        """Record the parts that a field has set.

        Raises:
            BadFormat: one of the parts was already set.
        """
        if parts & self._found:
            raise BadFormat
        self._found |= parts

    def _set_julian(self, text: str) -> int:
        """Set the date and time of a Julian day: `2451187.5` is 1999-01-08 12:00."""
        whole, point, digits = text.partition(".")
        self.year, self.month, self.day = date_from_days(parse_int4(whole) - UNIX_EPOCH_JULIAN)
        self._is_julian = True
        if not point:
            return DATE
        clock = int(parse_fraction(point + digits) * USECS_PER_DAY)
        seconds, self.clock.microsecond = divmod(clock, USECS_PER_SECOND)
        minutes, self.clock.second = divmod(seconds, 60)
        self.clock.hour, self.clock.minute = divmod(minutes, 60)
        return DATE | TIME

    def _set_clock_with_offset(self, text: str, found: int) -> int:
        """Set the time and the zone from a text such as `040506-08`."""
        clock, sign, offset = text.partition("-")
        if not sign:
            raise BadFormat
        self.zone.read_offset(sign + offset)
        return self._set_run_together(clock, found) | ZONE

    def _set_label(self, label: str) -> int:
        if self._label:
            raise BadFormat
        self._label = label
        return 0

    def _set_labelled(self, text: str) -> int:
        """Set the fields from a number after `J` (Julian day) or `T` (time), and return them."""
        label, self._label = self._label, ""
        parse_int4(text.partition(".")[0])
        if label == "julian":
            return self._set_julian(text)
        if label != "time" or self._set_run_together(text, self._found | DATE) != TIME:
            raise BadFormat
        return TIME

    def _take_time_label(self) -> None:
        if self._label not in ("", "time"):
            raise BadFormat
        self._label = ""

    def _set_run_together(self, text: str, found: int) -> int:
        """Set the parts from digits without delimiters: `19990108` or, after a date, `040506` and
        `0405`.

        Args:
            found: the parts that count as already set.
        """
        digits, point, fraction = text.partition(".")
        if not digits.isdigit():
            raise BadFormat
        if point:
            self.clock.microsecond = parse_microseconds(point + fraction)
        elif found & DATE != DATE and len(digits) >= 6:
            self.year, self.month = decimal_int(digits[:-4]), int(digits[-4:-2])
            self.day = int(digits[-2:])
            self.year = _wrapped(self.year)
            self._year_has_two_digits = len(digits) == 6
            return DATE
        if found & TIME == 0 and len(digits) in (4, 6):
            self.clock.hour, self.clock.minute = int(digits[:2]), int(digits[2:4])
            self.clock.second = int(digits[4:] or "0")
            return TIME
        raise BadFormat

    def _set_number(self, text: str, found: int, has_month_name: bool) -> int:
        """Set the part that a number means.  The parts found so far decide which one it is."""
        digits, point, fraction = text.partition(".")
        if not digits:
            raise BadFormat
        value = parse_int4(digits)
        if point:
            if len(digits) > 2:
                return self._set_run_together(text, found | DATE)
            self.clock.microsecond = parse_microseconds(point + fraction)
        length = len(text)
        if length == 3 and found & DATE == YEAR and 1 <= value <= 366:
            self._day_of_year = value
            return DAY_OF_YEAR | MONTH | DAY
        parts = self._next_part(found & DATE, length, has_month_name)
        if parts == YEAR:
            if found & DATE == YEAR | MONTH:
                self.day = self.year  # `99 Jan 1999`: the number taken for the year is the day
                parts = DAY
                self._year_has_two_digits = False
            else:
                self._year_has_two_digits = length <= 2
            self.year = value
        elif parts == MONTH:
            self.month = value
        elif parts == DAY:
            self.day = value
        else:
            return self._set_run_together(text, found)
        return parts

    def _next_part(self, found: int, length: int, has_month_name: bool) -> int:
        """Return which part of a date a number is after the parts `found`; 0 for none.

        Args:
            length: the number of digits.
        """
        order = self._format.date_order
        if found == 0:
            if length >= 3 or order == "YMD":
                return YEAR
            return DAY if order == "DMY" else MONTH
        if found == MONTH:
            is_year = has_month_name and (length >= 3 or order == "YMD")
            return YEAR if is_year else DAY
        if found == YEAR | MONTH:
            swaps = has_month_name and length >= 3 and self._year_has_two_digits
            return YEAR if swaps else DAY
        return {YEAR: MONTH, DAY: MONTH, MONTH | DAY: YEAR, DATE: 0}[found]

    def _set_date(self, text: str) -> int:
        """Set a date in one field: `1999-01-08`, `8/jan/1999`."""
        found = self._found
        has_month_name = False
        numbers = []
        for part in _date_parts(text):
            if part.isdigit():
                numbers.append(part)
                continue
            meaning, value = WORDS.get(part[:WORD_LENGTH], ("", 0))
            if meaning != "month" or found & MONTH:
                raise BadFormat
            assert isinstance(value, int)
            self.month = value
            has_month_name = True
            found |= MONTH
        for number in numbers:
            parts = self._set_number(number, found, has_month_name)
            if parts & found:
                raise BadFormat
            found |= parts
        if found & ~(DAY_OF_YEAR | ZONE) != DATE:
            raise BadFormat
        return found & ~self._found

    def _check_date(self) -> None:
        """Convert years before Christ, years with two digits and the day of the year, and check the
        date.

        Raises:
            FieldOverflow, MonthDayOverflow: the date does not exist.
        """
        found = self._found
        if found & YEAR and not self._is_julian:
            self.year = self._full_year()
        if found & DAY_OF_YEAR:
            days = days_from_date(self.year, 1, 1) + self._day_of_year - 1
            self.year, self.month, self.day = date_from_days(days)
        if found & MONTH and not 1 <= self.month <= 12:
            raise MonthDayOverflow
        if found & DAY and not 1 <= self.day <= 31:
            raise MonthDayOverflow
        if found & DATE == DATE and self.day > days_of_month(self.year, self.month):
            raise FieldOverflow

    def _full_year(self) -> int:
        if self._is_bc:
            if self.year <= 0:
                raise FieldOverflow
            return 1 - self.year
        if self._year_has_two_digits:
            if self.year < 0:
                raise FieldOverflow
            return self.year + (2000 if self.year < 70 else 1900 if self.year < 100 else 0)
        if self.year <= 0:
            raise FieldOverflow
        return self.year

    def _zone_offset(self, zone: Zone) -> int:
        if not is_valid_julian(self.year, self.month):
            return 0
        seconds = self.clock.seconds
        return -zone.offset(local_seconds(self.year, self.month, self.day, seconds))

    def _set_today(self, distance: int) -> int:
        today = self._now.date().toordinal() - datetime(1970, 1, 1).toordinal()
        self.year, self.month, self.day = date_from_days(today + distance)
        return DATE

    def _set_midnight(self) -> int:
        self.clock.hour = self.clock.minute = self.clock.second = self.zone.seconds_west = 0
        return TIME | ZONE

    def _set_now(self) -> int:
        now = self._now
        self.year, self.month, self.day = now.year, now.month, now.day
        self.clock.hour, self.clock.minute, self.clock.second = now.hour, now.minute, now.second
        self.clock.microsecond = now.microsecond
        self.zone.seconds_west = self._now_west
        return TIME


def _date_parts(text: str) -> list[str]:
    """Split a date: `8-jan-1999` -> [`8`, jan, `1999`].  The character after a part is skipped."""
    parts = []
    position = 0
    while position < len(text):
        match = _DATE_PART.search(text, position)
        if match is None:
            raise BadFormat
        parts.append(match[0])
        position = match.end() + 1
    return parts


def _wrapped(year: int) -> int:
    """Return a number wrapped into 32 bits, as atoi() does."""
    return (min(year, 2**63 - 1) + 2**31) % 2**32 - 2**31
