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
