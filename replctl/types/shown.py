"""Print values according to a session's settings, if these are not canonical (EncodeDateOnly,
EncodeDateTime and EncodeInterval in datetime.c; byteaout, float8out).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.types import text as type_text
from replctl.types.array_ import array_form
from replctl.types.date import utc_offset
from replctl.types.ranges import shown_range
from replctl.types.text_form import TextForm
from replctl.types.value_format import CANONICAL, ValueFormat

_DAY = 86_400_000_000
_SECOND = 1_000_000
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_FLOAT_DIGITS = {"float4": 6, "float8": 15}
#: Composed types that can only be shown in canonical form, and the types of their parts.
_COMPOSED = {
    **dict.fromkeys("point lseg box path polygon line circle".split(), ("float8",)),
    "record": ("timestamptz", "date", "interval", "bytea", "float8"),
}
_RANGES = {
    "daterange": "date",
    "datemultirange": "date",
    "tsrange": "timestamp",
    "tsmultirange": "timestamp",
    "tstzrange": "timestamptz",
    "tstzmultirange": "timestamptz",
}


def shown(type_name: str, text: str, value_format: ValueFormat) -> str:
    """Return a value in the output format of a session.

    Args:
        type_name: the catalog name of the value's type.
        text: the canonical text of the value.

    Raises:
        FeatureNotSupported: the format is not supported inside values of a composed type (0A000).
    """
    if value_format == CANONICAL:
        return text
    render = _renderer(type_name, value_format)
    return text if render is None else render(type_text.parse(type_name, text))


def depends(type_name: str, value_format: ValueFormat) -> bool:
    """Return whether a session may show values of a type in a format that is not canonical."""
    if value_format == CANONICAL:
        return False
    try:
        return _renderer(type_name, value_format) is not None
    except FeatureNotSupported:  # `shown` then reports it
        return True


def _renderer(type_name: str, value_format: ValueFormat) -> Callable[[Any], str] | None:
    """Return the output function of a type; None if it is the canonical one."""
    match type_name:
        case "date" if value_format.date_style != "ISO":
            return lambda value: _date(value, value_format)
        case "timestamp" if value_format.date_style != "ISO":
            return lambda value: _timestamp(value, value_format)
        case "timestamptz" if value_format.date_style != "ISO" or not value_format.is_utc:
            return lambda value: _timestamptz(value, value_format)
        case "interval" if value_format.interval_style != "postgres":
            return _INTERVALS[value_format.interval_style]
        case "bytea" if value_format.bytea_output == "escape":
            return _escaped
        case "float4" | "float8" if value_format.float_digits < 1:
            digits = max(_FLOAT_DIGITS[type_name] + value_format.float_digits, 1)
            return lambda value: _float(value, digits)
    if type_name.startswith("_"):
        return _array_renderer(type_name[1:], value_format)
    if type_name in _RANGES:
        write = _renderer(_RANGES[type_name], value_format)
        return None if write is None else lambda text: shown_range(type_name, text, write)
    if any(_renderer(part, value_format) is not None for part in _COMPOSED.get(type_name, ())):
        raise FeatureNotSupported(
            f"type {type_name} is not supported with this {_setting(value_format)}"
        )
    return None


def _array_renderer(element: str, value_format: ValueFormat) -> Callable[[Any], str] | None:
    render = _renderer(element, value_format)
    if render is None:
        return None
    shown_form = TextForm(lambda item, typmod, now: type_text.parse(element, item), render)
    array: Callable[[Any], str] = array_form(shown_form, ",").render
    return array


def _setting(value_format: ValueFormat) -> str:
    """Return the name of a setting whose value is not that of canonical text."""
    if not value_format.is_utc:
        return "TimeZone"
    if value_format.date_style != "ISO":
        return "DateStyle"
    if value_format.interval_style != "postgres":
        return "IntervalStyle"
    return "bytea_output" if value_format.bytea_output != "hex" else "extra_float_digits"


# ---------------------------------------------------------------------------------------------
# Dates and times


def _date(value: int, value_format: ValueFormat) -> str:
    text = type_text.render("date", value)
    if text in ("infinity", "-infinity"):
        return text
    date, _, era = text.partition(" ")
    return _styled_date(date, value_format) + (f" {era}" if era else "")


def _styled_date(iso: str, value_format: ValueFormat) -> str:
    """Return a date in another style: `1999-01-08` becomes `01/08/1999` for SQL, MDY."""
    year, month, day = iso.split("-")
    if value_format.date_style == "German":
        return f"{day}.{month}.{year}"
    mark = "/" if value_format.date_style == "SQL" else "-"
    first = (day, month) if value_format.date_order == "DMY" else (month, day)
    return mark.join((*first, year))


def _timestamp(value: int, value_format: ValueFormat) -> str:
    return _styled(value, value_format, "")


def _timestamptz(value: int, value_format: ValueFormat) -> str:
    if type_text.render("timestamptz", value) in ("infinity", "-infinity"):
        return type_text.render("timestamptz", value)
    offset, abbreviation = value_format.time_zone.at(value // _SECOND)
    zone = utc_offset(offset)
    if value_format.date_style != "ISO":
        zone = f" {abbreviation[:10]}"
    return _styled(value + offset * _SECOND, value_format, zone)


def _styled(local: int, value_format: ValueFormat, zone: str) -> str:
    """Return a local time in the session's style, with its zone."""
    text = type_text.render("timestamp", local)
    if text in ("infinity", "-infinity"):
        return text
    date, clock, *era = text.split(" ")
    if value_format.date_style == "ISO":
        shown_time = f"{date} {clock}{zone}"
    elif value_format.date_style == "Postgres":
        year, month, day = date.split("-")
        name = _MONTHS[int(month) - 1]
        order = f"{day} {name}" if value_format.date_order == "DMY" else f"{name} {day}"
        shown_time = f"{_DAYS[local // _DAY % 7]} {order} {clock} {year}{zone}"
    else:
        shown_time = f"{_styled_date(date, value_format)} {clock}{zone}"
    return " ".join((shown_time, *era))


# ---------------------------------------------------------------------------------------------
# Intervals


def _interval_parts(value: Any) -> tuple[int, int, int, int, int, int, int]:
    """Return years, months, days, hours, minutes, seconds and microseconds, each with its sign."""
    months, days, micros = value
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    clock_sign = -1 if micros < 0 else 1
    seconds, micros = divmod(abs(micros), _SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    clock = (clock_sign * part for part in (hours, minutes, seconds, micros))
    return (sign * years, sign * months, days, *clock)


def _finite(encode: Callable[..., str]) -> Callable[[Any], str]:
    def render(value: Any) -> str:
        text = type_text.render("interval", value)
        return text if text in ("infinity", "-infinity") else encode(*_interval_parts(value))

    return render


def _seconds(seconds: int, micros: int, *, filled: bool) -> str:
    """Print seconds: (5, 500000) becomes `05.5` or `5.5` (AppendSeconds)."""
    whole = f"{abs(seconds):02}" if filled else str(abs(seconds))
    return f"{whole}.{abs(micros):06}".rstrip("0") if micros else whole


def _verbose(
    years: int, months: int, days: int, hours: int, minutes: int, seconds: int, micros: int
) -> str:
    """Return `@ 1 year 2 mons -3 days 4 hours ago`."""
    named = ((years, "year"), (months, "mon"), (days, "day"), (hours, "hour"), (minutes, "min"))
    text, is_before, is_zero = "@", False, True
    for number, unit in named:
        if not number:
            continue
        if is_zero:
            is_before = number < 0
            number = abs(number)
        elif is_before:
            number = -number
        text += f" {number} {unit}{'' if number == 1 else 's'}"
        is_zero = False
    if seconds or micros:
        is_negative = seconds < 0 or micros < 0
        is_before |= is_negative and is_zero
        sign = "-" if is_negative is not is_before else ""
        plural = "s" if abs(seconds) != 1 or micros else ""
        text += f" {sign}{_seconds(seconds, micros, filled=False)} sec{plural}"
        is_zero = False
    return text + (" 0" if is_zero else "") + (" ago" if is_before else "")


def _sql_standard(
    years: int, months: int, days: int, hours: int, minutes: int, seconds: int, micros: int
) -> str:
    """Return `1-2`, `3 4:05:06` or `+1-2 -3 +4:05:06`."""
    parts = (years, months, days, hours, minutes, seconds, micros)
    has_negative, has_positive = any(n < 0 for n in parts), any(n > 0 for n in parts)
    has_months, has_clock = bool(years or months), any(parts[2:])
    if not (has_negative or has_positive):
        return "0"
    clock = f"{abs(hours)}:{abs(minutes):02}:{_seconds(seconds, micros, filled=True)}"
    if (has_negative and has_positive) or (has_months and has_clock):
        signs = (
            "-" if any(n < 0 for n in group) else "+"
            for group in (parts[:2], parts[2:3], parts[3:])
        )
        year_sign, day_sign, clock_sign = signs
        return f"{year_sign}{abs(years)}-{abs(months)} {day_sign}{abs(days)} {clock_sign}{clock}"
    sign = "-" if has_negative else ""
    if has_months:
        return f"{sign}{abs(years)}-{abs(months)}"
    return f"{sign}{abs(days)} {clock}" if days else sign + clock


def _iso_8601(
    years: int, months: int, days: int, hours: int, minutes: int, seconds: int, micros: int
) -> str:
    """Return `P1Y2M-3DT4H5M6S`."""
    date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if seconds or micros:
        sign = "-" if seconds < 0 or micros < 0 else ""
        clock += f"{sign}{_seconds(seconds, micros, filled=False)}S"
    if not date and not clock:
        return "PT0S"
    return f"P{date}T{clock}" if clock else f"P{date}"


_INTERVALS = {
    "postgres_verbose": _finite(_verbose),
    "sql_standard": _finite(_sql_standard),
    "iso_8601": _finite(_iso_8601),
}


# ---------------------------------------------------------------------------------------------
# bytea and floats


def _escaped(value: bytes) -> str:
    r"""Print bytes with escapes: b"a\\\x00" becomes `a\\\000`."""
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
        for byte in value
    )


def _float(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return type_text.render("float8", value)
    return f"{value:.{digits}g}"
