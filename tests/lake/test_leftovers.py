"""The files of a table that a failed write leaves, without Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake

from replctl.catalog.intent import Intent, insert_intent, intents_of
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.transaction import begin_transaction
from replctl.errors import ConnectionFailure, DiskFull, Notice
from replctl.lake import free_space, recovery
from replctl.lake.delta_log import latest_version
from replctl.lake.leftovers import removing_leftovers, take_over
from replctl.lake.recovery import recover, undo_or_leave

_NAME = "part-00000-0b1c2d3e-0000-4000-8000-{:012d}.c000.snappy.parquet"
_LEFT = [_NAME.format(1), f"ab/{_NAME.format(2)}", f"_change_data/cdc{_NAME.format(3)[4:]}"]
_UNFINISHED = "_delta_log/.00000000000000000001.json.0b1c2d3e-0000-4000-8000-000000000004.tmp"
_OTHERS = [_NAME.format(5), "letter.txt", "_delta_log/letter.tmp"]


def _relations(lake: Lake) -> dict[int, Relation]:
    with lake.session.read() as catalog:
        return load_relations(catalog, [lake.oid])


def _set_storage(lake: Lake, assignment: str) -> None:
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql(f"update storage_table set {assignment}")


def _own(lake: Lake) -> None:
    """Mark the table as one that no other program has written."""
    _set_storage(lake, "has_foreign = 0")


def _nothing() -> None:
    pass


def _fail(
    lake: Lake, error: BaseException, meanwhile: Callable[[], None] = _nothing
) -> list[Notice]:
    """Make a write fail after it has created files for the table, and return the messages."""
    told: list[Notice] = []
    lake.session.on_notice = told.append
    for path in _OTHERS:
        Path(lake.location, path).write_text("x")
    os.utime(Path(lake.location, _NAME.format(5)), (time.time() - 60,) * 2)
    versions = {lake.oid: latest_version(lake.location)}

    def write() -> None:
        with removing_leftovers(lake.session, _relations(lake), versions):
            for path in (*_LEFT, _UNFINISHED):
                file = Path(lake.location, path)
                file.parent.mkdir(exist_ok=True)
                file.write_text("rows")
            meanwhile()
            raise error

    with pytest.raises(type(error)):
        write()
    return told


def test_a_failed_statement_removes_its_files(lake: Lake) -> None:
    _own(lake)
    before = lake.files()
    assert _fail(lake, DiskFull("x")) == []
    assert lake.files() == {*before, *_OTHERS}


def test_files_of_the_table_that_look_new_stay(lake: Lake) -> None:
    """The clock was set back, or the files came from a machine whose clock is ahead."""
    _own(lake)
    files = [path for path in lake.files() if path.endswith(".parquet")]
    assert files
    for path in files:
        os.utime(Path(lake.location, path), (time.time() + 3600,) * 2)
    before = lake.files()
    assert _fail(lake, DiskFull("x")) == []
    assert lake.files() == {*before, *_OTHERS}


@pytest.mark.parametrize("reason", ["has_location = 1", "is_adopted = 1", "has_foreign = 1"])
def test_where_others_write_it_says_what_it_leaves(lake: Lake, reason: str) -> None:
    _own(lake)
    _set_storage(lake, reason)
    before = lake.files()
    (notice,) = _fail(lake, DiskFull("x"))
    assert lake.files() == {*before, *_OTHERS, *_LEFT, _UNFINISHED}
    assert (notice.severity, notice.message) == (
        "NOTICE",
        f'the failed statement has left files in "{lake.location}"',
    )
    assert notice.detail is not None
    assert "does not remove these 4 files" in notice.detail


def test_on_a_full_disk_nothing_is_begun(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt would leave one more file."""

    def begin() -> bool:
        with removing_leftovers(lake.session, _relations(lake), {}):
            return True

    for free in (1 << 20, None):
        monkeypatch.setattr(free_space, "_free", lambda _path, free=free: free)
        assert begin()
    monkeypatch.setattr(free_space, "_free", lambda _path: 4096)
    with pytest.raises(DiskFull) as caught:
        begin()
    assert (caught.value.path, caught.value.hint) == (lake.location, "Check free disk space.")
    assert caught.value.detail == f'The disk of "{lake.location}" has 4096 bytes left.'


def test_the_space_where_a_table_is_going_to_be(tmp_path: Path) -> None:
    there, later = (free_space._free(path) for path in (tmp_path, tmp_path / "not" / "yet"))
    assert there is not None
    assert later is not None
    assert abs(there - later) < 1 << 30
    assert free_space._free(Path("/proc")) is None  # /proc has no blocks


def test_a_commit_of_another_program_is_noticed_at_once(lake: Lake) -> None:
    def update() -> None:
        DeltaTable(lake.location).update(updates={"v": "'x'"})

    _own(lake)
    (notice,) = _fail(lake, DiskFull("x"), update)
    assert "left files" in notice.message
    assert {*_LEFT, _UNFINISHED} <= lake.files()


def test_foreign_commits_are_noted(lake: Lake) -> None:
    assert _storage_flag(lake)
    _set_storage(lake, "has_foreign = 0")
    lake.update(1)
    assert _storage_flag(lake)


def _storage_flag(lake: Lake) -> bool:
    storage = _relations(lake)[lake.oid].storage
    assert storage is not None
    return storage.has_foreign


@pytest.mark.parametrize("error", [ConnectionFailure("x"), KeyboardInterrupt()])
def test_while_spark_may_be_writing_all_is_left(lake: Lake, error: BaseException) -> None:
    _own(lake)
    before = lake.files()
    assert _fail(lake, error) == []
    assert lake.files() == {*before, *_OTHERS, *_LEFT, _UNFINISHED}


def test_after_a_death_all_is_left_for_a_day(lake: Lake) -> None:
    _own(lake)
    cluster = lake.session.cluster
    with cluster.begin(write=True) as connection:
        own = begin_transaction(connection, lake.session.database_oid, cluster.backend)
        dead = begin_transaction(connection, lake.session.database_oid, "1-dead")
    take_over(lake.session, own, [lake.oid])
    before = lake.files()
    assert _fail(lake, DiskFull("x")) == []
    assert lake.files() == {*before, *_OTHERS}
    take_over(lake.session, dead, [lake.oid])
    (notice,) = _fail(lake, DiskFull("x"))
    assert "left files" in notice.message
    _set_storage(lake, f"taken_over = {int((time.time() - 86401) * 1_000_000)}")
    assert _fail(lake, DiskFull("x")) == []
    assert lake.files() == {*before, *_OTHERS}


def test_what_cannot_be_undone_now_is_undone_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, so replctl can record neither the undo nor its delay."""
    session, cluster = lake.session, lake.session.cluster
    with cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, session.database_oid, cluster.backend)
        insert_intent(connection, xid, Intent(lake.oid, 0, False))

    def refuse(*_arguments: object) -> None:
        raise DiskFull("could not write the catalog: no space left on device")

    with monkeypatch.context() as full:
        full.setattr(recovery, "undo_commits", refuse)
        full.setattr(recovery, "mark_abandoned", refuse)
        undo_or_leave(session, xid)
    assert cluster.abandoned == {xid}
    with cluster.begin(write=False) as connection:
        assert intents_of(connection, xid) != []
    recover(session, [lake.oid])
    with cluster.begin(write=False) as connection:
        assert intents_of(connection, xid) == []


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_table_that_is_rolled_back_leaves_its_location(
    lake: Lake, tmp_path: Path, is_begun: bool
) -> None:
    place = tmp_path / "theirs"
    lake.run("begin")
    lake.run(f"create table n (a int) using delta location '{place}'")
    lake.run("create table m (a int)")
    if is_begun:
        with lake.session.cluster.begin(write=True) as connection:
            connection.exec_driver_sql(
                f"update storage_table set is_made = 1, was_empty = 1 where relid <> {lake.oid}"
            )
    told = lake.run("rollback")
    said = f'NOTICE 00000: files of a table that was rolled back remain in "{place}"'
    assert told == ((said, "ROLLBACK") if is_begun else ("ROLLBACK",))
    with lake.session.cluster.begin(write=False) as connection:
        query = "select location from storage_table where relid <> ?"
        left = list(connection.exec_driver_sql(query, (lake.oid,)).scalars())
    assert all(location.startswith("base/") for location in left)
    assert len(left) == is_begun  # VACUUM removes tables in base/
    lake.run("vacuum")
    with lake.session.cluster.begin(write=False) as connection:
        assert list(connection.exec_driver_sql(query, (lake.oid,)).scalars()) == []
