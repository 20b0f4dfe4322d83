"""The processes that apply subscriptions: the views that show them, and the waits between them.

The tests need no Spark, because they do not have to write a published change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import ObjectInUse, PostgresError
from replctl.launcher import Launcher, enabled_subscriptions
from replctl.session import Session

#: A program that applies the subscriptions of a cluster.  Then it holds them, or stands by, until
#: its stdin ends.
PROGRAM = """
import sys
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.launcher import Launcher, enabled_subscriptions
from replctl.session import Session
cluster = open_cluster(sys.argv[1])
session = Session.connect(cluster, "test_sub", "postgres")
launcher = Launcher(session)
failures = launcher.sync(enabled_subscriptions(session))
if sys.argv[2] == "attached":
    launcher.close(stays=True)
print(*[failure.error.message for failure in failures], flush=True)
sys.stdin.read()
"""
WORKERS = "SELECT subname, worker_type, pid FROM pg_stat_subscription ORDER BY 1"
SLOTS = "SELECT slot_name, active, active_pid FROM pg_replication_slots ORDER BY 1"
SENDERS = (
    "SELECT pid, usename, application_name, state, sync_state, r.flush_lsn = s.confirmed_flush_lsn"
    " FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid ORDER BY 3"
)
ME = str(os.getpid())


@pytest.fixture
def databases(cluster: Cluster) -> tuple[Database, Database]:
    """Return a publisher and a subscriber, which has subscription s."""
    admin = Database(Session.connect(cluster, "postgres", "postgres"))
    admin.run("CREATE DATABASE test_pub")
    admin.run("CREATE DATABASE test_sub")
    publisher = Database(Session.connect(cluster, "test_pub", "postgres"))
    subscriber = Database(Session.connect(cluster, "test_sub", "postgres"))
    publisher.run("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (a int PRIMARY KEY)")
    subscribe(subscriber, "s")
    return publisher, subscriber


def subscribe(subscriber: Database, name: str, conninfo: str = "dbname=test_pub") -> None:
    subscriber.run(
        f"CREATE SUBSCRIPTION {name} CONNECTION '{conninfo}' PUBLICATION p WITH (copy_data = false)"
    )


@contextmanager
def applier(cluster: Cluster, mode: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield another process that has applied the subscriptions, and its output.  `mode` is
    `attached` or `holding`."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(cluster.path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.communicate()


def failure(subscriber: Database) -> str:
    """Return the reason why the only subscription could not be applied."""
    (found,) = subscriber.sync()
    return f"{found.error.sqlstate}: {found.error.message}"


def refused(database: Database, statement: str) -> str:
    with pytest.raises(PostgresError) as caught:
        database.run(statement)
    return f"{caught.value.sqlstate}: {caught.value.message}"


def test_a_process_stays_attached(databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    subscribe(subscriber, "named", "dbname=test_pub application_name=app")
    assert subscriber.rows(WORKERS) == [("named", None, None), ("s", None, None)]
    assert publisher.rows(SLOTS) == [("named", "f", None), ("s", "f", None)]
    assert subscriber.sync() == []
    assert subscriber.rows(WORKERS) == [("named", "apply", ME), ("s", "apply", ME)]
    assert publisher.rows(SLOTS) == [("named", "t", ME), ("s", "t", ME)]
    shown = {row[:5] for row in publisher.rows(SENDERS)}
    assert shown == {(ME, "postgres", name, "streaming", "async") for name in ("app", "s")}
    query = (
        "SELECT relid, received_lsn <= pg_current_wal_lsn(), latest_end_lsn = received_lsn,"
        " last_msg_send_time <= last_msg_receipt_time, latest_end_time IS NOT NULL"
        " FROM pg_stat_subscription WHERE subname = 's'"
    )
    assert subscriber.rows(query) == [(None, "t", "t", "t", "t")]
    active = f'55006: replication slot "s" is active for PID {ME}'
    assert refused(publisher, "SELECT pg_drop_replication_slot('s')") == active
    assert refused(publisher, "SELECT pg_replication_slot_advance('s', '0/FFFFFFF')") == active
    (oid,) = subscriber.rows("SELECT oid FROM pg_subscription WHERE subname = 's'")
    advance = f"SELECT pg_replication_origin_advance('pg_{oid[0]}', '0/FFFFFFF')"
    assert refused(subscriber, advance).endswith(f" is already active for PID {ME}")
    in_use = '55006: database "test_pub" is used by an active logical replication slot'
    assert refused(subscriber, "DROP DATABASE test_pub") == in_use


def test_who_is_disabled_or_dropped_has_no_worker(databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    subscribe(subscriber, "dropped")
    subscriber.sync()
    subscriber.run("ALTER SUBSCRIPTION s DISABLE")
    (oid,) = subscriber.rows("SELECT oid FROM pg_subscription WHERE subname = 's'")
    subscriber.run(f"SELECT pg_replication_origin_advance('pg_{oid[0]}', '0/1')")
    subscriber.run("DROP SUBSCRIPTION dropped")
    assert subscriber.rows(WORKERS) == [("s", None, None)]
    assert publisher.rows(SLOTS) == [("s", "f", None)]
    subscriber.run("ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s")
    publisher.run("SELECT pg_drop_replication_slot('s')")
    assert publisher.rows("SELECT * FROM pg_stat_replication") == []


def test_a_slot_is_inactive_since_it_was_left(databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    since = "SELECT inactive_since FROM pg_replication_slots"
    before = publisher.rows(since)
    subscriber.sync()
    assert publisher.rows(since) == [(None,)]
    subscriber.run("ALTER SUBSCRIPTION s DISABLE")
    assert publisher.rows(since) > before


def test_a_worker_is_renamed_with_its_subscription(databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    subscribe(subscriber, "named", "dbname=test_pub application_name=app")
    subscriber.sync()
    subscriber.run("ALTER SUBSCRIPTION s RENAME TO renamed")
    subscriber.run("ALTER SUBSCRIPTION named RENAME TO other")
    assert subscriber.rows(WORKERS) == [("other", "apply", ME), ("renamed", "apply", ME)]
    names = "SELECT application_name FROM pg_stat_replication ORDER BY 1"
    assert publisher.rows(names) == [("app",), ("renamed",)]


def test_a_database_takes_its_inactive_slots_along(databases: tuple[Database, Database]) -> None:
    _publisher, subscriber = databases
    subscriber.run("ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE)")
    subscriber.run("DROP DATABASE test_pub")
    assert subscriber.rows(SLOTS) == []


def test_one_applier_at_a_time(cluster: Cluster, databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    with applier(cluster, "holding") as (process, _output):
        theirs = str(process.pid)
        assert subscriber.rows(WORKERS) == [("s", "apply", theirs)]
        active = f'55006: replication slot "s" is active for PID {theirs}'
        assert failure(subscriber) == active
        assert publisher.rows(SLOTS) == [("s", "t", theirs)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert subscriber.rows(WORKERS) == [("s", None, None)]
        assert subscriber.sync() == []
        assert publisher.rows(SLOTS) == [("s", "t", ME)]


def test_who_is_merely_attached_gives_way(
    cluster: Cluster, databases: tuple[Database, Database]
) -> None:
    publisher, subscriber = databases
    subscriber.sync()
    with applier(cluster, "attached") as (process, output):
        assert output == ""
        assert publisher.rows(SLOTS) == [("s", "t", str(process.pid))]
        assert subscriber.sync() == []
        assert subscriber.rows(WORKERS) == [("s", "apply", ME)]


def test_a_failed_worker_leaves(databases: tuple[Database, Database]) -> None:
    publisher, subscriber = databases
    subscriber.sync()
    subscriber.run("ALTER SUBSCRIPTION s CONNECTION 'dbname=nowhere'")
    assert publisher.rows(SLOTS) == [("s", "f", None)]
    assert failure(subscriber).startswith("08006: could not connect to the publisher")
    assert subscriber.rows(WORKERS) == [("s", None, None)]


def test_a_publisher_in_another_cluster(
    tmp_path: Path, cluster: Cluster, databases: tuple[Database, Database]
) -> None:
    _publisher, subscriber = databases
    other = open_cluster(tmp_path / "other")
    remote = Database(Session.connect(other, "postgres", "postgres"))
    remote.run("CREATE PUBLICATION p")
    subscribe(subscriber, "far", f"host={other.path} dbname=postgres")
    assert subscriber.sync() == []
    assert remote.rows(SLOTS) == [("far", "t", ME)]
    subscriber.run("ALTER SUBSCRIPTION far DISABLE")
    assert remote.rows(SLOTS) == [("far", "f", None)]
    subscriber.run("ALTER SUBSCRIPTION far ENABLE")
    with applier(cluster, "holding") as (process, _output):
        assert remote.rows(SLOTS) == [("far", "t", str(process.pid))]
    assert remote.rows(SLOTS) == [("far", "f", None)]
    other.close()


def test_a_slot_is_read_by_one_subscription(
    cluster: Cluster, databases: tuple[Database, Database]
) -> None:
    """Two subscriptions use one slot.  The second one finds it active, as on a server."""
    _publisher, subscriber = databases
    subscriber.run(
        "CREATE SUBSCRIPTION thief CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_slot = false, slot_name = 's', copy_data = false)"
    )
    launcher = Launcher(subscriber.session)
    first, second = enabled_subscriptions(subscriber.session)
    assert launcher.run(first) == (None, None)
    _moved, failure = launcher.run(second)
    assert failure is not None
    assert isinstance(failure.error, ObjectInUse)
    assert failure.error.message == f'replication slot "s" is active for PID {ME}'
    launcher.close(stays=False)
