"""Values are read and shown with a session's settings as on a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from server_answers import database

from replctl.errors import FeatureNotSupported, PostgresError
from replctl.types import text
from replctl.types.quote import quote_string
from replctl.types.shown import depends, shown
from replctl.types.value_format import ValueFormat, use_format

_LITERALS = {
    "timestamptz": """2026-11-27 10:00|2026-10-04 02:30|2026-04-05 02:30|01/02/2026 3:04|01/02/03
        |13/01/2026|1/13/2026|2026-1-2|1 Feb 26|26 Feb 1|Feb 1 26|Jan-02-2026 04:05 PST
        |2026-11-27 10:00 Asia/Tokyo|1850-01-01|4000-02-03 4:05|20000-01-01 00:00|0044-03-15 BC
        |infinity|epoch|2026-11-27T10:00:00Z|99-01-08|08-Jan-99|Jan-08-99|99-Jan-08
        |20260102 040506|2026-11-27 10:00:00+05:30|27.11.2026 10:00|2026-03-08 02:30
        |2026-11-01 01:30|2011-12-30 12:00""",
    "timestamp": "2026-11-27 10:00|01/02/2026 3:04|01/02/03|1/13/2026 AEST|infinity",
    "date": "01/02/2026|2026-01-02|3.2.2026|01-02-03|0001-01-01 BC|-infinity",
    "timetz": "04:05|04:05+01|04:05 Asia/Tokyo|2026-07-01 04:05|2026-07-01 04:05 America/New_York",
    "time": "04:05",
    "tstzrange": "[2026-01-01,2026-02-01 10:00)|empty|(,2026-01-01]",
    "tstzmultirange": "{[2026-01-01,2026-02-01 10:00),[2026-03-01,)}",
    "daterange": "[01/02/2026,02/03/2026]",
    "_timestamptz": "{2026-01-01,2026-07-01 12:00,NULL}",
    "_date": "{01/02/2026}",
    "interval": """1 year 2 mons -3 days 04:05:06|-1 day 2:03|1-2|-1-2 3 4:05|P1Y2M3DT4H|-0.5 sec
        |1 mon|-1 mon -2 days|10 days -1:00|infinity|0|1 sec|-1 sec|1.5 sec|-1 year 1 sec""",
    "bytea": r"abc\\\000|\x00ff5c41",
    "float8": "0.1|1e300|123456789.123456789|-0|nan|1e15|1e16|-infinity",
    "float4": "0.1|16777217",
    "_float8": "{0.1,1e-7}",
    "_interval": "{1 day 2:03}",
}
_FORMATS = [
    ValueFormat(),
    ValueFormat("ISO", "DMY", "sql_standard", "escape", 0, "Australia/Sydney"),
    ValueFormat("SQL", "DMY", "postgres_verbose", "hex", -3, "America/New_York"),
    ValueFormat("SQL", "MDY", "iso_8601", "escape", -15, "<+0530>-05:30"),
    ValueFormat("German", "YMD", "iso_8601", "hex", 1, "Asia/Kolkata"),
    ValueFormat("Postgres", "YMD", "sql_standard", "hex", 0, "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ValueFormat("Postgres", "DMY", "postgres", "hex", 1, "Europe/London"),
    ValueFormat("Postgres", "MDY", "postgres_verbose", "hex", 1, "America/Sao_Paulo"),
    ValueFormat("ISO", "YMD", "postgres", "hex", 1, "Pacific/Apia"),
    ValueFormat("SQL", "YMD", "postgres", "hex", 1, "FOO5BAR"),
]


@pytest.mark.parametrize("value_format", _FORMATS, ids=lambda v: f"{v.date_style} {v.zone}")
def test_as_a_server(value_format: ValueFormat, postgres_server: str) -> None:
    differences = []
    with database(postgres_server, "replctl_form") as server:
        for name, value in (
            ("datestyle", f"{value_format.date_style}, {value_format.date_order}"),
            ("intervalstyle", value_format.interval_style),
            ("bytea_output", value_format.bytea_output),
            ("extra_float_digits", str(value_format.float_digits)),
            ("timezone", value_format.zone),
        ):
            assert server.answer(f"set {name} = {quote_string(value)}") == ("SET",)
        for type_, literals in _LITERALS.items():
            for literal in (part.strip() for part in literals.split("|")):
                answer = server.answer(f"select cast('{literal}' as {type_})")
                expected = answer[0].removeprefix("| ").replace(" @12", "")
                actual = _answer(type_, literal, value_format)
                if expected != actual:
                    differences.append((type_, literal, expected, actual))
    assert differences == []


def _answer(type_: str, literal: str, value_format: ValueFormat) -> str:
    try:
        with use_format(value_format):
            value = text.canonical(type_, literal, now=datetime.now(UTC))
        return shown(type_, value, value_format)
    except PostgresError as error:
        return f"ERROR {error.sqlstate}: {error.message}"


def test_rows_are_refused_whose_columns_look_otherwise() -> None:
    assert not depends("record", ValueFormat())
    assert not depends("text", _FORMATS[1])
    assert depends("record", _FORMATS[1])
    with pytest.raises(FeatureNotSupported, match="type record is not supported with this"):
        shown("record", "(1)", _FORMATS[1])
