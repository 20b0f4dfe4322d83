"""Logs that are broken, or were written by an enemy: right rows, or an error that names the table;
and nothing but what needs the table stops."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.pg_wal import CHANGE, TRUNCATE, entries_between
from replctl.errors import PostgresError
from replctl.lake.publisher import LakePublisher

_ADD: dict[str, Any] = {
    "path": "part-9.parquet",
    "partitionValues": {},
    "size": 1,
    "modificationTime": 1,
    "dataChange": True,
}
_INFO: dict[str, Any] = {"timestamp": 1, "operation": "WRITE"}


def log_of(lake: Lake) -> Path:
    return Path(lake.location) / "_delta_log"


def append(lake: Lake, content: bytes, version: int = 1) -> None:
    """Write a version of the table."""
    (log_of(lake) / f"{version:020d}.json").write_bytes(content)


def commit_of(*actions: object) -> bytes:
    return "\n".join(map(json.dumps, actions)).encode()


def add(**changed: object) -> bytes:
    """A commit with a file."""
    return commit_of({"commitInfo": _INFO}, {"add": _ADD | changed})


_COMMIT = add()
_METADATA = {"id": "i", "format": {}, "partitionColumns": [], "configuration": {}}


def _schema(*columns: object) -> bytes:
    text = json.dumps({"type": "struct", "fields": columns})
    return commit_of({"metaData": _METADATA | {"schemaString": text}})


#: Commits that are broken, or that replctl does not go behind.
_BROKEN: dict[str, bytes] = {
    "empty": b"",
    "torn": _COMMIT[:-20],
    "zeros": b"\0" * 512,
    "latin 1": _COMMIT.replace(b"part", b"p\xe4rt"),
    "utf-16": _COMMIT.decode().encode("utf-16"),
    "no json": b"root:x:0:0:root:/root:/bin/sh\n",
    "deep": b'{"add":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "long number": b'{"add":{"size":' + b"9" * 9_000 + b"}}",
    "two actions": b'{"add":{},"remove":{}}',
    "a key twice": _COMMIT.replace(b'"size": 1', b'"size": 1, "size": 2'),
    "add null path": add(path=None),
    "add number": commit_of({"add": 7}),
    "add twice": commit_of({"add": _ADD}, {"add": _ADD}),
    "huge size": add(size=2**64),
    "infinite size": add(size=float("inf")),
    "no dataChange": commit_of({"add": {k: v for k, v in _ADD.items() if k != "dataChange"}}),
    "vector of no kind": add(deletionVector={"storageType": "z", "pathOrInlineDv": "a"}),
    "vector of no name": add(deletionVector={"storageType": "u", "pathOrInlineDv": "a"}),
    "two protocols": commit_of(*[{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}] * 2),
    "txn text": commit_of({"txn": {"appId": "a", "version": "1"}}),
    "schema no json": commit_of({"metaData": _METADATA | {"schemaString": "{"}}),
    "schema no struct": commit_of({"metaData": _METADATA | {"schemaString": "[]"}}),
    "column without a type": _schema({"name": "new"}),
    "column with NUL": _schema({"name": "a\0", "type": "long"}),
    "half a letter": _schema({"name": "\ud800", "type": "long"}),
}


def _remove_log(lake: Lake) -> None:
    log_of(lake).rename(log_of(lake).with_name("elsewhere"))


def _hole(lake: Lake) -> None:
    append(lake, _COMMIT, 1)
    append(lake, _COMMIT, 3)


def _pipe(lake: Lake) -> None:
    os.mkfifo(log_of(lake) / f"{1:020d}.json")


def _folder(lake: Lake) -> None:
    (log_of(lake) / f"{1:020d}.json").mkdir()


def _loop(lake: Lake) -> None:
    _remove_log(lake)
    log_of(lake).symlink_to("_delta_log")


def _log_is_file(lake: Lake) -> None:
    _remove_log(lake)
    log_of(lake).write_text("x")


def _far(lake: Lake) -> None:
    append(lake, _COMMIT, 10**20 - 1)


_DAMAGES: list[Callable[[Lake], None]] = [
    _remove_log, _hole, _pipe, _folder, _loop, _log_is_file, _far
]  # fmt: skip


def check_broken(lake: Lake) -> None:
    """Only what needs the table stops; and it can be dropped."""
    session = lake.session
    session.engine = mock.Mock()  # what reaches it is too late
    sqlstate = check_told(lake, ["XX001", "58030", "58P01", "55000", "0A000", "42501"])
    for statement in ("insert into t values (9, 'x')", "delete from t", "vacuum t"):
        answer = answer_of(session, statement)
        assert answer[0].startswith(f"ERROR {sqlstate}"), (statement, answer)
        assert '"public.t"' in " ".join(answer), (statement, answer)
    LakePublisher(session).current_lsn([("public", "other")])
    for statement in (
        "create table other (a int primary key)",
        "begin",
        "create table in_block (a int)",
        "commit",
        "create publication p for all tables",
        "select pg_create_logical_replication_slot('s', 'pgoutput')",
        "select count(*) from pg_attribute where attrelid = 't'::regclass",
        "select pg_drop_replication_slot('s')",
        "comment on table t is 'broken'",
        "alter table t add column w int",
        "alter table t rename to renamed",
        "alter table renamed set (fillfactor = 50)",
        "vacuum other",
        "drop table renamed",
        "create table t (a int)",
    ):
        lake.run(statement)


def check_told(lake: Lake, sqlstates: Collection[str]) -> str:
    """What needs the table fails, and tells why; the SQLSTATE."""
    with pytest.raises(PostgresError) as caught:
        lake.enter()
    told = f"{caught.value.message} {caught.value.detail}"
    assert caught.value.sqlstate in sqlstates, told
    assert '"public.t"' in told
    answer = answer_of(lake.session, "table t")
    assert answer[0].startswith(f"ERROR {caught.value.sqlstate}"), answer
    assert '"public.t"' in " ".join(answer), answer
    return caught.value.sqlstate


def test_a_broken_commit_is_told(lake: Lake) -> None:
    lake.session.engine = mock.Mock()  # what reaches it is too late
    for name, content in _BROKEN.items():
        append(lake, content)
        try:
            check_told(lake, ["XX001"])
        except (AssertionError, pytest.fail.Exception) as error:
            raise AssertionError(name) from error
    append(lake, _BROKEN["torn"])
    check_broken(lake)


@pytest.mark.parametrize("damage", _DAMAGES, ids=lambda damage: damage.__name__[1:])
def test_a_damaged_log_stops_its_table_only(lake: Lake, damage: Callable[[Lake], None]) -> None:
    damage(lake)
    check_broken(lake)


def test_what_is_mended_goes_on(lake: Lake) -> None:
    before = lake.enter()
    append(lake, _COMMIT, 1)
    append(lake, b"", 2)
    with pytest.raises(PostgresError):
        lake.enter()
    assert LakePublisher(lake.session).current_lsn() == before
    append(lake, _COMMIT, 2)
    assert lake.enter() > before


def test_a_truncation_is_one_that_leaves_nothing(lake: Lake) -> None:
    start = lake.enter()
    info = {"commitInfo": _INFO | {"operation": "TRUNCATE"}}
    first = json.loads((log_of(lake) / f"{0:020d}.json").read_text().splitlines()[-1])["add"]
    remove = {"path": first["path"], "dataChange": True, "deletionTimestamp": 1}
    append(lake, commit_of(info, {"add": _ADD}), 1)
    append(lake, commit_of(info, {"remove": remove}), 2)
    append(lake, commit_of(info, {"remove": remove | {"path": _ADD["path"]}}), 3)
    end = lake.enter()
    with lake.session.read() as catalog:
        entries = entries_between(catalog, start, end)
    assert [(entry.version, entry.action) for entry in entries] == [
        (1, CHANGE), (2, CHANGE), (3, TRUNCATE)
    ]  # fmt: skip
