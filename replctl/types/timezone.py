"""Time zones in literals: abbreviations, names of the tz database, and POSIX specifications.

Abbreviations are those of PostgreSQL's timezone_abbreviations = Default.
`.ci/generate_timezone_abbreviations.py` reads them from a server into
data/timezone_abbreviation.tsv.  Names come from zoneinfo.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Protocol

from replctl.record import dataclass
from replctl.types.integer import decimal_int
from replctl.types.julian import date_from_days, days_from_date

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_POSIX_OFFSET = r"([+-]?)(\d+)(?:(?!:)|:(\d+)(?:(?!:)|:(\d+)))"
_POSIX_NAME = r"<([^>]*)>|([^\d,+<-][^\d,+-]*)"
_POSIX = re.compile(
    rf"(?:{_POSIX_NAME}|){_POSIX_OFFSET}"
    rf"(?:(?:{_POSIX_NAME})(?:{_POSIX_OFFSET})?(?:[,;]([^,]+),([^,]+))?)?",
    re.ASCII,
)
_POSIX_RULE = re.compile(
    rf"(?:M(\d+)\.(\d+)\.(\d+)|(J?)(\d+))(?:/{_POSIX_OFFSET})?", re.ASCII | re.IGNORECASE
)
_MAX_POSIX_HOURS = 24 * 7 - 1
_DAY = 86400


class Zone(Protocol):
    """A zone whose offset may depend on the time."""

    def offset(self, local_seconds: int) -> int:
        """Return the offset in seconds east of UTC at a local time.

        A local time that the clock skips has the offset before the gap.  A time that occurs twice
        has the later offset.

        Args:
            local_seconds: seconds since 1970-01-01 00:00 of the local clock.
        """
        ...

    @property
    def fixed_offset(self) -> int | None:
        """Return the offset in seconds east of UTC if it is constant; else None."""
        ...


class NamedZone(Zone, Protocol):
    """A zone that a session can have, because its local time can be computed from UTC."""

    def at(self, utc_seconds: int) -> tuple[int, str]:
        """Return the offset and the abbreviation at a time, given in seconds since 1970 in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class FixedZone:
    """A zone with a constant offset, such as `UTC+3`, which is three hours west."""

    seconds_east: int
    name: str = ""

    def offset(self, local_seconds: int) -> int:
        return self.seconds_east

    def at(self, utc_seconds: int) -> tuple[int, str]:
        return self.seconds_east, self.name

    @property
    def fixed_offset(self) -> int | None:
        return self.seconds_east


@dataclass(frozen=True, slots=True)
class YearlyRule:
    """A time that recurs each year: `M3.2.0/2`, `J60`, `59` (tzparse() in localtime.c).

    Attributes:
        month: the month; 0 if `day` is a day of the year.
        week: the week of the month; 5 is the last one.
        day: the day of the week, 0 for Sunday; or the day of the year, from 1 if `is_julian`, else
            from 0.
        is_julian: the day of the year does not count February 29.
        seconds: the time of day in seconds.
    """

    month: int
    week: int
    day: int
    is_julian: bool
    seconds: int

    def at(self, year: int) -> int:
        """Return the time in a year, in seconds since 1970-01-01 00:00 of the local clock before
        the change.
        """
        if not self.month:
            days = days_from_date(year, 1, 1) + self.day - self.is_julian
            is_leap = days_from_date(year, 3, 1) - days_from_date(year, 2, 1) == 29
            days += self.is_julian and is_leap and self.day >= 60
            return days * _DAY + self.seconds
        first = days_from_date(year, self.month, 1)
        next_month = (year + self.month // 12, self.month % 12 + 1, 1)
        days = first + (self.day - first - 4) % 7 + 7 * (self.week - 1)
        if days >= days_from_date(*next_month):
            days -= 7
        return days * _DAY + self.seconds


@dataclass(frozen=True, slots=True)
class PosixZone:
    """A zone such as `foo5bar` or `AEST-10AEDT,M10.1.0,M4.1.0/3`.  Daylight saving time lasts from
    `start` to `end` of each year; without rules, from the second Sunday of March to the first
    Sunday of November (TZDEFRULESTRING).
    """

    standard: int  # seconds east
    daylight: int
    start: YearlyRule
    end: YearlyRule
    names: tuple[str, str] = ("", "")  # of standard and of daylight saving time

    def at(self, utc_seconds: int) -> tuple[int, str]:
        year, _, _ = date_from_days((utc_seconds + self.standard) // _DAY)
        start, end = self.start.at(year) - self.standard, self.end.at(year) - self.daylight
        if start < end:
            is_daylight = start <= utc_seconds < end
        else:
            is_daylight = not end <= utc_seconds < start
        return (self.daylight if is_daylight else self.standard), self.names[is_daylight]

    def offset(self, local_seconds: int) -> int:
        year, _, _ = date_from_days(local_seconds // _DAY)
        step = self.daylight - self.standard
        start, end = self.start.at(year), self.end.at(year)
        if step > 0:
            start, end = start + step, end - step
        if start < end:
            return self.daylight if start <= local_seconds < end else self.standard
        return self.standard if end <= local_seconds < start else self.daylight

    @property
    def fixed_offset(self) -> int | None:
        return self.standard if self.standard == self.daylight else None


@dataclass(frozen=True, slots=True)
class RegionZone:
    """A zone of the tz database, such as `America/New_York`."""

    info: ZoneInfo

    def offset(self, local_seconds: int) -> int:
        days, seconds = divmod(local_seconds, _DAY)
        year, month, day = date_from_days(days)
        if year < 1:  # long before the first transition
            year, month, day = 1, 1, 1
        elif year > 9998:  # the last rules repeat in 400 years
            year = 9598 + (year - 9598) % 400
        clock = datetime(year, month, day) + timedelta(seconds=seconds)
        # fold=0 gives the offset before a transition, fold=1 the offset after it.  The first is
        # smaller in a gap, the second in an overlap.
        offsets = (
            clock.replace(tzinfo=self.info, fold=0).utcoffset(),
            clock.replace(tzinfo=self.info, fold=1).utcoffset(),
        )
        return min(int(offset.total_seconds()) for offset in offsets if offset is not None)

    def at(self, utc_seconds: int) -> tuple[int, str]:
        days, seconds = divmod(utc_seconds, _DAY)
        year, month, day = date_from_days(days)
        if year < 1 or (year, month, day) == (1, 1, 1):  # long before the first transition
            year, month, day = 1, 1, 2
        elif year > 9998:  # the last rules repeat in 400 years
            year = 9598 + (year - 9598) % 400
        utc = datetime(year, month, day, tzinfo=self.info) + timedelta(seconds=seconds)
        local = self.info.fromutc(utc)
        offset = local.utcoffset()
        assert offset is not None
        return int(offset.total_seconds()), local.tzname() or ""

    @property
    def fixed_offset(self) -> int | None:
        offset = self.info.utcoffset(None)
        return None if offset is None else int(offset.total_seconds())


@dataclass(frozen=True, slots=True)
class SteppedZone:
    """The zone of an abbreviation such as `MSK`, whose offset changed at certain local times."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]  # one more item than starts

    def offset(self, local_seconds: int) -> int:
        return self.offsets[bisect_right(self.starts, local_seconds)]

    @property
    def fixed_offset(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """The meaning of an abbreviation.  `is_dst` means daylight saving time; `zone` is a FixedZone
    if the offset is constant.
    """

    is_dst: bool
    zone: Zone


def abbreviation(word: str) -> Abbreviation | None:
    """Return the meaning of an abbreviation such as `est`, given in lower case; None if it has
    none.  Only its first ten characters count (TOKMAXLEN in datetime.h).
    """
    row = _abbreviations().get(word[:10])
    if row is None:
        return None
    is_dst, meaning = row
    if meaning.lstrip("-").isdigit():
        return Abbreviation(is_dst, FixedZone(int(meaning)))
    if "," in meaning:
        first, *steps = meaning.split(",")
        pairs = [tuple(map(int, step.split(":"))) for step in steps]
        starts, offsets = zip(*pairs, strict=True)
        return Abbreviation(is_dst, SteppedZone(starts, (int(first), *offsets)))
    return Abbreviation(is_dst, RegionZone(_zone_info(meaning)))


#: Zones that became links in release 2024b of the tz database.  They are links here even if the
#: local database is older.
_LINKS = {
    "cet": "Europe/Brussels",
    "cst6cdt": "America/Chicago",
    "eet": "Europe/Athens",
    "est": "America/Panama",
    "est5edt": "America/New_York",
    "hst": "Pacific/Honolulu",
    "met": "Europe/Brussels",
    "mst": "America/Phoenix",
    "mst7mdt": "America/Denver",
    "pst8pdt": "America/Los_Angeles",
    "wet": "Europe/Lisbon",
}


def zone_named(name: str) -> NamedZone | None:
    """Return the zone of a name such as `america/new_york` or `utc+3`; None if there is none.

    Args:
        name: the name in lower case.
    """
    proper = _LINKS.get(name) or _proper_names().get(name)
    if proper is not None:
        return RegionZone(_zone_info(proper))
    return _posix_zone(name)


def proper_name(text: str) -> str | None:
    """Return PostgreSQL's spelling of a zone's name; None if there is no such zone (pg_tzset).

    `australia/sydney` becomes `Australia/Sydney`, and `foo5bar` becomes `FOO5BAR`.
    """
    known = _proper_names().get(text.lower())
    if known is not None:
        return known
    return None if _posix_zone(text) is None else text.upper()


def _posix_zone(name: str) -> NamedZone | None:
    match = _POSIX.fullmatch(name)
    if match is None:
        return None
    groups = match.groups()
    standard = _posix_seconds_east(groups[2:6])
    first_name = (groups[0] or groups[1] or "").upper()
    daylight_name = groups[6] or groups[7]
    if standard is None or not daylight_name:
        return None if standard is None else FixedZone(standard, first_name)
    daylight = standard + 3600 if groups[9] is None else _posix_seconds_east(groups[8:12])
    start, end = _yearly_rule(groups[12] or "M3.2.0"), _yearly_rule(groups[13] or "M11.1.0")
    if daylight is None or start is None or end is None:
        return None
    return PosixZone(standard, daylight, start, end, (first_name, daylight_name.upper()))


def _yearly_rule(text: str) -> YearlyRule | None:
    match = _POSIX_RULE.fullmatch(text)
    if match is None:
        return None
    month, week, weekday, julian, day, *clock = match.groups()
    west = -7200 if clock[1] is None else _posix_seconds_east(tuple(clock))
    if west is None:
        return None
    if month is None:
        is_julian = bool(julian)
        is_right = is_julian <= int(day) <= 365
        return YearlyRule(0, 0, int(day), is_julian, -west) if is_right else None
    is_right = 1 <= int(month) <= 12 and 1 <= int(week) <= 5 and int(weekday) <= 6
    return YearlyRule(int(month), int(week), int(weekday), False, -west) if is_right else None


def local_seconds(year: int, month: int, day: int, seconds_of_day: int) -> int:
    """Return a local time as seconds since 1970-01-01 00:00 of the same local clock."""
    return days_from_date(year, month, day) * _DAY + seconds_of_day


def _posix_seconds_east(groups: tuple[str | None, ...]) -> int | None:
    """Return the seconds east of UTC of a POSIX offset, which counts westwards; None if a number is
    out of range.

    (`-`, `3`, `30`, None) -> 12600
    """
    sign = 1 if groups[0] == "-" else -1
    hours, minutes, seconds = (decimal_int(number or "") for number in groups[1:])
    if hours > _MAX_POSIX_HOURS or minutes > 59 or seconds > 60:
        return None
    return sign * (hours * 3600 + minutes * 60 + seconds)


@cache
def _abbreviations() -> dict[str, tuple[bool, str]]:
    from importlib.resources import files  # most literals have no abbreviation

    text = (files("replctl.types") / "data" / "timezone_abbreviation.tsv").read_text("ascii")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {abbrev.lower()[:10]: (is_dst == "t", meaning) for abbrev, is_dst, meaning in rows}


@cache
def _proper_names() -> dict[str, str]:
    from zoneinfo import available_timezones

    return {name.lower(): name for name in available_timezones() if name != "localtime"}


@cache
def _zone_info(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)
