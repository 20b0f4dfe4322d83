"""`replctl sync --watch`: the changes that it finds, the processes that it excludes, its end and
its log.

The tests need no Spark, because they do not have to write a published change.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fix_clock import Clock
from fix_replication import Database
from patience import wait_until

from replctl import apply_worker
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.subscription_error import subscription_error
from replctl.errors import PostgresError, TooManyConnections, UndefinedObject
from replctl.launcher import sync
from replctl.open_node import open_subscriber
from replctl.session import Session
from replctl.watch import Watch

ACTIVE = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE active ORDER BY 1"


@pytest.fixture
def subscriber(cluster: Cluster) -> Database:
    """Return a database with subscription s to an empty publication in database postgres."""
    admin = Database(Session.connect(cluster, "postgres", "postgres"))
    admin.run("CREATE PUBLICATION p")
    admin.run("CREATE DATABASE test_sub")
    opened = Database(Session.connect(cluster, "test_sub", "postgres"))
    subscribe(opened, "s")
    return opened


def subscribe(subscriber: Database, name: str, conninfo: str = "dbname=postgres") -> None:
    subscriber.run(f"CREATE SUBSCRIPTION {name} CONNECTION '{conninfo}' PUBLICATION p")


@contextmanager
def watching(cluster: Cluster, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "replctl", "sync", "--watch", "--interval", "0.05"]
    process = subprocess.Popen(
        [*command, "--home", str(cluster.path), *arguments], stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def messages(cluster: Cluster) -> list[str]:
    return [json.loads(line)["message"] for line in cluster.log_file.read_text().splitlines()]


def recorded_error(cluster: Cluster, oid: object) -> str:
    with cluster.begin(write=False) as connection:
        found = subscription_error(connection, int(str(oid)))
    return "" if found is None else found.message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_until_a_signal(
    cluster: Cluster, subscriber: Database, number: signal.Signals
) -> None:
    with watching(cluster) as process:
        theirs = str(process.pid)
        wait_until(lambda: subscriber.rows(ACTIVE) == [("s", theirs)])
        (failure,) = subscriber.sync()
        assert failure.error.message == f'replication slot "s" is active for PID {theirs}'
        subscribe(subscriber, "later")
        wait_until(lambda: subscriber.rows(ACTIVE) == [("later", theirs), ("s", theirs)])
        subscriber.run("ALTER SUBSCRIPTION s DISABLE")
        subscriber.run("DROP SUBSCRIPTION later")
        assert subscriber.rows(ACTIVE) == []
        subscriber.run("ALTER SUBSCRIPTION s ENABLE")
        wait_until(lambda: subscriber.rows(ACTIVE) == [("s", theirs)])
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert subscriber.rows(ACTIVE) == []
    assert messages(cluster)[0] == (
        'logical replication apply worker for subscription "s" has started'
    )


def test_one_that_fails_stops_no_other(
    tmp_path: Path, cluster: Cluster, subscriber: Database, clock: Clock
) -> None:
    home = tmp_path / "publisher"
    remote = open_cluster(home)
    Database(Session.connect(remote, "postgres", "postgres")).run("CREATE PUBLICATION p")
    subscribe(subscriber, "far", f"host={home} dbname=postgres password=geheim")
    subscribe(subscriber, "near")
    watcher = Watch(subscriber.session, interval=1.0)
    remote.close()
    home.rename(tmp_path / "away")
    (failure,) = watcher.round()
    assert (failure.subscription, failure.error.sqlstate) == ("far", "08006")
    assert [name for name, _pid in subscriber.rows(ACTIVE)] == ["near", "s"]
    for seconds in (2, 4, 8):  # until replctl retries
        clock.now += seconds - 0.1
        assert watcher.round() == []
        clock.now += 0.2
        assert [failure.subscription for failure in watcher.round()] == ["far"]
    (tmp_path / "away").rename(home)
    clock.now += 20
    assert watcher.round() == []
    workers = "SELECT subname FROM pg_stat_subscription WHERE pid IS NOT NULL ORDER BY 1"
    assert subscriber.rows(workers) == [("far",), ("near",), ("s",)]
    watcher.close()
    assert "geheim" not in cluster.log_file.read_text()
    assert sum("could not connect" in message for message in messages(cluster)) == 4


def test_the_slot_of_a_publisher_that_was_away_is_released(
    tmp_path: Path, cluster: Cluster, subscriber: Database
) -> None:
    home, away = tmp_path / "publisher", tmp_path / "away"
    remote = open_cluster(home)
    Database(Session.connect(remote, "postgres", "postgres")).run("CREATE PUBLICATION p")
    subscribe(subscriber, "far", f"host={home} dbname=postgres")
    remote.close()
    watcher = Watch(subscriber.session)
    assert watcher.round() == []
    home.rename(away)
    subscriber.run("ALTER SUBSCRIPTION far DISABLE")
    assert watcher.round() == []
    away.rename(home)
    assert watcher.round() == []
    remote = open_cluster(home)
    admin = Database(Session.connect(remote, "postgres", "postgres"))
    assert admin.rows(ACTIVE) == []
    admin.run("SELECT pg_drop_replication_slot('far')")
    remote.close()
    watcher.close()


def test_a_suspended_process_stops_one_subscription(
    cluster: Cluster, subscriber: Database, clock: Clock, stopped: Callable[[Path], int]
) -> None:
    subscribe(subscriber, "other")
    ((oid,),) = subscriber.rows("SELECT oid FROM pg_subscription WHERE subname = 's'")
    pid = stopped(cluster.path / "lock" / f"subscription-{oid}.lock")
    if sys.platform != "linux":
        pytest.skip("the system does not tell who holds a lock")
    applied: list[str] = []
    watcher = Watch(
        subscriber.session,
        interval=1.0,
        on_applied=lambda item, _applied: applied.append(item.name),
    )
    begun = time.monotonic()
    (failure,) = watcher.round()
    assert time.monotonic() - begun < 15
    assert (failure.subscription, failure.error.sqlstate) == ("s", "55P03")
    assert sorted(applied) == ["other", "s"]
    assert subscriber.rows(ACTIVE) == [("other", str(os.getpid()))]
    assert "suspended" in recorded_error(cluster, oid)
    clock.now += 1.9  # until replctl retries
    assert watcher.round() == []
    os.kill(pid, signal.SIGKILL)
    clock.now += 0.2
    assert watcher.round() == []
    assert [name for name, _pid in subscriber.rows(ACTIVE)] == ["other", "s"]
    watcher.close()


def test_a_sync_reports_the_others_after_an_unforeseen_error(
    cluster: Cluster, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One subscription fails before it connects to its publisher."""
    subscribe(subscriber, "other")

    def refuse(session: Session, subscription: Subscription) -> AbstractContextManager[object]:
        if subscription.name == "s":
            raise TooManyConnections('too many connections for database "test_sub"')
        return open_subscriber(session, subscription)

    monkeypatch.setattr(apply_worker, "open_subscriber", refuse)
    applied: list[str] = []
    failures = sync(subscriber.session, on_applied=lambda item, _applied: applied.append(item.name))
    assert [(item.subscription, item.error.sqlstate) for item in failures] == [("s", "53300")]
    assert sorted(set(applied)) == ["other", "s"]
    assert "too many connections" in recorded_error(cluster, failures[0].oid)


def test_an_idle_round_only_looks(
    subscriber: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watch(subscriber.session)
    assert watcher.round() == []

    def run(*arguments: object) -> object:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr("replctl.launcher.Launcher.run", run)
        assert watcher.round() == []
        clock.now += 11  # it reports from time to time
        with pytest.raises(AssertionError):
            watcher.round()
    subscriber.run("CREATE TABLE somewhere ()")
    assert watcher.round() == []
    watcher.close()


def test_a_name_that_there_is_not(cluster: Cluster, subscriber: Database) -> None:
    with watching(cluster, "nobody") as process:
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert 'subscription "nobody" does not exist' in process.stderr.read()


def test_named_subscriptions_are_renamed_and_dropped(
    cluster: Cluster, subscriber: Database
) -> None:
    subscribe(subscriber, "other")
    subscribe(subscriber, "third")
    watcher = Watch(subscriber.session, ["s", "other"])
    assert watcher.round() == []
    subscriber.run("ALTER SUBSCRIPTION s RENAME TO renamed")
    assert watcher.round() == []
    assert [name for name, _pid in subscriber.rows(ACTIVE)] == ["other", "s"]  # slots
    subscriber.run("DROP SUBSCRIPTION other")
    (failure,) = watcher.round()
    assert failure.error.message == 'subscription "other" does not exist'
    assert (watcher.round(), watcher.must_end) == ([], False)
    subscribe(subscriber, "other")
    assert watcher.round() == []
    assert [name for name, _pid in subscriber.rows(ACTIVE)] == ["other", "s"]
    subscriber.run("DROP SUBSCRIPTION other")
    subscriber.run("DROP SUBSCRIPTION renamed")
    with pytest.raises(UndefinedObject, match='subscription "s" does not exist'):
        watcher.round()
    assert watcher.must_end
    watcher.close()


def test_a_watch_ends_without_its_subscription(cluster: Cluster, subscriber: Database) -> None:
    with watching(cluster, "s") as process:
        wait_until(lambda: subscriber.rows(ACTIVE) == [("s", str(process.pid))])
        subscriber.run("DROP SUBSCRIPTION s")
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert process.stderr.read() == 'ERROR:  subscription "s" does not exist\n'


def test_the_log_is_rotated_and_hides_passwords(cluster: Cluster) -> None:
    error = PostgresError("no", detail="postgresql://u:geheim@h/d and password='ge heim' user=u")
    cluster.log.report_error(error, backend_type="client backend")
    (line,) = cluster.log_file.read_text().splitlines()
    logged = json.loads(line)
    assert logged.pop("timestamp").endswith(" UTC")
    assert logged == {
        "pid": os.getpid(),
        "error_severity": "ERROR",
        "state_code": "XX000",
        "message": "no",
        "detail": "postgresql://u:***@h/d and password=*** user=u",
        "backend_type": "client backend",
    }
    cluster.log_file.write_text("x" * 11_000_000)
    cluster.log.report("new", backend_type="client backend")
    assert messages(cluster) == ["new"]
    assert cluster.log_file.with_suffix(".log.1").stat().st_size == 11_000_000
