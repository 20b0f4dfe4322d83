"""The files that a version of a table added and removed, as logs of two tables, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from fix_lake import Lake

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.compared_files import compared_files
from replctl.lake.delta_files import files_at, has_feed_files


def _actions(log: str | None, kind: str) -> list[dict[str, Any]]:
    actions = [json.loads(line) for line in (log or "").splitlines()]
    return [action[kind] for action in actions if kind in action]


def _commit(lake: Lake, version: int) -> list[dict[str, Any]]:
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def _append(lake: Lake, *actions: dict[str, Any]) -> int:
    """Write a version, and return its number."""
    version = DeltaTable(lake.location).version() + 1
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}
    path.write_text("\n".join(json.dumps(action) for action in (info, *actions)))
    return version


def _only_add(lake: Lake, version: int) -> dict[str, Any]:
    (add,) = [action["add"] for action in _commit(lake, version) if "add" in action]
    return dict(add)


_VECTOR = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
_FILE = {"partitionValues": {}, "size": 7, "modificationTime": 1, "dataChange": True}


def test_an_update_removes_a_file_and_adds_one(lake: Lake) -> None:
    first = _only_add(lake, 0)
    lake.update()
    second = _only_add(lake, 1)
    found = compared_files(lake.location, 1)
    for log, add in ((found.before, first), (found.after, second)):
        (shown,) = _actions(log, "add")
        assert shown["path"] == f"file://{lake.location}/{add['path']}"
        assert shown["size"] == add["size"]
        (metadata,) = _actions(log, "metaData")
        assert metadata["configuration"] == {}
    assert found == compared_files(lake.location, 1)


def test_a_file_that_was_there_adds_nothing(lake: Lake) -> None:
    add = _only_add(lake, 0)
    version = _append(lake, {"add": add}, {"add": _FILE | {"path": "new.parquet"}})
    found = compared_files(lake.location, version)
    assert found.before is None
    assert [a["path"] for a in _actions(found.after, "add")] == [
        f"file://{lake.location}/new.parquet"
    ]


def test_what_changes_no_data_changes_nothing(lake: Lake) -> None:
    add = _only_add(lake, 0)
    gone = {"path": add["path"], "dataChange": False}
    version = _append(lake, {"remove": gone}, {"add": _FILE | {"path": "x", "dataChange": False}})
    found = compared_files(lake.location, version)
    assert (found.before, found.after) == (None, None)


def test_what_a_remove_leaves_out_is_the_add_s(lake: Lake) -> None:
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    path = "p=a%20b/x.parquet"
    full = _FILE | {"path": path, "partitionValues": {"p": "a b"}, "deletionVector": vector}
    _append(lake, {"add": full | {"baseRowId": 5}})
    DeltaTable(lake.location)
    gone = {"path": path, "dataChange": True, "deletionVector": vector}
    version = _append(lake, {"remove": gone})
    (shown,) = _actions(compared_files(lake.location, version).before, "add")
    place = f"file://{lake.location}"
    assert shown == {
        "path": f"{place}/{path}",
        "partitionValues": {"p": "a b"},
        "size": 7,
        "baseRowId": 5,
        "modificationTime": 1,
        "dataChange": True,
        "deletionVector": vector
        | {
            "storageType": "p",
            "pathOrInlineDv": f"{place}/ab/deletion_vector_{_VECTOR}.bin",
        },
    }


def test_files_are_found_in_a_checkpoint(lake: Lake) -> None:
    lake.update(2)
    DeltaTable(lake.location).create_checkpoint()
    lake.update()
    for version in range(2):
        (Path(lake.location) / "_delta_log" / f"{version:020d}.json").unlink()
    (before,) = _actions(compared_files(lake.location, 3).before, "add")
    assert before["path"].endswith(_only_add(lake, 2)["path"])
    # deltalake's `remove` actions are complete, so that no earlier version is needed
    (before,) = _actions(compared_files(lake.location, 2).before, "add")
    gone = _commit(lake, 2)
    assert before["path"].endswith(next(a["remove"]["path"] for a in gone if "remove" in a))


def test_a_log_that_does_not_know_the_file(lake: Lake) -> None:
    lake.update()
    for action in (actions := _commit(lake, 1)):
        if "remove" in action:
            action["remove"] = {"path": action["remove"]["path"], "dataChange": True}
    path = Path(lake.location) / "_delta_log" / f"{1:020d}.json"
    path.write_text("\n".join(map(json.dumps, actions)))
    (Path(lake.location) / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(ObjectNotInPrerequisiteState):
        compared_files(lake.location, 1)


def test_only_what_lies_in_files_is_taken_of_a_schema(lake: Lake) -> None:
    (metadata,) = [a["metaData"] for a in _commit(lake, 0) if "metaData" in a]
    notes = {"delta.invariants": "x", "comment": "y", "delta.columnMapping.id": 1}
    fields = [{"name": "id", "type": "integer", "nullable": False, "metadata": notes}]
    metadata["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    metadata["configuration"] |= {"delta.columnMapping.mode": "name", "delta.appendOnly": "true"}
    old = _only_add(lake, 0)
    gone = {"path": old["path"], "dataChange": True}
    version = _append(
        lake, {"metaData": metadata}, {"remove": gone}, {"add": _FILE | {"path": "x"}}
    )
    found = compared_files(lake.location, version)
    (before,), (after,) = (_actions(log, "metaData") for log in (found.before, found.after))
    assert [f["name"] for f in json.loads(before["schemaString"])["fields"]] == ["id", "v"]
    (field,) = json.loads(after["schemaString"])["fields"]
    assert field["metadata"] == {"delta.columnMapping.id": 1}
    assert field["nullable"]
    assert after["configuration"] == {"delta.columnMapping.mode": "name"}


def _spellings(lake: Lake, name: str) -> list[str]:
    """Return forms of one path that Delta takes for the same file."""
    return [f"{scheme}{lake.location}/{name}" for scheme in ("", "file:", "file://", "FILE:")]


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("added", range(4))
@pytest.mark.parametrize("removed", range(4))
def test_a_file_has_several_paths(
    lake: Lake, added: int, removed: int, *, has_checkpoint: bool
) -> None:
    paths = _spellings(lake, "b.parquet")
    version = _append(lake, {"add": _FILE | {"path": paths[added], "size": 8}})
    if has_checkpoint:
        DeltaTable(lake.location).create_checkpoint()
    last = _append(lake, {"remove": {"path": paths[removed], "dataChange": True}})
    found = compared_files(lake.location, last)
    assert found.after is None
    assert [add["size"] for add in _actions(found.before, "add")] == [8]
    assert len(files_at(lake.location, version)) == len(files_at(lake.location, last)) + 1
    found = compared_files(lake.location, last, version)
    assert (found.before, found.after) == (None, None)


def test_an_absolute_path_is_another_file_than_a_relative_one(lake: Lake) -> None:
    add = _only_add(lake, 0)
    gone = {"path": f"file:{lake.location}/{add['path']}", "dataChange": True}
    version = _append(lake, {"remove": gone})
    found = compared_files(lake.location, version)
    assert (found.before, found.after) == (None, None)
    assert [body["path"] for body in files_at(lake.location, version)] == [add["path"]]


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("removes_last", [False, True])
@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True)])
def test_the_last_action_of_a_file_counts(
    lake: Lake, flags: tuple[bool, bool], *, is_new: bool, removes_last: bool
) -> None:
    """A version adds and removes one file.  Spark reads what the last action says (run)."""
    name = "b.parquet" if is_new else _only_add(lake, 0)["path"]
    add = {"add": _FILE | {"path": name, "dataChange": flags[0]}}
    remove = {"remove": {"path": name, "dataChange": flags[1]}}
    version = _append(lake, *((add, remove) if removes_last else (remove, add)))
    is_there = name in [body["path"] for body in files_at(lake.location, version)]
    assert is_there is not removes_last
    found = compared_files(lake.location, version)
    is_believed = flags[1 if removes_last else 0]
    assert (found.before is not None) == (is_believed and not is_new and removes_last)
    assert (found.after is not None) == (is_believed and is_new and not removes_last)
    assert not has_feed_files(lake.location, version)  # Delta's feed has both actions
