"""The versions of a table that have a readable change data feed, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake

from replctl import spark
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_wal import entries_between
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake import feed_choice, undo
from replctl.lake.delta_log import commits_after
from replctl.lake.feed_choice import with_feeds
from replctl.lake.table_metadata import TableMetadata, metadata_at
from replctl.spark import FeedVersion


def _switch(lake: Lake, *, on: bool) -> None:
    value = "true" if on else "false"
    DeltaTable(lake.location).alter.set_table_properties({"delta.enableChangeDataFeed": value})


def _append(lake: Lake, rows: pa.Table, **options: Any) -> None:
    write_deltalake(lake.location, rows, mode="append", **options)


def _rows(number: int = 9) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32()), "v": ["x"]})


def _relation(lake: Lake, *, is_adopted: bool = True, has_foreign: bool = False) -> Relation:
    with lake.session.read() as catalog:
        relation = get_relation(catalog, lake.oid)
    assert relation is not None
    assert relation.storage is not None
    storage = replace(relation.storage, is_adopted=is_adopted, has_foreign=has_foreign)
    return replace(relation, storage=storage)


def chosen_feeds(relation: Relation, versions: list[FeedVersion]) -> tuple[FeedVersion, ...]:
    return feed_choice.chosen_feeds(relation, versions, lambda _log: None)


def _compared(lake: Lake) -> dict[int, bool]:
    """Return for each version in the commit log whether replctl compares it."""
    end = lake.enter()
    with lake.session.read() as catalog:
        entries = entries_between(catalog, 0, end)
    return {e.version: bool(e.detail.get("compared")) for e in entries if e.version is not None}


def test_a_feed_is_there_as_long_as_it_is_switched_on(lake: Lake) -> None:
    _append(lake, _rows(4))
    _switch(lake, on=False)
    _append(lake, _rows(5))
    _append(lake, _rows(6))
    assert _compared(lake) == {0: False, 1: False, 3: True, 4: True}
    _append(lake, _rows(7))  # an earlier commit has its metadata
    _switch(lake, on=True)
    _append(lake, _rows(8))
    assert _compared(lake) == {0: False, 1: False, 3: True, 4: True, 5: True, 7: False}


def test_the_metadata_of_a_cleaned_log_is_its_checkpoint_s(lake: Lake) -> None:
    _switch(lake, on=False)
    _append(lake, _rows(4))
    lake.enter()
    DeltaTable(lake.location).create_checkpoint()
    for version in range(2):
        (Path(lake.location) / "_delta_log" / f"{version:020d}.json").unlink()
    _append(lake, _rows(5))
    assert _compared(lake)[3]
    assert not metadata_at(lake.location, 3).has_feed
    with pytest.raises(ObjectNotInPrerequisiteState, match="does not say what version 1 was"):
        metadata_at(lake.location, 1)


def test_columns_may_be_added_under_a_feed(lake: Lake) -> None:
    rows = _rows().append_column("more", pa.array([1]))
    _append(lake, rows, schema_mode="merge")
    write_deltalake(lake.location, rows, mode="overwrite")
    write_deltalake(lake.location, rows.drop(["v"]), mode="overwrite", schema_mode="overwrite")
    commits = with_feeds(lake.location, commits_after(lake.location, 0))
    assert [commit.has_feed for commit in commits] == [True, True, False]
    versions = [FeedVersion(version, 1) for version in (1, 2)]
    chosen = chosen_feeds(_relation(lake), versions)
    assert [version.is_compared for version in chosen] == [True, True]
    assert chosen_feeds(_relation(lake, is_adopted=False), versions) == tuple(versions)


def _remove(lake: Lake, kind: str) -> None:
    """Remove the files that the newest version names in its actions of a kind."""
    log = max((Path(lake.location) / "_delta_log").glob("*.json"))
    for line in log.read_text().splitlines():
        if kind in json.loads(line):
            (Path(lake.location) / json.loads(line)[kind]["path"]).unlink()


@pytest.mark.parametrize(
    ("damage", "is_compared"),
    [((), False), (("cdc",), True), (("cdc", "remove"), None), (("remove",), False)],
)
def test_a_feed_whose_files_are_gone(
    lake: Lake, damage: tuple[str, ...], *, is_compared: bool | None
) -> None:
    lake.update()
    for kind in damage:
        _remove(lake, kind)
    if is_compared is None:
        with pytest.raises(
            ObjectNotInPrerequisiteState, match="were removed before they were read"
        ):
            chosen_feeds(_relation(lake), [FeedVersion(1, 1)])
        return
    (chosen,) = chosen_feeds(_relation(lake), [FeedVersion(1, 1)])
    assert chosen.is_compared == is_compared


def _commit(lake: Lake, *actions: dict[str, Any]) -> int:
    """Write a version by hand, and return its number."""
    version = DeltaTable(lake.location).version() + 1
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return version


_VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0",
    "sizeInBytes": 32,
    "cardinality": 1,
}
#: The only file of version 0; a file that the table does not have yet.
_OLD, _NEW = "old.parquet", "new.parquet"


def _add(path: str, **changed: Any) -> dict[str, Any]:
    body = {"path": path, "partitionValues": {}, "size": 7, "modificationTime": 1}
    return {"add": body | {"dataChange": True} | changed}


def _removal(path: str, **changed: Any) -> dict[str, Any]:
    whole = {"extendedFileMetadata": True, "partitionValues": {}, "size": 7}
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True} | whole | changed}


def _rename_file(lake: Lake) -> None:
    """Give the only file of version 0 the name `_OLD`."""
    log = Path(lake.location) / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    (Path(lake.location) / add["path"]).rename(Path(lake.location) / _OLD)
    log.write_text(log.read_text().replace(add["path"], _OLD))
    (Path(lake.location) / _NEW).touch()


@pytest.mark.parametrize(
    ("actions", "is_compared"),
    [
        ([_add(_NEW)], False),
        ([_add(_OLD, stats='{"numRecords":3}')], True),  # Delta would insert its rows again
        ([_add(_NEW), _add(_OLD)], True),
        ([_add(_NEW), _add(_OLD, dataChange=False)], True),
        ([_add(_NEW, deletionVector=_VECTOR)], True),
        ([_removal(_NEW)], True),  # Delta would delete the rows of a file that is not there
        ([_removal(_OLD), _add(_NEW)], True),
        ([_removal(_OLD, extendedFileMetadata=False), _add(_NEW)], True),  # Delta would fail
        ([_removal(_OLD), _add(_OLD, deletionVector=_VECTOR)], True),
    ],
)
def test_delta_computes_the_feed_of_plain_appends_only(
    lake: Lake, actions: list[dict[str, Any]], *, is_compared: bool
) -> None:
    _rename_file(lake)
    versions = [FeedVersion(_commit(lake, *actions), 1)]
    for is_adopted in (True, False):
        relation = _relation(lake, is_adopted=is_adopted, has_foreign=not is_adopted)
        (chosen,) = chosen_feeds(relation, versions)
        assert chosen.is_compared == is_compared
    assert chosen_feeds(_relation(lake, is_adopted=False), versions) == tuple(versions)


def test_a_file_may_be_there_before_a_later_version(lake: Lake) -> None:
    _rename_file(lake)
    other = "other.parquet"
    (Path(lake.location) / other).touch()
    histories = ([_add(_NEW)], [_removal(_OLD)], [_add(_NEW)], [_add(other)], [_add(other)])
    numbers = [_commit(lake, *actions) for actions in histories]
    chosen = chosen_feeds(_relation(lake), [FeedVersion(number, 1) for number in numbers])
    assert [version.is_compared for version in chosen] == [False, True, True, False, True]
    returned = FeedVersion(_commit(lake, _add(_OLD)), 1)  # removed before
    assert not chosen_feeds(_relation(lake), [returned])[0].is_compared
    again = FeedVersion(_commit(lake, {"commitInfo": {}}, _add(_OLD)), 1)
    assert chosen_feeds(_relation(lake), [again])[0].is_compared


def test_what_files_there_were_before_a_cleanup(lake: Lake) -> None:
    _rename_file(lake)
    DeltaTable(lake.location).create_checkpoint()
    versions = [FeedVersion(_commit(lake, _add(name)), 1) for name in (_OLD, _NEW)]
    logs = [Path(lake.location) / "_delta_log" / f"{version:020d}.json" for version in range(2)]
    logs[0].unlink()  # the checkpoint has the files of version 0
    chosen = chosen_feeds(_relation(lake), versions)
    assert [version.is_compared for version in chosen] == [True, False]
    DeltaTable(lake.location).create_checkpoint()
    logs[1].unlink()
    assert chosen_feeds(_relation(lake), versions[1:])[0].is_compared  # version 1 is unknown


def test_an_undo_compares_the_files_of_others(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _rename_file(lake)
    _append(lake, _rows())
    again = _commit(lake, _add(_OLD))
    reverted: list[tuple[FeedVersion, ...]] = []
    engine = SimpleNamespace(place_log=lambda _log: None)
    monkeypatch.setattr(lake.session, "engine", lambda: engine)
    monkeypatch.setattr(undo, "_undoing", lambda *_arguments, **_options: nullcontext())
    monkeypatch.setattr(
        spark.jobs,
        "revert",
        lambda _engine, _source, _key, own, foreign, _note: reverted.append((*own, *foreign)),
    )
    relation = _relation(lake, is_adopted=False)  # the catalog does not know the commit yet
    own, foreign = ([FeedVersion(version, 1)] for version in (1, again))
    undo._undo_by_inverse(lake.session, 1, relation, own, foreign, is_renamed=False)
    ((first, second),) = reverted
    assert (first.is_compared, second.is_compared) == (False, True)


def _nothing(_lake: Lake) -> None:
    pass


def _off_and_on(lake: Lake) -> None:
    _switch(lake, on=False)
    _switch(lake, on=True)


def _compact(lake: Lake) -> None:
    DeltaTable(lake.location).optimize.compact()


@pytest.mark.parametrize(
    ("between", "runs"), [(_nothing, [0, 0]), (_off_and_on, [0, 1]), (_compact, [0, 0])]
)
def test_feeds_are_read_at_once_where_nothing_is_switched_between(
    lake: Lake, between: Callable[[Lake], None], runs: list[int]
) -> None:
    _append(lake, _rows(4))
    between(lake)
    _append(lake, _rows(5))
    last = DeltaTable(lake.location).version()
    chosen = chosen_feeds(_relation(lake), [FeedVersion(1, 1), FeedVersion(last, 2)])
    assert [version.run for version in chosen] == runs
    assert not any(version.is_compared for version in chosen)


_INT = {"name": "a", "type": "integer", "nullable": True, "metadata": {}}


def _metadata(*fields: dict[str, Any], **changed: Any) -> TableMetadata:
    schema = json.dumps({"type": "struct", "fields": fields})
    action = {"schemaString": schema, "partitionColumns": [], "configuration": {}, **changed}
    return TableMetadata.of(0, action, "/t")


@pytest.mark.parametrize(
    ("before", "after", "is_readable"),
    [
        (_metadata(_INT), _metadata(_INT), True),
        (_metadata(_INT), _metadata(_INT, _INT | {"name": "b"}), True),
        (_metadata(_INT), _metadata(_INT | {"name": "b"}, _INT), True),
        (_metadata(_INT), _metadata(_INT | {"metadata": {"comment": "x"}}), True),
        (_metadata(_INT | {"nullable": False}), _metadata(_INT), True),
        (_metadata(_INT), _metadata(_INT | {"nullable": False}), False),
        (_metadata(_INT), _metadata(_INT, _INT | {"name": "b", "nullable": False}), False),
        (_metadata(_INT), _metadata(_INT | {"type": "long"}), False),
        (_metadata(_INT, _INT | {"name": "b"}), _metadata(_INT), False),
        (_metadata(_INT), _metadata(_INT, partitionColumns=["a"]), False),
        (
            _metadata(_INT),
            _metadata(_INT, configuration={"delta.columnMapping.mode": "name"}),
            False,
        ),
    ],
)
def test_what_metadata_delta_reads_a_feed_with(
    before: TableMetadata, after: TableMetadata, *, is_readable: bool
) -> None:
    assert before.is_readable_as(after) == is_readable
