"""Check text settings, and return the stored form of their values: PostgreSQL's check hooks
(guc_tables.c, variable.c, namespace.c, tableam.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from replctl.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
)
from replctl.types.encoding import find_encoding
from replctl.types.identifier import ascii_lower
from replctl.types.quote import split_identifiers

_LOCALES = ("C", "POSIX", "C.UTF-8", "C.utf8")
#: The text search configurations of a new cluster; their dictionaries are named NAME_stem.
TEXT_SEARCH_CONFIGURATIONS = frozenset(
    """
    simple arabic armenian basque catalan danish dutch english finnish french german greek hindi
    hungarian indonesian irish italian lithuanian nepali norwegian portuguese romanian russian
    serbian spanish swedish tamil turkish yiddish
    """.split()
)
_INDEX_METHODS = ("btree", "hash", "gist", "gin", "spgist", "brin")
_ABBREVIATIONS = ("Default", "Australia", "India")
_WORDS = {
    "createrole_self_grant": ("set", "inherit"),
    "log_destination": ("stderr", "csvlog", "syslog", "jsonlog"),
    "restrict_nonsystem_relation_kind": ("view", "foreign-table"),
    "wal_consistency_checking": (
        "all", "heap2", "heap", "btree", "hash", "gin", "gist", "sequence", "spgist", "brin",
        "generic",
    ),
}  # fmt: skip
_LEAST_BUFFERS = 128  # kB; MIN_BAS_VAC_RING_SIZE_KB
_TABLESPACES = ("", "pg_default", "pg_global")
_INTERVAL_ZONE = re.compile(r"interval\s*'([^']*)'", re.IGNORECASE)
_HOURS = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MAX_ZONE_HOURS = 168
_MAX_ZONE_SECONDS = _MAX_ZONE_HOURS * 3600


class _Refused(Exception):
    """Raised if a check has failed; the exception's text is the DETAIL."""


def checked(name: str, text: str, current: str, reset: str) -> str:
    """Return the stored form of a text setting's value.

    Args:
        name: the setting's name in PostgreSQL's spelling.
        current: the current value, which keeps omitted parts of a date style.
        reset: the value after RESET.

    Raises:
        InvalidParameterValue: the value is not valid (22023).
        UndefinedObject, ObjectNotInPrerequisiteState, FeatureNotSupported: the value is not valid,
            and PostgreSQL has this error for it.
    """
    key = name.lower()
    try:
        if key == "datestyle":
            return date_style(text, current, reset)
        check = _CHECKS.get(key)
        return text if check is None else check(text)
    except _Refused as refused:  # its reason becomes the DETAIL
        detail = str(refused) or None
    raise InvalidParameterValue(f'invalid value for parameter "{name}": "{text}"', detail=detail)


def date_style(text: str, current: str, reset: str) -> str:
    """Return the style and the order of dates: `german` becomes `German, DMY` (check_datestyle)."""
    found: dict[str, str] = {}
    is_clear = True
    german_order = None
    for word in _items(text):
        if word == "default":
            for part, kept in zip(("style", "order"), reset.split(", "), strict=True):
                found.setdefault(part, kept)
            continue
        style, order = _style_named(word), _order_named(word)
        if style is None and order is None:
            raise _Refused(f'Unrecognized key word: "{word}".')
        part, value = ("style", style) if order is None else ("order", order)
        assert value is not None
        is_clear &= found.setdefault(part, value) == value
        if style == "German" and "order" not in found:
            german_order = "DMY"
    if not is_clear:
        raise _Refused('Conflicting "datestyle" specifications.')
    kept_style, kept_order = current.split(", ")
    return f"{found.get('style', kept_style)}, {found.get('order', german_order or kept_order)}"


def _style_named(word: str) -> str | None:
    if word.startswith("postgres"):
        return "Postgres"
    return {"iso": "ISO", "sql": "SQL", "german": "German"}.get(word)


def _order_named(word: str) -> str | None:
    if word in ("mdy", "us") or word.startswith("noneuro"):
        return "MDY"
    if word == "dmy" or word.startswith("euro"):
        return "DMY"
    return "YMD" if word == "ymd" else None


def _items(text: str) -> list[str]:
    """Return the words of a list in lower case."""
    words = split_identifiers(text)
    if words is None:
        raise _Refused("List syntax is invalid.")
    return [ascii_lower(word) for word in words]


def _words_of(key: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        for word in _items(text):
            if word not in _WORDS[key]:
                raise _Refused(f'Unrecognized key word: "{word}".')
        return text

    return check


def _encoding(text: str) -> str:
    """Return the name of an encoding: `utf-8` becomes `UTF8` (check_client_encoding)."""
    found = find_encoding(text)
    if found is None:
        raise _Refused
    if found in ("MULE_INTERNAL", "EUC_TW"):
        raise FeatureNotSupported(
            f'invalid value for parameter "client_encoding": "{text}"',
            detail=f"Conversion between {found} and UTF8 is not supported.",
        )
    return found


def _table_access_method(text: str) -> str:
    if not text:
        raise _Refused('"default_table_access_method" cannot be empty.')
    if text in _INDEX_METHODS:
        raise ObjectNotInPrerequisiteState(f'access method "{text}" is not of type TABLE')
    if text != "heap":
        raise _Refused(f'Table access method "{text}" does not exist.')
    return text


def _tablespace(text: str) -> str:
    if text not in _TABLESPACES:
        raise _Refused(f'Tablespace "{text}" does not exist.')
    return text


def _tablespaces(text: str) -> str:
    for name in split_identifiers(text) or ():
        if name not in _TABLESPACES:
            raise UndefinedObject(f'tablespace "{name}" does not exist')
    return text


def _text_search_configuration(text: str) -> str:
    name = text.removeprefix("pg_catalog.")
    if name not in TEXT_SEARCH_CONFIGURATIONS:
        raise _Refused
    return f"pg_catalog.{name}"


def _locale(text: str) -> str:
    """Check that a name means replctl's only locale; "" is the environment's locale."""
    if text not in ("", *_LOCALES):
        raise _Refused
    return text


def _named_locale(text: str) -> str:
    if not text:
        raise _Refused
    return _locale(text)


def _abbreviations(text: str) -> str:
    if text not in _ABBREVIATIONS:
        raise _Refused
    return text


def _time_zone(text: str) -> str:
    """Return the name of a zone: `australia/sydney` becomes `Australia/Sydney` (check_timezone)."""
    if text[:8].lower() == "interval":
        return _offset_zone(_interval_seconds(text))
    if _HOURS.fullmatch(text):
        return _offset_zone(int(min(max(float(text), -_MAX_ZONE_HOURS), _MAX_ZONE_HOURS) * 3600))
    return _log_time_zone(text)


def _interval_seconds(text: str) -> int:
    from replctl.types.text import parse  # few commands need it

    match = _INTERVAL_ZONE.fullmatch(text)
    if match is None:
        raise _Refused
    interval: Any = parse("interval", match[1])
    months, days, micros = interval
    if months:
        raise _Refused("Cannot specify months in time zone interval.")
    if days:
        raise _Refused("Cannot specify days in time zone interval.")
    return int(micros / 1_000_000)


def _offset_zone(seconds_east: int) -> str:
    """Return the name of a zone with an offset: 36000 becomes `<+10>-10` (pg_tzset_offset)."""
    if abs(seconds_east) >= _MAX_ZONE_SECONDS:
        raise _Refused("UTC timezone offset is out of range.")
    from replctl.types.date import utc_offset  # few commands need it

    shown = utc_offset(seconds_east)
    return f"<{shown}>{'+' if seconds_east < 0 else '-'}{shown[1:]}"


def _log_time_zone(text: str) -> str:
    from replctl.types.timezone import proper_name

    found = proper_name(text)
    if found is None:
        raise _Refused
    return found


def _function_names(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_, \n\t]*", text):
        raise _Refused("Invalid character")
    return text


def checked_number(name: str, value: str) -> str:
    """Check a number in the setting's unit, and return it.

    Raises:
        InvalidParameterValue: the setting does not allow it (22023).
    """
    if name == "vacuum_buffer_usage_limit" and 0 < int(value) < _LEAST_BUFFERS:
        raise InvalidParameterValue(
            f'invalid value for parameter "{name}": {value}',
            detail=f'"{name}" must be 0 or between 128 kB and 16777216 kB',
        )
    return value


_CHECKS: dict[str, Callable[[str], str]] = {
    **{key: _words_of(key) for key in _WORDS},
    "backtrace_functions": _function_names,
    "client_encoding": _encoding,
    "default_table_access_method": _table_access_method,
    "default_tablespace": _tablespace,
    "default_text_search_config": _text_search_configuration,
    "lc_messages": _named_locale,
    "lc_monetary": _locale,
    "lc_numeric": _locale,
    "lc_time": _locale,
    "log_timezone": _log_time_zone,
    "temp_tablespaces": _tablespaces,
    "timezone": _time_zone,
    "timezone_abbreviations": _abbreviations,
}
