"""A copied cluster and the original do not change, trust or wait for each other."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake, table_location
from fix_psql import Psql
from golden_script import answer_of
from patience import PATIENCE
from test_target_fault import clean

from replctl.catalog import cluster_identity, identify, schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.identify import identify_moved
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.pg_wal import last_logged_version
from replctl.catalog.promotion import promote
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.catalog.standby import create_standby, receive
from replctl.catalog.storage import begin_storage, note_storage
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    ConnectionFailure,
    DiskFull,
    FeatureNotSupported,
    LockNotAvailable,
    ObjectInUse,
    ObjectNotInPrerequisiteState,
    UndefinedFile,
)
from replctl.execute import execute
from replctl.lake import backup, identify_copy
from replctl.lake.backup import back_up
from replctl.lake.commit_mark import CommitMark, signed_text
from replctl.lake.delta_log import latest_version
from replctl.lake.delta_vacuum import vacuum_table
from replctl.lake.identify_copy import identify_copied
from replctl.lake.promotion_without_primary import accept_restored_catalog
from replctl.lake.publisher import LakePublisher
from replctl.lake.table_read import enter_foreign_versions
from replctl.open_node import open_publisher
from replctl.own_command import own_command
from replctl.session import Session
from replctl.spark import attach_server


def connect(cluster: Cluster) -> Session:
    return Session.connect(cluster, "postgres", "postgres")


def run(cluster: Cluster, statement: str) -> tuple[str, ...]:
    return answer_of(connect(cluster), statement)


def copy_of(lake: Lake, path: Path) -> Cluster:
    """Copy the cluster, and open the copy, which no command has identified."""
    shutil.copytree(lake.session.cluster.path, path)
    return open_cluster(path, is_checked=False)


def owned(lake: Lake, path: Path) -> Cluster:
    """Copy the cluster, make the copy a cluster of its own, and open it."""
    copy = copy_of(lake, path)
    identify_copied(copy)
    copy.close()
    return open_cluster(path)


def location(cluster: Cluster) -> str:
    ((found,),) = next(iter(execute(connect(cluster), "SELECT pg_relation_filepath('t')"))).rows
    assert found is not None
    return str(found)


def write(lake: Lake, relid: int, place: str, *, is_entered: bool) -> int:
    """Commit to a table as an unfinished transaction of replctl does, and return its number."""
    cluster = lake.session.cluster
    with cluster.write(lake.session.database_oid) as catalog:
        xid = catalog.xid
        before = latest_version(place)
        insert_intent(catalog.connection, xid, Intent(relid, before, is_whole=False))
        nonce = make_nonces(catalog.connection, xid, [relid])[relid]
    DeltaTable(place).update(updates={"v": "'unfinished'"})
    mark(cluster, relid, place, CommitMark(nonce, 1, xid))
    if is_entered:
        with cluster.begin(write=True) as connection:
            connection.exec_driver_sql(f"DELETE FROM intent WHERE xid = {xid}")
            connection.exec_driver_sql(f"UPDATE pg_xact SET status = 'c' WHERE xid = {xid}")
    return xid


def mark(cluster: Cluster, relid: int, place: str, said: CommitMark) -> None:
    """Give the newest commit the mark of a cluster."""
    text = signed_text(said, cluster.system_identifier, cluster.signing_key, relid)
    path = Path(place) / "_delta_log" / f"{latest_version(place):020d}.json"
    actions = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["userMetadata"] = text
    path.write_text("\n".join(map(json.dumps, actions)), "utf-8")


def put_elsewhere(lake: Lake, place: Path) -> None:
    """Turn t into a table with a LOCATION."""
    shutil.copytree(lake.location, place)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql(
            "UPDATE storage_table SET has_location = 1, location = ?", (str(place),)
        )
    lake.location = str(place)


# ---------------------------------------------------------------------------------------------
# Tables


def test_a_copy_leaves_alone_what_a_promoted_standby_took_over(lake: Lake, tmp_path: Path) -> None:
    create_standby(lake.session.cluster.path, tmp_path / "standby", "standby1")
    standby = open_cluster(tmp_path / "standby")
    receive(standby)
    promote(standby)
    standby.close()
    shutil.copytree(tmp_path / "standby", tmp_path / "copy")
    copy = open_cluster(tmp_path / "copy", is_checked=False)
    assert identify_copied(copy).tables == [("t", lake.location)]
    files = lake.files()
    session = connect(copy)
    refused = answer_of(session, "truncate t")[0]
    assert "55000" in refused
    answer_of(session, "set replctl.vacuum_retention = 0")
    for statement in ("vacuum t", "drop table t", "vacuum"):
        assert not answer_of(session, statement)[0].startswith("ERROR")
    assert lake.files() == files
    copy.close()


def test_a_copy_keeps_reading_what_the_original_writes(lake: Lake, tmp_path: Path) -> None:
    put_elsewhere(lake, tmp_path / "shared")
    copy = owned(lake, tmp_path / "copy")
    write(lake, lake.oid, lake.location, is_entered=True)
    LakePublisher(connect(copy)).slots.current_lsn()
    with copy.read(lake.session.database_oid) as catalog:
        assert last_logged_version(catalog.connection, lake.oid) == latest_version(lake.location)
    copy.close()


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_what_was_in_progress_is_ended_in_the_copy_alone(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    lake.update()
    before = lake.rows()
    xid = write(lake, lake.oid, lake.location, is_entered=False)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("UPDATE storage_column SET since_version = 2 WHERE name = 'v'")
    copy = copy_of(lake, tmp_path / "copy")
    DeltaTable(location(copy)).create_checkpoint()
    if is_interrupted:
        with monkeypatch.context() as patch:
            patch.setattr(identify_copy, "injection_point", _die)
            with pytest.raises(KeyboardInterrupt):
                identify_copied(copy)
    assert identify_copied(copy).ended == 1
    copy.close()
    copy = open_cluster(tmp_path / "copy")
    session = connect(copy)
    assert sorted(DeltaTable(location(copy)).to_pyarrow_table().to_pylist(), key=str) == before
    with copy.read(session.database_oid) as catalog:
        assert catalog.snapshot.in_progress == frozenset()
        relation = get_relation(catalog, lake.oid)
        assert relation is not None
        assert relation.storage is not None
        assert [c.since_version for c in relation.storage.columns.values()] == [0, None]
    DeltaTable(location(copy)).update(updates={"v": "'later'"})
    LakePublisher(session).slots.current_lsn()
    with copy.read(session.database_oid) as catalog:
        assert last_logged_version(catalog.connection, lake.oid) == 2
    copy.close()
    assert latest_version(lake.location) == 2
    with lake.session.read() as catalog:
        assert xid in catalog.snapshot.in_progress


def _die(name: str) -> None:
    raise KeyboardInterrupt


def test_a_table_that_nobody_finished_making_is_made_again(lake: Lake, tmp_path: Path) -> None:
    with lake.session.cluster.write(lake.session.database_oid) as catalog:
        nonce = make_nonces(catalog.connection, 7, [lake.oid])[lake.oid]
        begin_storage(catalog.connection, lake.oid, is_empty=True)
        catalog.connection.exec_driver_sql("DELETE FROM pg_wal")
    mark(lake.session.cluster, lake.oid, lake.location, CommitMark(nonce, 1, 7, silent=True))
    copy = owned(lake, tmp_path / "copy")
    assert latest_version(location(copy)) is None
    with copy.read(lake.session.database_oid) as catalog:
        relation = get_relation(catalog, lake.oid)
        assert relation is not None
        assert relation.storage is not None
        assert not relation.storage.is_made
    copy.close()


@pytest.mark.parametrize("below", ["base", "base/5"])
def test_links_out_of_a_copy_are_refused(lake: Lake, tmp_path: Path, below: str) -> None:
    copy = copy_of(lake, tmp_path / "copy")
    shutil.rmtree(copy.path / below)
    (copy.path / below).symlink_to(lake.session.cluster.path / below)
    with pytest.raises(ObjectNotInPrerequisiteState, match="is a link to") as caught:
        identify_copied(copy)
    assert "cp -rL" in (caught.value.hint or "")
    (copy.path / below).unlink()
    shutil.copytree(lake.session.cluster.path / below, copy.path / below, symlinks=False)
    identify_copied(copy)
    copy.close()


def test_a_catalog_that_is_the_original_s_file_is_refused(lake: Lake, tmp_path: Path) -> None:
    home = lake.session.cluster.path
    identifier = lake.session.cluster.system_identifier
    shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("catalog.db*"))
    for path in home.glob("catalog.db*"):
        os.link(path, tmp_path / "copy" / path.name)
    copy = open_cluster(tmp_path / "copy", is_checked=False)
    with pytest.raises(ObjectNotInPrerequisiteState, match="is the same file as") as caught:
        identify_copied(copy)
    copy.close()
    assert caught.value.hint == "Copy the cluster without hard links."
    owned(lake, tmp_path / "again").close()
    assert lake.session.cluster.control().system_identifier == identifier


# ---------------------------------------------------------------------------------------------
# Homes


def test_an_original_that_cannot_be_read_is_not_gone(lake: Lake, tmp_path: Path) -> None:
    lake.session.cluster.close()
    home = lake.session.cluster.path
    shutil.copytree(home, tmp_path / "copy")
    for path in home.glob("catalog.db*"):
        path.unlink()
    (home / "catalog.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ObjectNotInPrerequisiteState, match="could not read the catalog") as caught:
        open_cluster(tmp_path / "copy")
    assert "--moved" in (caught.value.hint or "")
    copy = open_cluster(tmp_path / "copy", is_checked=False)
    identify_moved(copy)
    copy.close()
    open_cluster(tmp_path / "copy").close()


def test_an_original_that_cannot_be_written_is_given_up(
    lake: Lake, psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = lake.session.cluster.path
    lake.session.cluster.close()
    shutil.copytree(home, tmp_path / "copy")
    refusal = DiskFull("no space left on device")
    monkeypatch.setattr(
        identify, "open_cluster", lambda path, *, is_checked: ReadOnlyCluster(Path(path), refusal)
    )
    moved = psql("cluster", "identify", "--moved", "--home", str(tmp_path / "copy"))
    assert moved.exit_code == 0
    assert f'warning: directory "{home}" still is a home of the cluster' in moved.stderr
    assert "hint: Remove it before" in moved.stderr
    shutil.rmtree(home)
    open_cluster(tmp_path / "copy").close()


def test_a_home_without_a_catalog_that_is_complete_holds_nothing(tmp_path: Path) -> None:
    assert cluster_identity.identifier_at(tmp_path) is None
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection:
        connection.execute("CREATE TABLE alembic_version (a int)")
    assert cluster_identity.identifier_at(tmp_path) is None


def test_who_is_in_use_is_not_identified(lake: Lake, tmp_path: Path) -> None:
    copy = copy_of(lake, tmp_path / "copy")
    user = open_cluster(tmp_path / "copy", is_checked=False)
    with pytest.raises(ObjectInUse, match="is being used by other programs"):
        identify_copied(copy)
    user.close()
    with pytest.raises(ObjectInUse, match=str(lake.session.cluster.path)):
        identify_moved(copy)
    lake.session.cluster.close()
    identify_moved(copy)
    copy.close()
    with pytest.raises(ObjectNotInPrerequisiteState, match="is a copy"):
        open_cluster(lake.session.cluster.path)


def test_a_publisher_that_is_a_copy_is_refused(lake: Lake, tmp_path: Path) -> None:
    shutil.copytree(lake.session.cluster.path, tmp_path / "copy")
    with (
        pytest.raises(ConnectionFailure, match="is a copy of the cluster") as caught,
        open_publisher(
            lake.session, Subscription(1, 5, "s", 10, f"host={tmp_path / 'copy'}", ("p",), None)
        ),
    ):
        pass
    assert "--copied" in (caught.value.hint or "")


def test_a_copy_does_not_use_the_original_s_spark_server(lake: Lake, tmp_path: Path) -> None:
    spark = lake.session.cluster.path / "spark"
    spark.mkdir()
    conf: dict[str, object] = {"master": None, "properties": [], "idle_timeout": 1.0}
    server = {"pid": 1, "port": 1, "token": "x", "started": "", "log": "", "conf": conf}
    (spark / "server.json").write_text(json.dumps(server))
    (spark / "server.lock").write_text("")
    copy = owned(lake, tmp_path / "copy")
    assert attach_server(copy.path) is None
    assert (spark / "server.json").exists()
    copy.close()


def test_a_standby_follows_a_primary_that_was_moved(lake: Lake, tmp_path: Path) -> None:
    create_standby(lake.session.cluster.path, tmp_path / "standby", "standby1")
    lake.session.cluster.close()
    shutil.move(lake.session.cluster.path, tmp_path / "moved")
    standby = open_cluster(tmp_path / "standby")
    with pytest.raises(ConnectionFailure, match="there is no cluster"):
        receive(standby)
    run(standby, f"alter system set primary_conninfo = 'host={tmp_path / 'moved'}'")
    receive(standby)
    assert location(standby).startswith(f"{tmp_path / 'moved'}/base/")
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    run(standby, f"alter system set primary_conninfo = 'host={tmp_path / 'copy'}'")
    with pytest.raises(ConnectionFailure, match="is a copy of the cluster"):
        receive(standby)
    standby.close()


def test_a_copy_of_a_standby_stays_a_standby(lake: Lake, tmp_path: Path) -> None:
    create_standby(lake.session.cluster.path, tmp_path / "standby", "standby1")
    shutil.copytree(tmp_path / "standby", tmp_path / "copy")
    copy = open_cluster(tmp_path / "copy", is_checked=False)
    with pytest.raises(FeatureNotSupported, match="is a standby"):
        identify_copied(copy)
    with pytest.raises(FeatureNotSupported, match="is a standby") as caught:
        back_up(copy, tmp_path / "backup")
    assert caught.value.hint == "Back up its primary."
    assert back_up(lake.session.cluster, tmp_path / "backup").tables == 1
    identify_moved(copy)
    copy.close()
    assert location(open_cluster(tmp_path / "copy")) == lake.location


# ---------------------------------------------------------------------------------------------
# Slots, subscriptions, settings


def test_slots_of_a_copy(lake: Lake, tmp_path: Path) -> None:
    old = lake.session.cluster.system_identifier
    lake.run(
        "create subscription s connection 'dbname=postgres' publication p with (connect=false)"
    )
    with lake.session.read() as catalog:
        row = catalog.first(schema.pg_subscription)
        assert row is not None
        own = int(row.oid)
    for name in ("s", f"pg_{own}_sync_{lake.oid}_{old}", f"pg_{own + 1}_sync_9_{old}", "pg_other"):
        lake.run(f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
    create_standby(lake.session.cluster.path, tmp_path / "standby", "standby1")
    lake.run("alter system set synchronized_standby_slots = 'standby1'")
    copy = copy_of(lake, tmp_path / "copy")
    found = identify_copied(copy)
    assert found.slots == [f"pg_{own + 1}_sync_9_{old}", "pg_other", "standby1"]
    assert found.settings == ["synchronized_standby_slots"]
    (slots,) = execute(connect(copy), "SELECT slot_name FROM pg_replication_slots ORDER BY 1")
    renamed = f"pg_{own}_sync_{lake.oid}_{found.system_identifier}"
    assert list(map(tuple, slots.rows)) == [(renamed,), ("s",)]
    assert connect(copy).setting("synchronized_standby_slots") == ""
    copy.close()
    assert lake.session.cluster.control().system_identifier == old


# ---------------------------------------------------------------------------------------------
# Backups


def test_a_backup_has_a_table_that_is_being_made(lake: Lake, tmp_path: Path) -> None:
    write(lake, lake.oid, lake.location, is_entered=False)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("DELETE FROM pg_wal")
        connection.exec_driver_sql("UPDATE storage_column SET since_version = 1 WHERE name = 'v'")
    back_up(lake.session.cluster, tmp_path / "backup")
    lake.session.cluster.close()
    shutil.rmtree(lake.session.cluster.path)
    restored = open_cluster(tmp_path / "backup")
    assert latest_version(location(restored)) == 0
    with restored.begin(write=False) as connection:
        catalog = Catalog(connection, lake.session.database_oid)
        relation = get_relation(catalog, lake.oid)
    assert relation is not None
    assert relation.storage is not None
    assert [c.since_version for c in relation.storage.columns.values()] == [0, None]
    restored.close()


def test_a_backup_leaves_out_what_tells_of_later_versions(lake: Lake, tmp_path: Path) -> None:
    lake.update()
    log = Path(lake.location) / "_delta_log"
    compacted = f"{0:020d}.{2:020d}.compacted.json"
    for name in (compacted, f".{compacted}.crc", "_last_checkpoint", f"{2:020d}.crc"):
        (log / name).write_text("{}")
    back_up(lake.session.cluster, tmp_path / "backup")
    copied = tmp_path / "backup" / Path(lake.location).relative_to(lake.session.cluster.path)
    assert {path.name for path in (copied / "_delta_log").iterdir()} == {
        f"{0:020d}.json",
        f"{1:020d}.json",
    }


def test_a_block_that_is_open_during_a_backup_is_unknown_in_other_places(
    lake: Lake, tmp_path: Path
) -> None:
    """It may commit after the backup, and the backup's cluster must not undo it then."""
    lake.run(f"create table u (id int) using delta location '{tmp_path}/lake'")
    lake.run("insert into u values (1)")
    lake.run("begin")
    lake.run("insert into u values (2)")
    back_up(lake.session.cluster, tmp_path / "backup")
    lake.run("commit")
    lake.session.cluster.close()
    shutil.rmtree(lake.session.cluster.path)
    restored = open_cluster(tmp_path / "backup")
    for statement in ("table u", "insert into u values (9)"):
        assert "has commits of this cluster that its catalog lacks" in run(restored, statement)[0]
    assert accept_restored_catalog(restored).undone == 1
    restored.close()


def test_an_insert_reads_no_table_whose_keys_refer_to_it(lake: Lake) -> None:
    lake.run("create table parent (id int primary key)")
    lake.run("create table child (id int references parent)")
    with lake.session.read() as catalog:
        oid = lake.session.environment(catalog).relation_oid(None, "child")
    assert oid is not None
    place = str(table_location(lake.session, "child"))
    write_deltalake(place, pa.table({"id": pa.array([1], pa.int32())}))
    mark(lake.session.cluster, oid, place, CommitMark("lost", 1, 6_000))
    with lake.session.cluster.begin(write=True) as connection:
        note_storage(connection, oid, [1], 0)
    lake.run("insert into parent values (1)")
    refused = answer_of(lake.session, "delete from parent")
    assert "has commits of this cluster that its catalog lacks" in refused[0]


def test_a_block_that_is_open_during_a_backup_is_undone_in_its_home(
    lake: Lake, tmp_path: Path
) -> None:
    xid = write(lake, lake.oid, lake.location, is_entered=False)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("UPDATE pg_xact SET backend = 'ended', block_xid = xid")
    found = accept_restored_catalog(lake.session.cluster)
    assert (found.undone, found.tables[0].undone) == (1, 1)
    back_up(lake.session.cluster, tmp_path / "backup")
    with closing(sqlite3.connect(tmp_path / "backup" / "catalog.db")) as connection:
        assert connection.execute("SELECT xid FROM intent").fetchall() == [(xid,)]


def test_a_backup_that_fails_leaves_nothing(lake: Lake, tmp_path: Path) -> None:
    shutil.rmtree(lake.location)
    with pytest.raises(UndefinedFile, match="could not find the Delta table") as caught:
        back_up(lake.session.cluster, tmp_path / "backup")
    assert (
        caught.value.detail
        == f'Table "public.t" of database "postgres" is stored at "{lake.location}".'
    )
    hint = "Restore the directory from a backup, or use DROP TABLE public.t."
    assert caught.value.hint == hint
    assert list((tmp_path / "backup").iterdir()) == []
    lake.run("drop table t")
    assert back_up(lake.session.cluster, tmp_path / "backup").tables == 0


def _older(location: Path) -> None:
    (location / "_delta_log" / f"{1:020d}.json").unlink()


def _another(location: Path) -> None:
    (location / "_delta_log" / f"{1:020d}.json").write_text("{}")


def _without_log(location: Path) -> None:
    shutil.rmtree(location / "_delta_log")


def _emptied(location: Path) -> None:
    shutil.rmtree(location)
    location.mkdir()


@pytest.mark.parametrize("change", [_older, _another, _without_log, _emptied])
def test_a_backup_reports_tables_that_do_not_fit_the_catalog(
    lake: Lake, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    lake.update()
    assert back_up(lake.session.cluster, tmp_path / "whole").problems == []
    change(Path(lake.location))
    (problem,) = back_up(lake.session.cluster, tmp_path / "backup").problems
    assert problem.message == 'table "t" in the backup is not as the catalog knows it'
    assert problem.detail is not None
    assert problem.detail.startswith('Table "public.t" of database "postgres" is stored at')
    assert problem.detail.endswith("version 1.")
    assert "DROP TABLE public.t" in (problem.hint or "")


def test_the_hint_of_a_backup_of_a_cleaned_log(lake: Lake, tmp_path: Path) -> None:
    lake.update()
    for _number in range(2):
        DeltaTable(lake.location).update(updates={"v": "'x'"}, predicate="id = 1")
    clean(lake)
    (problem,) = back_up(lake.session.cluster, tmp_path / "backup").problems
    assert problem.hint == (
        'In database "postgres", use SELECT count(*) FROM public.t; then back up into another'
        " directory."
    )
    enter_foreign_versions(lake.session)  # as the query does
    assert back_up(lake.session.cluster, tmp_path / "again").problems == []


def test_a_backup_of_a_home_that_cannot_be_written(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.update()
    refusal = DiskFull('could not write to directory "x"', hint="Until this is corrected, ...")
    cluster = ReadOnlyCluster(lake.session.cluster.path, refusal)
    with pytest.raises(DiskFull) as caught:
        back_up(cluster, tmp_path / "refused")
    command = own_command("cluster", "identify", "--moved", home=tmp_path / "refused")
    assert caught.value.hint == (
        'Stop all programs that use the cluster, copy its directory with "cp -r", and run'
        f' "{command}" to use the copy instead.'
    )
    monkeypatch.setattr(backup, "is_on_read_only_file_system", lambda path: True)
    found = back_up(cluster, tmp_path / "backup")
    cluster.close()
    assert (found.tables, found.problems) == (1, [])
    lake.session.cluster.close()
    shutil.rmtree(lake.session.cluster.path)
    restored = open_cluster(tmp_path / "backup")
    assert latest_version(location(restored)) == 1
    restored.close()


def test_a_backup_does_not_go_into_the_home(lake: Lake) -> None:
    inside = lake.session.cluster.path / "base" / "backup"
    with pytest.raises(ObjectNotInPrerequisiteState, match="lies in the directory of the cluster"):
        back_up(lake.session.cluster, inside)
    assert not inside.exists()


def test_vacuum_that_waits_for_a_backup_lets_others_write(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.update(3)
    cluster = lake.session.cluster
    done: list[object] = []
    vacuum = threading.Thread(
        target=lambda: done.append(vacuum_table(lake.session, lake.oid, is_full=False)), daemon=True
    )

    def meanwhile(name: str) -> None:
        vacuum.start()
        vacuum.join(0.3)
        assert vacuum.is_alive()
        with cluster.lock(f"relation-{lake.oid}", timeout=0):
            pass
        with pytest.raises(LockNotAvailable):
            vacuum_table(connect(cluster), lake.oid, is_full=False, waits=False)

    monkeypatch.setattr(backup, "injection_point", meanwhile)
    back_up(cluster, tmp_path / "backup")
    vacuum.join(PATIENCE)
    assert [getattr(each, "files", 0) > 0 for each in done] == [True]
