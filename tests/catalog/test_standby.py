"""A standby, without Spark: the data of its primary, the statements that it refuses, and its
promotion.

Errors, DETAILs and HINTs are those of a PostgreSQL 17 standby.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_wal import last_committed_version
from replctl.catalog.promotion import promote
from replctl.catalog.standby import attached, create_standby, follow, receive
from replctl.catalog.storage import note_storage
from replctl.catalog.transaction import next_xid
from replctl.errors import (
    CannotConnectNow,
    ConnectionFailure,
    InternalError,
    IoError,
    LockNotAvailable,
    Notice,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedFile,
)
from replctl.lake.commit_log import enter_versions, marked_text
from replctl.lake.commit_mark import CommitMark, mark_of, signed_text
from replctl.lake.promotion_without_primary import FoundInStorage, promote_without_primary
from replctl.lake.publisher import LakePublisher
from replctl.lake.recovery import recover
from replctl.lake.table_read import visible_versions
from replctl.own_command import own_command
from replctl.session import Session

_SLOTS = (
    "SELECT slot_name, slot_type, failover, synced, temporary FROM pg_replication_slots ORDER BY 1"
)
_READY = (
    "SELECT slot_name, (synced AND NOT temporary AND NOT conflicting) AS failover_ready"
    " FROM pg_replication_slots WHERE slot_name IN ('sub1', 'sub2') ORDER BY 1"
)


def _open(cluster: Cluster) -> Database:
    return Database(Session.connect(cluster, "postgres", "postgres"))


@pytest.fixture
def primary(cluster: Cluster) -> Database:
    """Return a primary with a table, a sequence, a publication and a failover slot."""
    database = _open(cluster)
    database.run("CREATE TABLE t (a int PRIMARY KEY); CREATE SEQUENCE s; CREATE PUBLICATION p")
    _make_slot(database, "sub1", failover=True)
    return database


@pytest.fixture
def standby(primary: Database, tmp_path: Path) -> Iterator[Database]:
    """Yield the standby of `primary`."""
    create_standby(primary.session.cluster.path, tmp_path / "standby", "standby1")
    cluster = open_cluster(tmp_path / "standby")
    yield _open(cluster)
    cluster.close()


def _make_slot(database: Database, name: str, *, failover: bool) -> None:
    database.rows(
        "SELECT pg_create_logical_replication_slot"
        f"('{name}', 'pgoutput', false, false, {str(failover).lower()})"
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
    assert _dump(standby) == _dump(primary)


def _dump(database: Database) -> list[tuple[object, ...]]:
    """Return all rows except those of slots and of pg_control."""
    found: list[tuple[object, ...]] = []
    with database.session.cluster.begin(write=False) as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (name,) in tables.all():
            if name not in ("pg_replication_slots", "pg_stat_replication_slots", "pg_control"):
                rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"')
                found += [(name, *row) for row in rows]
    return sorted(found, key=str)


def test_slots_are_the_primary_s_alone_until_they_are_synchronized(
    primary: Database, standby: Database
) -> None:
    _make_slot(primary, "sub2", failover=False)
    assert standby.rows(_SLOTS) == []
    standby.rows("SELECT pg_sync_replication_slots()")
    assert standby.rows(_SLOTS) == [("sub1", "logical", "t", "t", "f")]
    assert standby.rows(_READY) == [("sub1", "t")]
    primary.rows("SELECT pg_drop_replication_slot('sub1')")
    standby.run("ALTER SYSTEM SET sync_replication_slots = off")
    receive(standby.session.cluster)
    assert standby.rows(_READY) == [("sub1", "t")]
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
    assert standby.rows(_READY) == [("sub1", "t")]


def test_a_local_slot_of_the_same_name_stops_synchronization(
    primary: Database, standby: Database
) -> None:
    _make_slot(standby, "sub1", failover=False)
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
    _make_slot(primary, "sub2", failover=False)
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


def test_promotion(primary: Database, standby: Database) -> None:
    primary.run("CREATE TABLE u (b int)")
    _make_slot(primary, "sub2", failover=True)
    ((last,),) = primary.rows("SELECT pg_current_wal_lsn()")
    assert standby.rows("SELECT pg_promote(), pg_is_in_recovery()") == [("t", "t")]
    assert standby.rows("SELECT pg_is_in_recovery()") == [("f",)]
    assert standby.rows(_READY) == [("sub1", "t"), ("sub2", "t")]
    standby.run("CREATE TABLE v (c int)")
    assert standby.rows(f"SELECT pg_current_wal_lsn() > '{last}'::pg_lsn") == [("t",)]
    assert standby.rows("SELECT nextval('s')") == [("1",)]
    standby.rows("SELECT pg_drop_replication_slot('sub1')")


def test_the_old_primary_is_fenced_off(primary: Database, standby: Database) -> None:
    path = primary.session.cluster.path
    promote(standby.session.cluster)
    for statement in ("CREATE TABLE v (c int)", "SELECT 1"):
        with pytest.raises(CannotConnectNow) as caught:
            primary.rows(statement)
    assert caught.value.detail == (
        f'The standby "{standby.session.cluster.path}" was promoted in its place.'
    )
    again = open_cluster(path)
    with pytest.raises(CannotConnectNow) as caught:
        _open(again)
    command = shlex.split((caught.value.hint or "").partition("Connect to the new primary: ")[2])
    assert command[:2] == ["replctl", "--home"]
    new = open_cluster(command[2])
    assert _open(new).rows("SELECT 1") == [("1",)]
    new.close()
    with pytest.raises(CannotConnectNow), again.begin(write=True):
        pass
    again.close()


def test_one_standby_of_several_is_promoted(
    primary: Database, standby: Database, tmp_path: Path
) -> None:
    create_standby(primary.session.cluster.path, tmp_path / "other", "standby2")
    other = open_cluster(tmp_path / "other")
    promote(standby.session.cluster)
    with pytest.raises(CannotConnectNow) as told:
        receive(other)
    with pytest.raises(CannotConnectNow, match="was promoted before") as caught:
        promote(other)
    assert caught.value.hint == told.value.hint
    there, _, here = (told.value.hint or "").partition(" then, in the standby, use ")
    standby.run("CREATE TABLE after_that (a int)")
    standby.run(there.partition(", use ")[2])
    _open(other).run(here)
    receive(other)
    followed = "SELECT count(*) FROM pg_class WHERE relname = 'after_that'"
    assert _open(other).rows(followed) == [("1",)]
    other.close()


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
    """Wherever a process is killed, the repeated command completes, and nothing is lost."""
    home = str(tmp_path / "standby")
    psql("-X", "-c", "CREATE TABLE t (a int)")
    for name in ("create", "sync", "promote"):
        options = ["--primary", str(tmp_path / "home")] if name == "create" else []
        arguments = ["standby", name, "--home", home, *options]
        if name == command:
            _kill_at(point, arguments)
        if name != command or point not in ("standby.after-backup", "promotion.after-end"):
            assert psql(*arguments).exit_code == 0
    assert psql("--home", home, "-XAtc", "SELECT pg_is_in_recovery()").stdout == "f\n"
    assert psql("--home", home, "-Xc", "CREATE TABLE u (a int)").exit_code == 0
    tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1"
    assert psql("--home", home, "-XAtc", tables).stdout == "t\nu\n"
    assert psql("-X", "-c", "SELECT 1").exit_code == 2


def _kill_at(point: str, arguments: list[str]) -> None:
    environment = {**os.environ, "REPLCTL_INJECTION_POINT": f"{point}:kill"}
    command = [sys.executable, "-m", "replctl", *arguments]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL


def test_a_standby_that_was_promoted_follows_nobody(primary: Database, standby: Database) -> None:
    path = primary.session.cluster.path
    promote(standby.session.cluster)
    standby.run("CREATE TABLE v (c int)")
    with pytest.raises(ObjectNotInPrerequisiteState, match="recovery is not in progress"):
        receive(standby.session.cluster)
    with pytest.raises(ObjectNotInPrerequisiteState, match="recovery is not in progress"):
        follow(standby.session.cluster, path, with_slots=True)
    assert standby.rows("SELECT relname FROM pg_class WHERE relname = 'v'") == [("v",)]


def test_promotion_waits_for_writers(primary: Database, standby: Database) -> None:
    with primary.session.cluster.lock("relation-16384"):
        with pytest.raises(LockNotAvailable, match="server did not promote in time"):
            promote(standby.session.cluster, 0)
        assert standby.session.cluster.is_in_recovery
    promote(standby.session.cluster, 0)
    assert not standby.session.cluster.is_in_recovery


@pytest.mark.parametrize("is_moved", [False, True])
def test_an_interrupted_promotion_continues_under_another_name(
    primary: Database, standby: Database, tmp_path: Path, *, is_moved: bool
) -> None:
    standby.session.cluster.close()
    home, other = tmp_path / "standby", tmp_path / "other"
    other.symlink_to(home)
    named = open_cluster(other)
    receive(named)
    with (
        primary.session.cluster.lock("relation-16384"),
        pytest.raises(LockNotAvailable, match="server did not promote in time"),
    ):
        promote(named, 0)
    named.close()
    if is_moved:
        other.unlink()
        home.rename(other)
    again = open_cluster(other if is_moved else home)
    with pytest.raises(CannotConnectNow) as caught:
        receive(again)
    assert caught.value.detail == "The promotion of this standby has begun, and was interrupted."
    command = own_command("standby", "promote", home=again.path)
    assert caught.value.hint == f'To complete the promotion, run "{command}".'
    promote(again, 0)
    assert not again.is_in_recovery
    assert primary.session.cluster.control().promoted_to == str(again.path)
    again.close()


def test_an_interrupted_promotion_continues_after_two_moves(
    primary: Database, standby: Database, tmp_path: Path
) -> None:
    standby.session.cluster.close()
    homes = [tmp_path / name for name in ("standby", "second", "third")]
    homes[0].rename(homes[1])
    second = open_cluster(homes[1])
    with (
        primary.session.cluster.lock("relation-16384"),
        pytest.raises(LockNotAvailable, match="server did not promote in time"),
    ):
        promote(second, 0)
    second.close()
    homes[1].rename(homes[2])
    third = open_cluster(homes[2])
    promote(third, 0)
    assert not third.is_in_recovery
    third.close()


@pytest.mark.parametrize("is_primary_reached", [True, False])
def test_a_copy_of_a_promoted_standby_is_not_promoted(
    primary: Database, standby: Database, tmp_path: Path, *, is_primary_reached: bool
) -> None:
    promoted = standby.session.cluster
    home, copy = promoted.path, tmp_path / "copy"
    shutil.copytree(home, copy)
    if is_primary_reached:
        promote(promoted)
    else:
        promote_without_primary(promoted)
        open_cluster(primary.session.cluster.path).close()
    promoted.close()
    home.rename(tmp_path / "moved")
    other = open_cluster(copy)
    with pytest.raises(CannotConnectNow, match="was promoted before"):
        promote(other, 0)
    with pytest.raises(CannotConnectNow) as caught:
        receive(other)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("In the new primary")
    assert other.is_in_recovery
    other.close()


def _commit(location: str, version: int, metadata: str) -> None:
    """Write a commit with rows as the primary does, but only into Delta's log."""
    folder = Path(location) / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    actions: list[dict[str, object]] = [{"commitInfo": {"userMetadata": metadata, "timestamp": 1}}]
    if version == 0:
        fields = [{"name": name, "type": "integer", "nullable": True} for name in ("a", "b")]
        declared = json.dumps({"type": "struct", "fields": fields})
        table = {"id": "", "schemaString": declared, "partitionColumns": []}
        actions.append({"metaData": table | {"configuration": {}}})
    else:
        add = {"path": str(version), "partitionValues": {}, "size": 1, "modificationTime": 1}
        actions.append({"add": add | {"dataChange": True}})
    text = "\n".join(json.dumps(action) for action in actions)
    (folder / f"{version:020d}.json").write_text(text)


def test_promotion_without_the_primary_s_catalog(primary: Database, standby: Database) -> None:
    """The log of t has one more complete transaction, and the log of u has half of one."""
    primary.run("CREATE TABLE u (b int)")
    receive(standby.session.cluster)
    old, new = primary.session.cluster, standby.session.cluster
    ((before,),) = standby.rows("SELECT pg_last_wal_replay_lsn()")
    oids = {}
    with new.begin(write=False) as connection:
        lost_xid = next_xid(connection)
    for name in ("t", "u"):
        ((location, oid),) = primary.rows(
            f"SELECT pg_relation_filepath('{name}'), '{name}'::regclass::oid"
        )
        assert location is not None
        oids[name] = int(oid or 0)
        xid = lost_xid + (10 if name == "u" else 0)
        for version, mark in enumerate(
            (
                CommitMark(f"lost-{name}", 1, xid, silent=True),
                CommitMark(f"lost-{name}", 2, xid, whole=name == "t"),
                CommitMark(f"later-{name}", 1, xid + 1, whole=True),
            )
        ):
            identifier, key = old.system_identifier, old.signing_key
            _commit(location, version, signed_text(mark, identifier, key, oids[name]))
    assert promote_without_primary(new) == FoundInStorage(entered=2, undone=1)
    with new.read(standby.session.database_oid) as catalog:
        assert last_committed_version(catalog, oids["t"]) == 2
        assert visible_versions(catalog, [oids["u"]]) == {oids["u"]: 0}
    with pytest.raises(InternalError, match="has no Spark"):
        recover(standby.session, [oids["u"]])
    assert standby.rows(f"SELECT pg_current_wal_lsn() > '{before}'") == [("t",)]
    written = mark_of(marked_text(new, CommitMark("n", 1, 1), 1), new.signing_key, 1)
    assert written is not None
    assert written.timeline == 2

    again = open_cluster(old.path)
    assert again.control().promoted_to == str(new.path)
    again.close()


def test_promotion_without_the_primary_s_tables(
    primary: Database, standby: Database, psql: Psql
) -> None:
    """Without LOCATION, the tables are in the primary's directory, and are lost with it."""
    primary.run("CREATE TABLE never_written (a int)")
    ((location, oid),) = primary.rows("SELECT pg_relation_filepath('t'), 't'::regclass::oid")
    assert location is not None
    _commit(location, 0, "")
    with primary.session.cluster.begin(write=True) as connection:
        note_storage(connection, int(oid or 0), [1], 0)
    LakePublisher(primary.session).slots.current_lsn()
    new = standby.session.cluster
    receive(new)
    shutil.rmtree(location)
    before = _dump(standby)
    with pytest.raises(UndefinedFile) as caught:
        promote_without_primary(new)
    assert caught.value.detail == f'Missing: "public.t" in "{location}".'
    assert _dump(standby) == before
    assert new.is_in_recovery

    options = ("standby", "promote", "--home", str(new.path))
    refused = psql(*options, "--without-primary")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("ERROR:  could not find the Delta table of a table\n")
    assert psql(*options, "--without-tables").exit_code == 1
    assert new.is_in_recovery
    promoted = psql(*options, "--without-primary", "--without-tables")
    assert (promoted.exit_code, promoted.stderr) == (0, "")
    assert not new.is_in_recovery
    standby.run("DROP TABLE t")


def test_promotion_without_a_table_that_cannot_be_read(
    primary: Database, standby: Database, psql: Psql
) -> None:
    ((location,),) = primary.rows("SELECT pg_relation_filepath('t')")
    assert location is not None
    _commit(location, 0, "")
    log = Path(location) / "_delta_log" / f"{1:020d}.json"
    log.write_text("{")
    new = standby.session.cluster
    receive(new)
    options = ("standby", "promote", "--home", str(new.path), "--without-primary")
    refused = psql(*options)
    assert refused.stderr.splitlines()[:2] == [
        "ERROR:  could not read the Delta table of a table",
        f'DETAIL:  Unreadable: "public.t" in "{location}": the log of the Delta table "{location}"'
        " is broken.",
    ]
    promoted = psql(*options, "--without-tables")
    assert (promoted.exit_code, promoted.stderr) == (0, "")
    assert promoted.stdout.startswith("postgres: public.t: left out: the log of the Delta table")
    standby.run("DROP TABLE t")


def test_the_old_primary_notices_the_new_one_s_commits(primary: Database) -> None:
    ((location, oid),) = primary.rows("SELECT pg_relation_filepath('t'), 't'::regclass::oid")
    assert location is not None
    cluster = primary.session.cluster
    mark = CommitMark("unknown", 1, 900, timeline=2, silent=True)
    text = signed_text(mark, cluster.system_identifier, cluster.signing_key, int(oid or 0))
    _commit(location, 0, text)
    with primary.session.write() as catalog:
        relation = load_relations(catalog, [int(oid or 0)])[int(oid or 0)]
        with pytest.raises(CannotConnectNow) as caught:
            enter_versions(catalog, primary.session.cluster, relation)
    assert caught.value.detail == "A standby of it was promoted: it writes on timeline 2."


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
