#!/usr/bin/env python3
"""Days of work on one Spark server, and what has grown: memory, threads, files, the catalog, times.

    python -m benchmarks.months [--days N] [--commits N] [--syncs N] [--clock real|simulated]

Three tables change: one with a key and a filter, one without a key, and one that its owner writes
without replctl.  After each day both databases are vacuumed.  A simulated clock (the package
libfaketime) is a day ahead after each day, for all processes and for the times of files.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from replctl.catalog.cluster import Cluster
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import (
    ServerConf,
    SparkConf,
    attach_server,
    open_engine,
    start_server,
    stop_server,
)

if TYPE_CHECKING:
    from replctl.spark import Server
    from replctl.spark.engine import Engine

_CLOCK = "FAKETIME_TIMESTAMP_FILE"
_DAY = 86400.0
_MIB = 1 << 20
_TIMES = 5  # how often a command is timed on the first and the last day

_PUBLISHED = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
CREATE TABLE owned (id int PRIMARY KEY, v text) USING delta LOCATION '{owned}';
CREATE PUBLICATION p FOR TABLE keyed WHERE (id % 3 > 0), keyless, owned;
"""
_SUBSCRIBED = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE keyless (a int, b text);
CREATE TABLE owned (id int PRIMARY KEY, v text);
CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p;
"""
_ROWS = (
    "SELECT 'keyed', id, v FROM keyed WHERE id % 3 > 0 UNION ALL SELECT 'keyless', a, b FROM"
    " keyless UNION ALL SELECT 'owned', id, v FROM owned ORDER BY 1, 2, 3"
)

#: Of the heap that a JVM prints with its threads, for each collector: kilobytes in use.
_HEAP = re.compile(
    r"^ (?:def new generation|tenured generation|PSYoungGen|ParOldGen)\s+total \d+K, used (\d+)K",
    re.MULTILINE,
)
_METASPACE = re.compile(r"^ Metaspace\s+used (\d+)K", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What there is after a day: megabytes, and numbers of things."""

    day: int
    syncs: int
    heap: float
    metaspace: float
    threads: int
    views: int
    catalog: float
    log_files: int
    data_files: int
    lake: float

    @staticmethod
    def head() -> str:
        """Return the line above readings."""
        return " ".join(f"{field.name:>10}" for field in fields(Reading))

    def __str__(self) -> str:
        numbers = (f"{x:10.1f}" if isinstance(x, float) else f"{x:10d}" for x in astuple(self))
        return " ".join(numbers)


class Clock:
    """The clock of all processes, where it is simulated, and the times of files."""

    def __init__(self, folder: Path) -> None:
        file = os.environ.get(_CLOCK)
        self._file = Path(file) if file else None
        self._folder = folder
        self._known: dict[str, float] = {}
        self._days = 0

    def next_day(self) -> None:
        """Move a simulated clock on by a day."""
        self._days += 1
        if self._file is not None:
            self._file.write_text(f"+{self._days}d\n", "ascii")

    def date_files(self) -> None:
        """Give files that are new the simulated time: the system gives them the real one."""
        if self._file is None:
            return
        now = time.time()
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = f"{folder}/{name}"
                if self._known.get(path) != os.stat(path).st_mtime:
                    os.utime(path, (now, now))
                    self._known[path] = os.stat(path).st_mtime


class Months:
    """A cluster with a publisher and a subscriber, and the server that works for it."""

    def __init__(self, home: Path, server: Server, engine: Engine) -> None:
        self._home, self._server, self._engine = home, server, engine
        self._cluster = Cluster.open(home / "cluster")
        self._owned = home / "owned"
        self._clock = Clock(home)
        self._commits = 0
        self._syncs = 0

    def build(self) -> None:
        """Make tables, a publication with a filter and a subscription."""
        self._append(0)
        for name in ("pub", "sub"):
            self._run("postgres", f"CREATE DATABASE {name}")
        self._run("pub", _PUBLISHED.format(owned=self._owned))
        self._run("sub", _SUBSCRIBED)
        self._sync()

    def day(self, commits: int, syncs: int) -> None:
        """Make changes, synchronize so many times in between, and vacuum."""
        for number in range(commits):
            self._change()
            self._clock.date_files()
            if (number + 1) * syncs // commits > number * syncs // commits:
                self._sync()
        for name in ("pub", "sub"):
            self._run(name, "VACUUM")
        self._clock.date_files()
        self._clock.next_day()

    def reading(self, day: int) -> Reading:
        """Return what there is."""
        heap, metaspace = self._memory()
        catalog = sum(path.stat().st_size for path in (self._home / "cluster").glob("catalog.db*"))
        files = [path for path in self._home.rglob("*") if path.is_file()]
        tables = [path for path in files if "_delta_log" in path.parts or path.suffix == ".parquet"]
        logs = sum("_delta_log" in path.parts for path in tables)
        status = Path(f"/proc/{self._server.jvm}/status").read_text("ascii")
        threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
        assert threads is not None
        return Reading(
            day,
            self._syncs,
            heap,
            metaspace,
            int(threads[1]),
            len(self._engine.rows("SHOW VIEWS")),
            catalog / _MIB,
            logs,
            len(tables) - logs,
            sum(path.stat().st_size for path in tables) / _MIB,
        )

    def times(self) -> dict[str, float]:
        """Return the median seconds of what users do."""
        return {
            "a catalog command": self._time(self._catalog_command),
            "INSERT": self._time(lambda: self._run("pub", "INSERT INTO keyless VALUES (0, 'x')")),
            "a sync": self._time(self._change_and_sync),
            "a sync of nothing": self._time(self._sync),
        }

    def differs(self) -> bool:
        """Return whether the subscriber has other rows than it should have."""
        return self._run("pub", _ROWS) != self._run("sub", _ROWS)

    def close(self) -> None:
        """Let go of the cluster."""
        self._cluster.close()

    def _run(self, database: str, statement: str) -> list[tuple[object, ...]]:
        session = Session.connect(self._cluster, database, "postgres", engine=lambda: self._engine)
        results = execute(session, statement)
        return [tuple(row) for result in results for row in result.rows]

    def _change(self) -> None:
        """Make the next change: four of ten by replctl, the others by the owner."""
        self._commits += 1
        number = self._commits
        own = {
            0: f"INSERT INTO keyed SELECT {number * 10} + g, 'new' FROM generate_series(0, 9) g",
            2: f"UPDATE keyed SET v = 'v{number}' WHERE id % 7 = {number % 7}",
            5: f"INSERT INTO keyless VALUES ({number % 50}, 'x'), ({number % 50}, 'x')",
            7: f"DELETE FROM keyless WHERE a = {(number - 20) % 50};"
            f" DELETE FROM keyed WHERE id < {number * 10 - 2000}",
        }
        if statements := own.get(number % 10):
            self._run("pub", statements)
        elif number % 10 == 8:
            values = {"v": f"'u{number}'"}
            DeltaTable(self._owned).update(values, predicate=f"id % 10 = {number // 10 % 10}")
        elif number % 10 == 9:
            DeltaTable(self._owned).delete(f"id < {number - 200}")
        else:
            self._append(number)

    def _append(self, number: int) -> None:
        rows = pa.table({"id": pa.array([number], pa.int32()), "v": ["new"]})
        write_deltalake(self._owned, rows, mode="append")

    def _sync(self) -> None:
        session = Session.connect(self._cluster, "sub", "postgres", engine=lambda: self._engine)
        failures = sync(session)
        if failures:
            raise failures[0].error
        self._syncs += 1
        self._clock.date_files()

    def _change_and_sync(self) -> None:
        self._append(-time.monotonic_ns() % 1_000_000_000)
        self._sync()

    def _catalog_command(self) -> None:
        command = [sys.executable, "-m", "replctl", "-X", "-c", r"\dRs+", "sub"]
        subprocess.run(
            [*command, "--home", str(self._home / "cluster")], check=True, capture_output=True
        )

    @staticmethod
    def _time(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(_TIMES):
            started = time.monotonic()
            work()
            seconds.append(time.monotonic() - started)
        return statistics.median(seconds)

    def _memory(self) -> tuple[float, float]:
        """Return the megabytes of heap and metaspace that the server's JVM uses after it has
        collected its garbage; it writes them into its log when it is asked for its threads."""
        log = Path(self._server.log)
        self._engine.rows("SELECT reflect('java.lang.System', 'gc')")
        before = log.stat().st_size
        os.kill(self._server.jvm, signal.SIGQUIT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.2)
            text = log.read_bytes()[before:].decode("utf-8", "replace")
            if metaspace := _METASPACE.search(text):
                return sum(map(int, _HEAP.findall(text))) / 1024, int(metaspace[1]) / 1024
        raise TimeoutError("the JVM does not say what it uses")


def main() -> int:
    """Run the days, print a reading after each; 1 if rows differ or the server has grown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--commits", type=int, default=20, help="a day")
    parser.add_argument("--syncs", type=int, default=5, help="a day")
    parser.add_argument("--clock", choices=("real", "simulated"), default="simulated")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.clock == "simulated" and _CLOCK not in os.environ:
            return _run_with_clock(Path(name) / "clock")
        with _months(Path(name)) as months:
            return _run_days(months, arguments.days, arguments.commits, arguments.syncs)


def _run_with_clock(file: Path) -> int:
    """Run this program with a clock that follows a file."""
    try:
        from libfaketime import get_reload_information  # type: ignore[import-not-found]
    except ImportError:
        print("a simulated clock needs the package libfaketime (pip install libfaketime)")
        return 2
    file.write_text("+0d\n", "ascii")
    _, environment = get_reload_information()
    simulated = {
        _CLOCK: str(file),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    environment = {**os.environ, **environment, **simulated}
    command = [sys.executable, "-m", "benchmarks.months", *sys.argv[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


@contextmanager
def _months(folder: Path) -> Iterator[Months]:
    conf = ServerConf("local[2]", (("spark.driver.memory", "2g"),), idle_timeout=5.0)
    server, _ = start_server(folder, conf)
    attach_server(folder)
    try:
        engine = open_engine(SparkConf(remote=server.remote))
        home = folder / "months"
        home.mkdir()
        months = Months(home, server, engine)
        yield months
        months.close()
    finally:
        stop_server(folder)


def _run_days(months: Months, days: int, commits: int, syncs: int) -> int:
    months.build()
    print(Reading.head(), flush=True)
    readings = []
    first: dict[str, float] = {}
    for day in range(1, days + 1):
        months.day(commits, syncs)
        readings.append(months.reading(day))
        print(readings[-1], flush=True)
        first = first or months.times()
    for what, seconds in months.times().items():
        print(f"{what}: {seconds:.2f} s, {seconds / first[what]:.2f} x of the first day")
    settled, last = readings[len(readings) // 3], readings[-1]
    problems = [
        problem
        for problem, is_there in (
            ("rows differ", months.differs()),
            ("the heap has grown", last.heap > settled.heap * 1.2 + 32),
            ("threads are left", last.threads > settled.threads + 10),
            ("views are left", last.views > settled.views),
        )
        if is_there
    ]
    print(f"{last.syncs} syncs: {', '.join(problems) or 'rows are equal, nothing has grown'}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
