"""The tutorial (docs/tutorial/index.md): its commands work, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "index.md"
#: A block of commands, and what they print where the page shows it.
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_LSN = re.compile(r"\b0/[0-9A-F]+\b")
_END = "-- end of block"


def _comparable(text: str) -> str:
    """Return a text without LSNs, and without blanks at the ends of lines."""
    lines = [line.rstrip() for line in _LSN.sub("0/...", text).splitlines()]
    return "\n".join(lines).strip()


@pytest.mark.spark
def test_the_tutorial_prints_what_it_shows(tmp_path: Path, connect_server: str) -> None:
    blocks = _BLOCK.findall(_PAGE.read_text("utf-8"))
    assert len(blocks) > 5
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("replctl", f"{sys.executable} -m replctl"), ("python3", sys.executable)):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    script = "".join(f"{commands}echo '{_END}'\n" for commands, _ in blocks)
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "SPARK_REMOTE": connect_server},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.splitlines()
    faults = [line for line in lines if line[:7] not in ("NOTICE:", "LOG:  s")]
    assert (done.returncode, faults) == (0, []), done.stdout
    printed = done.stdout.split(f"{_END}\n")
    for (commands, shown), actual in zip(blocks, printed, strict=False):
        if shown:
            assert _comparable(actual) == _comparable(shown), commands
