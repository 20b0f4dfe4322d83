#!/usr/bin/env python3
"""Simulate days of work on one Spark server, and measure the growth of memory, files and times.

    python -m benchmarks.months [--days N] [--commits N] [--syncs N] [--clock real|simulated]

Three tables change: one with a key and a filter, one without a key, and one that its owner writes
without replctl.  After each day VACUUM runs in both databases.  A simulated clock (the package
libfaketime) moves by one day after each day, for all processes and for the times of files.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.server_memory import FEW_CACHES, ServerMemory, server_memory
from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import SparkConf, open_engine, temporary_server

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_CLOCK = "FAKETIME_TIMESTAMP_FILE"
_DAY = 86400.0
_MIB = 1 << 20
_TIMES = 5  # how often a command is timed on the first and the last day

_PUBLISHED = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
CREATE TABLE owned (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{owned}';
CREATE PUBLICATION p FOR TABLE keyed WHERE (id % 3 > 0), keyless, owned;
"""
_SUBSCRIBED = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE keyless (a int, b text);
CREATE TABLE owned (id int PRIMARY KEY, v text);
"""
_SUBSCRIPTION = "CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p"
_ROWS = (
    "SELECT 'keyed', id, v FROM keyed WHERE id % 3 > 0 UNION ALL SELECT 'keyless', a, b FROM"
    " keyless UNION ALL SELECT 'owned', id, v FROM owned ORDER BY 1, 2, 3"
)


@dataclass(frozen=True)
class Reading:
    """The state after a day: the server's memory, megabytes, and numbers of files."""

    day: int
    syncs: int
    memory: ServerMemory
    catalog: float
    log_files: int
    data_files: int
    lake: float

    def __str__(self) -> str:
        return (
            f"day {self.day:3d}, {self.syncs:5d} syncs: {self.memory}; catalog"
            f" {self.catalog:.1f} MB, log files {self.log_files}, data files {self.data_files},"
            f" lake {self.lake:.1f} MB"
        )


class Clock:
    """The clock of all processes, if it is simulated, and the times of files."""

    def __init__(self, folder: Path) -> None:
        file = os.environ.get(_CLOCK)
        self._file = Path(file) if file else None
        self._folder = folder
        self._known: dict[str, float] = {}
        self._days = 0

    def next_day(self) -> None:
        """Move a simulated clock by one day."""
        self._days += 1
        if self._file is not None:
            self._file.write_text(f"+{self._days}d\n", "ascii")

    def date_files(self) -> None:
        """Give new files the simulated time, because the system gives them the real one."""
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
    """A cluster with a publisher and a subscriber, and its Spark server."""

    def __init__(self, home: Path, server_folder: Path, engine: Engine) -> None:
        self._home, self._server_folder, self._engine = home, server_folder, engine
        self._cluster = open_cluster(home / "cluster")
        self._owned = home / "owned"
        self._clock = Clock(home)
        self._commits = 0
        self._syncs = 0

    def build(self) -> None:
        """Make the tables, a publication with a filter, and a subscription."""
        self._append(0)
        for name in ("pub", "sub"):
            self._run("postgres", f"CREATE DATABASE {name}")
        self._run("pub", _PUBLISHED.format(owned=self._owned))
        self._run("sub", _SUBSCRIBED)
        self._run("sub", _SUBSCRIPTION)
        self._sync()

    def day(self, commits: int, syncs: int) -> None:
        """Make changes, synchronize `syncs` times in between, and run VACUUM."""
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
        """Return the current sizes and numbers."""
        catalog = sum(path.stat().st_size for path in (self._home / "cluster").glob("catalog.db*"))
        files = [path for path in self._home.rglob("*") if path.is_file()]
        tables = [path for path in files if "_delta_log" in path.parts or path.suffix == ".parquet"]
        logs = sum("_delta_log" in path.parts for path in tables)
        return Reading(
            day,
            self._syncs,
            server_memory(self._server_folder, self._engine),
            catalog / _MIB,
            logs,
            len(tables) - logs,
            sum(path.stat().st_size for path in tables) / _MIB,
        )

    def times(self) -> dict[str, float]:
        """Return the median seconds of actions of users."""
        return {
            "a catalog command": self._time(self._catalog_command),
            "INSERT": self._time(lambda: self._run("pub", "INSERT INTO keyless VALUES (0, 'x')")),
            "a sync": self._time(self._change_and_sync),
            "a sync of nothing": self._time(self._sync),
        }

    def differs(self) -> bool:
        """Return whether the subscriber's rows are wrong."""
        return self._run("pub", _ROWS) != self._run("sub", _ROWS)

    def close(self) -> None:
        """Close the cluster, and stop its server."""
        self._cluster.close()

    def _run(self, database: str, statement: str) -> list[tuple[object, ...]]:
        session = Session.connect(self._cluster, database, "postgres", engine=lambda: self._engine)
        results = execute(session, statement)
        return [tuple(row) for result in results for row in result.rows]

    def _change(self) -> None:
        """Make the next change: four of ten with replctl, the others as the owner."""
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


def main() -> int:
    """Run the days, and print a reading after each day.  Return 1 if rows differ or the server has
    grown.
    """
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
    """Run this program again with a clock that follows a file."""
    try:
        from libfaketime import get_reload_information
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
    home, place = folder / "months", folder / "server"
    home.mkdir()
    place.mkdir()
    with temporary_server("2g", properties=FEW_CACHES, folder=place) as remote:
        months = Months(home, place, open_engine(SparkConf(remote=remote)))
        yield months
        months.close()


def _run_days(months: Months, days: int, commits: int, syncs: int) -> int:
    months.build()
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
    problems = last.memory.growth(settled.memory)
    if months.differs():
        problems.append("rows differ")
    print(f"{last.syncs} syncs: {', '.join(problems) or 'rows are equal, nothing has grown'}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
