"""The promotion of a standby, with its primary or without it.

Errors, DETAILs and HINTs are those of a PostgreSQL 17 standby.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_replication import Database
from fix_standby import READY, database_of, make_slot, stored_rows

from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_wal import last_committed_version
from replctl.catalog.promotion import promote
from replctl.catalog.standby import create_standby, follow, receive
from replctl.catalog.storage import note_storage
from replctl.catalog.transaction import next_xid
from replctl.errors import (
    CannotConnectNow,
    InternalError,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    UndefinedFile,
)
from replctl.lake.commit_log import enter_versions, marked_text
from replctl.lake.commit_mark import CommitMark, mark_of, signed_text
from replctl.lake.promotion_without_primary import FoundInStorage, promote_without_primary
from replctl.lake.publisher import LakePublisher
from replctl.lake.recovery import recover
from replctl.lake.table_read import visible_versions
from replctl.own_command import own_command


def test_promotion(primary: Database, standby: Database) -> None:
    primary.run("CREATE TABLE u (b int)")
    make_slot(primary, "sub2", failover=True)
    ((last,),) = primary.rows("SELECT pg_current_wal_lsn()")
    assert standby.rows("SELECT pg_promote(), pg_is_in_recovery()") == [("t", "t")]
    assert standby.rows("SELECT pg_is_in_recovery()") == [("f",)]
    assert standby.rows(READY) == [("sub1", "t"), ("sub2", "t")]
    standby.run("CREATE TABLE v (c int)")
    assert standby.rows(f"SELECT pg_current_wal_lsn() > '{last}'::pg_lsn") == [("t",)]
    assert standby.rows("SELECT nextval('s')") == [("1",)]
    standby.rows("SELECT pg_drop_replication_slot('sub1')")


def test_two_processes_promote_at_once(standby: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one of them promotes the standby, whose new tables keep their relative locations."""
    cluster = standby.session.cluster
    others = [open_cluster(cluster.path)]

    def reached(point: str) -> None:
        if point == "promotion.before-end" and others:
            other = others.pop()
            promote(other)
            new = database_of(other)
            new.run("CREATE TABLE v (c int)")
            new.run("INSERT INTO v VALUES (1)")
            other.close()

    monkeypatch.setattr("replctl.catalog.promotion.injection_point", reached)
    with pytest.raises(ObjectNotInPrerequisiteState, match="recovery is not in progress"):
        promote(cluster)
    assert cluster.control().timeline == 2
    with cluster.begin(write=False) as connection:
        places = connection.exec_driver_sql("SELECT location FROM storage_table").scalars().all()
    assert any(place.startswith("base/") for place in places)


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
        database_of(again)
    command = shlex.split((caught.value.hint or "").partition("Connect to the new primary: ")[2])
    assert command[:2] == ["replctl", "--home"]
    new = open_cluster(command[2])
    assert database_of(new).rows("SELECT 1") == [("1",)]
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
    database_of(other).run(here)
    receive(other)
    followed = "SELECT count(*) FROM pg_class WHERE relname = 'after_that'"
    assert database_of(other).rows(followed) == [("1",)]
    other.close()


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
    before = stored_rows(standby)
    with pytest.raises(UndefinedFile) as caught:
        promote_without_primary(new)
    assert caught.value.detail == f'Missing: "public.t" in "{location}".'
    assert stored_rows(standby) == before
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
