"""The kinds of commits that replace all rows of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake

from replctl.lake.delta_log import read_commit
from replctl.lake.replacement import replacement, replaces_rows

_OVERWRITE = {"mode": "Overwrite", "partitionBy": "[]"}


@pytest.mark.parametrize(
    ("operation", "parameters", "expected"),
    [
        ("RESTORE", {"version": "1"}, True),
        ("CLONE", {"source": "x", "sourceVersion": "0"}, True),
        ("REPLACE TABLE", {}, True),
        ("CREATE OR REPLACE TABLE", {"isManaged": "false"}, True),
        ("CREATE OR REPLACE TABLE AS SELECT", {"isManaged": "true"}, True),
        ("REPLACE TABLE AS SELECT", {}, True),
        ("CREATE OR REPLACE TABLE AS SELECT", {"predicate": "id > 3"}, False),
        ("WRITE", _OVERWRITE, True),
        ("WRITE", {"mode": "overwrite"}, True),
        ("WRITE", {**_OVERWRITE, "predicate": "[]"}, True),
        ("WRITE", {**_OVERWRITE, "predicate": " TRUE"}, True),
        ("WRITE", {**_OVERWRITE, "predicate": "(id > 3)"}, False),
        ("WRITE", {**_OVERWRITE, "isDynamicPartitionOverwrite": "false"}, True),
        ("WRITE", {**_OVERWRITE, "isDynamicPartitionOverwrite": "true"}, False),
        ("WRITE", {**_OVERWRITE, "isDynamicPartitionOverwrite": True}, False),
        ("WRITE", {**_OVERWRITE, "replaceOnCond": "t.id = s.id"}, False),
        ("WRITE", {**_OVERWRITE, "replaceUsingCols": "(id)"}, False),
        ("WRITE", {"mode": "Append", "partitionBy": "[]"}, False),
        ("WRITE", {"mode": "ErrorIfExists"}, False),
        ("STREAMING UPDATE", {"outputMode": "Complete"}, True),
        ("STREAMING UPDATE", {"outputMode": "Append"}, False),
        ("DELETE", {"predicate": "[]"}, False),
        ("TRUNCATE", {}, False),
        ("UPDATE", {}, False),
        ("MERGE", {}, False),
        ("OPTIMIZE", {}, False),
        ("WRITE", {}, None),
        ("WRITE", {"mode": 3}, None),
        ("", {}, None),
        ("REPLACE COLUMNS", {}, None),
        ("Own Writer", {}, None),
    ],
)
def test_the_operation_says_it(
    operation: str, parameters: dict[str, object], expected: bool | None
) -> None:
    assert replaces_rows(operation, parameters) is expected


def without_info(lake: Lake) -> str | None:
    """Remove the operation from the newest commit, and return the kind of the commit."""
    version = DeltaTable(lake.location).version()
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    lines = [line for line in path.read_text().splitlines() if "commitInfo" not in json.loads(line)]
    path.write_text("\n".join(lines))
    commit = read_commit(lake.location, version)
    assert commit.operation == ""
    return replacement(lake.location, commit)


def test_without_an_operation_the_files_say_it(lake: Lake) -> None:
    lake.write({"id": [7, 8]})
    table = DeltaTable(lake.location)
    table.delete("id = 7")
    assert without_info(lake) is None  # the other files stay
    lake.write({"id": [5]}, mode="append")
    assert without_info(lake) is None
    lake.write({"id": [9]}, mode="overwrite")
    assert without_info(lake) == "replaced all files of the table"
    DeltaTable(lake.location).delete()
    assert without_info(lake) is None  # no file replaces them
    lake.write({"id": [1]}, mode="append")
    lake.write({"id": [2]}, mode="append")
    DeltaTable(lake.location).optimize.compact()
    assert without_info(lake) is None  # no row changes


@pytest.mark.parametrize("removed", ["file://{}/x", "{}/x"])
def test_the_files_of_a_replacement_have_several_paths(lake: Lake, removed: str) -> None:
    file = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    name = Path(DeltaTable(lake.location).file_uris()[0]).name
    gone = {"remove": {"path": name, "dataChange": True}}
    path = Path(lake.location) / "_delta_log"
    versions = (
        [gone, {"add": {**file, "path": f"{lake.location}/x"}}],
        [{"remove": {"path": removed.format(lake.location), "dataChange": True}},
         {"add": {**file, "path": "y"}}],
        # The file z never belongs to the table, so nothing replaces y
        [{"add": {**file, "path": "z"}}, {"remove": {"path": "z", "dataChange": True}},
         {"remove": {"path": "y", "dataChange": True}}],
    )  # fmt: skip
    found = []
    for version, actions in enumerate(versions, start=1):
        (path / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
        found.append(replacement(lake.location, read_commit(lake.location, version)))
    assert found == ["replaced all files of the table"] * 2 + [None]
