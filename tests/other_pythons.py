"""Finds Pythons of this machine other than the running one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Releases that replctl runs with (docs/guides/machines.md).
RELEASES = ("3.11", "3.12", "3.13", "3.14")


def find_python(release: str) -> str | None:
    """Return a Python of a release, such as 3.13: one on PATH, else one of pyenv.  Return None if
    no such Python runs."""
    for program in _candidates(release):
        print_release = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run(
            [program, "-c", print_release], capture_output=True, text=True, check=False
        )
        if done.stdout.strip() == release:
            return program
    return None


def _candidates(release: str) -> Iterator[str]:
    on_path = shutil.which(f"python{release}")
    if on_path is not None:  # this may be a shim of pyenv that does not run
        yield on_path
    root = _pyenv_root()
    if root is not None:
        for program in sorted(root.glob(f"versions/{release}.*/bin/python{release}"), reverse=True):
            yield str(program)


def _pyenv_root() -> Path | None:
    if root := os.environ.get("PYENV_ROOT"):
        return Path(root)
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return None
    done = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None
