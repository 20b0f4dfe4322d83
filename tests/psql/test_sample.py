"""The sample prints the same on a machine with unusual settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memory_group import memory_group

_ROOT = Path(__file__).parents[2]
_PRINTED = Path(__file__).with_name("data") / "sample.out"
#: The name of a directory, with spaces, quotes, and characters with a meaning in URIs and shells.
_NAME = "a \"b\" 'c' %20 #é $x"

#: A script that runs a command on a read-only machine.  The command can write to only one
#: directory, which is not its working directory.  /tmp is full, and its programs cannot run.  The
#: writable directory lies in /tmp, and is mounted from the working directory of the shell.
_READ_ONLY = """
set -eu
volume=$1
shift
cd "$volume"
mount -o remount,bind,ro /
mount -t tmpfs -o size=64k,noexec tmpfs /tmp
mkdir -p "$volume" || exit 99
mount --no-canonicalize --bind . "$volume"
mount -o remount,bind,rw "$volume"
cd "$volume"
mount --bind samples samples
mount -o remount,bind,ro samples
cat /dev/zero >/tmp/full 2>/dev/null || true
cd samples
umask 077
exec "$@"
"""
_TWO_GIGABYTES = 2 << 30


def _read_only(volume: Path) -> list[str]:
    """Return a command that runs another one on a read-only machine.  It is empty if the directory
    is not in /tmp, or if this user may not do that."""
    unshare = ["unshare", "--mount", "sh", "-c"]
    if not volume.is_relative_to("/tmp") or not shutil.which("unshare"):
        return []
    tried = subprocess.run([*unshare, _READ_ONLY, "sh", str(volume), "true"], check=False)
    return [] if tried.returncode else [*unshare, _READ_ONLY, "sh", str(volume)]


@pytest.mark.spark
def test_the_sample_on_an_odd_machine(tmp_path: Path) -> None:
    """There is no home directory and only one processor.  Names, time zone and locale are odd, and
    Python runs with -O.  If this user may, only one directory is writable, /tmp is full and noexec,
    and memory is limited to 2 GB."""
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
        "TERM": "dumb",
        "TZ": "America/St_Johns",
    }
    one_processor = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    read_only = _read_only(odd)
    if read_only:
        del environment["TMPDIR"]
    with memory_group(_TWO_GIGABYTES) as little_memory:
        done = subprocess.run(
            [*(little_memory or ()), *read_only, *one_processor, "sh", str(samples / "run.sh")],
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
    left = [path.name for name in ("tmp", "work") for path in (odd / name).iterdir()]
    assert left == []
