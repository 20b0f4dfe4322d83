"""Environment variables and options of a connection string that set parameters."""

from __future__ import annotations

import psycopg
import pytest
from fix_psql import Psql

_NAMES = ("work_mem", "search_path", "lock_timeout", "timezone", "datestyle", "a.b")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PGTZ", "utc"),
        ("PGTZ", "nope"),
        ("PGTZ", "default"),
        ("PGTZ", ""),
        ("PGDATESTYLE", "iso, us"),
        ("PGDATESTYLE", "x, y"),
        ("PGCLIENTENCODING", "utf-8"),
        ("PGCLIENTENCODING", "foo"),
        ("PGGEQO", "maybe"),
        ("PGOPTIONS", "-c work_mem=5MB --search-path=a,b"),
        ("PGOPTIONS", "-cwork_mem=64 --lock_timeout=1s"),
        ("PGOPTIONS", r"-c a.b=1\ 2\\"),
        ("PGOPTIONS", "-c nope=1"),
        ("PGOPTIONS", "-c work_mem=x"),
        ("PGOPTIONS", "-c wal_level=minimal"),
        ("PGOPTIONS", "-c log_connections=on"),
        ("PGOPTIONS", "-x"),
        ("PGOPTIONS", "-c work_mem"),
        ("PGOPTIONS", "--work-mem"),
        ("PGOPTIONS", "foo"),
        ("PGOPTIONS", "-c role=nope"),
        ("PGOPTIONS", "-c timezone=nope -c datestyle=nope"),
    ],
)
def test_a_variable_is_a_setting_as_with_libpq(
    psql: Psql,
    postgres_server: str,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    names = ", ".join(f"current_setting('{name}', true)" for name in _NAMES)
    query = f"select {names}; reset all; select {names}"
    outcome = psql("-qAt", "-c", query)
    try:
        connection = psycopg.connect(postgres_server, dbname="postgres", autocommit=True)
    except psycopg.OperationalError as error:
        refusal = str(error).split("FATAL:  ")[1].strip()
        assert outcome.exit_code == 2
        assert outcome.stderr.split("FATAL:  ")[1].strip() == refusal
        return
    with connection:
        rows = [connection.execute(f"select {names}".encode()).fetchone()]
        connection.execute("reset all")
        rows.append(connection.execute(f"select {names}".encode()).fetchone())
    shown = ["|".join("" if v is None else str(v) for v in row or ()) for row in rows]
    text = "\n".join(shown).replace("Etc/UTC", "UTC")  # initdb may have chosen Etc/UTC
    assert (outcome.stdout.strip(), outcome.exit_code) == (text, 0)


def test_a_connection_string_comes_first(psql: Psql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB")
    monkeypatch.setenv("PGAPPNAME", "me")
    target = "dbname=postgres options='-c work_mem=6MB'"
    source = "select name, setting, source from pg_settings where source = 'client' order by 1"
    outcome = psql("-qAt", "-d", target, "-c", source, "-c", r"\c postgres", "-c", "show work_mem")
    assert outcome.stdout == "application_name|me|client\nwork_mem|6144|client\n6MB\n"


def test_values_that_are_not_supported_are_refused(
    psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    outcome = psql("-c", "select 1")
    assert outcome.exit_code == 2
    assert 'value "LATIN1" of parameter "client_encoding" is not supported' in outcome.stderr
