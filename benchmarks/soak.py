#!/usr/bin/env python3
"""Change tables of many subscriptions all the time, while `replctl sync --watch` applies changes.

    python -m benchmarks.soak [--minutes M] [--tables N] [--subscriptions N]

Once a minute, the program prints the numbers that must not grow: the applier's memory and open
files, locks of the cluster, and slots.  In the end it compares the subscribers' rows with the
publisher's.  SPARK_REMOTE names the Connect server to use; without it, the program starts one.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import SparkConf, open_engine, temporary_server

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_ROUND = 60.0  # seconds between two readings
_TABLES_AT_ONCE = 25


@dataclass(frozen=True)
class Reading:
    """The memory of a process in megabytes, and numbers of files, locks, slots and open batches."""

    memory: float
    open_files: int
    locks: int
    slots: int
    unfinished: int

    def __str__(self) -> str:
        return (
            f"memory {self.memory:7.1f} MB  open files {self.open_files:4d}  lock files"
            f" {self.locks:4d}  slots {self.slots:3d}  unfinished batches {self.unfinished:2d}"
        )


class Soak:
    """A cluster with a publisher and its subscribers."""

    def __init__(self, home: Path, engine: Engine, tables: int, subscriptions: int) -> None:
        self._home = home
        self._cluster = open_cluster(home)
        self._engine = engine
        self._tables = [f"t{number}" for number in range(tables)]
        self._databases = [f"sub{number}" for number in range(subscriptions)]

    def session(self, database: str) -> Session:
        return Session.connect(self._cluster, database, "postgres", engine=lambda: self._engine)

    def run(self, database: str, statement: str) -> list[tuple[object, ...]]:
        """Run a statement, and return its rows."""
        results = execute(self.session(database), statement)
        return [tuple(row) for result in results for row in result.rows]

    def build(self) -> None:
        """Make tables without rows, so that there is nothing to copy, and a filter for every other
        subscription.
        """
        slots = 2 * len(self._databases)
        self.run("postgres", f"ALTER SYSTEM SET max_replication_slots = {slots}")
        made = [f"CREATE TABLE {table} (id int PRIMARY KEY, v text)" for table in self._tables]
        for database in ("pub", *self._databases):
            self.run("postgres", f"CREATE DATABASE {database}")
            self.run(database, ";".join(made))
        named = ", ".join(self._tables)
        filtered = ", ".join(f"{table} WHERE (id % 2 = 0)" for table in self._tables)
        self.run("pub", f"CREATE PUBLICATION p0 FOR TABLE {named}")
        self.run("pub", f"CREATE PUBLICATION p1 FOR TABLE {filtered}")
        for number, database in enumerate(self._databases):
            self.run(
                database,
                f"CREATE SUBSCRIPTION {database} CONNECTION 'dbname=pub' PUBLICATION"
                f" p{number % 2} WITH (copy_data = false)",
            )

    def change(self) -> None:
        """Make a random change of a random table."""
        table, number = random.choice(self._tables), random.randrange(1000)
        self.run(
            "pub",
            random.choice(
                (
                    f"INSERT INTO {table} SELECT {number}, 'new' WHERE NOT EXISTS"
                    f" (SELECT 1 FROM {table} WHERE id = {number})",
                    f"UPDATE {table} SET v = v || '+' WHERE id % 3 = {number % 3}",
                    f"DELETE FROM {table} WHERE id = {number}",
                )
            ),
        )

    def reading(self, pid: int) -> Reading:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        counts = self.run("postgres", "SELECT count(*) FROM pg_replication_slots")
        with self._cluster.begin(write=False) as connection:
            batches = connection.exec_driver_sql("SELECT count(*) FROM apply_batch").scalar_one()
        return Reading(
            int(resident.split()[1]) / 1024,
            len(os.listdir(f"/proc/{pid}/fd")),
            len(list((self._home / "lock").glob("*.lock"))),
            int(str(counts[0][0])),
            int(batches),
        )

    def differences(self) -> int:
        """Return the rows that a subscriber lacks or has in addition, after a last sync."""
        failures = sync(self.session("postgres"))
        for failure in failures:
            print(f"{failure.subscription}: {failure.error.message}")
        wrong = len(failures)
        rows = self._all_rows("pub")
        for number, database in enumerate(self._databases):
            expected = {row for row in rows if number % 2 == 0 or int(str(row[1])) % 2 == 0}
            wrong += len(expected ^ self._all_rows(database))
        return wrong

    def _all_rows(self, database: str) -> set[tuple[object, ...]]:
        """Return the rows of all tables of a database, reading some tables at a time."""
        queries = [f"SELECT '{table}', id, v FROM {table}" for table in self._tables]
        rows: set[tuple[object, ...]] = set()
        for first in range(0, len(queries), _TABLES_AT_ONCE):
            together = " UNION ALL ".join(queries[first : first + _TABLES_AT_ONCE])
            rows.update(self.run(database, together))
        return rows


def main() -> int:
    """Run the soak, and print the readings.  Return 1 if rows differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--subscriptions", type=int, default=20)
    arguments = parser.parse_args()
    given = os.environ.get("SPARK_REMOTE")
    server = nullcontext(given) if given else temporary_server("3g")
    with tempfile.TemporaryDirectory() as name, server as remote:
        engine = open_engine(SparkConf(remote=remote))
        soak = Soak(Path(name), engine, arguments.tables, arguments.subscriptions)
        soak.build()
        readings, changes = _watched(soak, name, remote, arguments.minutes)
        wrong = soak.differences()
    growth = readings[-1].memory - readings[len(readings) // 3].memory
    print(f"{changes} changes; memory after the first third: {growth:+.1f} MB; rows wrong: {wrong}")
    return int(bool(wrong))


def _watched(soak: Soak, home: str, remote: str, minutes: float) -> tuple[list[Reading], int]:
    """Let the applier run while tables change.  Return the readings, and the number of changes."""
    command = [sys.executable, "-m", "replctl", "sync", "-q", "--watch", "--interval", "0"]
    applier = subprocess.Popen([*command, "--home", home, "--remote", remote])
    is_done, changes = threading.Event(), 0

    def change() -> None:
        nonlocal changes
        while not is_done.is_set():
            soak.change()
            changes += 1

    writer = threading.Thread(target=change)
    writer.start()
    readings = []
    try:
        for minute in range(max(1, int(minutes * 60 / _ROUND))):
            time.sleep(_ROUND)
            readings.append(soak.reading(applier.pid))
            print(f"{minute + 1:3d} min  {changes:5d} changes  {readings[-1]}", flush=True)
    finally:
        is_done.set()
        writer.join()
        applier.send_signal(signal.SIGTERM)
        applier.wait(600)  # it first finishes a batch with all tables that have changed
    return readings, changes


if __name__ == "__main__":
    sys.exit(main())
