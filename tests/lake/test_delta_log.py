"""replctl reads the log of a Delta table without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake

from replctl.errors import UndefinedFile
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import remove_versions
from replctl.lake.delta_log import commits_after, read_commit
from replctl.lake.table_folder import TableFolder


def test_storage_that_is_not_there_is_no_empty_log(lake: Lake) -> None:
    lake.update(1)
    assert [commit.version for commit in commits_after(lake.location, 0)] == [1]
    folder = Path(lake.location)
    folder.rename(folder.with_name("elsewhere"))
    assert list(commits_after(lake.location, -1)) == []
    with pytest.raises(UndefinedFile):
        list(commits_after(lake.location, 0))


def test_a_commit_without_a_time_has_its_file_s(lake: Lake) -> None:
    path = Path(lake.location) / "_delta_log" / f"{1:020d}.json"
    path.write_text('{"commitInfo":{"timestamp":"abc"}}')
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert read_commit(lake.location, 1).timestamp == 1_700_000_000_000


def test_a_publisher_misses_its_tables(lake: Lake) -> None:
    """A missing table is an error.  Tables that were never written, or were dropped, are not
    missed, and DDL still works."""
    lake.run("create table never_written (a int primary key)")
    end = lake.update(1)
    folder = Path(lake.location)
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(UndefinedFile) as caught:
        lake.enter()
    assert caught.value.message == f'could not find the Delta table "{lake.location}"'
    detail = caught.value.detail or ""
    assert detail.startswith('Table "public.t" of database "postgres" is stored at "')
    lake.run("begin")
    lake.run("create table other (a int primary key)")
    lake.run("commit")
    folder.with_name("elsewhere").rename(folder)
    assert lake.update(1) > end
    folder.rename(folder.with_name("elsewhere"))
    lake.run("drop table t")
    assert lake.enter() > end


def _file(path: str, rows: int | None, deleted: int = 0) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": path,
        "size": 1000,
        "dataChange": True,
        "partitionValues": {},
        "modificationTime": 1,
    }
    if rows is not None:
        body["stats"] = json.dumps({"numRecords": rows})
    if deleted:
        body["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": "0" * 20,
            "cardinality": deleted,
        }
    return body


@pytest.mark.parametrize(
    ("operation", "metrics", "added", "removed", "rows"),
    [
        ("WRITE", {"numOutputRows": "5"}, [_file("a", 5)], [], 5),
        ("WRITE", {"numOutputRows": "5"}, [_file("a", 5)], [_file("b", 7, 1)], 11),
        ("WRITE", {"numOutputRows": "5"}, [_file("a", None)], [], 5),
        ("WRITE", {"numOutputRows": "9", "numCopiedRows": "8"}, [_file("a", None)], [], 1),
        ("WRITE", {}, [_file("a", None)], [], None),
        ("DELETE", {"numDeletedRows": "2"}, [_file("a", 900)], [_file("a", 902)], 2),
        ("DELETE", {}, [_file("a", 900, 5)], [_file("a", 900, 2)], 3),
        ("OTHER", {}, [_file("a", 3), _file("b", 900, 1)], [_file("b", 900)], 4),
    ],
)
def test_how_much_a_commit_gives_to_decode(
    operation: str,
    metrics: dict[str, str],
    added: list[dict[str, Any]],
    removed: list[dict[str, Any]],
    rows: int | None,
    tmp_path: Path,
) -> None:
    info = {"operation": operation, "operationMetrics": metrics}
    actions = [
        {"commitInfo": info},
        *({"add": a} for a in added),
        *({"remove": r} for r in removed),
    ]
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("\n".join(json.dumps(action) for action in actions))
    assert read_commit(str(tmp_path), 0).decoded_rows == rows


@pytest.mark.parametrize(
    ("operation", "metrics", "rows"),
    [
        ("WRITE", {"numOutputRows": "5"}, 5),
        ("WRITE", {"numOutputRows": "9", "numCopiedRows": "8", "numDeletedRows": "1"}, 1),
        ("WRITE", {"numOutputRows": "0", "numDeletedRows": "3"}, 3),
        ("WRITE", {"numOutputRows": "2", "numDeletedRows": "3"}, 3),
        ("WRITE", {}, None),
        ("DELETE", {"numDeletedRows": "2", "numCopiedRows": "7"}, 2),
        ("MERGE", {"numTargetRowsInserted": "1", "numTargetRowsDeleted": "2"}, 3),
    ],
)
def test_how_many_rows_a_commit_changes(
    operation: str, metrics: dict[str, str], rows: int | None
) -> None:
    assert DeltaCommit(1, "", 0, operation, None, True, False, metrics).changed_rows == rows


def test_how_many_rows_commits_of_delta_rs_change(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    write_deltalake(location, pa.table({"id": [1, 2, 3, 4], "v": ["a"] * 4}))
    write_deltalake(location, pa.table({"id": [5], "v": ["b"]}), mode="append")
    table = DeltaTable(location)
    table.update(updates={"v": "'x'"}, predicate="id > 2")
    table.delete("id = 1")
    new = pa.table({"id": [2, 9], "v": ["m", "m"]})
    merge = table.merge(new, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    write_deltalake(location, new, mode="overwrite")
    commits = [read_commit(location, version) for version in range(6)]
    assert [commit.changed_rows for commit in commits] == [None, None, 3, 1, 2, None]
    assert [commit.decoded_rows for commit in commits[:5]] == [4, 1, 3, 1, 2]


def test_the_commit_is_the_last_file_of_a_version_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the removal stops in between, the version is still there, and can be removed again."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    compacted = f"{2:020d}.{3:020d}.compacted.json"
    endings = ("json", "crc", "checkpoint.parquet")
    names = [f"{version:020d}.{ending}" for version in (1, 2, 3) for ending in endings]
    for name in (*names, compacted, "_last_checkpoint"):
        (log / name).touch()
    removed: list[str] = []
    monkeypatch.setattr(
        TableFolder, "delete", lambda _folder, path: removed.append(path.partition("/")[2])
    )
    remove_versions(str(tmp_path), 2)
    assert set(removed) == {*names[3:], compacted, "_last_checkpoint"}
    assert removed[0] == "_last_checkpoint"
    assert [removed.index(f"{version:020d}.json") for version in (3, 2)] == [4, 7]
