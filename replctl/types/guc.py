"""The settings of a PostgreSQL server: their types, units, ranges and contexts, and the input and
output of their values (guc_tables.c, guc.c).

The rows come from a PostgreSQL 17 server (`.ci/generate_types.py`).  This module adds defaults that
differ in replctl, and replctl's own settings.  Values are in the setting's own unit, as in
pg_settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf, isinf

from replctl.errors import (
    InsufficientPrivilege,
    InvalidName,
    InvalidParameterValue,
    Notice,
    UndefinedObject,
)
from replctl.record import dataclass
from replctl.types.builtin import builtin_rows
from replctl.types.guc_check import checked, checked_number
from replctl.types.guc_rule import check_supported
from replctl.types.identifier import clipped_with_notice
from replctl.types.quote import split_identifiers

#: Defaults that differ from a server's built-in defaults.
_DEFAULTS = {
    "application_name": "replctl",
    "client_encoding": "UTF8",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "log_timezone": "UTC",
    "server_encoding": "UTF8",
    "server_version": "17.0",
    "server_version_num": "170000",
    "timezone": "UTC",
    "timezone_abbreviations": "Default",
    "wal_level": "logical",
}

#: Values of enumerations that are accepted but not listed.
_HIDDEN = {
    "client_min_messages": {"debug": "debug2", "info": "info"},
    "wal_level": {"archive": "replica", "hot_standby": "replica"},
}
_SWITCH = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}

#: Settings that are lists (GUC_LIST_INPUT), and those whose items are names, which are quoted
#: (GUC_LIST_QUOTE).
_LISTS = frozenset(
    {
        "createrole_self_grant", "datestyle", "debug_io_direct", "listen_addresses",
        "log_destination", "restrict_nonsystem_relation_kind", "synchronized_standby_slots",
        "synchronous_standby_names", "wal_consistency_checking",
    }
)  # fmt: skip
_NAME_LISTS = frozenset(
    {
        "local_preload_libraries", "search_path", "session_preload_libraries",
        "shared_preload_libraries", "temp_tablespaces", "unix_socket_directories",
    }
)  # fmt: skip

#: Settings that change the role; pg_settings does not have them.
ROLE_SETTINGS = ("role", "session_authorization")

#: Names, which are truncated like identifiers (GUC_IS_NAME).
_NAMES = (
    "application_name", "client_encoding", "default_table_access_method", "server_encoding",
)  # fmt: skip
_ASCII = ("application_name", "cluster_name")

_MEMORY = {"TB": 2**40, "GB": 2**30, "MB": 2**20, "kB": 2**10, "B": 1}
_TIME = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000,
         "ms": 1000, "us": 1}  # fmt: skip
_NUMBER = re.compile(
    r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))\s*(.*)",
    re.ASCII | re.DOTALL,
)
_LETTER = r"[^\x00-@\[-^`{-\x7f]"  # or _; compiling a class up to U+10FFFF takes longer
_WORD = rf"{_LETTER}[^\x00-#%-/:-@\[-^`{{-\x7f]*"
_CUSTOM_NAME = re.compile(rf"{_WORD}(?:\.{_WORD})+")
_MAX_INT, _MIN_INT = 2**31 - 1, -(2**31)


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of pg_settings, without the session's value.

    Attributes:
        context: who may change the setting, and when: internal, postmaster, sighup,
            superuser-backend, backend, superuser, user.
        boot_value: the default.
        minimum, maximum: the bounds of numbers, else "".
        values: the values of an enumeration, else ().
        compiled_value: PostgreSQL's default, if replctl has another one.
    """

    name: str
    type: str
    context: str
    boot_value: str
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    category: str = "Customized Options"
    description: str = ""
    extra_description: str = ""
    values: tuple[str, ...] = ()
    compiled_value: str | None = None

    @property
    def key(self) -> str:
        """Return the name for look-ups, in lower case."""
        return self.name.lower()

    @property
    def official_name(self) -> str:
        """Return the name in PostgreSQL's spelling, such as TimeZone."""
        return settings().get(self.key, self).name

    @property
    def is_list(self) -> bool:
        """Return whether the setting accepts a list of values."""
        return self.key in _LISTS or self.key in _NAME_LISTS

    @property
    def is_name_list(self) -> bool:
        """Return whether the setting is a list of names, which are quoted as identifiers."""
        return self.key in _NAME_LISTS


#: The prefix of replctl's own settings, which users cannot give to theirs (MarkGUCPrefixReserved).
_RESERVED_PREFIX = "replctl"

#: The setting that confirms that no other program writes the tables on S3.
SINGLE_WRITER = "replctl.s3_single_writer"

#: replctl's own settings.
_OWN = (
    Setting(
        "replctl.max_batch_changes",
        "integer",
        "user",
        str(10_000_000),
        "",
        "0",
        str(_MAX_INT),
        "Replication / Subscribers",
        "Maximum number of changed rows that a subscription decodes and applies together.",
        "A transaction that changes more rows is applied alone. Zero: no limit.",
    ),
    Setting(
        "replctl.max_query_memory",
        "integer",
        "user",
        str(512 * 1024),
        "kB",
        str(16 * 1024),
        str(_MAX_INT),
        "Resource Usage / Memory",
        "Maximum memory of a statement in replctl's own process.",
        "Spark has its own properties for its memory.",
    ),
    Setting(
        SINGLE_WRITER,
        "bool",
        "user",
        "off",
        category="Replication / Subscribers",
        description="Write tables on S3 although Delta does not exclude other writers there.",
        extra_description="Turn it on only if no other program writes these tables.",
    ),
    Setting(
        "replctl.small_table_rows",
        "integer",
        "user",
        "1000",
        "",
        "0",
        str(_MAX_INT),
        "Query Tuning",
        "Read tables with at most this many rows, and write at most this many rows, without Spark.",
        "Zero: Spark reads and writes all tables.",
    ),
    Setting(
        "replctl.vacuum_retention",
        "integer",
        "superuser",
        str(7 * 86400),
        "s",
        "0",
        str(_MAX_INT),
        "Replication",
        "VACUUM keeps the versions of this time span, so that other programs can read them.",
    ),
)


#: Settings that SHOW ALL and pg_settings omit (GUC_NO_SHOW_ALL).
UNLISTED = {
    "default_with_oids": Setting("default_with_oids", "bool", "user", "off"),
    "is_superuser": Setting("is_superuser", "bool", "internal", "off"),
    "seed": Setting("seed", "real", "user", "0", minimum="-1", maximum="1"),
}


@cache
def settings() -> dict[str, Setting]:
    """Return all settings by lower-case name, sorted by name."""
    found = {row["name"].lower(): _setting(row) for row in builtin_rows("pg_settings")}
    for name, value in _DEFAULTS.items():
        setting = found[name]
        compiled = None if name.startswith("server_version") else setting.boot_value
        found[name] = replace(setting, boot_value=value, compiled_value=compiled)
    found |= {setting.key: setting for setting in _OWN}
    return dict(sorted(found.items()))


def _setting(row: dict[str, str]) -> Setting:
    return Setting(
        row["name"],
        row["vartype"],
        row["context"],
        row["boot_val"],
        row["unit"],
        row["min_val"],
        row["max_val"],
        row["category"],
        row["short_desc"],
        row["extra_desc"],
        tuple(row["enumvals"].split(",")) if row["enumvals"] else (),
    )


def find_setting(name: str) -> Setting:
    """Return the setting of that name.  Users may define settings whose names have a point.

    Raises:
        UndefinedObject: there is no such setting (42704).
        InvalidName: the name has a point, but is not valid for a user's setting (42602), or has the
            prefix of replctl's own settings.
    """
    known = settings().get(name.lower()) or UNLISTED.get(name.lower())
    if known is not None:
        return known
    if "." not in name:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    if not _CUSTOM_NAME.fullmatch(name):
        raise InvalidName(
            f'invalid configuration parameter name "{name}"',
            detail="Custom parameter names must be two or more simple identifiers separated by"
            " dots.",
        )
    prefix, _, _ = name.partition(".")
    if prefix.lower() == _RESERVED_PREFIX:
        raise InvalidName(
            f'invalid configuration parameter name "{name}"',
            detail=f'"{prefix}" is a reserved prefix.',
        )
    return Setting(name, "string", "user", "")


def find_written_setting(name: str) -> Setting:
    """Return the setting of that name, with the name as a statement has written it, for errors.

    Raises:
        UndefinedObject, InvalidName: see `find_setting`.
    """
    return replace(find_setting(name), name=name)


def is_custom(setting: Setting) -> bool:
    """Return whether a user has made up a setting."""
    return setting.key not in settings() and setting.key not in UNLISTED


#: Settings that reveal files and secrets of the server (GUC_SUPERUSER_ONLY in guc_tables.c).
_FOR_READERS_OF_ALL = frozenset(
    (
        "config_file", "data_directory", "dynamic_library_path", "external_pid_file", "hba_file",
        "ident_file", "jit_provider", "krb_server_keyfile", "log_directory", "log_filename",
        "primary_conninfo", "session_preload_libraries", "shared_preload_libraries",
        "ssl_ciphers", "ssl_dh_params_file", "ssl_ecdh_curve", "ssl_max_protocol_version",
        "ssl_min_protocol_version", "ssl_passphrase_command", "unix_socket_directories",
    )
)  # fmt: skip


def is_readable(setting: Setting, *, reads_all: bool) -> bool:
    """Return whether a role may see the value of a setting."""
    return reads_all or setting.key not in _FOR_READERS_OF_ALL


def check_readable(setting: Setting, *, reads_all: bool) -> None:
    """Check that a role may see the value of a setting.

    Raises:
        InsufficientPrivilege: the role may not see it (42501).
    """
    if not is_readable(setting, reads_all=reads_all):
        raise InsufficientPrivilege(
            f'permission denied to examine "{setting.name}"',
            detail='Only roles with privileges of the "pg_read_all_settings" role may examine this'
            " parameter.",
        )


def read_value(
    setting: Setting,
    text: str,
    on_notice: Callable[[Notice], None] | None = None,
    *,
    current: str | None = None,
    reset: str | None = None,
) -> str:
    """Return the stored form of a value.  A name that is too long causes a NOTICE.

    Args:
        current, reset: the current value, and the value after RESET; by default the server's
            default.

    Raises:
        InvalidParameterValue: the value is not valid (22023).
        FeatureNotSupported: replctl does not support it (0A000).
    """
    if setting.key in _NAMES:
        text = clipped_with_notice(text, on_notice)
    match setting.type:
        case "bool":
            value = _read_bool(setting, text)
        case "enum":
            value = _read_enum(setting, text)
        case "integer" | "real":
            value = checked_number(setting.official_name, _read_number(setting, text))
        case _:
            boot = setting.boot_value
            official = replace(setting, name=setting.official_name)
            value = _read_text(official, text, current or boot, reset or boot)
    check_supported(setting.official_name, value)
    return value


def _read_text(setting: Setting, text: str, current: str, reset: str) -> str:
    if setting.is_name_list and split_identifiers(text) is None:
        raise InvalidParameterValue(_invalid(setting, text), detail="List syntax is invalid.")
    value = checked(setting.name, text, current, reset)
    return clean_ascii(value) if setting.key in _ASCII else value


def clean_ascii(text: str) -> str:
    r"""Escape characters for other programs (pg_clean_ascii): "é\x07" -> `\xc3\xa9\x07`."""
    return "".join(
        char
        if " " <= char <= "~"
        else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in text
    )


def show_value(setting: Setting, value: str) -> str:
    """Return the text of a value for SHOW: numbers have the largest unit that fits."""
    if setting.type not in ("integer", "real") or not setting.unit or float(value) <= 0:
        return value
    units, base = _units(setting)
    amount = float(value) * base
    for name, size in units.items():
        shown = amount / size
        if abs(round(shown) / shown - 1) <= (0 if setting.type == "integer" else 1e-8):
            return f"{round(shown)}{name}"
    return f"{amount:g}{list(units)[-1]}"


def plain_number(text: str) -> float | None:
    """Parse a number in the syntax of settings, such as 0x10 or 1e3, without a unit; None if it is
    not one.
    """
    match = _NUMBER.fullmatch(text)
    return None if match is None or match[2].rstrip() else _number(match[1])


def _number(digits: str) -> float:
    try:
        return float(int(digits, 16) if "x" in digits.lower() else float(digits))
    except OverflowError:  # the check of the setting's range refuses it
        return inf


def _read_bool(setting: Setting, text: str) -> str:
    word = text.lower()
    if word in ("1", "on") or (word and ("true".startswith(word) or "yes".startswith(word))):
        return "on"
    is_false = word and ("false".startswith(word) or "no".startswith(word))
    if word in ("0", "of", "off") or is_false:
        return "off"
    raise InvalidParameterValue(f'parameter "{setting.name}" requires a Boolean value')


def _read_enum(setting: Setting, text: str) -> str:
    word = text.lower()
    by_word = {value.lower(): value for value in setting.values}
    by_word |= _HIDDEN.get(setting.key, {})
    if {"on", "off"} <= set(setting.values):
        by_word = _SWITCH | by_word
    if word not in by_word:
        raise InvalidParameterValue(
            _invalid(setting, text), hint=f"Available values: {', '.join(setting.values)}."
        )
    return by_word[word]


def _read_number(setting: Setting, text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidParameterValue(_invalid(setting, text))
    number, unit = _number(match[1]), match[2].rstrip()
    if isinf(number):
        raise InvalidParameterValue(_invalid(setting, text))
    if unit:
        number = _converted(setting, text, number, unit)
    if setting.type == "integer":
        number = round(number)
        if not _MIN_INT <= number <= _MAX_INT:
            raise InvalidParameterValue(
                _invalid(setting, text), hint="Value exceeds integer range."
            )
    if not float(setting.minimum) <= number <= float(setting.maximum):
        unit_shown = f" {setting.unit}" if setting.unit else ""
        shown, low, high = (
            f"{value:g}{unit_shown}" if setting.type == "real" else f"{int(value)}{unit_shown}"
            for value in (number, float(setting.minimum), float(setting.maximum))
        )
        raise InvalidParameterValue(
            f'{shown} is outside the valid range for parameter "{setting.name}" ({low} .. {high})'
        )
    return f"{number:g}" if setting.type == "real" else str(number)


def _converted(setting: Setting, text: str, number: float, unit: str) -> float:
    """Convert a number to the setting's unit.  A fraction is rounded to the next smaller unit, so
    that 0.1GB is a whole number of megabytes.
    """
    if not setting.unit:
        raise InvalidParameterValue(_invalid(setting, text))
    units, base = _units(setting)
    if unit not in units:
        names = [f'"{name}"' for name in sorted(units, key=units.__getitem__)]
        raise InvalidParameterValue(
            _invalid(setting, text),
            hint=f"Valid units for this parameter are {', '.join(names[:-1])}, and {names[-1]}.",
        )
    smaller = [size for size in units.values() if base <= size < units[unit]]
    amount = number * units[unit]
    if smaller:
        amount = round(amount / smaller[0]) * smaller[0]
    return amount / base


def _units(setting: Setting) -> tuple[dict[str, int], int]:
    """Return the units that a setting accepts, the largest first, and the size of its own unit,
    such as 8kB.
    """
    match = re.fullmatch(r"(\d*)(\D+)", setting.unit)
    assert match is not None, setting.unit
    units = _MEMORY if match[2] in _MEMORY else _TIME
    return units, int(match[1] or 1) * units[match[2]]


def _invalid(setting: Setting, text: str) -> str:
    return f'invalid value for parameter "{setting.name}": "{text}"'
