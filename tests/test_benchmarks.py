"""`python -m benchmarks` refuses wrong arguments before it measures anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]


def _benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--group", "nope"], "invalid choice: 'nope'"),
        (["--rounds", "0"], "--rounds wants 1 or more"),
        (["--json", "/nowhere/x.json"], "could not write /nowhere/x.json"),
        (["--plot", "/nowhere/x.png"], "could not write /nowhere/x.png"),
        (["--scratch", "/nowhere"], "there is no folder /nowhere"),
        (["--show", "/nowhere/x.json"], "No such file or directory"),
        (["--show", "pyproject.toml"], "Expecting value"),
    ],
)
def test_wrong_options(arguments: list[str], problem: str) -> None:
    refused = _benchmarks(*arguments)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_file_that_is_no_report(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text("{}", "utf-8")
    refused = _benchmarks("--show", str(file))
    assert refused.returncode == 2
    assert f"{file} is no report of benchmarks" in refused.stderr


def test_a_case_that_is_none() -> None:
    refused = _benchmarks("--case", "nothing of that name")
    assert (refused.returncode, refused.stderr) == (
        1,
        "no case has 'nothing of that name' in it\n",
    )
