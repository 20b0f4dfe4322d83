"""Whole scripts print the same as psql on a server (tests/psql/data/script).  data/lake has the
scripts that need Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_spark import spark_options

DATA = Path(__file__).parent / "data" / "script"
LAKE_DATA = DATA.parent / "lake"

#: Computed before the fixture hides Spark from the scripts that should not need it.

#: Scripts that end at an error, since they set ON_ERROR_STOP.
EXIT_CODES = {"on_error_stop": 3}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.sql")), ids=lambda path: path.stem)
def test_script(path: Path, psql: Psql, capfd: pytest.CaptureFixture[str]) -> None:
    os.chdir(DATA)
    outcome = psql("-X", "-a", "-f", path.name, merge=True)
    expected = path.with_suffix(".out").read_text(encoding="utf-8")
    # The output of the shell does not pass through the test's streams.
    assert outcome.stdout.splitlines() == without_shell_output(expected.splitlines())
    assert outcome.exit_code == EXIT_CODES.get(path.stem, 0)
    capfd.readouterr()


@pytest.mark.spark
@pytest.mark.parametrize("path", sorted(LAKE_DATA.glob("*.sql")), ids=lambda path: path.stem)
def test_lake_script(path: Path, psql: Psql) -> None:
    os.chdir(LAKE_DATA)
    outcome = psql(*spark_options(), "-X", "-a", "-f", path.name, merge=True)
    expected = path.with_suffix(".out").read_text(encoding="utf-8")
    assert outcome.stdout.splitlines() == expected.splitlines()


def without_shell_output(lines: list[str]) -> list[str]:
    kept: list[str] = []
    is_skipping = False
    for line in lines:
        is_skipping = is_skipping and not line.startswith("\\")
        if not is_skipping:
            kept.append(line)
        is_skipping |= line.startswith("\\!") or line.endswith("| cat")
    return kept
