"""Bytes that are not valid characters, in places that no parser reads."""

from __future__ import annotations

import pytest
from fix_psql import Psql

NONE = "\udcff"  # the byte 0xff of a command line, or of the environment


@pytest.mark.parametrize("arguments", [("-d", f"a{NONE}"), ("-d", f"dbname=a{NONE}")])
def test_a_database_of_that_name_does_not_exist(psql: Psql, arguments: tuple[str, ...]) -> None:
    outcome = psql("-X", *arguments, "-c", "select 1")
    assert outcome.exit_code == 2
    assert outcome.stderr.endswith('FATAL:  database "a\ufffd" does not exist\n')


def test_a_role_of_that_name_does_not_exist(psql: Psql) -> None:
    outcome = psql("-X", "-U", f"a{NONE}", "-c", "select 1")
    assert outcome.exit_code == 2
    assert outcome.stderr.endswith('FATAL:  role "a\ufffd" does not exist\n')


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"\\c a{NONE}\n", 'FATAL:  database "a\ufffd" does not exist'),
        (f"\\c - a{NONE}\n", 'FATAL:  role "a\ufffd" does not exist'),
        (f"\\sync a{NONE}\n", 'ERROR:  subscription "a\ufffd" does not exist'),
    ],
)
def test_commands_name_what_is_not_there(psql: Psql, script: str, message: str) -> None:
    outcome = psql("-X", script=script)
    assert message in outcome.stderr
    assert "internal error" not in outcome.stderr


def test_a_setting_of_the_environment_shows_them(
    psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", f"-c application_name=a{NONE}")
    assert psql("-XAtq", "-c", "show application_name").stdout == "a\\xff\n"
