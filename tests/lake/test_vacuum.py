"""VACUUM without Spark: the files that it removes and keeps, and a kill at any point."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from fix_cluster import relation_of
from fix_lake import Lake, log_file
from golden_script import answer_of
from patience import PATIENCE
from pyarrow import parquet

from replctl.catalog.apply_batch import ApplyBatch, delete_apply_batch, insert_apply_batch
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.cluster import Cluster
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.pg_wal import entries_between
from replctl.catalog.transaction import abort_transaction, begin_transaction
from replctl.injection_point import POINTS
from replctl.lake.delta_actions import _decoded
from replctl.lake.delta_files import unneeded_files, unneeded_log
from replctl.lake.delta_log import latest_version, schema_at
from replctl.lake.delta_vacuum import _commit_unmarked
from replctl.session import Session


def test_a_slot_keeps_what_it_needs(lake: Lake) -> None:
    lake.update(3)
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.update(4)
    before, rows = lake.files(), lake.rows()
    lake.run("vacuum t")
    gone = before - lake.files()
    assert gone
    assert not any("_delta_log" in name for name in gone)
    assert [lake.reads(version) for version in range(8)] == [False] * 3 + [True] * 5
    assert len([name for name in lake.files() if name.startswith("_change_data")]) == 4
    with lake.session.read() as catalog:
        assert [e.version for e in entries_between(catalog, 0, 2**60)][-4:] == [4, 5, 6, 7]
    lake.run("select pg_replication_slot_advance('s', pg_current_wal_lsn())")
    lake.run("vacuum")
    assert [lake.reads(version) for version in range(8)] == [False] * 7 + [True]
    assert len([name for name in lake.files() if "_delta_log" not in name]) == 1
    assert lake.rows() == rows


def test_the_log_is_cut_below_a_checkpoint(lake: Lake) -> None:
    lake.update(3)
    DeltaTable(lake.location).create_checkpoint()
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.update(3)
    DeltaTable(lake.location).create_checkpoint()
    lake.update(1)
    lake.run("vacuum t")
    log = sorted(name for name in lake.files() if name.endswith(".json"))
    assert log[0].endswith("00003.json")
    assert len(log) == 5
    assert lake.reads(3)
    assert lake.reads(7)
    lake.run("select pg_drop_replication_slot('s')")
    lake.run("vacuum t")
    assert latest_version(lake.location) == 7
    assert "v" in schema_at(lake.location)["schemaString"]  # the checkpoint has kept the schema
    lake.run("vacuum t")
    assert lake.rows()[0]["id"] == 1
    assert lake.reads(7)
    lake.update(1)
    assert lake.reads(8)


def test_recent_versions_are_kept_for_readers(lake: Lake) -> None:
    lake.run("set replctl.vacuum_retention = '1h'")
    lake.update(3)
    before = lake.files()
    assert lake.run("vacuum (verbose) t")[0].startswith("INFO")
    assert lake.files() == before


def test_a_batch_and_a_copy_and_a_transaction_keep_their_versions(lake: Lake) -> None:
    lake.update(2)
    session = lake.session
    with session.cluster.write(session.database_oid) as catalog:
        insert_apply_batch(catalog, ApplyBatch(1, 0, 1, 99, ({lake.oid: WriteStep(2, 1)},)))
    lake.update(2)
    with session.cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, session.database_oid, session.cluster.backend)
        insert_intent(connection, xid, Intent(lake.oid, 3, False))
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(5)] == [False] * 2 + [True] * 3
    with session.cluster.write(session.database_oid) as catalog:
        delete_apply_batch(catalog, 1)
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(5)] == [False] * 3 + [True] * 2
    with session.cluster.begin(write=True) as connection:
        abort_transaction(connection, xid)
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(5)] == [False] * 4 + [True]


def test_catalogs_and_the_log_are_trimmed_to_the_oldest_slot(lake: Lake) -> None:
    session = lake.session
    count = "select count(*) from {}"

    def stored(table: str) -> int:
        with session.cluster.begin(write=False) as connection:
            return int(connection.exec_driver_sql(count.format(table)).scalar_one())

    lake.run("create publication p for table t where (id > 1)")
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    position = lake.enter()
    lake.run("select pg_logical_emit_message(false, 'p', 'a message')")
    lake.run("select pg_logical_emit_message(true, 'p', 'a message')")
    lake.run("alter publication p set table t where (id > 2)")
    lake.update(3)
    lake.run("drop publication p")
    lake.run("create table gone (a int)")
    lake.run("drop table gone")
    lake.run("vacuum")
    with session.read() as catalog:
        assert [p.name for p in list_publications(catalog.as_of(position))] == ["p"]
        assert list_publications(catalog) == []
    assert stored("pg_publication_rel") == 2
    lake.run("select pg_replication_slot_advance('s', pg_current_wal_lsn())")
    lake.run("vacuum")
    assert stored("pg_publication_rel") == 0
    assert stored("pg_publication") == 0
    assert stored("pg_wal") == 1
    assert stored("pg_xact") == 2  # of the table's newest version, and the newest commit of all
    assert lake.run("select count(*) from pg_class where relname in ('t', 'gone')")[0] == "| 1"
    end = lake.update(1)
    with session.read() as catalog:
        assert session.environment(catalog.as_of(end)).relation_oid(None, "t") == lake.oid


def test_dropped_tables_go_when_nobody_needs_them(lake: Lake, cluster: Cluster) -> None:
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.run("drop table t")
    lake.run("vacuum")
    assert Path(lake.location).exists()
    lake.run("select pg_replication_slot_advance('s', pg_current_wal_lsn())")
    lake.run("set replctl.vacuum_retention = '1h'")
    lake.run("vacuum")
    assert Path(lake.location).exists()
    lake.run("set replctl.vacuum_retention = 0")
    base = cluster.path / "base"
    abandoned = [base / "5" / "99999", base / "5" / "99999_1"]
    for path in abandoned:
        path.mkdir()
    lake.run("vacuum")
    assert not Path(lake.location).exists()
    assert not any(path.exists() for path in abandoned)
    with lake.session.cluster.begin(write=False) as connection:
        left = connection.exec_driver_sql("select count(*) from storage_table").scalar_one()
    assert left == 0


def test_the_directory_of_a_dropped_database_goes(lake: Lake, cluster: Cluster) -> None:
    before = set((cluster.path / "base").iterdir())
    lake.run("create database d")
    inside = Session.connect(cluster, "d", "postgres")
    for statement in ("create table t (a int)", "insert into t values (1)"):
        assert not answer_of(inside, statement)[0].startswith("ERROR")
    assert set((cluster.path / "base").iterdir()) != before
    lake.run("vacuum")
    lake.run("drop database d")
    lake.run("vacuum")
    lake.run("vacuum")
    assert set((cluster.path / "base").iterdir()) == before


_UUID = "0b1c2d3e-0000-4000-8000-00000000000"
_WEEK = 7 * 86400
#: Files that no log names, with names in the form of Delta.
_UNTRACKED = (
    f"part-00000-{_UUID}1.c000.snappy.parquet",
    f"ab/part-00000-{_UUID}2-c000.snappy.parquet",
    f"_change_data/cdc-00000-{_UUID}3.c000.snappy.parquet",
    f"deletion_vector_{_UUID}4.bin",
)
#: Files of other programs.
_OTHERS = (
    "letter.txt",
    "part-1.parquet",
    "docs/part-of-a-letter.txt",
    f"{_UUID}5.parquet",
    "_delta_log/00000000000000000000.notes.txt",
    "_delta_log/notes.json",
    f"_hidden/part-00000-{_UUID}6.c000.snappy.parquet",
)


def _put(location: str, path: str, age: float) -> None:
    file = Path(location, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(path)
    os.utime(file, (time.time() - age,) * 2)


def _set_storage(session: Session, assignment: str) -> None:
    with session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql(f"update storage_table set {assignment}")


def test_untracked_files_go_where_the_directory_was_empty(lake: Lake) -> None:
    for path in (*_UNTRACKED, *_OTHERS):
        _put(lake.location, path, _WEEK + 60)
    recent = f"part-00000-{_UUID}7.c000.snappy.parquet"
    _put(lake.location, recent, _WEEK - 60)
    lake.update(2)
    lake.run("vacuum t")  # replctl has not made the table in an empty directory
    assert {*_UNTRACKED, *_OTHERS, recent} <= lake.files()
    _set_storage(lake.session, "was_empty = 0")
    lake.run("vacuum t")
    assert {*_UNTRACKED, *_OTHERS, recent} <= lake.files()
    _set_storage(lake.session, "was_empty = 1")
    with lake.session.cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, lake.session.database_oid, lake.session.cluster.backend)
        insert_intent(connection, xid, Intent(12345, None, False))
        began = (time.time() - _WEEK - 120) * 1_000_000
        connection.exec_driver_sql(f"update intent set began = {int(began)}")
    lake.run("vacuum t")  # a statement is older than the files
    assert {*_UNTRACKED, *_OTHERS, recent} <= lake.files()
    with lake.session.cluster.begin(write=True) as connection:
        abort_transaction(connection, xid)
    lake.run("set replctl.vacuum_retention = '8d'")
    lake.run("vacuum t")
    assert {*_UNTRACKED, *_OTHERS, recent} <= lake.files()
    lake.run("set replctl.vacuum_retention = 0")
    lake.run("vacuum t")
    assert lake.files().isdisjoint(_UNTRACKED)
    assert {*_OTHERS, recent} <= lake.files()
    assert len(lake.rows()) == 3


def test_links_are_left(lake: Lake, tmp_path: Path) -> None:
    _set_storage(lake.session, "was_empty = 1")
    theirs = tmp_path / "theirs"
    for path in _UNTRACKED:
        _put(str(theirs), path, 2 * _WEEK)
    Path(lake.location, "linked").symlink_to(theirs)
    link = Path(lake.location, f"part-00001-{_UUID}8.c000.snappy.parquet")
    link.symlink_to(theirs / _UNTRACKED[0])
    os.utime(link, (0, 0), follow_symlinks=False)
    lake.run("vacuum t")
    assert link.is_symlink()
    lake.run("drop table t")
    assert lake.run("vacuum")[0].startswith("NOTICE 00000: directory")
    assert link.is_symlink()
    assert all((theirs / path).exists() for path in _UNTRACKED)


def test_a_dropped_table_leaves_what_is_not_delta_s(lake: Lake) -> None:
    DeltaTable(lake.location).create_checkpoint()
    lake.update(1)
    for path in (*_UNTRACKED, *_OTHERS):
        _put(lake.location, path, 0)
    _put(lake.location, f"_delta_log/.00000000000000000009.json.{_UUID}9.tmp", 0)
    lake.run("drop table t")
    told = lake.run("vacuum")
    assert told[:2] == (
        f'NOTICE 00000: directory "{lake.location}" of a dropped table is not removed',
        f"DETAIL: It has {len(_OTHERS) - 1} files that are not Delta's.",
    )
    assert lake.files() == {path for path in _OTHERS if not path.startswith("_hidden")}


def test_files_of_a_location_are_never_removed_with_the_table(lake: Lake) -> None:
    _set_storage(lake.session, "was_empty = 1, has_location = 1")
    lake.update(2)
    before = lake.files()
    assert lake.run("drop table t") == (
        f'NOTICE 00000: files of table "t" remain in "{lake.location}"',
        "DROP TABLE",
    )
    lake.run("vacuum")
    assert lake.files() == before
    with lake.session.cluster.begin(write=False) as connection:
        left = connection.exec_driver_sql("select count(*) from storage_table").scalar_one()
    assert left == 0


def test_checkpoints_of_two_levels(lake: Lake) -> None:
    """V2 of Delta's protocol: the checkpoint refers to sidecars, which list the files."""
    lake.update(2)
    DeltaTable(lake.location).create_checkpoint()
    files = set(unneeded_files(lake.location, 2, None))
    assert len(files) > 2
    log = Path(lake.location, "_delta_log")
    old = log / f"{2:020d}.checkpoint.parquet"
    rows = parquet.read_table(old)
    (log / "_sidecars").mkdir()
    referred = log / "_sidecars" / f"{2:020d}.checkpoint.{1:010d}.{1:010d}.{_UUID}1.parquet"
    parquet.write_table(rows.filter(pc.is_valid(rows["add"])), referred)
    others = rows.filter(pc.is_null(rows["add"]))
    sidecar = pa.array([{"path": referred.name}] + [None] * (len(others) - 1))
    parquet.write_table(
        others.append_column("sidecar", sidecar), log / f"{2:020d}.checkpoint.{_UUID}2.parquet"
    )
    old.unlink()
    assert set(unneeded_files(lake.location, 2, None)) == files
    stray = log / "_sidecars" / f"{_UUID}3.parquet"
    for path in (referred, stray, log / "_sidecars/letter.txt", log / f"{1:020d}.crc"):
        if path != referred:
            path.write_text("x")
        os.utime(path, (time.time() - _WEEK,) * 2)
    kept = {referred.name, "letter.txt"}
    entries = unneeded_log(lake.location, 2, time.time() - _WEEK - 60)
    assert entries == [
        f"_delta_log/{n:020d}.{e}" for n, e in ((0, "json"), (1, "crc"), (1, "json"))
    ]
    assert unneeded_log(lake.location, 2, time.time()) == [
        *entries,
        f"_delta_log/_sidecars/{stray.name}",
    ]
    assert kept < {path.name for path in (log / "_sidecars").iterdir()}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    content = [{"sidecar": {"path": referred.name}}, {"protocol": protocol}]
    for path in log.glob("*.checkpoint.*.parquet"):
        path.unlink()
    text = "\n".join(map(json.dumps, content))
    (log / f"{2:020d}.checkpoint.{_UUID}4.json").write_text(text)
    assert set(unneeded_files(lake.location, 2, None)) == files


def test_needed_files_stay_however_the_log_spells_them(lake: Lake) -> None:
    """A log may name files by absolute paths, or by paths that lead out of the table."""
    _set_storage(lake.session, "was_empty = 1")
    (log,) = Path(lake.location, "_delta_log").glob("*.json")
    (data,) = Path(lake.location).glob("*.parquet")
    spelled = f"../{Path(lake.location).name}/{data.name}"
    log.write_text(log.read_text().replace(f'"path":"{data.name}"', f'"path":"{spelled}"'))
    assert spelled in log.read_text()
    os.utime(data, (0, 0))
    lake.run("vacuum t")
    assert data.exists()
    assert len(unneeded_files(lake.location, 0, time.time())) == 0


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("vacuum.")])
def test_it_can_be_killed_anywhere(lake: Lake, cluster: Cluster, point: str) -> None:
    lake.update(2)
    DeltaTable(lake.location).create_checkpoint()
    lake.update(2)
    rows = lake.rows()
    lake.run("create table other (a int)")
    lake.run("drop table other")
    lake.run("alter system set replctl.vacuum_retention = 0")
    environment = {
        **os.environ,
        "REPLCTL_HOME": str(cluster.path),
        "REPLCTL_INJECTION_POINT": f"{point}:kill",
    }
    command = [sys.executable, "-m", "replctl", "-X", "-c", "vacuum"]
    killed = subprocess.run(command, env=environment, check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert lake.rows() == rows
    assert lake.reads(4)
    lake.run("vacuum")
    assert lake.rows() == rows
    assert [lake.reads(version) for version in range(5)] == [False] * 4 + [True]
    log = sorted(name for name in lake.files() if name.endswith(".json"))
    assert len(log) == 3
    assert log[0].endswith("00002.json")


def test_adopted_tables_are_left_to_their_owner(session: Session) -> None:
    lake = Lake(session)
    lake.update(2)
    with session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update storage_table set is_adopted = 1")
    before = lake.files()
    lake.run("vacuum")
    assert lake.files() == before


@pytest.fixture
def adopter(lake: Lake, tmp_path: Path) -> Session:
    """Move table t to a LOCATION.  Return a session in another database that has adopted it."""
    lake.run("create database other")
    place = tmp_path / "shared"
    shutil.move(lake.location, place)
    lake.location = str(place)
    _set_storage(lake.session, f"has_location = 1, location = '{place}'")
    link = tmp_path / "link"
    link.symlink_to(place)
    other = Session.connect(lake.session.cluster, "other", "postgres")
    adopt = f"create table u (primary key (id) not enforced) using delta location '{link}'"
    assert answer_of(other, adopt) == ("CREATE TABLE",)
    return other


def _adopted_oid(adopter: Session) -> int:
    with adopter.read() as catalog:
        oid = adopter.environment(catalog).relation_oid(None, "u")
    assert oid is not None
    return oid


def test_slots_of_databases_that_have_adopted_the_table_count(lake: Lake, adopter: Session) -> None:
    lake.update(2)
    lake.run("vacuum t")  # nobody has noticed the new versions in the other database
    assert [lake.reads(version) for version in range(3)] == [False] * 2 + [True]
    answer_of(adopter, "select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.update(2)
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(5)] == [False] * 2 + [True] * 3
    answer_of(adopter, "drop table u")
    lake.run("vacuum t")  # the slot still needs the dropped table
    assert lake.reads(2)
    answer_of(adopter, "select pg_replication_slot_advance('s', pg_current_wal_lsn())")
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(5)] == [False] * 4 + [True]


def test_writers_in_databases_that_have_adopted_the_table_count(
    lake: Lake, adopter: Session
) -> None:
    lake.update(2)
    cluster, oid = lake.session.cluster, _adopted_oid(adopter)
    with cluster.lock(f"relation-{oid}"):
        session = Session.connect(cluster, "postgres", "postgres")
        assert answer_of(session, "vacuum (skip_locked) t")[-2:] == (
            'WARNING 55P03: skipping vacuum of "t" --- lock not available',
            "VACUUM",
        )
    with cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, adopter.database_oid, cluster.backend)
        insert_intent(connection, xid, Intent(oid, 1, False))
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(3)] == [False] + [True] * 2
    with cluster.begin(write=True) as connection:
        abort_transaction(connection, xid)
    with cluster.write(adopter.database_oid) as catalog:
        insert_apply_batch(catalog, ApplyBatch(1, 0, 1, 99, ({oid: WriteStep(1, 1)},)))
    lake.run("vacuum t")
    assert [lake.reads(version) for version in range(3)] == [False] + [True] * 2


def test_blocks_that_change_the_adopted_relation_are_waited_for(
    lake: Lake, adopter: Session
) -> None:
    lake.update(1)
    answer_of(adopter, "begin")
    assert answer_of(adopter, "alter table u replica identity full") == ("ALTER TABLE",)
    other = Session.connect(lake.session.cluster, "postgres", "postgres")
    answer_of(other, "set lock_timeout = '1ms'")
    assert answer_of(other, "vacuum t") == ("ERROR 55P03: canceling statement due to lock timeout",)
    answer_of(adopter, "rollback")


def test_a_dropped_table_leaves_the_files_that_another_database_has_adopted(
    lake: Lake, adopter: Session
) -> None:
    """Then base/ is a link to a directory outside the cluster."""
    _set_storage(lake.session, f"has_location = 0 where relid = {lake.oid}")
    before = lake.files()
    lake.run("drop table t")
    lake.run("vacuum")
    assert lake.files() == before


def test_a_table_that_is_written_is_waited_for_or_skipped(lake: Lake) -> None:
    other = Session.connect(lake.session.cluster, "postgres", "postgres")
    with lake.session.cluster.lock(f"relation-{lake.oid}"):
        assert answer_of(other, "vacuum (skip_locked) t") == (
            'WARNING 55P03: skipping vacuum of "t" --- lock not available',
            "VACUUM",
        )


@pytest.mark.parametrize(
    ("writers", "has_foreign"),
    [
        (["replctl"], False),
        ([], False),
        (["other"], True),  # replctl had nothing to do
        (["other", "replctl"], True),
        (["replctl", "other"], True),
        (["compaction"], True),
    ],
)
def test_its_own_compaction_is_not_foreign(
    lake: Lake, writers: list[str], has_foreign: bool
) -> None:
    _set_storage(lake.session, "has_foreign = 0")
    with lake.session.read() as catalog:
        relation = get_relation(catalog, lake.oid)
    assert relation is not None

    def write(token: str) -> None:
        for writer in writers:
            lake.write({"id": [1]}, predicate="id = 1", mode="overwrite")
            table = DeltaTable(lake.location)
            text = {"replctl": token, "compaction": "x"}.get(writer)
            if text is not None:
                _replace_by_compaction(lake.location, table.version(), text)

    _commit_unmarked(lake.session, relation, write)
    with lake.session.read() as catalog:
        found = get_relation(catalog, lake.oid)
    assert found is not None
    assert found.storage is not None
    assert found.storage.has_foreign is has_foreign


def _replace_by_compaction(location: str, version: int, text: str) -> None:
    """Let a commit change no rows, and give it a text as `userMetadata`."""
    path = log_file(Path(location), version)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    actions = [action for action in actions if "cdc" not in action]
    for action in actions:
        for name, body in action.items():
            if name in ("add", "remove"):
                body["dataChange"] = False
            if name == "commitInfo":
                body["userMetadata"] = text
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def test_names_of_deletion_vectors() -> None:
    assert _decoded("HelloWorld") == bytes.fromhex("864FD26FB559F75B")  # ZeroMQ's RFC 32


def test_readers_and_writers_lose_nothing_meanwhile(lake: Lake) -> None:
    """The retention is longer than their work takes."""
    lake.run("alter system set replctl.vacuum_retention = '2s'")
    ended = Event()
    problems: list[Exception] = []

    def read() -> None:
        while not ended.is_set():
            try:
                assert len(DeltaTable(lake.location).to_pyarrow_table()) == 3
            except Exception as error:
                problems.append(error)

    def vacuum() -> None:
        session = Session.connect(lake.session.cluster, "postgres", "postgres")
        while not ended.is_set():
            answer = answer_of(session, "vacuum")
            if answer != ("VACUUM",):
                problems.append(AssertionError(answer))

    before = lake.files()
    threads = [Thread(target=read), Thread(target=vacuum), Thread(target=vacuum)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 6
    while time.monotonic() < end:
        lake.update(1)
    ended.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(lake.rows()) == 3
    assert before - lake.files()


def test_lock_files_of_dropped_objects_are_removed(session: Session) -> None:
    folder = session.cluster.path / "lock"
    for name in ("kept", "dropped"):
        for statement in (f"create table {name} (a int)", f"insert into {name} values (1)"):
            answer_of(session, statement)
    kept = relation_of(session, "kept").oid
    (folder / "subscription-4294967295.lock").touch()
    answer_of(session, "drop table dropped; set replctl.vacuum_retention = 0")
    with session.cluster.lock("subscription-4294967294"):
        answer_of(session, "vacuum")
    found = {path.stem for path in folder.glob("*-*.lock")}
    assert found == {
        f"backend-{session.cluster.backend}",
        f"relation-{kept}",
        "subscription-4294967294",
    }
