"""Runs mutated scripts in a separate process, and reports those in which replctl has a fault."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TESTS = Path(__file__).parent.parent
#: Internal errors that PostgreSQL raises too, up to what varies in them.  Golden files have most of
#: them, and scripts are drawn from the statements of these files.
_INTERNAL = re.compile(r"^ERROR XX000: ([^:\d\n]+)", re.MULTILINE)
_OTHER_INTERNAL = {"unrecognized interval typmod", "invalid memory alloc request size"}
#: Seconds of the processor and MB that a script may take.
_SECONDS, _MEGABYTES = 10, 1024
#: Seconds after which one that does not answer is ended: the machine may be busy.
_PATIENCE = 90


@dataclass(frozen=True)
class Fault:
    """A script that replctl does not bear.

    Attributes:
        seed: what draws it.
        what: what happened, in a line.
    """

    seed: int
    what: str


@cache
def _fault_pattern() -> re.Pattern[str]:
    """Return the pattern of a line that PostgreSQL would not print."""
    texts = (path.read_text("utf-8") for path in _TESTS.glob("**/data/**/*.out"))
    internal = {message for text in texts for message in _INTERNAL.findall(text)}
    known = "|".join(map(re.escape, sorted(internal | _OTHER_INTERNAL)))
    return re.compile(
        rf".*(?:XX000: (?!{known})|Traceback \(most recent|RecursionError|MemoryError).*"
    )


def faults(seeds: Iterable[int], *, seconds: float | None = None) -> Iterator[Fault | None]:
    """Run the scripts of `seeds`, for at most `seconds`.  Yield the fault of each script, or
    None."""
    end = None if seconds is None else time.monotonic() + seconds
    worker = None
    with tempfile.TemporaryDirectory(prefix="replctl_mutation") as folder:
        try:
            for seed in seeds:
                if end is not None and time.monotonic() > end:
                    return
                worker = worker or _Worker(folder)
                fault = worker.fault(seed)
                if fault is not None and worker.must_end:
                    worker.end()
                    worker = None
                yield None if fault is None else Fault(seed, fault)
        finally:
            if worker is not None:
                worker.end()


class _Worker:
    """The process of worker.py.

    Attributes:
        must_end: it does not answer, or has too much memory.
    """

    def __init__(self, folder: str) -> None:
        path = os.pathsep.join((str(_TESTS.parent), *sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.worker", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, "HOME": folder},
            start_new_session=True,
            text=True,
        )
        self.must_end = False

    def fault(self, seed: int) -> str | None:
        """Run a script, and return its fault."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.must_end = True
            return "the process has died" if ready else f"no answer in {_PATIENCE} s"
        answer = json.loads(line)
        self.must_end = answer["memory"] > _MEGABYTES
        found = _fault_pattern().search(answer["output"])
        if found is not None:
            return found[0].strip()
        if answer["seconds"] > _SECONDS:
            return f"{answer['seconds']:.0f} s"
        return f"{answer['memory']} MB" if self.must_end else None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
