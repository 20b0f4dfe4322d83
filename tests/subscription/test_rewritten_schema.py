"""After DROP COLUMN, RENAME COLUMN and ALTER TYPE, the next write gives the Delta table the columns
of the relation.  Readers of any kind, and subscribers that lag, lose nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from fix_replication import Database, connect
from follow_hint import follow_hint
from long_tests import LONG

from replctl.errors import InternalError, InvalidTextRepresentation
from replctl.lake import table_read
from replctl.lake.small_rewrite import rewrite_schema
from replctl.session import Session
from replctl.spark import delta_table

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, secret text, v text)"
_ROWS = "INSERT INTO t VALUES (1, 's1', 'a'), (2, 's2', 'b'), (3, 's3', 'c')"
_QUERY = "SELECT * FROM t ORDER BY 1"


def _columns(database: Database, engine: Engine, table: str = "t") -> list[str]:
    """Return the columns that plain readers see: delta-rs and Spark agree on them."""
    location = database.location(table)
    columns = [field.name for field in DeltaTable(location).schema().fields]
    assert engine.session.table(f"delta.`{location}`").columns == columns
    return columns


def _plain_rows(database: Database, engine: Engine, table: str = "t") -> list[tuple[object, ...]]:
    rows = engine.rows(f"SELECT * FROM delta.`{database.location(table)}`")
    return sorted(tuple(row) for row in rows)


def _features(database: Database) -> set[str]:
    protocol = DeltaTable(database.location()).protocol()
    return {*(protocol.writer_features or ()), *(protocol.reader_features or ())}


def test_the_next_write_removes_them(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    features = _features(publisher)
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    publisher.run("INSERT INTO t VALUES (4, 'd')")
    assert _columns(publisher, engine) == ["id", "v"]
    assert _plain_rows(publisher, engine) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert publisher.rows("SELECT * FROM t") == [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")]
    assert _features(publisher) == features
    table = DeltaTable(publisher.location())
    written = len(table.history())
    assert table.metadata().configuration["delta.enableChangeDataFeed"] == "true"

    publisher.run("UPDATE t SET v = 'A' WHERE id = 1; ALTER TABLE t ADD COLUMN secret int")
    publisher.run("UPDATE t SET secret = id")
    assert publisher.rows("SELECT v, secret FROM t WHERE id = 1") == [("A", "1")]
    # one commit for each UPDATE, and only one for the column
    assert len(DeltaTable(publisher.location()).history()) == written + 3


def test_the_next_write_removes_what_a_failed_statement_has_left(
    publisher: Database, engine: Engine
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    with pytest.raises(InvalidTextRepresentation):
        publisher.run("ALTER TABLE t ALTER v TYPE int USING v::int")
    publisher.run("INSERT INTO t VALUES (4, 's4', 'd')")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    publisher.run("ALTER TABLE t ALTER v TYPE int USING length(v)")
    publisher.run("DELETE FROM t WHERE id = 4")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    assert _plain_rows(publisher, engine) == [(1, "s1", 1), (2, "s2", 1), (3, "s3", 1)]


def test_a_column_of_another_type_leaves_no_column_of_nulls(
    publisher: Database, engine: Engine
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; ALTER TABLE t ALTER COLUMN id TYPE bigint")
    publisher.run("DELETE FROM t WHERE id = 2")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    assert _plain_rows(publisher, engine) == [(1, "s1", "a"), (3, "s3", "c")]
    assert publisher.rows(_QUERY) == [("1", "s1", "a"), ("3", "s3", "c")]
    publisher.run("ALTER TABLE t DROP COLUMN id")
    publisher.run("INSERT INTO t VALUES ('s4', 'd')")
    assert _columns(publisher, engine) == ["secret", "v"]
    publisher.run("ALTER TABLE t DROP COLUMN secret, DROP COLUMN v, ADD COLUMN w int")
    publisher.run("UPDATE t SET w = 7")
    assert publisher.rows("SELECT * FROM t") == [("7",)] * 3
    assert _columns(publisher, engine) == ["_", "w"]  # Delta has no table without columns
    publisher.run("ALTER TABLE t RENAME w TO x; UPDATE t SET x = 8")
    assert _columns(publisher, engine) == ["x"]


def test_a_block_removes_them_when_it_is_committed(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    change = "ALTER TABLE t DROP COLUMN secret; INSERT INTO t VALUES (4, 'd');"
    publisher.run(f"BEGIN; {change} ROLLBACK")
    assert publisher.rows(_QUERY) == [("1", "s1", "a"), ("2", "s2", "b"), ("3", "s3", "c")]
    publisher.run("INSERT INTO t VALUES (5, 's5', 'e')")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    publisher.run(f"BEGIN; {change} DELETE FROM t WHERE id < 4")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    publisher.run("COMMIT")
    assert _plain_rows(publisher, engine) == [(4, "d"), (5, "e")]


def test_a_column_whose_definition_was_taken_back_goes(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE} WITH (deletion_vectors = off); {_ROWS}")
    publisher.run("BEGIN; ALTER TABLE t ADD COLUMN w int; UPDATE t SET w = 1; ROLLBACK")
    publisher.run("INSERT INTO t VALUES (4, 's4', 'd')")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    assert len(publisher.rows(_QUERY)) == 4
    publisher.run("DELETE FROM t")
    publisher.run("ALTER TABLE t DROP COLUMN v")
    publisher.run("INSERT INTO t VALUES (5, 's5')")
    assert _plain_rows(publisher, engine) == [(5, "s5")]


@pytest.mark.parametrize(
    "key", ["PRIMARY KEY", pytest.param("", marks=LONG)], ids=["with a key", "without one"]
)
def test_a_subscriber_behind_gets_what_was_before(
    publisher: Database, subscriber: Database, engine: Engine, key: str
) -> None:
    table = f"CREATE TABLE t (id int {key}, secret text, v text);"
    if not key:
        table += "ALTER TABLE t REPLICA IDENTITY FULL;"
    publisher.run(f"{table} {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(table)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []

    for statement in (
        "UPDATE t SET secret = 'S1' WHERE id = 1",
        "UPDATE t SET id = 20 WHERE id = 2",
        "ALTER TABLE t ALTER COLUMN id TYPE bigint",
        "INSERT INTO t VALUES (4, 's4', 'd')",
        "DELETE FROM t WHERE id = 3",
        "ALTER TABLE t DROP COLUMN secret",
        "INSERT INTO t VALUES (5, 'e')",
    ):
        publisher.run(statement)
    assert _columns(publisher, engine) == ["id", "v"]
    assert subscriber.sync() == []
    before = [("1", "S1", "a"), ("4", "s4", "d"), ("20", "s2", "b")]
    assert subscriber.rows(_QUERY) == [*before[:2], ("5", None, "e"), before[2]]


@pytest.mark.parametrize(
    "key", [pytest.param("PRIMARY KEY", marks=LONG), ""], ids=["with a key", "without one"]
)
def test_exchanged_names(
    publisher: Database, subscriber: Database, engine: Engine, key: str
) -> None:
    table = f"CREATE TABLE t (id int {key}, secret text, v text);"
    table += "ALTER TABLE t REPLICA IDENTITY FULL;"
    publisher.run(f"{table} {_ROWS}; CREATE PUBLICATION p FOR TABLE t WHERE (v < 'c')")
    subscriber.run(table)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []

    publisher.run("UPDATE t SET secret = 'S1' WHERE id = 1")
    publisher.run("ALTER TABLE t RENAME secret TO x; ALTER TABLE t RENAME v TO secret")
    publisher.run("ALTER TABLE t RENAME x TO v")
    publisher.run("INSERT INTO t SELECT 4, secret, v FROM t WHERE id = 1")
    assert _columns(publisher, engine) == ["id", "v", "secret"]
    shown = [(1, "S1", "a"), (2, "s2", "b"), (3, "s3", "c"), (4, "a", "S1")]
    assert _plain_rows(publisher, engine) == shown
    assert publisher.rows(_QUERY) == [tuple(map(str, row)) for row in shown]
    assert publisher.rows("SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel") == [
        ("(secret < 'c'::text)",)
    ]
    assert subscriber.sync() == []
    assert subscriber.rows(_QUERY) == [("1", "S1", "a"), ("2", "s2", "b"), ("4", "S1", "a")]


def test_a_target_gets_the_new_names(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(_TABLE)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET v = 'A' WHERE id = 1")
    publisher.run("ALTER TABLE t RENAME v TO w")
    publisher.run("UPDATE t SET w = 'B' WHERE id = 2")
    (failure,) = subscriber.sync()
    assert 'missing replicated column: "w"' in failure.error.message
    subscriber.run("ALTER TABLE t RENAME v TO w")
    assert subscriber.rows("SELECT w FROM t WHERE id = 1") == [("A",)]
    assert subscriber.sync() == []
    for database in (publisher, subscriber):
        assert _columns(database, engine) == ["id", "secret", "w"]
        assert _plain_rows(database, engine) == [(1, "s1", "A"), (2, "s2", "B"), (3, "s3", "c")]
    subscriber.run("ALTER TABLE t RENAME w TO v; INSERT INTO t VALUES (4)")
    assert _columns(subscriber, engine) == ["id", "secret", "v"]


def test_names_before_the_first_write_cost_nothing(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; ALTER TABLE t RENAME secret TO v2; ALTER TABLE t RENAME v TO secret")
    publisher.run("ALTER TABLE t DROP COLUMN v2; ALTER TABLE t ADD COLUMN v2 int")
    publisher.run("INSERT INTO t VALUES (1, 'a', 2)")
    assert _plain_rows(publisher, engine) == [(1, "a", 2)]
    assert _columns(publisher, engine) == ["id", "secret", "v2"]
    publisher.run("ALTER TABLE t ADD COLUMN w int DEFAULT 5; ALTER TABLE t RENAME w TO x")
    publisher.run("INSERT INTO t VALUES (2, 'b', 3)")
    assert _plain_rows(publisher, engine) == [(1, "a", 2, 5), (2, "b", 3, 5)]
    operations = [entry["operation"] for entry in DeltaTable(publisher.location()).history()]
    assert operations == ["WRITE", "UPDATE", "ADD COLUMNS", "WRITE", "CREATE TABLE"]


def test_a_name_that_is_taken_back(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run(
        "BEGIN; ALTER TABLE t RENAME v TO w; UPDATE t SET w = 'A' WHERE id = 1;"
        " ALTER TABLE t RENAME secret TO v; SELECT v, w FROM t; ROLLBACK"
    )
    publisher.run("INSERT INTO t VALUES (4, 's4', 'd')")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    publisher.run(
        "BEGIN; ALTER TABLE t RENAME v TO w; DELETE FROM t WHERE id < 4;"
        " ALTER TABLE t RENAME secret TO v; COMMIT"
    )
    assert _columns(publisher, engine) == ["id", "v", "w"]
    assert _plain_rows(publisher, engine) == [(4, "s4", "d")]


def test_a_reader_of_the_former_names(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader sees the columns of the version that it has found."""
    publisher.run(f"{_TABLE}; {_ROWS}; ALTER TABLE t RENAME secret TO x")
    publisher.run("ALTER TABLE t RENAME v TO secret; ALTER TABLE t RENAME x TO v")
    session = publisher.session
    other = connect(session.cluster, session.database_name, engine)
    sources = table_read.relation_leaves

    def before_a_write(*args: Any, **kwargs: Any) -> Any:
        found = sources(*args, **kwargs)
        monkeypatch.setattr("replctl.query.lake.relation_leaves", sources)
        other.run("INSERT INTO t VALUES (4, 'new s', 'new v')")
        return found

    monkeypatch.setattr("replctl.query.lake.relation_leaves", before_a_write)
    assert publisher.rows("SELECT v, secret FROM t WHERE id = 1") == [("s1", "a")]
    assert publisher.rows("SELECT v, secret FROM t WHERE id IN (1, 4)") == [
        ("s1", "a"),
        ("new s", "new v"),
    ]


def test_a_target_loses_them(publisher: Database, subscriber: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t (id, v)")
    subscriber.run(_TABLE)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("UPDATE t SET secret = 'own'; ALTER TABLE t DROP COLUMN secret")
    publisher.run("UPDATE t SET v = 'B' WHERE id = 2; DELETE FROM t WHERE id = 1")
    assert subscriber.sync() == []
    assert _columns(subscriber, engine) == ["id", "v"]
    assert _plain_rows(subscriber, engine) == [(2, "B"), (3, "c")]


@pytest.mark.parametrize("options", ["", "WITH (replace = true)"])
def test_a_copy_gives_the_target_its_columns(
    publisher: Database, subscriber: Database, engine: Engine, options: str
) -> None:
    """Plain readers of a copy that has a column of another type see one column."""
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(_TABLE)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    publisher.run("UPDATE t SET v = 'C' WHERE id = 3")
    subscriber.run(f"ALTER SUBSCRIPTION s REFRESH TABLE t {options}")
    assert subscriber.sync() == []
    assert _columns(subscriber, engine) == ["id", "secret", "v"]
    assert _plain_rows(subscriber, engine) == [(1, "s1", "a"), (2, "s2", "b"), (3, "s3", "C")]


def test_a_crash_after_the_removal_is_harmless(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(_TABLE)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("DELETE FROM t WHERE id = 3")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "columns.after-rewrite:error")
    with pytest.raises(InternalError):
        publisher.run("UPDATE t SET v = 'A' WHERE id = 1")
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    assert _columns(publisher, engine) == ["id", "v"]
    assert publisher.rows(_QUERY) == [("1", "a"), ("2", "b")]
    publisher.run("UPDATE t SET v = 'A' WHERE id = 1")
    assert subscriber.sync() == []
    assert subscriber.rows(_QUERY) == [("1", "s1", "A"), ("2", "s2", "b")]


def test_a_column_of_others_with_the_name_is_theirs(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    publisher.run("DELETE FROM t WHERE id = 1")
    table = f"delta.`{publisher.location()}`"
    engine.run(f"ALTER TABLE {table} ADD COLUMNS (secret STRING)")
    engine.run(f"UPDATE {table} SET secret = 'theirs' WHERE id = 2")
    publisher.run("UPDATE t SET v = 'C' WHERE id = 3")
    assert publisher.rows(_QUERY) == [("2", "b", "theirs"), ("3", "C", None)]
    assert _columns(publisher, engine) == ["id", "v", "secret"]


def test_rows_that_others_add_meanwhile_stay(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    publisher.run("SET replctl.small_table_rows = 0")  # Spark writes
    write = delta_table._write

    def after_another(engine: Engine, location: str, *rest: Any) -> None:
        monkeypatch.setattr(delta_table, "_write", write)
        engine.run(f"INSERT INTO delta.`{location}` VALUES (9, 's9', 'theirs')")
        write(engine, location, *rest)

    monkeypatch.setattr(delta_table, "_write", after_another)
    publisher.run("INSERT INTO t VALUES (4, 'd')")
    rows = [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d"), ("9", "theirs")]
    assert publisher.rows(_QUERY) == rows
    assert _columns(publisher, engine) == ["id", "v"]


@pytest.mark.parametrize("most", [1000, 0])
def test_a_column_that_others_add_meanwhile_stays(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    publisher.run(f"SET replctl.small_table_rows = {most}")
    target = "replctl.lake.schema_rewrite.rewrite_schema"

    def after_another(session: Session, location: str, *rest: Any) -> None:
        monkeypatch.setattr(target, rewrite_schema)
        engine.run(f"ALTER TABLE delta.`{location}` ADD COLUMNS (theirs INT)")
        engine.run(f"INSERT INTO delta.`{location}` VALUES (9, 's9', 'i', 7)")
        rewrite_schema(session, location, *rest)

    monkeypatch.setattr(target, after_another)
    publisher.run("INSERT INTO t VALUES (4, 'd')")
    assert _columns(publisher, engine) == ["id", "v", "theirs"]
    assert _plain_rows(publisher, engine)[3:] == [(4, "d", None), (9, "i", 7)]


def test_rules_of_others_keep_them(publisher: Database, engine: Engine) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}")
    table = f"delta.`{publisher.location()}`"
    engine.run(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (v <> '')")
    publisher.run("ALTER TABLE t DROP COLUMN secret")
    publisher.run("INSERT INTO t VALUES (4, 'd')")
    assert _columns(publisher, engine) == ["id", "secret", "v"]
    assert len(publisher.rows(_QUERY)) == 4


@pytest.mark.parametrize("is_in_chain", [True, False], ids=["RESTORE", "a backup"])
def test_a_table_that_is_put_back_has_its_former_names(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    tmp_path: Path,
    *,
    is_in_chain: bool,
) -> None:
    publisher.run(f"{_TABLE}; {_ROWS}; CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(_TABLE)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    location = subscriber.location()
    version = DeltaTable(location).version()
    shutil.copytree(location, tmp_path / "backup")
    for database in (publisher, subscriber):
        database.run("ALTER TABLE t RENAME v TO w")
    publisher.run("UPDATE t SET w = 'A' WHERE id = 1")
    assert subscriber.sync() == []
    assert _columns(subscriber, engine) == ["id", "secret", "w"]

    if is_in_chain:
        engine.run(f"RESTORE TABLE delta.`{location}` TO VERSION AS OF {version}")
    else:
        shutil.rmtree(location)
        shutil.copytree(tmp_path / "backup", location)
    publisher.run("UPDATE t SET w = 'B' WHERE id = 2")
    (failure,) = subscriber.sync()
    assert subscriber.rows(_QUERY) == [("1", "s1", "a"), ("2", "s2", "b"), ("3", "s3", "c")]
    follow_hint(failure.error.hint or "", subscriber, {"test_pub": publisher}.__getitem__)
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET w = 'C' WHERE id = 3")  # a change after the unfinished copy
    assert subscriber.sync() == []
    assert _columns(subscriber, engine) == ["id", "secret", "w"]
    assert _plain_rows(subscriber, engine) == [(1, "s1", "A"), (2, "s2", "B"), (3, "s3", "C")]
