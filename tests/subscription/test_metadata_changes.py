"""With `schema_changes = metadata`, column mapping drops and renames columns of Delta tables, and
type widening changes types.  replctl rewrites no file, and other readers see the new columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database
from long_tests import LONG, with_long

from replctl.errors import (
    FeatureNotSupported,
    InternalError,
    InvalidParameterValue,
    Notice,
    PostgresError,
    WrongObjectType,
)

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, secret text, v text) WITH (schema_changes = metadata)"
_ROWS = "INSERT INTO t VALUES (1, 's1', 'a'), (2, 's2', 'b'), (3, 's3', 'c')"
_QUERY = "SELECT * FROM t ORDER BY 1"


def _plain(
    database: Database, engine: Engine, table: str = "t"
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the columns and rows that Spark reads without replctl."""
    frame = engine.session.table(f"delta.`{database.location(table)}`")
    columns = [f"{name} {type_}" for name, type_ in frame.dtypes]
    return columns, sorted(tuple(row) for row in frame.collect())


def _files(database: Database, table: str = "t") -> set[str]:
    return {path.name for path in Path(database.location(table)).rglob("part-*.parquet")}


def _versions(database: Database) -> tuple[int, int, set[str]]:
    protocol = DeltaTable(database.location()).protocol()
    features = {*(protocol.writer_features or ())} & {*(protocol.reader_features or ())}
    return protocol.min_reader_version, protocol.min_writer_version, features


@pytest.mark.parametrize("vectors", ["on", pytest.param("off", marks=LONG)])
def test_only_metadata_changes(publisher: Database, engine: Engine, vectors: str) -> None:
    publisher.run(_TABLE.replace("= metadata", f"= metadata, deletion_vectors = {vectors}"))
    publisher.run(_ROWS)
    files = _files(publisher)
    publisher.run("ALTER TABLE t DROP COLUMN secret; ALTER TABLE t RENAME v TO name")
    publisher.run("INSERT INTO t VALUES (4, 'd')")
    rows = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert _plain(publisher, engine) == (["id int", "name string"], rows)
    assert publisher.rows(_QUERY) == [(str(key), text) for key, text in rows]
    kept = _files(publisher)
    assert files <= kept
    assert len(kept) == len(files) + 1
    reader, writer, features = _versions(publisher)
    assert (reader, writer) == (3, 7)
    assert "columnMapping" in features

    publisher.run("ALTER TABLE t ALTER id TYPE bigint")
    assert _files(publisher) == kept
    assert _plain(publisher, engine) == (["id bigint", "name string"], rows)
    assert "typeWidening" in _versions(publisher)[2]
    publisher.run("INSERT INTO t VALUES (3000000000, 'e'); UPDATE t SET name = 'A' WHERE id = 1")
    publisher.run("DELETE FROM t WHERE id = 2; ALTER TABLE t ADD COLUMN secret int DEFAULT 7")
    publisher.run("UPDATE t SET secret = 8 WHERE id = 3")
    assert publisher.rows(_QUERY) == [
        ("1", "A", "7"),
        ("3", "c", "8"),
        ("4", "d", "7"),
        ("3000000000", "e", "7"),
    ]
    columns, _rows = _plain(publisher, engine)
    assert columns == ["id bigint", "name string", "secret int"]


def test_columns_exchange_their_names(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run(
        "ALTER TABLE t RENAME secret TO x; ALTER TABLE t RENAME v TO secret;"
        " ALTER TABLE t RENAME x TO v; DELETE FROM t WHERE id > 1"
    )
    assert _plain(publisher, engine) == (["id int", "v string", "secret string"], [(1, "s1", "a")])
    assert publisher.rows("SELECT id, secret, v FROM t") == [("1", "a", "s1")]
    publisher.run('ALTER TABLE t RENAME v TO "V"; ALTER TABLE t RENAME secret TO "a b"')
    publisher.run("INSERT INTO t VALUES (2, 'x', 'y')")
    assert _plain(publisher, engine)[0] == ["id int", "V string", "a_b string"]
    publisher.run('ALTER TABLE t RENAME "V" TO v; ALTER TABLE t RENAME "a b" TO secret')
    publisher.run("ALTER TABLE t DROP id, DROP v, DROP secret; ALTER TABLE t ADD w int")
    publisher.run("UPDATE t SET w = 1; ALTER TABLE t RENAME w TO x; UPDATE t SET x = 2")
    assert publisher.rows("SELECT * FROM t") == [("2",), ("2",)]


#: Types before and after, with a value before and after.
_WIDENED = [
    ("smallint", "-7", "int", "-7"),
    ("smallint", "-7", "numeric(10,0)", "-7"),
    ("int", "2147483647", "bigint", "2147483647"),
    ("int", "5", "float8", "5"),
    ("int", "5", "numeric(12,2)", "5.00"),
    ("bigint", "5", "numeric(20,0)", "5"),
    ("real", "3.14", "float8", "3.140000104904175"),
    ("numeric(10,2)", "1.25", "numeric(12,4)", "1.2500"),
    ("varchar(3)", "abc", "text", "abc"),
]
_REWRITTEN = [
    ("int", "5", "numeric(11,2)", "5.00"),
    ("bigint", "5", "numeric(19,0)", "5"),
    ("numeric(10,2)", "1.25", "numeric(12,1)", "1.3"),
    ("numeric(10,2)", "1.25", "numeric", "1.25"),
    ("bigint", "5", "int", "5"),
    ("bigint", "5", "float8", "5"),
    ("int", "5", "text", "5"),
    ("date", "infinity", "timestamp", "infinity"),
]


@pytest.mark.parametrize(("types", "is_widened"), [(_WIDENED, True), (_REWRITTEN, False)])
def test_types(
    publisher: Database, types: list[tuple[str, str, str, str]], is_widened: bool
) -> None:
    columns = ", ".join(f"c{i} {old}" for i, (old, *_rest) in enumerate(types))
    values = ", ".join(f"'{value}'" for _old, value, *_rest in types)
    publisher.run(f"CREATE TABLE w ({columns}) WITH (schema_changes = metadata)")
    publisher.run(f"INSERT INTO w VALUES ({values})")
    files = _files(publisher, "w")
    for i, (_old, _value, new, _shown) in enumerate(types):
        publisher.run(f"ALTER TABLE w ALTER c{i} TYPE {new}")
        now = _files(publisher, "w")
        assert (now == files) == is_widened, new
        files = now
    publisher.run("INSERT INTO w VALUES (NULL)")
    assert publisher.rows("SELECT * FROM w WHERE c0 IS NOT NULL") == [
        tuple(shown for *_types, shown in types)
    ]


def test_using_rewrites_rows(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t ALTER id TYPE bigint USING id + 1")
    publisher.run("DELETE FROM t WHERE id = 3")
    columns, rows = _plain(publisher, engine)
    assert columns == ["id bigint", "secret string", "v string"]
    assert rows == [(2, "s1", "a"), (4, "s3", "c")]


def test_a_block_that_is_rolled_back(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run(
        "BEGIN; ALTER TABLE t ALTER id TYPE bigint; INSERT INTO t VALUES (4, 's4', 'd');"
        " INSERT INTO t VALUES (3000000000, 's5', 'e'); ALTER TABLE t DROP COLUMN secret"
    )
    assert publisher.rows("SELECT max(id) FROM t") == [("3000000000",)]
    publisher.run("ROLLBACK")
    for statement in (
        "UPDATE t SET id = id + 2147483647",
        "SELECT id * 2147483647 FROM t",
        "INSERT INTO t SELECT id + 2147483647 FROM t",
        "DELETE FROM t WHERE id + 2147483647 > 0",
    ):
        with pytest.raises(PostgresError, match="integer out of range"):
            publisher.run(statement)
    publisher.run("UPDATE t SET v = 'A', id = 10 - id WHERE id = 1")
    publisher.run("INSERT INTO t SELECT id + 10, secret, v FROM t WHERE id = 2")
    rows = [(2, "s2", "b"), (3, "s3", "c"), (9, "s1", "A"), (12, "s2", "b")]
    columns = ["id bigint", "secret string", "v string"]
    assert _plain(publisher, engine) == (columns, rows)
    assert publisher.rows("SELECT id FROM t ORDER BY 1") == [(str(row[0]),) for row in rows]
    publisher.run("BEGIN; ALTER TABLE t ALTER id TYPE bigint; UPDATE t SET id = id + 3000000000;")
    publisher.run("COMMIT")
    assert publisher.rows("SELECT min(id) FROM t") == [("3000000002",)]


def test_a_block_that_writes_before_it_widens(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run(
        "BEGIN; INSERT INTO t VALUES (4, 's4', 'd'); DELETE FROM t WHERE id = 3; SAVEPOINT s;"
        " ALTER TABLE t ALTER id TYPE bigint; UPDATE t SET id = id + 3000000000; ROLLBACK TO s;"
        " UPDATE t SET v = 'x'; ROLLBACK"
    )
    publisher.run("INSERT INTO t VALUES (5, 's5', 'e')")
    rows = [(1, "s1", "a"), (2, "s2", "b"), (3, "s3", "c"), (5, "s5", "e")]
    assert _plain(publisher, engine)[1] == rows


def test_a_table_without_a_key_after_a_rollback(publisher: Database, engine: Engine) -> None:
    publisher.run("CREATE TABLE w (a int, c real) WITH (schema_changes = metadata)")
    publisher.run("INSERT INTO w VALUES (1, 0.5), (2, 3.14), (2, 3.14), (3, 3.14)")
    publisher.run("BEGIN; ALTER TABLE w ALTER c TYPE float8; UPDATE w SET c = 1; ROLLBACK")
    publisher.run("UPDATE w SET c = 2.7 WHERE a = 3")
    publisher.run("DELETE FROM w WHERE c = 3.14::real")
    assert publisher.rows("SELECT * FROM w ORDER BY a") == [("1", "0.5"), ("3", "2.7")]
    place = f"delta.`{publisher.location('w')}`"
    publisher.run("BEGIN; DELETE FROM w WHERE a = 1")
    engine.run(f"INSERT INTO {place} VALUES (4, CAST(3.14 AS FLOAT))")
    publisher.run("ROLLBACK")
    assert publisher.rows("SELECT * FROM w ORDER BY a") == [
        ("1", "0.5"),
        ("3", "2.7"),
        ("4", "3.14"),
    ]


def test_a_statement_that_dies_after_it_widened_a_type(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "widening.after-commit:error")
    with pytest.raises(InternalError):
        publisher.run("ALTER TABLE t ALTER id TYPE bigint")
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    with pytest.raises(PostgresError, match="integer out of range"):
        publisher.run("INSERT INTO t VALUES (3000000000, 's5', 'e')")
    publisher.run("INSERT INTO t VALUES (5, 's5', 'e'); UPDATE t SET id = 6 WHERE id = 3")
    publisher.run("DELETE FROM t WHERE id = 2")
    publisher.run("ALTER TABLE t ALTER id TYPE bigint")
    publisher.run("UPDATE t SET id = 3000000000 WHERE id = 5")
    assert publisher.rows("SELECT id FROM t ORDER BY id") == [("1",), ("6",), ("3000000000",)]
    assert _plain(publisher, engine)[0] == ["id bigint", "secret string", "v string"]


@pytest.mark.parametrize("step", with_long([1, 2, 3], 2, 1))
def test_a_write_that_dies_between_two_steps(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t DROP COLUMN secret; ALTER TABLE t RENAME v TO w")
    publisher.run("ALTER TABLE t RENAME id TO v")
    monkeypatch.setattr("replctl.injection_point._visits", Counter())
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", f"mapping.after-step:error:{step}")
    with pytest.raises(InternalError):
        publisher.run("DELETE FROM t WHERE v = 1")
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    publisher.run("DELETE FROM t WHERE v = 2")
    assert _plain(publisher, engine) == (["v int", "w string"], [(1, "a"), (3, "c")])
    assert publisher.rows("SELECT v, w FROM t ORDER BY v") == [("1", "a"), ("3", "c")]


@pytest.mark.parametrize(
    "key",
    ["PRIMARY KEY", pytest.param("", marks=LONG)],
    ids=["with a key", "without a key"],
)
def test_replication(publisher: Database, subscriber: Database, engine: Engine, key: str) -> None:
    table = f"CREATE TABLE t (id int {key}, secret text, v text) WITH (schema_changes = metadata);"
    if not key:
        table += "ALTER TABLE t REPLICA IDENTITY FULL;"
    publisher.run(f"{table} {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(table)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for statement in (
        "UPDATE t SET secret = 'S1' WHERE id = 1",
        "ALTER TABLE t ALTER COLUMN id TYPE bigint",
        "INSERT INTO t VALUES (4, 's4', 'd'), (3000000000, 'big', 'x')",
        "UPDATE t SET id = 20 WHERE id = 2",
        "ALTER TABLE t RENAME v TO name",
        "UPDATE t SET name = 'C' WHERE id = 3",
        "ALTER TABLE t DROP COLUMN secret",
        "DELETE FROM t WHERE id = 4",
        "ALTER TABLE t ADD COLUMN extra int",
        "UPDATE t SET extra = 1 WHERE id = 1",
    ):
        publisher.run(statement)
    subscriber.run("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    files = _files(subscriber)
    (failure,) = subscriber.sync()
    assert "name" in failure.error.message  # the changes before the renaming are applied
    subscriber.run("ALTER TABLE t RENAME v TO name; ALTER TABLE t ADD COLUMN extra int")
    assert subscriber.sync() == []
    subscriber.run("ALTER TABLE t DROP COLUMN secret")
    publisher.run("DELETE FROM t WHERE id = 30")
    publisher.run("INSERT INTO t VALUES (30, 'thirty')")
    assert subscriber.sync() == []
    rows = [
        (1, "a", 1),
        (3, "C", None),
        (20, "b", None),
        (30, "thirty", None),
        (3000000000, "x", None),
    ]
    columns = ["id bigint", "name string", "extra int"]
    assert _plain(subscriber, engine) == (columns, rows)
    assert _plain(publisher, engine) == (columns, rows)
    assert subscriber.rows("SELECT id FROM t ORDER BY 1") == [(str(row[0]),) for row in rows]
    assert files <= _files(subscriber)


def test_a_subscriber_behind_a_widening(publisher: Database, subscriber: Database) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t WHERE (id < 4000000000)")
    subscriber.run(_TABLE.replace("int", "bigint"))
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("ALTER PUBLICATION p SET TABLE t; UPDATE t SET v = 'B', id = 20 WHERE id = 2")
    publisher.run("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    publisher.run("INSERT INTO t VALUES (3000000000, 'big', 'x'); DELETE FROM t WHERE id = 3")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == [
        ("1", "a"),
        ("20", "B"),
        ("3000000000", "x"),
    ]


def test_a_target_follows_by_metadata(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, secret text, v text)")
    publisher.run(f"{_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (follow_schema ="
        " true, create_tables = true, table_options = 'schema_changes = metadata')"
    )
    assert subscriber.sync() == []
    files = _files(subscriber)
    publisher.run("ALTER TABLE t ALTER id TYPE bigint")
    publisher.run("ALTER TABLE t RENAME v TO name; ALTER TABLE t DROP COLUMN secret")
    publisher.run("INSERT INTO t VALUES (3000000000, 'x')")
    assert subscriber.sync() == []
    rows = [(1, "a"), (2, "b"), (3, "c"), (3000000000, "x")]
    assert _plain(subscriber, engine) == (["id bigint", "name string"], rows)
    kept = _files(subscriber)
    assert files <= kept
    assert len(kept) == len(files) + 1


def test_others_may_change_the_table(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t RENAME v TO name; ALTER TABLE t DROP COLUMN secret")
    publisher.run("ALTER TABLE t ADD COLUMN n int; UPDATE t SET n = id")
    place = f"delta.`{publisher.location()}`"
    engine.sql(f"UPDATE {place} SET name = 'B' WHERE id = 2")
    engine.sql(f"ALTER TABLE {place} RENAME COLUMN n TO other")
    engine.sql(f"INSERT INTO {place} VALUES (4, 'd', 40)")
    publisher.run("UPDATE t SET n = n + 1 WHERE id > 2")
    assert publisher.rows(_QUERY) == [
        ("1", "a", "1"),
        ("2", "B", "2"),
        ("3", "c", "4"),
        ("4", "d", "41"),
    ]


def test_vacuum_full_removes_values_of_dropped_columns(publisher: Database) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    location = Path(publisher.location())
    assert any("secret" in pq.read_schema(path).names for path in location.rglob("part-*.parquet"))
    publisher.run("SET replctl.vacuum_retention = 0")
    publisher.run("VACUUM FULL t")
    assert not any(
        "secret" in pq.read_schema(path).names for path in location.rglob("part-*.parquet")
    )
    assert len(publisher.rows(_QUERY)) == 3


def test_a_notice_names_features_and_readers(publisher: Database) -> None:
    notices: list[Notice] = []
    publisher.session.on_notice = notices.append
    publisher.run("CREATE TABLE n (a int) WITH (schema_changes = metadata)")
    publisher.run("ALTER TABLE n SET (schema_changes = METADATA, fillfactor = 50)")
    (notice,) = [notice for notice in notices if "columnMapping" in notice.message]
    assert notice.message == (
        'later changes of columns turn on the features columnMapping and typeWidening of "n"'
    )
    assert "which polars and pyarrow cannot read" in (notice.detail or "")
    publisher.run("INSERT INTO n VALUES (1)")
    publisher.run("ALTER TABLE n ALTER a TYPE bigint")
    shown = [notice.message.partition(" of the ")[0] for notice in notices]
    assert 'property "delta.enableTypeWidening"' in shown


def test_settings(publisher: Database, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        publisher.run("CREATE TABLE b (a int) WITH (schema_changes = x)")
    assert caught.value.message == 'invalid value for enum option "schema_changes": x'
    assert caught.value.detail == 'Valid values are "rewrite" and "metadata".'
    place = tmp_path / "adopted"
    write_deltalake(str(place), pa.table({"a": [1]}))
    publisher.run(f"CREATE TABLE a USING delta LOCATION '{place}'")
    with pytest.raises(WrongObjectType, match="is not for adopted tables"):
        publisher.run("ALTER TABLE a SET (schema_changes = metadata)")
    publisher.run(f"{_TABLE}; {_ROWS}; ALTER TABLE t RENAME v TO w; DELETE FROM t WHERE id = 1")
    for change in ("RESET (schema_changes)", "SET (schema_changes = rewrite)"):
        with pytest.raises(FeatureNotSupported, match="cannot be changed"):
            publisher.run(f"ALTER TABLE t {change}")
    publisher.run("CREATE TABLE c (a int)")
    publisher.run("INSERT INTO c VALUES (1); ALTER TABLE c SET (schema_changes = metadata)")
    publisher.run("ALTER TABLE c ALTER a TYPE bigint; ALTER TABLE c RENAME a TO b")
    publisher.run("INSERT INTO c VALUES (2)")
    assert publisher.rows("SELECT sum(b) FROM c") == [("3",)]
