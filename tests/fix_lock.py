"""A suspended process that holds a lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_HOLDS = """
import sys, time
from pathlib import Path
from replctl.file_lock import locked
with locked(Path(sys.argv[1]), 60):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stopped() -> Iterator[Callable[[Path], int]]:
    """Yield a function that locks a file in a process, suspends the process, and returns its
    number."""
    processes = []

    def lock(path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDS, str(path)], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        os.kill(process.pid, signal.SIGSTOP)
        return process.pid

    yield lock
    for process in processes:
        process.kill()
        process.communicate()
