"""replctl adopts tables as they are: replication starts at the newest version in every form of the
log, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from golden_script import answer_of

from replctl.catalog.pg_wal import entered_versions
from replctl.errors import PostgresError
from replctl.lake.adoption import newest_version
from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName
from replctl.session import Session

_UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
_NEWEST = 4


def _make(folder: Path) -> None:
    """Write versions 0 to 4, with a checkpoint at 3 and a column that version 2 has added."""
    for number in range(4):
        columns = {"id": pa.array([number], pa.int32())}
        columns |= {"more": pa.array(["x"])} if number > 1 else {}
        write_deltalake(folder, pa.table(columns), mode="append", schema_mode="merge")
    DeltaTable(folder).create_checkpoint()
    write_deltalake(folder, pa.table(columns), mode="append")


def _log(folder: Path) -> Path:
    return folder / "_delta_log"


def _commit(folder: Path, version: int) -> Path:
    return _log(folder) / f"{version:020d}.json"


def _checkpoint(folder: Path) -> Path:
    return _log(folder) / f"{3:020d}.checkpoint.parquet"


def _clean(folder: Path) -> None:
    for version in range(3):
        _commit(folder, version).unlink()


def _clean_all_before_the_newest(folder: Path) -> None:
    DeltaTable(folder).create_checkpoint()
    for version in range(_NEWEST):
        _commit(folder, version).unlink()
    _checkpoint(folder).unlink()


def _in_parts(folder: Path) -> None:
    _clean(folder)
    found = pq.read_table(_checkpoint(folder))
    for part in (1, 2, 3):
        name = f"{3:020d}.checkpoint.{part:010d}.{3:010d}.parquet"
        rows = found.slice((part - 1) * 2, None if part == 3 else 2)
        pq.write_table(rows, _log(folder) / name)
    _checkpoint(folder).unlink()


def _with_an_unfinished_checkpoint(folder: Path) -> None:
    _clean(folder)
    (_log(folder) / f"{4:020d}.checkpoint.{1:010d}.{2:010d}.parquet").write_bytes(b"PAR1")


def _v2(folder: Path) -> pa.Table:
    """Move the files of the checkpoint into a sidecar, and return the remaining rows of the
    checkpoint."""
    _clean(folder)
    rows = pq.read_table(_checkpoint(folder))
    place = _log(folder) / "_sidecars" / f"{_UUID}.parquet"
    place.parent.mkdir()
    pq.write_table(rows.filter(pa.compute.is_valid(rows["add"])).select(["add"]), place)
    sidecar = {"path": place.name, "sizeInBytes": place.stat().st_size, "modificationTime": 1}
    others = rows.filter(pa.compute.is_null(rows["add"])).drop_columns(["add"])
    own = [pa.table({"checkpointMetadata": [{"version": 3}]}), pa.table({"sidecar": [sidecar]})]
    _checkpoint(folder).unlink()
    return pa.concat_tables([*own, others], promote_options="default")


def _v2_as_json(folder: Path, change: Callable[[str], str] = lambda text: text) -> None:
    actions = [
        {kind: _without_nulls(body) for kind, body in row.items() if body is not None}
        for row in _v2(folder).to_pylist()
    ]
    text = "\n".join(json.dumps(action) for action in actions if action)
    (_log(folder) / f"{3:020d}.checkpoint.{_UUID}.json").write_text(change(text))


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in body.items() if value is not None}
    if "configuration" in fields:
        fields["configuration"] = dict(fields["configuration"])
    return fields


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return the same type with fields that may be NULL."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(field.name, _nullable(field.type)) for field in kind])


def _v2_as_parquet(folder: Path) -> None:
    rows = _v2(folder)
    columns = {
        field.name: pa.array(rows[field.name].to_pylist(), _nullable(field.type))
        for field in rows.schema
    }
    pq.write_table(pa.table(columns), _log(folder) / f"{3:020d}.checkpoint.{_UUID}.parquet")


def _without_a_hint(folder: Path) -> None:
    _clean(folder)
    (_log(folder) / "_last_checkpoint").unlink()


def _with_a_wrong_hint(folder: Path) -> None:
    _clean(folder)
    (_log(folder) / "_last_checkpoint").write_text('{"version":99,"size":1}')


def _with_a_broken_hint(folder: Path) -> None:
    _clean(folder)
    (_log(folder) / "_last_checkpoint").write_bytes(b"\0" * 100)


def _with_a_compacted_log(folder: Path) -> None:
    text = "\n".join(_commit(folder, version).read_text() for version in range(3))
    kept = [line for line in text.splitlines() if "commitInfo" not in line]
    (_log(folder) / f"{0:020d}.{2:020d}.compacted.json").write_text("\n".join(kept))
    _clean(folder)


def _with_broken_commits_before_the_checkpoint(folder: Path) -> None:
    for version in range(3):
        _commit(folder, version).write_text("{")


_FORMS = [
    _clean, _clean_all_before_the_newest, _in_parts, _with_an_unfinished_checkpoint, _v2_as_json,
    _v2_as_parquet, _without_a_hint, _with_a_wrong_hint, _with_a_broken_hint,
    _with_a_compacted_log, _with_broken_commits_before_the_checkpoint,
]  # fmt: skip


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


@pytest.mark.parametrize("form", _FORMS, ids=lambda form: form.__name__[1:])
def test_replication_starts_at_the_newest_version(
    session: Session, tmp_path: Path, form: Callable[[Path], None]
) -> None:
    folder = tmp_path / "t"
    _make(folder)
    form(folder)
    before = _files(folder)
    adopt = f"create table t using delta location '{folder}'"
    assert answer_of(session, adopt) == ("CREATE TABLE",)
    publisher = LakePublisher(session)
    publisher.slots.current_lsn([RelationName("public", "t")])
    columns = "select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0"
    assert answer_of(session, columns)[:2] == ("| id", "| more")
    with session.read() as catalog:
        oid = session.environment(catalog).relation_oid(None, "t")
        assert oid is not None
        assert list(entered_versions(catalog.connection, oid, -1)) == [_NEWEST]
    snapshot = publisher.tables.snapshot(RelationName("public", "t"))
    assert list(snapshot.state["versions"].values()) == [_NEWEST]
    assert _files(folder) == before


def _hole(folder: Path) -> None:
    _commit(folder, 4).rename(_commit(folder, 5))


def _no_start(folder: Path) -> None:
    _clean(folder)
    _checkpoint(folder).unlink()


def _reader_of_tomorrow(folder: Path) -> None:
    _v2_as_json(folder, lambda text: text.replace('"minReaderVersion": 1', '"minReaderVersion": 9'))


def _no_metadata(folder: Path) -> None:
    _v2_as_json(folder, lambda text: text.replace('"metaData"', '"unknown"'))


@pytest.mark.parametrize(
    ("damage", "sqlstate", "message"),
    [
        (_hole, "55000", "no longer has version 4"),
        (_no_start, "55000", "no longer has version 0"),
        (_reader_of_tomorrow, "0A000", "protocol"),
        (_no_metadata, "55000", "does not say what columns it has"),
    ],
)
def test_a_log_that_does_not_say_what_the_table_is(
    tmp_path: Path, damage: Callable[[Path], None], sqlstate: str, message: str
) -> None:
    folder = tmp_path / "t"
    _make(folder)
    damage(folder)
    with pytest.raises(PostgresError, match=message) as caught:
        newest_version(str(folder))
    assert caught.value.sqlstate == sqlstate


def test_names_that_postgresql_lacks(session: Session, tmp_path: Path) -> None:
    long = "long_" * 14
    columns = {"xmin": [1.0], f"{long}a": [2], f"{long}b": [3], "ctid": [4], "xmin_1": [5]}
    write_deltalake(str(tmp_path / "t"), pa.table(columns))
    first, second = long[:63], f"{long[:61]}_1"
    place = f"USING delta LOCATION '{tmp_path / 't'}'"
    answer = answer_of(session, f"CREATE TABLE t {place}")
    named = [line for line in answer if line.startswith("NOTICE")]
    assert [line.rsplit("is named ")[1] for line in named] == [
        f'"{name}" in relation "t"' for name in ("xmin_2", first, second, "ctid_1")
    ]
    everything = (
        "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = 't'::regclass AND attnum > 0"
    )
    assert answer_of(session, everything)[0] == f"| xmin_2 {first} {second} ctid_1 xmin_1"
    found = answer_of(session, f"SELECT xmin_2, {long}a, {second}, ctid_1, xmin_1 FROM t")
    assert "| 1 | 2 | 3 | 4 | 5" in found
    answer_of(session, "DROP TABLE t")
    listed = answer_of(session, f"CREATE TABLE t (xmin_2 float, {second} bigint) {place}")
    assert listed[-1] == "CREATE TABLE"
    assert "| 1 | 3" in answer_of(session, "TABLE t")


def _commit_comments(folder: Path, description: str | None, *columns: tuple[str, str, str]) -> None:
    """Commit a schema: name, physical name and comment of each column ('' for none)."""
    fields = [
        {
            "name": name,
            "type": "integer",
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical}
            | ({"comment": comment} if comment else {}),
        }
        for name, physical, comment in columns
    ]
    metadata: dict[str, Any] = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": "name"},
    }
    if description is not None:
        metadata["description"] = description
    actions: list[dict[str, Any]] = [{"metaData": metadata}]
    version = len(list(_log(folder).glob("*.json")))
    if version == 0:
        actions.append({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
    _commit(folder, version).write_text("\n".join(map(json.dumps, actions)))


def test_comments_are_those_of_the_owner(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    _log(folder).mkdir(parents=True)

    def shown(database: Session) -> tuple[str, ...]:
        query = (
            "SELECT objsubid, description FROM pg_description"
            " WHERE objoid = 't'::regclass ORDER BY 1"
        )
        return tuple(line for line in answer_of(database, query) if line.startswith("|"))

    def sees(description: str | None, *columns: tuple[str, str, str]) -> tuple[str, ...]:
        _commit_comments(folder, description, *columns)
        LakePublisher(session).slots.current_lsn([RelationName("public", "t")])
        return shown(session)

    _commit_comments(folder, "orders", ("a", "a", "first"), ("b", "b", "it's"), ("c", "c", ""))
    answer_of(session, f"CREATE TABLE t (c int, b int, a int) USING delta LOCATION '{folder}'")
    assert shown(session) == ("| 0 | orders", "| 2 | it's", "| 3 | first")
    answer_of(session, "COMMENT ON COLUMN t.a IS 'own'")
    changed = sees(
        "all orders", ("a", "a", "2nd"), ("x", "b", ""), ("c", "c", "c"), ("d", "d", "d")
    )
    assert changed == ("| 0 | all orders", "| 1 | c", "| 3 | own", "| 4 | d")
    assert sees(None, ("x", "b", "x"), ("c", "c", "c")) == ("| 1 | c", "| 2 | x")
    assert sees("\0", ("x", "b", "\0"), ("c", "c", "c")) == ("| 1 | c",)

    answer_of(session, "CREATE PUBLICATION p FOR TABLE t")
    answer_of(session, "CREATE DATABASE copy")
    copy = Session.connect(session.cluster, "copy", "postgres")
    answer_of(
        copy,
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=postgres' PUBLICATION p"
        " WITH (create_tables = true)",
    )
    assert shown(copy) == ("| 1 | c",)


def _commit_texts(folder: Path, **types: str) -> None:
    """Commit a schema of texts, or arrays of texts, with these types in Spark's SQL."""
    _log(folder).mkdir(parents=True, exist_ok=True)
    array = {"type": "array", "elementType": "string", "containsNull": True}
    fields = [
        {
            "name": name,
            "type": array if type_.startswith("array") else "string",
            "nullable": True,
            "metadata": {} if type_ == "string" else {"__CHAR_VARCHAR_TYPE_STRING": type_},
        }
        for name, type_ in types.items()
    ]
    metadata = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    actions = [{"metaData": metadata}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]
    version = len(list(_log(folder).glob("*.json")))
    _commit(folder, version).write_text("\n".join(map(json.dumps, actions)))


_TYPES = (
    "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)"
    " FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"
)


@pytest.mark.parametrize(("now", "type_"), [("varchar(9)", "(9)"), ("string", "")])
def test_longer_texts_are_followed_even_if_something_depends_on_the_column(
    session: Session, tmp_path: Path, now: str, type_: str
) -> None:
    folder = tmp_path / "t"
    _commit_texts(folder, v="varchar(5)", w="string")
    answer_of(session, f"CREATE TABLE t USING delta LOCATION '{folder}'")
    answer_of(session, "CREATE PUBLICATION p FOR TABLE t WHERE (v = 'eu')")
    answer_of(session, "CREATE VIEW x AS SELECT w FROM t")
    _commit_texts(folder, v=now, w="string")
    LakePublisher(session).slots.current_lsn([RelationName("public", "t")])
    assert answer_of(session, _TYPES)[0] == f"| v character varying{type_}, w text"


def test_lengths_of_texts_are_taken_over_and_followed(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    place = f"USING delta LOCATION '{folder}'"
    types = {"v": "varchar(5)", "c": "char(3)", "a": "array<varchar(2)>", "w": "varchar(20000000)"}
    _commit_texts(folder, **types)
    for columns in ("(v varchar(4))", "(v char(5))", "(c char(3))", "(v text[])"):
        assert answer_of(session, f"CREATE TABLE t {columns} {place}")[0].startswith("ERROR 42804")
    for columns in ("(v varchar(5), c text, a varchar(2)[])", "(v text)", "(v varchar(6))"):
        assert answer_of(session, f"CREATE TABLE t {columns} {place}") == ("CREATE TABLE",)
        answer_of(session, "DROP TABLE t")
    answer_of(session, f"CREATE TABLE t {place}")
    varying = "character varying"
    shown = f"| v {varying}(5), c text, a {varying}(2)[], w text"
    assert answer_of(session, _TYPES)[0] == shown
    refused = answer_of(session, "ALTER TABLE t ALTER v TYPE varchar(3)")
    assert refused[0].startswith("ERROR 0A000")

    answer_of(session, "CREATE PUBLICATION p FOR TABLE t")
    answer_of(session, "CREATE DATABASE copy")
    copy = Session.connect(session.cluster, "copy", "postgres")
    answer_of(
        copy,
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=postgres' PUBLICATION p"
        " WITH (create_tables = true)",
    )
    assert answer_of(copy, _TYPES)[0] == shown

    for now, type_ in (("varchar(9)", f"{varying}(9)"), ("varchar(2)", f"{varying}(9)"),
                       ("string", "text")):  # fmt: skip
        _commit_texts(folder, **types | {"v": now})
        LakePublisher(session).slots.current_lsn([RelationName("public", "t")])
        assert answer_of(session, _TYPES)[0] == shown.replace(f"v {varying}(5)", f"v {type_}")
