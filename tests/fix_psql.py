"""Runs the command in this process, with a script or arguments.  Returns stdout, stderr and exit
code."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from replctl.catalog.open_cluster import open_cluster
from replctl.psql.main import run


@dataclass(frozen=True)
class Outcome:
    """The outputs and the exit code of the command; with `merge`, stdout has both outputs in
    order."""

    stdout: str
    stderr: str
    exit_code: int


Psql: TypeAlias = Callable[..., Outcome]


@pytest.fixture(scope="session")
def fresh_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cluster directory to copy.  Its recorded home is gone, so that each copy counts as
    moved."""
    home = tmp_path_factory.mktemp("fresh") / "cluster"
    open_cluster(home).close()
    return home.rename(home.with_name("moved"))


@pytest.fixture
def psql(fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Psql]:
    """Yield a function that runs the command with arguments, and with `script` as stdin.

    All calls in a test use the same cluster.
    """
    home = tmp_path / "home"
    shutil.copytree(fresh_home, home)
    monkeypatch.setenv("REPLCTL_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("REPLCTLRC", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    recursion_limit = sys.getrecursionlimit()
    folder = Path.cwd()

    def call(*arguments: str, script: str = "", merge: bool = False) -> Outcome:
        out = io.BytesIO()
        err = out if merge else io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(
                sys,
                "stdin",
                io.TextIOWrapper(io.BytesIO(script.encode("utf-8", "surrogateescape"))),
            )
            patch.setattr(sys, "stdout", io.TextIOWrapper(out))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err))
            exit_code = run(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
            stdout, stderr = _shown(out), _shown(err)
        return Outcome(stdout, "" if merge else stderr, exit_code)

    yield call
    sys.setrecursionlimit(recursion_limit)
    os.chdir(folder)


def _shown(stream: io.BytesIO) -> str:
    return stream.getvalue().decode(errors="replace")
