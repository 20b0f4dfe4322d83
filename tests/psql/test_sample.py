"""The sample, on a machine where much is odd: it prints what it prints anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PRINTED = Path(__file__).with_name("data") / "sample.out"
#: Of a directory: spaces, quotes, and characters that URIs and shells take for something else.
_NAME = "a \"b\" 'c' %20 #é $x"


@pytest.mark.spark
def test_the_sample_on_an_odd_machine(tmp_path: Path) -> None:
    """No home directory, one processor, odd names, an odd time zone and locale, python -O."""
    odd = tmp_path / _NAME
    for name in ("home", "tmp", "work"):
        (odd / name).mkdir(parents=True)
    programs = odd / "bin"
    programs.mkdir()
    replctl = programs / "replctl"
    replctl.write_text(f'#!/bin/sh\nexec "{sys.executable}" -O -m replctl "$@"\n')
    replctl.chmod(0o755)
    samples = odd / "samples"
    shutil.copytree(_ROOT / "samples", samples)
    unset = ("HOME", "SPARK_REMOTE", "LC_ALL", "XDG_DATA_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {
        "PATH": f"{programs}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": str(_ROOT),
        "REPLCTL_HOME": str(odd / "home" / "cluster"),
        "TMPDIR": str(odd / "tmp"),
        "LANG": "C",
        "TZ": "America/St_Johns",
    }
    one_processor = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    done = subprocess.run(
        [*one_processor, "sh", str(samples / "run.sh")],
        cwd=odd / "work",
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == _PRINTED.read_text("utf-8")
    assert [path.name for path in (odd / "tmp").iterdir()] == []
