"""A subscription that would have to wait for the transaction of another process, and the end of
such waits.

The tests need no Spark: they apply TRUNCATE of empty tables, and begin copies.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fix_clock import Clock
from fix_replication import Database
from patience import PATIENCE, wait_until

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.status import SubscriptionStatus, subscription_status
from replctl.watch import Watch

_TABLES = "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)"
_OPEN_BLOCK = "BEGIN; ALTER TABLE t ADD COLUMN v int;\n\\echo open\n"


@pytest.fixture
def publisher(cluster: Cluster) -> Database:
    """Return database postgres, with publications pt and pu, each of one empty table."""
    opened = Database(Session.connect(cluster, "postgres", "postgres"))
    opened.run(_TABLES)
    opened.run("CREATE PUBLICATION pt FOR TABLE t; CREATE PUBLICATION pu FOR TABLE u")
    opened.run("CREATE DATABASE test_sub")
    return opened


@pytest.fixture
def subscriber(cluster: Cluster, publisher: Database) -> Database:
    """Return a database with subscriptions st and su, whose tables are ready."""
    opened = Database(Session.connect(cluster, "test_sub", "postgres"))
    opened.run(_TABLES)
    for table in "tu":
        opened.run(
            f"CREATE SUBSCRIPTION s{table} CONNECTION 'dbname=postgres' PUBLICATION p{table}"
            " WITH (copy_data = false, disable_on_error = true)"
        )
    return opened


@contextmanager
def replctl(cluster: Cluster, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command, and kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "replctl", "--home", str(cluster.path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def holder(cluster: Cluster, subscriber: Database) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has changed the subscriber's table t in an open transaction."""
    with replctl(cluster, "-X", "-q", "-d", "test_sub") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_OPEN_BLOCK)
        process.stdin.flush()
        assert process.stdout.readline() == "open\n"
        yield process


def status(database: Database, name: str = "st") -> SubscriptionStatus:
    (found,) = subscription_status(database.session, [name])
    return found


def shown_error(database: Database) -> str:
    error = status(database).error
    return "" if error is None else error.message.partition("\n")[0]


def test_only_the_subscription_that_needs_the_table_waits(
    cluster: Cluster,
    publisher: Database,
    subscriber: Database,
    clock: Clock,
    holder: subprocess.Popen[str],
) -> None:
    notices: list[str] = []
    subscriber.session.on_notice = lambda notice: notices.append(notice.message)
    watcher = Watch(subscriber.session)
    publisher.run("TRUNCATE t")
    for _round in range(3):
        publisher.run("TRUNCATE u")
        assert watcher.round() == []
        clock.now += 2.1
        assert (status(subscriber).state, status(subscriber, "su").state) == ("waiting", "active")
        assert status(subscriber, "su").lag.transactions == 0
        assert status(subscriber).lag.transactions == 1
    assert shown_error(subscriber) == f"waiting for process {holder.pid}"
    assert notices == [f'subscription "st" is waiting for process {holder.pid}']
    holder.kill()
    holder.wait()
    assert watcher.round() == []
    assert (status(subscriber).state, status(subscriber).lag.transactions) == ("active", 0)
    assert subscriber.rows("SELECT apply_error_count FROM pg_stat_subscription_stats") == [
        ("0",),
        ("0",),
    ]
    watcher.close()


def test_a_copy_that_waits(
    subscriber: Database, clock: Clock, holder: subprocess.Popen[str]
) -> None:
    """It is retried after a constant time."""
    subscriber.run("ALTER SUBSCRIPTION st REFRESH TABLE t")
    watcher = Watch(subscriber.session)
    for _attempt in range(3):
        assert watcher.round() == []
        assert shown_error(subscriber) == f"waiting for process {holder.pid}"
        clock.now += 2.1
    holder.kill()
    holder.wait()
    (failure,) = watcher.round()  # the copy begins
    assert failure.error.message == "this session has no Spark"
    watcher.close()


def test_a_wait_ends_with_its_process(
    publisher: Database, subscriber: Database, holder: subprocess.Popen[str]
) -> None:
    publisher.run("TRUNCATE t")
    watcher = Watch(subscriber.session)
    assert watcher.round() == []
    assert status(subscriber).state == "waiting"
    watcher.close()
    assert (status(subscriber).state, shown_error(subscriber)) == ("inactive", "")


def _refresh(publisher: Database, subscriber: Database) -> None:
    subscriber.run("ALTER SUBSCRIPTION st REFRESH TABLE t")


def _truncate(publisher: Database, subscriber: Database) -> None:
    publisher.run("TRUNCATE t")


@pytest.mark.parametrize("begin", [_refresh, _truncate])
@pytest.mark.parametrize(
    ("arguments", "number", "exit_code"),
    [
        (("sync", "--watch"), signal.SIGTERM, 0),
        (("sync", "--watch"), signal.SIGINT, 0),
        (("sync",), signal.SIGINT, 1),
        (("sync", "st"), signal.SIGINT, 1),
    ],
)
def test_a_signal_ends_a_wait(
    cluster: Cluster,
    publisher: Database,
    subscriber: Database,
    holder: subprocess.Popen[str],
    begin: Callable[[Database, Database], None],
    arguments: tuple[str, ...],
    number: signal.Signals,
    exit_code: int,
) -> None:
    begin(publisher, subscriber)
    with replctl(cluster, *arguments) as process:
        wait_until(lambda: status(subscriber).pid == process.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(number)
        assert process.wait(PATIENCE / 4) == exit_code
    assert status(subscriber).pid is None
