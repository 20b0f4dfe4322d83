"""Logs that are broken, or that an enemy wrote, give the right rows, or an error that names the
table.  Only work that needs the table stops.

REPLCTL_TEST_HOSTILE_LOGS is the number of random logs (default: 200).  REPLCTL_TEST_SEED changes
them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.intent import Intent, insert_intent, intents_of, mark_abandoned
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_wal import CHANGE, TRUNCATE, entries_between
from replctl.catalog.transaction import begin_transaction
from replctl.errors import PostgresError
from replctl.lake import commit_log
from replctl.lake.delta_log import read_commit
from replctl.lake.publisher import LakePublisher
from replctl.lake.recovery import recover
from replctl.relation_name import RelationName

_LOGS = int(os.environ.get("REPLCTL_TEST_HOSTILE_LOGS", "200"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))

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
    """Return a commit with a file."""
    return commit_of({"commitInfo": _INFO}, {"add": _ADD | changed})


_COMMIT = add()
_METADATA = {"id": "i", "format": {}, "partitionColumns": [], "configuration": {}}


def _schema(*columns: object) -> bytes:
    text = json.dumps({"type": "struct", "fields": columns})
    return commit_of({"metaData": _METADATA | {"schemaString": text}})


#: Commits that are broken, or at which replctl stops.
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
    "add twice, two paths": commit_of({"add": _ADD}, {"add": _ADD | {"path": "./part-9.parquet"}}),
    "huge size": add(size=2**64),
    "infinite size": add(size=float("inf")),
    "no dataChange": commit_of({"add": {k: v for k, v in _ADD.items() if k != "dataChange"}}),
    "vector of no kind": add(deletionVector={"storageType": "z", "pathOrInlineDv": "a"}),
    "vector of no name": add(deletionVector={"storageType": "u", "pathOrInlineDv": "a"}),
    "two protocols": commit_of(*[{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}] * 2),
    "reader of tomorrow": commit_of({"protocol": {"minReaderVersion": 99, "minWriterVersion": 7}}),
    "writer of tomorrow": commit_of({"protocol": {"minReaderVersion": 3, "minWriterVersion": 8}}),
    "txn text": commit_of({"txn": {"appId": "a", "version": "1"}}),
    "schema no json": commit_of({"metaData": _METADATA | {"schemaString": "{"}}),
    "schema no struct": commit_of({"metaData": _METADATA | {"schemaString": "[]"}}),
    "column without a type": _schema({"name": "new"}),
    "column with NUL": _schema({"name": "a\0", "type": "long"}),
    "half a letter": _schema({"name": "\ud800", "type": "long"}),
    "names differ in case": _schema({"name": "v", "type": "long"}, {"name": "V", "type": "long"}),
}


def _remove_log(lake: Lake) -> None:
    log_of(lake).rename(log_of(lake).with_name("elsewhere"))


def _hole(lake: Lake) -> None:
    append(lake, _COMMIT, 1)
    append(lake, _COMMIT, 3)


def _pipe(lake: Lake) -> None:
    os.mkfifo(log_of(lake) / f"{1:020d}.json")


def _data_is_pipe(lake: Lake) -> None:
    os.mkfifo(Path(lake.location) / _ADD["path"])
    append(lake, _COMMIT)


def _data_leads_to_device(lake: Lake) -> None:
    (Path(lake.location) / "part-8.parquet").symlink_to("/dev/zero")
    append(lake, commit_of({"remove": {"path": "part-8.parquet", "dataChange": True}}))


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
    _remove_log, _hole, _pipe, _data_is_pipe, _data_leads_to_device, _folder, _loop, _log_is_file,
    _far,
]  # fmt: skip


def check_broken(lake: Lake) -> None:
    """Check that only work that needs the table stops, and that the table can be dropped."""
    session = lake.session
    session.engine = mock.Mock()  # replctl must refuse before it calls Spark
    sqlstate = check_told(lake, ["XX001", "58030", "58P01", "55000", "0A000", "42501"])
    for statement in ("insert into t values (9, 'x')", "delete from t", "vacuum t"):
        answer = answer_of(session, statement)
        assert answer[0].startswith(f"ERROR {sqlstate}"), (statement, answer)
        assert '"public.t"' in " ".join(answer), (statement, answer)
        assert 'of database "postgres"' in " ".join(answer), (statement, answer)
    LakePublisher(session).slots.current_lsn([RelationName("public", "other")])
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
    """Check that work that needs the table fails and names the cause, and return the SQLSTATE."""
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
    lake.session.engine = mock.Mock()  # replctl must refuse before it calls Spark
    for name, content in _BROKEN.items():
        append(lake, content)
        try:
            check_told(lake, ["0A000" if name.endswith("tomorrow") else "XX001"])
        except (AssertionError, pytest.fail.Exception) as error:
            raise AssertionError(name) from error
    append(lake, _BROKEN["torn"])
    check_broken(lake)


def test_a_table_with_a_pipe_is_not_adopted(lake: Lake, tmp_path: Path) -> None:
    place = tmp_path / "adopted"
    shutil.copytree(lake.location, place)
    create = f"create table adopted using delta location '{place}'"
    (answer, *_rest) = answer_of(lake.session, create)
    assert not answer.startswith("ERROR"), answer
    lake.run("drop table adopted")
    (file,) = place.glob("*.parquet")
    file.unlink()
    os.mkfifo(file)
    (answer, *_rest) = answer_of(lake.session, create)
    assert answer.startswith("ERROR 58030"), answer
    assert answer.endswith("not a regular file"), answer


def test_a_column_of_another_kind_of_type_stops_nothing(lake: Lake) -> None:
    columns = [{"name": "id", "type": "integer"}, {"name": "v", "type": "string"}]
    extra = {"name": "extra", "type": {"type": "struct", "fields": []}}
    append(lake, _schema(*columns, extra))
    lake.enter()
    answer = answer_of(lake.session, "alter table t drop column extra")
    assert answer[0] == 'ERROR 42703: column "extra" of relation "t" does not exist'
    for statement in ("alter table t add column w int", "drop table t"):
        lake.run(statement)


@pytest.mark.parametrize("damage", _DAMAGES, ids=lambda damage: damage.__name__[1:])
def test_a_damaged_log_stops_its_table_only(lake: Lake, damage: Callable[[Lake], None]) -> None:
    damage(lake)
    check_broken(lake)


def test_what_is_mended_continues(lake: Lake) -> None:
    before = lake.enter()
    append(lake, _COMMIT, 1)
    append(lake, b"", 2)
    with pytest.raises(PostgresError):
        lake.enter()
    assert LakePublisher(lake.session).slots.current_lsn() == before
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


_DEEP = b"[" * 20_000 + b"]" * 20_000
_SIGNED: list[object] = [
    None, 7, [], "x", {},
    {"signature": None}, {"signature": "0" * 64}, {"signature": "\ud800"},
    {"nonce": "n", "number": -1, "xid": 2**70, "signature": "x"},
    {"undoes": [[]], "origin_at": {}, "silent": "yes", "signature": []},
]  # fmt: skip
_NO_TEXTS: list[object] = [{}, [1], "x" * 10**7]
_MARKS: list[bytes] = [
    b"null", b"7", b"-0", b"1e999", b"9" * 9_000, b"true", b"[]", b"{}", b'""',
    b'"' + b"x" * 10**6 + b'"',
    b'{"replctl":{}}', b'{"a":1,"a":2}', b"[[[[1]]]]", _DEEP, b'{"replctl":' + _DEEP + b"}",
    *(
        json.dumps(json.dumps({"replctl": mark}, separators=(",", ":"))).encode()
        for mark in _SIGNED
    ),
    json.dumps('{"replctl":' + "[" * 90_000).encode(),
    json.dumps('{"replctl":{"xid":' + "9" * 9_000 + "}}").encode(),
]  # fmt: skip


def test_a_hostile_mark_is_another_writer_s(lake: Lake) -> None:
    """replctl decodes the commit, whatever its mark contains."""
    start = lake.enter()
    for version, mark in enumerate(_MARKS, start=1):
        add_it = json.dumps({"add": _ADD | {"path": f"part-{version}"}}).encode()
        append(lake, b'{"commitInfo":{"userMetadata":' + mark + b"}}\n" + add_it, version)
    end = lake.enter()
    with lake.session.read() as catalog:
        entries = entries_between(catalog, start, end)
    assert [(entry.version, entry.action) for entry in entries] == [
        (version, CHANGE) for version in range(1, len(_MARKS) + 1)
    ]


@pytest.mark.parametrize(
    ("info", "has_feed"),
    [
        (_INFO, True),
        ({}, True),
        ({"timestamp": 1, "operation": "WRITE", "operationParameters": {"mode": "Append"}}, True),
        ({"operationMetrics": {"rows": 1, "files": "2"}, "clientVersion": {"x": []}}, True),
        (_INFO | {"userMetadata": None, "isBlindAppend": False, "tags": {"a": None}}, True),
        *((_INFO | {"userMetadata": mark}, False) for mark in _NO_TEXTS),
        ({"timestamp": "now"}, False),
        ({"operation": {"a": 1}}, False),
        ({"operationParameters": []}, False),
        ({"operationMetrics": {"a": {}}}, False),
        ({"isBlindAppend": "maybe"}, False),
        ({"readVersion": 2**63}, False),
        ([], False),
        ("x", False),
    ],
)
def test_a_feed_that_delta_cannot_read_is_known(
    lake: Lake, info: object, *, has_feed: bool
) -> None:
    append(lake, commit_of({"commitInfo": info}), 1)
    commit = read_commit(lake.location, 1)
    assert (commit.has_feed, commit.changes_data) == (has_feed, not has_feed)


_PIECES = [
    b"", b"\0", b"\n", b"\xff", b'"', b"}", b"{}", b"[]", b"null", b"true", b"-1", b"1e999",
    b"9" * 5_000, b'"../x"', b'"/etc/passwd"', b'"file:/x"', b'"%2e%2e/x"', b'"s3://b/x"',
    b'"\\ud800"', b"[" * 5_000,
]  # fmt: skip
_WHOLE = commit_of(
    {"commitInfo": _INFO | {"operationMetrics": {"numOutputRows": "1"}, "userMetadata": "{}"}},
    {"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"]}},
    {"add": _ADD | {"stats": '{"numRecords":1}', "deletionVector": {
        "storageType": "p", "pathOrInlineDv": "a", "sizeInBytes": 1, "cardinality": 1}}},
    {"remove": {"path": "a", "dataChange": True, "deletionTimestamp": 1}},
    {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
    {"txn": {"appId": "a", "version": 1}},
)  # fmt: skip
_WHOLE += b"\n" + _schema({"name": "id", "type": "integer"}, {"name": "more", "type": "long"})
_MARKS_BETWEEN = (b"[", b"]", b"{", b"}", b":", b",", b"\n")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+|true|false|[][{}:,\n]')


def _hostile(random: Random) -> bytes:
    """Return a commit with some parts changed, missing, or repeated."""
    parts = _TOKEN.findall(_WHOLE)
    values = [place for place, part in enumerate(parts) if part not in _MARKS_BETWEEN]
    for _ in range(random.choice([1, 1, 1, 2])):
        place = random.choice(values)
        match random.randrange(9):
            case 0:
                parts[place] = random.choice(_PIECES)
            case 1:
                del parts[random.randrange(len(parts)) :]
                return b"".join(parts)
            case 2:
                parts[random.randrange(len(parts))] += random.choice(parts)
            case _:
                parts[place] = parts[random.choice(values)]
    return b"".join(parts)


class _Undo(Exception):
    """Undoes the entries in the commit log."""


def _check_told(error: PostgresError, content: bytes) -> None:
    told = f"{error.message} {error.detail}"
    assert error.sqlstate in ("XX001", "42501", "0A000"), (content, told)
    assert '"public.t"' in told, content


def test_logs_by_chance(lake: Lake) -> None:
    lake.enter()
    random, count = Random(_SEED), {"entered": 0, "refused": 0}
    for _ in range(_LOGS):
        content = _hostile(random)
        append(lake, content)
        session = lake.session
        try:
            with session.cluster.write(session.database_oid) as catalog:
                relation = load_relations(catalog, [lake.oid])[lake.oid]
                commit_log.enter_versions(catalog, session.cluster, relation)
                raise _Undo
        except _Undo:
            count["entered"] += 1
        except PostgresError as error:
            _check_told(error, content)
            count["refused"] += 1
        except Exception as error:
            raise AssertionError(content) from error
    assert min(count.values()) > _LOGS / 20, count


def test_a_dead_block_is_undone_where_its_tables_are_whole(lake: Lake) -> None:
    lake.run("create table other (a int primary key)")
    session = lake.session
    with session.cluster.write(session.database_oid) as catalog:
        other = session.environment(catalog).relation_oid(None, "other")
        assert other is not None
        xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
        for oid in (lake.oid, other):
            insert_intent(catalog.connection, xid, Intent(oid, None, is_whole=False))
        mark_abandoned(catalog.connection, xid)
    append(lake, _BROKEN["torn"])
    for _ in range(2):
        recover(session, [other])
        with pytest.raises(PostgresError, match="is broken"):
            recover(session, [lake.oid])
    with session.cluster.begin(write=False) as connection:
        assert [intent.relid for intent in intents_of(connection, xid)] == [lake.oid]
