#!/usr/bin/env python3
"""Inject faults into replication, and count lost and doubled rows.  There must be none.

    python -m benchmarks.faults [--kills N] [--repeat N] [--seed N] [--only KIND ...]

The program makes two clusters: a publisher, and a subscriber with two subscriptions (row filters, a
partitioned table, a table without a key).  In every round the publisher commits random changes.
Then `replctl sync` runs as a separate process, while the program injects a fault.  After
one more sync, the program compares the subscriber's rows with the publisher's filtered rows.
SPARK_REMOTE names the Connect server to use; without it, the program starts one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.process
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from replctl.catalog.open_cluster import open_cluster
from replctl.errors import PostgresError, QueryCanceled
from replctl.execute import execute
from replctl.injection_point import POINTS
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import SparkConf, open_engine, temporary_server

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_TABLES = """
CREATE TABLE keyed (id int PRIMARY KEY, region text, v text);
ALTER TABLE keyed REPLICA IDENTITY FULL;
CREATE TABLE loose (a int, b text);
ALTER TABLE loose REPLICA IDENTITY FULL;
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (500);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (500) TO (MAXVALUE);
"""
#: For each table of the publication, a query of its rows, and the condition for the rows of a
#: subscriber.
_PUBLISHED = {
    "keyed": ("SELECT 'keyed', id, region, v FROM keyed", "region = 'NSW'"),
    "loose": ("SELECT 'loose', a, b, NULL FROM loose", "TRUE"),
    "parted": ("SELECT 'parted', id, v, NULL FROM parted", "id % 2 = 0"),
}
#: The tables of each subscription, which has the name of its database.
_SUBSCRIBED = {"sub1": ("keyed", "loose", "parted"), "sub2": ("keyed", "loose")}
_OWN_ID = 1_000_000  # keys from this number upwards belong to the subscriber
_STATE_OF_COPIES = "tablesync."
_ATTEMPTS = 5  # attempts to inject a fault before the applier is finished
#: A function that injects a fault, and returns whether it succeeded.
_Fault: TypeAlias = Callable[["Lake"], bool]
_POINTS = tuple(p for p in POINTS if p.startswith(("tablesync.", "apply.")))
#: The modules that an applier needs.  Loading them only once saves most of its time.
_APPLIERS_MODULES = (
    "replctl.launcher", "replctl.spark.engine", "pyspark.sql.connect.session", "delta.tables",
)  # fmt: skip
_Applier: TypeAlias = multiprocessing.process.BaseProcess
_processes = multiprocessing.get_context("forkserver")


def _apply(home: Path, remote: str, point: str) -> None:
    """Run the applier, and return its exit code: 0 if all changes are applied, 1 if an error
    stopped it.
    """
    os.environ["REPLCTL_INJECTION_POINT"] = f"{point}:kill" if point else ""
    cluster = open_cluster(home)
    session = Session.connect(
        cluster, "postgres", "postgres", engine=lambda: open_engine(SparkConf(remote=remote))
    )
    failures = sync(session)
    cluster.close()
    os._exit(1 if failures else 0)


def _finished(applier: _Applier) -> int:
    """Return the exit code of a process; minus the number of the signal if a signal killed it."""
    applier.join(300)
    assert applier.exitcode is not None, "the applier does not end"
    return applier.exitcode


#: Points at which the newest commit of the catalog is the last write.  All earlier writes are on
#: the disk, even if the power fails.
_TEARABLE = (
    "tablesync.after-snapshot", "tablesync.before-write", "tablesync.after-finishedcopy",
    "tablesync.before-syncdone", "tablesync.before-ready", "apply.before-batch",
    "apply.after-batch", "apply.after-progress",
)  # fmt: skip


@dataclass
class Outcome:
    """The result of one kind of fault."""

    injected: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: list[float] = field(default_factory=list)


class Lake:
    """A publisher's cluster, a subscriber's cluster, and commands for them."""

    def __init__(self, folder: Path, remote: str, engine: Engine, seed: int) -> None:
        self.publisher, self.subscriber = folder / "publisher", folder / "subscriber"
        self.remote = remote
        self._engine = engine
        self.random = random.Random(seed)

    # -- statements, in this process

    @contextmanager
    def session(self, home: Path, database: str) -> Iterator[Session]:
        """Yield a session of this process, and close everything afterwards."""
        cluster = open_cluster(home)
        try:
            yield Session.connect(cluster, database, "postgres", engine=lambda: self._engine)
        finally:
            cluster.close()

    def run(self, home: Path, database: str, script: str) -> None:
        """Run statements, one after the other."""
        with self.session(home, database) as session:
            for statement in script.split(";\n"):
                for _result in execute(session, statement.strip(";\n ")):
                    pass

    def rows(self, home: Path, database: str, query: str) -> Counter[tuple[object, ...]]:
        """Return the rows of a query, as a multiset."""
        with self.session(home, database) as session:
            (result,) = execute(session, query)
            return Counter(tuple(row) for row in result.rows)

    def sync(self) -> None:
        """Sync again, as an operator does after a fault, until all changes are applied."""
        for attempt in range(5):
            with self.session(self.subscriber, "postgres") as session:
                failures = sync(session)
            if not failures:
                return
            time.sleep(attempt)
        raise failures[0].error

    # -- processes

    def applier(self, point: str = "") -> _Applier:
        """Run `replctl sync` as a separate process, forked from a process that has loaded all
        modules.
        """
        applier = _processes.Process(target=_apply, args=(self.subscriber, self.remote, point))
        applier.start()
        return applier

    # -- the work

    def build(self) -> None:
        """Make the tables with their rows, and the publications."""
        self.run(self.publisher, "postgres", "CREATE DATABASE pub")
        for database in ("sub1", "sub2"):
            self.run(self.subscriber, "postgres", f"CREATE DATABASE {database}")
            self.run(self.subscriber, database, _TABLES)
        self.run(
            self.publisher,
            "pub",
            f"{_TABLES}CREATE PUBLICATION p1 FOR TABLE keyed WHERE (region = 'NSW'), loose;\n"
            "CREATE PUBLICATION p2 FOR TABLE parted WHERE (id % 2 = 0)"
            " WITH (publish_via_partition_root);\n"
            "INSERT INTO keyed SELECT g, CASE g % 2 WHEN 0 THEN 'NSW' ELSE 'VIC' END, 'row ' || g"
            " FROM generate_series(1, 200) g;\n"
            "INSERT INTO loose SELECT g % 20, 'x' FROM generate_series(1, 60) g;\n"
            "INSERT INTO parted SELECT g, 'row' FROM generate_series(400, 600) g",
        )
        self.subscribe()

    def subscribe(self) -> None:
        """Subscribe again, so that the next sync makes initial copies."""
        conninfo = f"host={self.publisher} dbname=pub"
        for database, publications in (("sub1", "p1, p2"), ("sub2", "p1")):
            self.run(
                self.subscriber,
                database,
                f"DROP SUBSCRIPTION IF EXISTS {database};\nTRUNCATE keyed, loose, parted;\n"
                f"CREATE SUBSCRIPTION {database} CONNECTION '{conninfo}'"
                f" PUBLICATION {publications}",
            )

    def change(self) -> None:
        """Run one to three random transactions of the publisher."""
        for _transaction in range(self.random.randint(1, 2)):
            statements = [self._statement() for _ in range(self.random.choice((1, 1, 1, 2)))]
            if len(statements) > 1:
                statements = ["BEGIN", *statements, "COMMIT"]
            self.run(self.publisher, "pub", ";\n".join(statements))

    def _statement(self) -> str:
        number, region = self.random.randint(1, 300), self.random.choice(("NSW", "VIC"))
        fresh = self.random.randint(1000, 900_000)
        return self.random.choice(
            (
                f"UPDATE keyed SET region = '{region}', v = v || '+' WHERE id % 7 = {number % 7}",
                f"DELETE FROM keyed WHERE id = {number}",
                f"INSERT INTO keyed SELECT {fresh}, '{region}', 'new' WHERE NOT EXISTS"
                f" (SELECT 1 FROM keyed WHERE id = {fresh})",
                f"UPDATE parted SET v = 'v{number}' WHERE id % 5 = {number % 5}",
                "UPDATE parted SET id = 1001 - id",
                f"DELETE FROM parted WHERE id = {400 + number % 200}",
                f"INSERT INTO loose VALUES ({number % 20}, 'y'), ({number % 20}, 'y')",
                f"DELETE FROM loose WHERE a = {number % 20} AND b = 'y'",
                f"UPDATE loose SET b = 'z{number % 5}' WHERE a = {number % 20}",
            )
        )

    def compare(self, outcome: Outcome) -> None:
        """Return the number of rows that a subscriber lacks, and the number of rows that it should
        not have.
        """
        filtered = [f"{rows} WHERE {condition}" for rows, condition in _PUBLISHED.values()]
        sent = self.rows(self.publisher, "pub", " UNION ALL ".join(filtered))
        for database, tables in _SUBSCRIBED.items():
            expected = Counter({row: count for row, count in sent.items() if row[0] in tables})
            there = " UNION ALL ".join(_PUBLISHED[table][0] for table in tables)
            not_own = f"SELECT * FROM ({there}) AS q (name, key) WHERE key < {_OWN_ID}"
            actual = self.rows(self.subscriber, database, not_own)
            outcome.lost += (expected - actual).total()
            outcome.doubled += (actual - expected).total()


# ---------------------------------------------------------------------------------------------
# Faults


def _kill_at_point(lake: Lake, point: str) -> bool:
    if point.startswith(_STATE_OF_COPIES):
        lake.subscribe()
    return _finished(lake.applier(point)) == -signal.SIGKILL


def _kill_at_random(lake: Lake, duration: float) -> bool:
    applier = lake.applier()
    time.sleep(lake.random.uniform(0.15, 1.0) * duration)
    applier.kill()
    return _finished(applier) == -signal.SIGKILL


def _tear_wal(lake: Lake, point: str) -> bool:
    """Kill the process right after a commit of the catalog, and cut off the end of this commit on
    the disk.
    """
    if not _kill_at_point(lake, point):
        return False
    wal = lake.subscriber / "catalog.db-wal"
    if not wal.exists():
        return False
    bounds = _last_transaction(wal.read_bytes())
    if bounds is None:
        return False
    os.truncate(wal, lake.random.randrange(*bounds))
    (lake.subscriber / "catalog.db-shm").unlink(missing_ok=True)
    return True


def _last_transaction(wal: bytes) -> tuple[int, int] | None:
    """Return the beginning and the end of the last transaction in SQLite's write-ahead log.

    The log (SQLite's file format, section 4) has a header of 32 bytes, then frames with headers of
    24 bytes.  In the last frame of a commit, this header has the size of the database.  Only frames
    with the salt of the log's header are valid.
    """
    if len(wal) < 32:
        return None
    page_size, salt = struct.unpack_from(">I", wal, 8)[0], wal[16:24]
    ends = []
    for start in range(32, len(wal) - 24 - page_size + 1, 24 + page_size):
        if wal[start + 8 : start + 16] != salt:
            break
        if struct.unpack_from(">I", wal, start + 4)[0]:
            ends.append(start + 24 + page_size)
    return (ends[-2] if len(ends) > 1 else 32, ends[-1]) if ends else None


def _fill_disk(lake: Lake) -> bool:
    """Apply changes while the subscriber's disk has little room left."""
    free = shutil.disk_usage(lake.subscriber).free
    ballast = lake.subscriber / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - lake.random.randrange(4096, 400_000)))
    try:
        return _finished(lake.applier()) != 0
    finally:
        ballast.unlink()


def _lose_store(lake: Lake, duration: float) -> bool:
    """Make the directory of the tables unreachable for a while.  The directory is a symbolic link,
    which then points to nothing or to itself.
    """
    store = lake.subscriber / "base"
    if not store.is_symlink():
        store.rename(lake.subscriber / "store")
        store.symlink_to("store")
    applier = lake.applier()
    time.sleep(lake.random.uniform(0.0, 0.8) * duration)
    store.unlink()
    store.symlink_to(lake.random.choice(("nowhere", "base")))
    applier.join(lake.random.uniform(0.2, 5.0))
    store.unlink()
    store.symlink_to("store")
    return _finished(applier) != 0


def _lose_publisher(lake: Lake, duration: float) -> bool:
    """Move the publisher's cluster away for a while."""
    hidden = lake.publisher.with_name("hidden")
    applier = lake.applier()
    time.sleep(lake.random.uniform(0.0, 0.8) * duration)
    lake.publisher.rename(hidden)
    applier.join(lake.random.uniform(0.2, 5.0))
    hidden.rename(lake.publisher)
    return _finished(applier) != 0


def _write_meanwhile(lake: Lake) -> bool:
    """Let another writer commit rows of its own to the subscriber's tables while changes are
    applied.
    """
    with lake.session(lake.subscriber, "sub1") as session:
        (result,) = execute(session, "SELECT pg_relation_filepath('keyed')")
        location = str(result.rows[0][0])
    is_done = threading.Event()

    def write() -> None:
        key = _OWN_ID + lake.random.randrange(1_000_000)
        while not is_done.is_set():
            statement = f"INSERT INTO delta.`{location}` SELECT {key}, 'own', 'own'"
            try:
                lake._engine.run(statement)
                lake._engine.run(f"DELETE FROM delta.`{location}` WHERE id = {key}")
            except PostgresError:  # an intended conflict, which the other writer loses
                continue

    writer = threading.Thread(target=write)
    writer.start()
    try:
        _finished(lake.applier())
    finally:
        is_done.set()
        writer.join()
    return True


def _two_appliers(lake: Lake) -> bool:
    """Start two appliers at once.  One of them applies the changes."""
    appliers = [lake.applier(), lake.applier()]
    for applier in appliers:
        _finished(applier)
    return True


def _faults(kills: int, repeat: int, duration: float) -> Iterator[tuple[str, _Fault]]:
    for point in _POINTS:
        yield "kill -9 at a named point", partial(_kill_at_point, point=point)
    for point in _TEARABLE:
        yield "torn write-ahead log", partial(_tear_wal, point=point)
    for _ in range(repeat):
        yield "full disk", _fill_disk
        yield "unreachable store", partial(_lose_store, duration=duration)
        yield "unreachable publisher", partial(_lose_publisher, duration=duration)
        yield "concurrent writer", _write_meanwhile
        yield "two appliers", _two_appliers
    for _ in range(kills):
        yield "kill -9 at a random moment", partial(_kill_at_random, duration=duration)


# ---------------------------------------------------------------------------------------------


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system for the subscriber, so that it can be filled.  Yield whether the
    mount succeeded.
    """
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(folder)]
    is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def main() -> int:
    """Inject the faults, and print a line for each kind.  Return 1 if a row was lost or doubled."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200, help="at random moments")
    parser.add_argument("--repeat", type=int, default=10, help="times of each other fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", nargs="*", default=[], help="kinds of faults, by a part of the name"
    )
    arguments = parser.parse_args()
    _processes.set_forkserver_preload(list(_APPLIERS_MODULES))
    given = os.environ.get("SPARK_REMOTE")
    server = nullcontext(given) if given else temporary_server("3g")
    with (
        tempfile.TemporaryDirectory() as name,
        server as remote,
        _small_disk(Path(name) / "subscriber") as is_small,
    ):
        lake = Lake(Path(name), remote, open_engine(SparkConf(remote=remote)), arguments.seed)
        lake.build()
        _finished(lake.applier())
        outcomes: dict[str, Outcome] = {}
        # A shell ignores SIGINT in background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for kind, inject in _faults(arguments.kills, arguments.repeat, _duration_of_sync(lake)):
                is_wanted = not arguments.only or any(part in kind for part in arguments.only)
                if is_wanted and (is_small or kind != "full disk"):
                    outcome = outcomes.setdefault(kind, Outcome())
                    for _attempt in range(_ATTEMPTS):
                        if _one_round(lake, inject, outcome, kind):
                            break
        except (KeyboardInterrupt, QueryCanceled):
            print("Interrupted. These faults were injected and compared until then:")
    return _report(outcomes, is_small)


def _one_round(lake: Lake, inject: Callable[[Lake], bool], outcome: Outcome, kind: str) -> bool:
    """Change rows, inject a fault, recover, and compare.  Return whether the applier still ran when
    the fault was injected.
    """
    lake.change()
    is_injected = inject(lake)
    start = time.monotonic()
    lake.sync()
    seconds = time.monotonic() - start
    before = (outcome.lost, outcome.doubled)
    lake.compare(outcome)
    outcome.injected += is_injected
    outcome.seconds.append(seconds)
    print(f"{kind} {outcome.injected}: recovered in {outcome.seconds[-1]:.1f} s", file=sys.stderr)
    if before != (outcome.lost, outcome.doubled):
        print(f"after {kind}, round {outcome.injected}: {outcome}", file=sys.stderr)
        lake.subscribe()
        lake.sync()
    return is_injected


def _duration_of_sync(lake: Lake) -> float:
    """Return the seconds that a process needs to apply some changes: the median of three runs."""
    taken = []
    for _ in range(3):
        lake.change()
        start = time.monotonic()
        _finished(lake.applier())
        taken.append(time.monotonic() - start)
    return statistics.median(taken)


def _report(outcomes: dict[str, Outcome], is_small: bool) -> int:
    print(f"{'fault':28s} injected  lost rows  doubled rows  recovery (median)")
    for kind, item in outcomes.items():
        median = statistics.median(item.seconds or [0.0])
        counts = f"{item.injected:8d}  {item.lost:9d}  {item.doubled:12d}"
        print(f"{kind:28s} {counts}  {median:15.1f} s")
    total = sum(outcome.injected for outcome in outcomes.values())
    lost = sum(outcome.lost for outcome in outcomes.values())
    doubled = sum(outcome.doubled for outcome in outcomes.values())
    print(f"{'all':28s} {total:8d}  {lost:9d}  {doubled:12d}")
    if not is_small:
        print("The disk was not filled: a file system of its own cannot be mounted here.")
    return int(bool(lost or doubled))


if __name__ == "__main__":
    sys.exit(main())
