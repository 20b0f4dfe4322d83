"""extract(), date_part(), date_trunc() and date_bin() (PostgreSQL's timestamp.c and date.c)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from replctl.adt import interval_arithmetic
from replctl.adt.datetime_arithmetic import date_to_timestamp, offset_at, zone_of
from replctl.adt.range_check import finite_timestamp, is_infinite_date, is_infinite_timestamp
from replctl.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidParameterValue
from replctl.types.date import USECS_PER_DAY, TimeTz
from replctl.types.interval import INFINITY as INTERVAL_INFINITY
from replctl.types.interval import Interval
from replctl.types.julian import UNIX_EPOCH_JULIAN, date_from_days, days_from_date
from replctl.types.timestamp import INFINITY

Part: TypeAlias = int | Decimal | None
_SECOND = 1_000_000

#: PostgreSQL's names of units: datetktbl and deltatktbl in datetime.c.
_NAMES = {
    "microseconds": "microseconds usec microsecon us usecs useconds microsecond",
    "milliseconds": "milliseconds msec millisecond ms msecs mseconds millisecon",
    "second": "second seconds sec s secs",
    "minute": "minute minutes min m mins",
    "hour": "hour hours h hr hrs",
    "day": "day days d",
    "week": "week weeks w",
    "month": "month months mon mons",
    "quarter": "quarter qtr",
    "year": "year years y yr yrs",
    "decade": "decade decades dec decs",
    "century": "century centuries c cent",
    "millennium": "millennium millennia mil mils",
    "epoch": "epoch",
    "julian": "julian jd j",
    "dow": "dow",
    "isodow": "isodow",
    "doy": "doy",
    "isoyear": "isoyear",
    "timezone": "timezone",
    "timezone_hour": "timezone_h timezone_hour",
    "timezone_minute": "timezone_m timezone_minute",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
_GROWING = frozenset(["year", "decade", "century", "millennium", "julian", "isoyear", "epoch"])
_OSCILLATING = frozenset(
    [
        "microseconds",
        "milliseconds",
        "second",
        "minute",
        "hour",
        "day",
        "month",
        "quarter",
        "week",
        "dow",
        "isodow",
        "doy",
        "timezone",
        "timezone_hour",
        "timezone_minute",
    ]
)


def _unit(name: str, type_name: str) -> str:
    folded = "".join(chr(ord(c) | 32) if "A" <= c <= "Z" else c for c in name)
    unit = _UNITS.get(folded)
    if unit is None:
        raise InvalidParameterValue(f'unit "{folded}" not recognized for type {type_name}')
    return unit


def _unit_of_length(name: str, type_name: str) -> str:
    """Return the unit for truncation; refuse units such as `dow` that are not lengths of time."""
    unit = _unit(name, type_name)
    if unit in ("epoch", "julian", "dow", "isodow", "doy", "isoyear"):
        raise InvalidParameterValue(f'unit "{name.lower()}" not recognized for type {type_name}')
    return unit


def _unsupported(unit: str, type_name: str) -> FeatureNotSupported:
    return FeatureNotSupported(f'unit "{unit}" not supported for type {type_name}')


def _decimal(value: int, digits: int) -> Decimal:
    return Decimal(value).scaleb(-digits)


def _seconds(unit: str, micros: int) -> Part:
    """Convert the microseconds since the beginning of a minute to a unit."""
    match unit:
        case "microseconds":
            return micros
        case "milliseconds":
            return _decimal(micros, 3)
    return _decimal(micros, 6)


def _iso_week(days: int) -> tuple[int, int]:
    """Return the ISO year and week of a date."""
    thursday = days - (days + 3) % 7 + 3
    year, _, _ = date_from_days(thursday)
    return year, (thursday - days_from_date(year, 1, 1)) // 7 + 1


def _ceiling(year: int, size: int) -> int:
    """Return the century or millennium of an astronomical year; there is no century 0."""
    return (year + size - 1) // size if year > 0 else -((size - 1 - (year - 1)) // size)


def _date_part(unit: str, days: int) -> Part:
    """Return a field that depends only on the date, such as week."""
    year, month, day = date_from_days(days)
    match unit:
        case "day":
            return day
        case "month":
            return month
        case "quarter":
            return (month - 1) // 3 + 1
        case "week":
            return _iso_week(days)[1]
        case "year":
            return year if year > 0 else year - 1
        case "isoyear":
            iso = _iso_week(days)[0]
            return iso if iso > 0 else iso - 1
        case "decade":
            return year // 10
        case "century":
            return _ceiling(year, 100)
        case "millennium":
            return _ceiling(year, 1000)
        case "dow":
            return (days + 4) % 7
        case "isodow":
            return (days + 3) % 7 + 1
        case "doy":
            return days - days_from_date(year, 1, 1) + 1
    return None


def _clock_part(unit: str, clock: int) -> Part:
    match unit:
        case "microseconds" | "milliseconds" | "second":
            return _seconds(unit, clock % (60 * _SECOND))
        case "minute":
            return clock // (60 * _SECOND) % 60
        case "hour":
            return clock // (3600 * _SECOND)
    return None


def _infinite(unit: str, sign: int, type_name: str) -> Part:
    if unit in _OSCILLATING:
        return None
    if unit in _GROWING:
        return Decimal("Infinity") * sign
    raise _unsupported(unit, type_name)


def extract_date(name: str, days: int) -> Part:
    unit = _unit(name, "date")
    if is_infinite_date(days):
        if unit in ["day", "month", "quarter", "week", "dow", "isodow", "doy"]:
            return None
        if unit in _GROWING:
            return Decimal("Infinity") * (1 if days > 0 else -1)
        raise _unsupported(name.lower(), "date")
    if unit == "epoch":
        return days * 86400
    if unit == "julian":
        return days + UNIX_EPOCH_JULIAN
    part = _date_part(unit, days)
    if part is None:
        raise _unsupported(name.lower(), "date")
    return part


def _extract_timestamp(type_name: str) -> Callable[[str, int], Part]:
    def extract(name: str, micros: int) -> Part:
        unit = _unit(name, type_name)
        if is_infinite_timestamp(micros):
            return _infinite(unit, 1 if micros == INFINITY else -1, type_name)
        days, clock = divmod(micros, USECS_PER_DAY)
        if unit == "epoch":
            return _decimal(micros, 6)
        if unit == "julian":
            return _julian(days, clock)
        if unit.startswith("timezone") and type_name.endswith("with time zone"):
            return 0
        part = _clock_part(unit, clock)
        if part is None:
            part = _date_part(unit, days)
        if part is None:
            raise _unsupported(name.lower(), type_name)
        return part

    return extract


def _julian(days: int, clock: int) -> Decimal:
    from replctl.adt import numeric_arithmetic

    fraction = numeric_arithmetic.divide(Decimal(clock), Decimal(USECS_PER_DAY))
    return numeric_arithmetic.FUNCTIONS["numeric_add"](Decimal(days + UNIX_EPOCH_JULIAN), fraction)  # type: ignore[no-any-return]


def _extract_time(name: str, time: int) -> Part:
    type_name = "time without time zone"
    unit = _unit(name, type_name)
    if unit == "epoch":
        return _decimal(time, 6)
    part = _clock_part(unit, time)
    if part is None:
        raise _unsupported(name.lower(), type_name)
    return part


def _extract_timetz(name: str, value: TimeTz) -> Part:
    type_name = "time with time zone"
    unit = _unit(name, type_name)
    clock, seconds_west = value
    match unit:
        case "epoch":
            return _decimal(clock + seconds_west * _SECOND, 6)
        case "timezone":
            return -seconds_west
        case "timezone_hour":
            return _truncated(-seconds_west, 3600)[0]
        case "timezone_minute":
            return _truncated(_truncated(-seconds_west, 60)[0], 60)[1]
    part = _clock_part(unit, clock)
    if part is None:
        raise _unsupported(name.lower(), type_name)
    return part


def _truncated(value: int, size: int) -> tuple[int, int]:
    quotient = abs(value) // size * (1 if value >= 0 else -1)
    return quotient, value - quotient * size


def _extract_interval(name: str, value: Interval) -> Part:
    unit = _unit(name, "interval")
    months, days, micros = value
    if interval_arithmetic.is_infinite(value):
        if unit in ["microseconds", "milliseconds", "second", "minute", "month", "quarter"]:
            return None
        if unit in ["hour", "day", "year", "decade", "century", "millennium", "epoch"]:
            return Decimal("Infinity") * (1 if value == INTERVAL_INFINITY else -1)
        raise _unsupported(name.lower(), "interval")
    years, month = _truncated(months, 12)
    hours, below_hour = _truncated(micros, 3600 * _SECOND)
    minutes, below_minute = _truncated(below_hour, 60 * _SECOND)
    match unit:
        case "microseconds" | "milliseconds" | "second":
            return _seconds(unit, below_minute)
        case "minute":
            return minutes
        case "hour":
            return hours
        case "day":
            return days
        case "month":
            return month
        case "quarter":
            return _truncated(month, 3)[0] + 1
        case "year":
            return years
        case "decade":
            return _truncated(years, 10)[0]
        case "century":
            return _truncated(years, 100)[0]
        case "millennium":
            return _truncated(years, 1000)[0]
        case "epoch":
            return interval_arithmetic.epoch(value)
    raise _unsupported(name.lower(), "interval")


def _as_numeric(function: Callable[[str, Any], Part]) -> Callable[[str, Any], Decimal | None]:
    def extract(name: str, value: Any) -> Decimal | None:
        part = function(name, value)
        return None if part is None else Decimal(part)

    return extract


def _as_float(function: Callable[[str, Any], Part]) -> Callable[[str, Any], float | None]:
    def extract(name: str, value: Any) -> float | None:
        part = function(name, value)
        return None if part is None else float(part)

    return extract


def _first_of(unit: str, year: int, month: int) -> tuple[int, int]:
    """Return the year and month in which a unit of a month or more begins."""
    match unit:
        case "month":
            return year, month
        case "quarter":
            return year, (month - 1) // 3 * 3 + 1
        case "year":
            return year, 1
        case "decade":
            return year // 10 * 10, 1
    size = 100 if unit == "century" else 1000
    return (year - 1) // size * size + 1, 1


_CLOCK_UNITS = {"microseconds": 1, "milliseconds": 1000, "second": _SECOND, "minute": 60 * _SECOND,
                "hour": 3600 * _SECOND, "day": USECS_PER_DAY}  # fmt: skip
_DATE_UNITS = ("month", "quarter", "year", "decade", "century", "millennium")


def _truncate(type_name: str) -> Callable[[str, int], int]:
    def truncate(name: str, micros: int) -> int:
        if is_infinite_timestamp(micros):
            return micros
        unit = _unit_of_length(name, type_name)
        if unit not in _CLOCK_UNITS and unit not in _DATE_UNITS and unit != "week":
            raise _unsupported(name.lower(), type_name)
        if unit in _CLOCK_UNITS:
            return micros - micros % _CLOCK_UNITS[unit]
        days = micros // USECS_PER_DAY
        if unit == "week":
            return finite_timestamp((days - (days + 3) % 7) * USECS_PER_DAY)
        year, month, _ = date_from_days(days)
        first_year, first_month = _first_of(unit, year, month)
        return finite_timestamp(days_from_date(first_year, first_month, 1) * USECS_PER_DAY)

    return truncate


def _truncate_in_zone(name: str, micros: int, zone_name: str) -> int:
    if is_infinite_timestamp(micros):
        return micros
    truncate = _truncate("timestamp with time zone")
    zone = zone_of(zone_name)
    offset = offset_at(zone, micros)
    local = truncate(name, micros + offset * _SECOND)
    if _unit(name, "") in ("microseconds", "milliseconds", "second", "minute", "hour"):
        return finite_timestamp(local - offset * _SECOND)
    return finite_timestamp(local - zone.offset(local // _SECOND) * _SECOND)


def _truncate_interval(name: str, value: Interval) -> Interval:
    if interval_arithmetic.is_infinite(value):
        return value
    unit = _unit_of_length(name, "interval")
    months, days, micros = value
    if unit not in _CLOCK_UNITS and unit not in _DATE_UNITS:
        detail = "Months usually have fractional weeks." if unit == "week" else None
        raise FeatureNotSupported(
            f'unit "{name.lower()}" not supported for type interval', detail=detail
        )
    sizes = {
        "month": 1,
        "quarter": 3,
        "year": 12,
        "decade": 120,
        "century": 1200,
        "millennium": 12000,
    }
    if unit in sizes:
        return months - _truncated(months, sizes[unit])[1], 0, 0
    if unit == "day":
        return months, days, 0
    return months, days, micros - _truncated(micros, _CLOCK_UNITS[unit])[1]


def _bin(stride: Interval, micros: int, origin: int) -> int:
    if is_infinite_timestamp(micros):
        return micros
    if is_infinite_timestamp(origin):
        raise DatetimeFieldOverflow("origin out of range")
    if interval_arithmetic.is_infinite(stride):
        raise DatetimeFieldOverflow("timestamps cannot be binned into infinite intervals")
    if stride[0]:
        raise FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    size = stride[1] * USECS_PER_DAY + stride[2]
    if size <= 0:
        raise DatetimeFieldOverflow("stride must be greater than zero")
    return finite_timestamp(micros - (micros - origin) % size)


def _interval_part(name: str, value: Interval) -> float | None:
    """Implement date_part() of an interval; compute the epoch in double precision."""
    part = _extract_interval(name, value)
    if _unit(name, "interval") != "epoch" or interval_arithmetic.is_infinite(value):
        return None if part is None else float(part)
    months, days, micros = value
    years, month = _truncated(months, 12)
    result = micros / 1000000.0
    result += 365.25 * 86400.0 * years
    result += 30.0 * 86400.0 * month
    return result + 86400.0 * days


def _parts(name: str, extract: Callable[[str, Any], Part]) -> dict[str, Callable[..., Any]]:
    return {f"extract_{name}": _as_numeric(extract), f"{name}_part": _as_float(extract)}


_WITHOUT, _WITH = "timestamp without time zone", "timestamp with time zone"

#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_parts("timestamp", _extract_timestamp(_WITHOUT)),
    **_parts("timestamptz", _extract_timestamp(_WITH)),
    **_parts("time", _extract_time),
    **_parts("timetz", _extract_timetz),
    **_parts("interval", _extract_interval),
    "interval_part": _interval_part,
    "extract_date": _as_numeric(extract_date),
    "date_part(text,date)": lambda name, days: _as_float(_extract_timestamp(_WITHOUT))(
        name, date_to_timestamp(days)
    ),
    "timestamp_trunc": _truncate(_WITHOUT),
    "timestamptz_trunc": _truncate(_WITH),
    "timestamptz_trunc_zone": _truncate_in_zone,
    "interval_trunc": _truncate_interval,
    "timestamp_bin": _bin,
    "timestamptz_bin": _bin,
}
