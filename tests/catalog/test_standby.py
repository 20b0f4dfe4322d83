"""A standby, without Spark: the data of its primary, and the statements that it refuses.

Errors, DETAILs and HINTs are those of a PostgreSQL 17 standby.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_replication import Database
from fix_standby import READY, make_slot, stored_rows

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_replication_slots import ReplicationSlot, create_slot
from replctl.catalog.pg_wal import CHANGE, entries_between
from replctl.catalog.promotion import promote
from replctl.catalog.standby import WalReceiver, attached, create_standby, receive
from replctl.errors import (
    CannotConnectNow,
    ConnectionFailure,
    IoError,
    LockNotAvailable,
    Notice,
    ObjectNotInPrerequisiteState,
    PostgresError,
    TooManyConnections,
)
from replctl.lake.publisher import LakePublisher
from replctl.psql import standby_command
from replctl.psql.stop_signals import StopSignals
from replctl.session import Session

_SLOTS = (
    "SELECT slot_name, slot_type, failover, synced, temporary FROM pg_replication_slots ORDER BY 1"
)


def test_standby_follows_the_catalog(primary: Database, standby: Database) -> None:
    primary.run("CREATE TABLE u (b text); DROP SEQUENCE s; ALTER TABLE t ADD c int")
    names = "SELECT relname FROM pg_class WHERE relnamespace = 2200 AND relkind <> 'i' ORDER BY 1"
    assert standby.rows(names) == [("s",), ("t",)]
    assert receive(standby.session.cluster) == []
    assert standby.rows(names) == [("t",), ("u",)] == primary.rows(names)
    ((lsn, same),) = standby.rows(
        "SELECT pg_last_wal_receive_lsn(), pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()"
    )
    assert same == "t"
    assert primary.rows("SELECT pg_current_wal_lsn()") == [(lsn,)]
    confirmed = "SELECT restart_lsn FROM pg_replication_slots WHERE slot_type = 'physical'"
    assert primary.rows(confirmed) == [(lsn,)]


def test_every_table_of_the_catalog_follows(primary: Database, standby: Database) -> None:
    primary.run("CREATE TABLE u (b serial, CHECK (b > 0)); CREATE PUBLICATION q FOR TABLE u")
    receive(standby.session.cluster)
    for query in ("SELECT * FROM pg_class", "SELECT * FROM pg_publication_rel ORDER BY oid"):
        assert sorted(standby.rows(query), key=str) == sorted(primary.rows(query), key=str)
    assert stored_rows(standby) == stored_rows(primary)


def test_slots_are_the_primary_s_alone_until_they_are_synchronized(
    primary: Database, standby: Database
) -> None:
    make_slot(primary, "sub2", failover=False)
    assert standby.rows(_SLOTS) == []
    standby.rows("SELECT pg_sync_replication_slots()")
    assert standby.rows(_SLOTS) == [("sub1", "logical", "t", "t", "f")]
    assert standby.rows(READY) == [("sub1", "t")]
    primary.rows("SELECT pg_drop_replication_slot('sub1')")
    standby.run("ALTER SYSTEM SET sync_replication_slots = off")
    receive(standby.session.cluster)
    assert standby.rows(READY) == [("sub1", "t")]
    standby.run("ALTER SYSTEM SET sync_replication_slots = on")
    receive(standby.session.cluster)
    assert standby.rows(_SLOTS) == []


def test_a_slot_that_is_ahead_of_the_standby_is_not_synchronized(
    primary: Database, standby: Database
) -> None:
    primary.run("CREATE TABLE u ()")
    primary.rows("SELECT pg_replication_slot_advance('sub1', pg_current_wal_lsn())")
    with pytest.raises(
        ObjectNotInPrerequisiteState, match=r"skipping slot synchronization because"
    ):
        standby.rows("SELECT pg_sync_replication_slots()")
    assert receive(standby.session.cluster) == []
    assert standby.rows(READY) == [("sub1", "t")]


def test_a_local_slot_of_the_same_name_stops_synchronization(
    primary: Database, standby: Database
) -> None:
    make_slot(standby, "sub1", failover=False)
    message = (
        'exiting from slot synchronization because same name slot "sub1" already exists on the'
        " standby"
    )
    with pytest.raises(ObjectNotInPrerequisiteState, match=message):
        standby.rows("SELECT pg_sync_replication_slots()")
    primary.run("CREATE TABLE u ()")
    (problem,) = receive(standby.session.cluster)
    assert problem.message == message
    assert standby.rows("SELECT relname FROM pg_class WHERE relname = 'u'") == [("u",)]
    standby.rows("SELECT pg_drop_replication_slot('sub1')")
    assert receive(standby.session.cluster) == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO t VALUES (7)", "cannot execute INSERT in a read-only transaction"),
        ("UPDATE t SET a = a", "cannot execute UPDATE in a read-only transaction"),
        ("TRUNCATE t", "cannot execute TRUNCATE TABLE in a read-only transaction"),
        ("CREATE TABLE u (a int)", "cannot execute CREATE TABLE in a read-only transaction"),
        ("CREATE TABLE v AS SELECT 1", "cannot execute CREATE TABLE AS in a read-only transaction"),
        ("CREATE DATABASE x", "cannot execute CREATE DATABASE in a read-only transaction"),
        ("DROP PUBLICATION p", "cannot execute DROP PUBLICATION in a read-only transaction"),
        (
            "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p",
            "cannot execute CREATE SUBSCRIPTION in a read-only transaction",
        ),
        ("ALTER PUBLICATION p RENAME TO r", "cannot execute ALTER PUBLICATION in a read-only"),
        ("SELECT nextval('s')", r"cannot execute nextval\(\) in a read-only transaction"),
        ("SELECT setval('s', 4)", r"cannot execute setval\(\) in a read-only transaction"),
        ("SELECT pg_current_wal_lsn()", "recovery is in progress"),
        ("SELECT pg_current_wal_insert_lsn()", "recovery is in progress"),
        ("BEGIN READ WRITE", "cannot set transaction read-write mode during recovery"),
        (
            "SELECT pg_create_logical_replication_slot('f', 'pgoutput', false, false, true)",
            "cannot enable failover for a replication slot created on the standby",
        ),
        ("SELECT pg_drop_replication_slot('sub1')", 'cannot drop replication slot "sub1"'),
        (
            "SELECT pg_replication_slot_advance('sub1', '0/9000000')",
            'cannot use replication slot "sub1" for logical decoding',
        ),
        (
            "SELECT pg_replication_origin_create('o')",
            "cannot manipulate replication origins during recovery",
        ),
        ("SELECT pg_promote(true, -1)", '"wait_seconds" must not be negative or zero'),
    ],
)
def test_a_standby_changes_nothing(standby: Database, statement: str, message: str) -> None:
    receive(standby.session.cluster)
    with pytest.raises(PostgresError, match=message):
        standby.rows(statement)


def test_failover_slots_do_not_pass_the_standbys(primary: Database, standby: Database) -> None:
    make_slot(primary, "sub2", failover=False)
    primary.run("ALTER SYSTEM SET synchronized_standby_slots = 'standby1'")
    primary.run("CREATE TABLE u ()")
    session = Session.connect(primary.session.cluster, "postgres", "postgres")
    publisher, notices = LakePublisher(session), list[Notice]()
    session.on_notice = notices.append
    end, confirmed = publisher.slots.current_lsn(), standby.session.cluster.control().insert_lsn
    assert (publisher.slots.sendable_lsn("sub1"), publisher.slots.sendable_lsn("sub2")) == (
        confirmed,
        end,
    )
    assert [
        (notice.severity, notice.message, notice.detail, notice.hint) for notice in notices
    ] == [
        (
            "WARNING",
            'replication slot "standby1" specified in parameter "synchronized_standby_slots" does'
            " not have active_pid",
            "Logical replication is waiting on the standby associated with replication slot"
            ' "standby1".',
            'Start the standby associated with the replication slot "standby1", or amend parameter'
            ' "synchronized_standby_slots".',
        )
    ]
    active = "SELECT active FROM pg_replication_slots WHERE slot_name = 'standby1'"
    with attached(standby.session.cluster) as receiver:
        assert publisher.slots.sendable_lsn("sub1") == confirmed
        receiver.receive()
        assert publisher.slots.sendable_lsn("sub1") == end
        assert primary.rows(active) == [("t",)]
        assert primary.rows("SELECT application_name, state FROM pg_stat_replication") == [
            ("walreceiver", "streaming")
        ]
    assert primary.rows(active) == [("f",)]
    assert len(notices) == 1


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("standby1, standby2", 'replication slot "standby2" .* does not exist'),
        ("sub1", 'cannot specify logical replication slot "sub1" in parameter'),
    ],
)
def test_standbys_that_cannot_be_waited_for(
    primary: Database, standby: Database, named: str, message: str
) -> None:
    primary.run(f"ALTER SYSTEM SET synchronized_standby_slots = '{named}'")
    session = Session.connect(primary.session.cluster, "postgres", "postgres")
    notices: list[Notice] = []
    session.on_notice = notices.append
    assert LakePublisher(session).slots.sendable_lsn("sub1") == 0
    (notice,) = notices
    assert re.match(message, notice.message)


def test_a_standby_s_slots_for_subscribers(primary: Database, standby: Database) -> None:
    receive(standby.session.cluster)
    publisher = LakePublisher(standby.session)
    with pytest.raises(PostgresError, match='cannot use replication slot "sub1" for logical'):
        publisher.slots.position("sub1")
    with pytest.raises(PostgresError, match='cannot drop replication slot "sub1"'):
        publisher.slots.drop("sub1")
    with pytest.raises(PostgresError, match='cannot alter replication slot "sub1"'):
        publisher.slots.alter("sub1", failover=False)
    with pytest.raises(
        PostgresError, match="cannot enable failover for a replication slot created"
    ):
        publisher.slots.create("own", two_phase=False, failover=True, publications=["p"])
    lsn = publisher.slots.create("own", two_phase=False, failover=False, publications=["p"])
    with pytest.raises(PostgresError, match="cannot enable failover for a replication slot on the"):
        publisher.slots.alter("own", failover=True)
    assert publisher.slots.position("own") == lsn == publisher.slots.sendable_lsn("own")
    promote(standby.session.cluster)
    assert publisher.slots.position("sub1") > 0


def test_a_standby_s_own_slots_hold_back_the_primary(primary: Database, standby: Database) -> None:
    primary.rows("SELECT pg_drop_replication_slot('sub1')")
    primary.run("SET replctl.vacuum_retention = 0")
    primary.run("INSERT INTO t VALUES (1)")
    receive(standby.session.cluster)
    make_slot(standby, "own", failover=False)
    for number in (2, 3):
        primary.run(f"INSERT INTO t VALUES ({number})")
    receive(standby.session.cluster)
    slot = "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = "
    assert primary.rows(f"{slot}'standby1'") == standby.rows(f"{slot}'own'")
    for kept in ([2, 3], [3]):
        primary.run("VACUUM")
        receive(standby.session.cluster)
        with standby.session.read() as catalog:
            assert [e.version for e in entries_between(catalog, 0, 2**62, (CHANGE,))] == kept
        standby.rows("SELECT pg_replication_slot_advance('own', pg_last_wal_replay_lsn())")
        receive(standby.session.cluster)
    assert primary.rows(f"{slot}'standby1'") == primary.rows("SELECT pg_current_wal_lsn()")


def test_own_slots_of_a_standby_do_not_hold_back_failover_slots(
    primary: Database, standby: Database
) -> None:
    primary.run("ALTER SYSTEM SET synchronized_standby_slots = 'standby1'")
    make_slot(standby, "own", failover=False)
    primary.run("CREATE TABLE u ()")
    receive(standby.session.cluster)
    publisher = LakePublisher(Session.connect(primary.session.cluster, "postgres", "postgres"))
    assert publisher.slots.sendable_lsn("sub1") == publisher.slots.current_lsn()


def test_temporary_slots_of_a_standby_end_with_their_sessions(standby: Database) -> None:
    cluster = standby.session.cluster
    other = Database(Session.connect(cluster, "postgres", "postgres"))
    other.rows("SELECT pg_create_logical_replication_slot('brief', 'pgoutput', true)")
    assert standby.rows(_SLOTS) == [("brief", "logical", "f", "f", "t")]
    other.session.close()
    assert standby.rows(_SLOTS) == []
    with cluster.begin(write=True, in_recovery=True) as connection:
        dead = ReplicationSlot("dead", "pgoutput", 5, 1, 1, owner="99-of_a_dead_process/1")
        create_slot(connection, dead)
    Session.connect(cluster, "postgres", "postgres").close()
    assert standby.rows(_SLOTS) == []


def test_a_subscription_reads_a_slot_of_a_standby(standby: Database) -> None:
    make_slot(standby, "own", failover=False)
    slots = LakePublisher(standby.session).slots
    slots.start_replication("own", "1/2", "s", ("p",))
    slots.report_end("own")
    state = "SELECT application_name, state FROM pg_stat_replication"
    assert standby.rows(state) == [("s", "streaming")]
    slots.end_replication("own", stays=True)
    slots.dismiss("own", "1/2")
    assert standby.rows(state) == []
    standby.rows("SELECT pg_stat_reset_replication_slot('own')")


def test_settings_of_a_standby(primary: Database, standby: Database) -> None:
    path = primary.session.cluster.path
    for name, value in (
        ("primary_slot_name", "standby1"),
        ("primary_conninfo", f"host='{path}'"),
        ("in_hot_standby", "on"),
        ("transaction_read_only", "on"),
    ):
        assert standby.rows(f"SHOW {name}") == [(value,)]
    standby.run("ALTER SYSTEM SET hot_standby_feedback = off")
    with pytest.raises(PostgresError, match='requires "hot_standby_feedback" to be enabled'):
        standby.rows("SELECT pg_sync_replication_slots()")
    standby.run("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'")
    with pytest.raises(ConnectionFailure, match="could not connect to the primary server"):
        receive(standby.session.cluster)
    other = open_cluster(path.parent / "other")
    standby.run(f"ALTER SYSTEM SET primary_conninfo = 'host={other.path}'")
    with pytest.raises(ConnectionFailure, match="database system identifier differs"):
        receive(standby.session.cluster)
    other.close()


def test_a_primary_is_no_standby(primary: Database) -> None:
    recovery = "SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()"
    assert primary.rows(recovery) == [("f", None, None)]
    for function in ("pg_promote", "pg_is_wal_replay_paused", "pg_get_wal_replay_pause_state"):
        with pytest.raises(ObjectNotInPrerequisiteState, match="recovery is not in progress"):
            primary.rows(f"SELECT {function}()")
    with pytest.raises(ObjectNotInPrerequisiteState, match="can only be synchronized to a standby"):
        primary.rows("SELECT pg_sync_replication_slots()")


@pytest.mark.parametrize(
    ("command", "point"),
    [
        ("create", "standby.before-backup"),
        ("create", "standby.after-backup"),
        ("sync", "standby.before-confirmation"),
        ("promote", "promotion.after-replacement"),
        ("promote", "promotion.before-end"),
        ("promote", "promotion.after-end"),
    ],
)
def test_commands_that_are_killed(psql: Psql, tmp_path: Path, command: str, point: str) -> None:
    """Wherever a process is killed, the repeated command completes, and nothing is lost.

    The standby's -wal remains.  Its transactions copy several commits of the primary.
    """
    home = str(tmp_path / "standby")
    made = []
    for name in ("create", "sync", "promote"):
        for number in range(3):
            made.append(f"{name}{number}")
            assert psql("-X", "-c", f"CREATE TABLE {made[-1]} (a int)").exit_code == 0
        options = ["--primary", str(tmp_path / "home")] if name == "create" else []
        arguments = ["standby", name, "--home", home, *options]
        if name == command:
            _kill_at(point, arguments)
        if name != command or point not in ("standby.after-backup", "promotion.after-end"):
            assert psql(*arguments).exit_code == 0
    assert psql("--home", home, "-XAtc", "SELECT pg_is_in_recovery()").stdout == "f\n"
    assert psql("--home", home, "-Xc", "CREATE TABLE z (a int)").exit_code == 0
    tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1"
    assert psql("--home", home, "-XAtc", tables).stdout.split() == [*sorted(made), "z"]
    assert psql("-X", "-c", "SELECT 1").exit_code == 2


def _kill_at(point: str, arguments: list[str]) -> None:
    environment = {**os.environ, "REPLCTL_INJECTION_POINT": f"{point}:kill"}
    command = [sys.executable, "-m", "replctl", *arguments]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL


def test_create_standby_needs_a_primary_and_an_empty_directory(
    primary: Database, standby: Database, tmp_path: Path
) -> None:
    path = primary.session.cluster.path
    with pytest.raises(IoError, match="exists but is not empty"):
        create_standby(path, standby.session.cluster.path, "standby2")
    with pytest.raises(ConnectionFailure, match="could not connect to the primary server"):
        create_standby(tmp_path / "nowhere", tmp_path / "new", "standby2")
    with pytest.raises(ObjectNotInPrerequisiteState, match='"standby1" is used by standby'):
        create_standby(path, tmp_path / "new", "standby1")
    assert not (tmp_path / "nowhere").exists()


def test_standby_commands(psql: Psql, tmp_path: Path) -> None:
    home = str(tmp_path / "standby")
    psql("-X", "-c", "CREATE TABLE t (a int)")
    created = psql("standby", "create", "--primary", str(tmp_path / "home"), "--home", home)
    assert (created.stdout, created.stderr, created.exit_code) == ("", "", 0)
    psql("-X", "-c", "CREATE TABLE u (a int)")
    assert psql("standby", "sync", "--home", home).exit_code == 0
    tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1"
    assert psql("--home", home, "-XAtc", tables).stdout == "t\nu\n"
    assert psql("standby", "promote", "--home", home).exit_code == 0
    again = psql("standby", "promote", "--home", home)
    assert (again.exit_code, again.stderr) == (
        1,
        "ERROR:  recovery is not in progress\n"
        "HINT:  Recovery control functions can only be executed during recovery.\n",
    )
    old = psql("-X", "-c", "SELECT 1")
    assert old.exit_code == 2
    assert "FATAL:  the database system is not accepting connections" in old.stderr


def test_a_physical_slot_that_a_standby_takes(primary: Database, tmp_path: Path) -> None:
    create = "SELECT slot_name, lsn FROM pg_create_physical_replication_slot('{}')"
    assert primary.rows(create.format("own")) == [("own", None)]
    assert primary.rows("SELECT pg_create_physical_replication_slot('bare')") == [("(bare,)",)]
    with pytest.raises(PostgresError, match="cannot copy a replication slot that doesn't reserve"):
        primary.rows("SELECT pg_copy_physical_replication_slot('bare', 'copied')")
    create_standby(primary.session.cluster.path, tmp_path / "standby", "own")
    slot = "SELECT restart_lsn = pg_current_wal_lsn() FROM pg_replication_slots WHERE slot_name = "
    assert primary.rows(f"{slot}'own'") == [("t",)]
    assert primary.rows("SELECT pg_copy_physical_replication_slot('own', 'copied')") == [
        ("(copied,)",)
    ]
    assert primary.rows(f"{slot}'copied'") == [("t",)]


def test_a_watch_continues_after_temporary_errors(
    standby: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The primary's catalog is busy, or the primary has too many connections."""
    errors = [LockNotAvailable("busy"), LockNotAvailable("busy"), TooManyConnections("sorry")]
    signals = StopSignals()

    @contextmanager
    def attach(cluster: Cluster) -> Iterator[WalReceiver]:
        if errors:
            raise errors.pop(0)
        signals.has_come = True
        with attached(cluster) as receiver:
            yield receiver

    monkeypatch.setattr("replctl.catalog.standby.attached", attach)
    standby_command._watch(standby.session.cluster, 0.01, signals)
    assert errors == []
    assert capsys.readouterr().err == "ERROR:  busy\nFATAL:  sorry\n"
    errors.append(CannotConnectNow("replaced"))
    signals.has_come = False
    with pytest.raises(CannotConnectNow):
        standby_command._watch(standby.session.cluster, 0.01, signals)
