"""follow_schema changes the columns of the copy once for each change of the published table, at its
position in the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from fix_replication import Database
from follow_hint import follow_hint

from replctl.commands.follow_schema import follow_schema
from replctl.errors import InternalError

if TYPE_CHECKING:
    from replctl.replication.subscription_run import SubscriptionRun
    from replctl.replication.table_definition import SchemaChange
    from replctl.session import Session
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, a text, b text, n int NOT NULL)"
_QUERY = "SELECT * FROM t ORDER BY 1"
#: The names of two columns are exchanged between two changes.
_EXCHANGE = (
    "UPDATE t SET a = 'A' WHERE id = 1",
    "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b",
    "UPDATE t SET a = 'after' WHERE id = 2",
)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
    " WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


def _subscribe(publisher: Database, subscriber: Database) -> None:
    publisher.run(
        f"{_TABLE}; INSERT INTO t SELECT g, 'a' || g, 'b' || g, g"
        " FROM generate_series(1, 3) g; CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run(_TABLE)
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (follow_schema = true)"
    )
    assert subscriber.sync() == []


def _run(database: Database, *statements: str) -> None:
    for statement in statements:
        database.run(statement)


def _are_equal(publisher: Database, subscriber: Database) -> None:
    assert subscriber.rows(_COLUMNS) == publisher.rows(_COLUMNS)
    assert subscriber.rows(_QUERY) == publisher.rows(_QUERY)


def test_each_change_at_its_place(publisher: Database, subscriber: Database) -> None:
    _subscribe(publisher, subscriber)
    _run(
        publisher,
        *_EXCHANGE,
        "ALTER TABLE t ADD COLUMN d int DEFAULT 5",
        "INSERT INTO t VALUES (4, 'b4', 'a4', 4, 6)",
        "ALTER TABLE t ALTER COLUMN n TYPE bigint, ALTER COLUMN n DROP NOT NULL",
        "UPDATE t SET n = 30000000000 WHERE id = 3; UPDATE t SET n = NULL WHERE id = 4",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ADD COLUMN b numeric(4,1)",
        "UPDATE t SET b = 1.5 WHERE id = 1",
        "ALTER TABLE t ADD COLUMN e date DEFAULT NULL",
        "COMMENT ON COLUMN t.b IS 'not followed'",
    )
    publisher.run("ALTER TABLE t ALTER COLUMN d DROP DEFAULT")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    publisher.run("ALTER TABLE t ADD COLUMN last text")  # no row changes
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    publisher.run("ALTER TABLE t DROP COLUMN last; DELETE FROM t WHERE id = 2")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)


def test_other_programs_see_changes_without_rows(publisher: Database, subscriber: Database) -> None:
    _subscribe(publisher, subscriber)
    publisher.run("ALTER TABLE t DROP COLUMN b; ALTER TABLE t RENAME a TO x")
    for _ in range(2):
        assert subscriber.sync() == []
        fields = DeltaTable(subscriber.location()).schema().fields
        assert [field.name for field in fields] == ["id", "x", "n"]
    _are_equal(publisher, subscriber)
    publisher.run("UPDATE t SET x = 'X' WHERE id = 1")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)


def test_once(publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    _subscribe(publisher, subscriber)
    _run(publisher, *_EXCHANGE)

    def fail(session: Session, run: SubscriptionRun, change: SchemaChange) -> None:
        follow_schema(session, run, change)
        raise InternalError("stopped after the change of the table")

    with monkeypatch.context() as patch:
        patch.setattr("replctl.commands.follow_schema.follow_schema", fail)
        assert len(subscriber.sync()) == 1
    subscriber.run("UPDATE t SET n = n")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)


def test_rows_of_the_same_commit(publisher: Database, subscriber: Database) -> None:
    """A conflict of rows stops a commit that also exchanges names, until it is resolved."""
    _subscribe(publisher, subscriber)
    publisher.run("CREATE TABLE u (id int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE u")
    subscriber.run("CREATE TABLE u (id int PRIMARY KEY)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION")
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO t VALUES (4, 'own', 'own', 0)")
    publisher.run(
        f"{_EXCHANGE[1]}; INSERT INTO t VALUES (4, 'b4', 'a4', 4); INSERT INTO u VALUES (1)"
    )
    for _ in range(2):
        (failure,) = subscriber.sync()
        assert failure.error.sqlstate == "23505"
        assert subscriber.rows("SELECT b, a FROM t WHERE id = 1") == [("a1", "b1")]
    subscriber.run("DELETE FROM t WHERE id = 4")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    assert subscriber.rows("SELECT id FROM u") == [("1",)]


def test_columns_of_an_adopted_table(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    engine.run(
        f"CREATE TABLE {table} (id INT, v STRING, n INT) USING delta TBLPROPERTIES"
        " (delta.columnMapping.mode = 'name', delta.enableTypeWidening = true)"
    )
    engine.run(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)")
    publisher.run(
        "CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta"
        f" LOCATION '{tmp_path / 't'}'; CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_tables = true, follow_schema = true)"
    )
    assert subscriber.sync() == []
    for statement in (
        "UPDATE {} SET v = 'A' WHERE id = 1",
        "ALTER TABLE {} RENAME COLUMN v TO w",
        "ALTER TABLE {} ADD COLUMNS (v DATE)",
        "UPDATE {} SET v = DATE'2026-01-01', w = 'B' WHERE id = 2",
        "ALTER TABLE {} ALTER COLUMN n TYPE BIGINT",
        "INSERT INTO {} VALUES (3, 'c', 30000000000, NULL)",
    ):
        engine.run(statement.format(table))
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    assert subscriber.rows(_QUERY)[1] == ("2", "B", "2", "2026-01-01")


def test_columns_follow_before_a_reconcile(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    """REFRESH TABLE brings the rows of a later time, whose columns the owner has changed since the
    last sync, also after the statement."""
    table = f"delta.`{tmp_path / 't'}`"
    engine.run(
        f"CREATE TABLE {table} (id INT, a STRING, b STRING, n INT, x INT) USING delta TBLPROPERTIES"
        " (delta.columnMapping.mode = 'name', delta.enableTypeWidening = true)"
    )
    engine.run(f"INSERT INTO {table} VALUES (1, 'a1', 'b1', 1, 1), (2, 'a2', 'b2', 2, 2)")
    publisher.run(
        "CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta"
        f" LOCATION '{tmp_path / 't'}'; CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_tables = true, follow_schema = true)"
    )
    assert subscriber.sync() == []
    engine.run(f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    for statement in (
        "UPDATE {} SET n = 30000000000 WHERE id = 1",
        "ALTER TABLE {} RENAME COLUMN a TO between",
        "ALTER TABLE {} RENAME COLUMN b TO a",
        "ALTER TABLE {} RENAME COLUMN between TO b",
        "ALTER TABLE {} DROP COLUMN x",
        "ALTER TABLE {} ADD COLUMNS (x STRING)",
        "UPDATE {} SET x = 'new', a = 'A' WHERE id = 2",
    ):
        engine.run(statement.format(table))
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    engine.run(f"UPDATE {table} SET b = 'later' WHERE id = 1")
    assert subscriber.sync() == []
    assert subscriber.rows(_QUERY) == [
        ("1", "later", "b1", "30000000000", None),
        ("2", "a2", "A", "2", "new"),
    ]
    _are_equal(publisher, subscriber)


def test_what_cannot_be_followed_stops(publisher: Database, subscriber: Database) -> None:
    _subscribe(publisher, subscriber)
    for column, detail, statement in (
        ("r", "were computed for each row", "ADD COLUMN r float8 DEFAULT random()"),
        ("a", "was text, and is integer now", "ALTER COLUMN a TYPE int USING length(a)"),
    ):
        publisher.run("UPDATE t SET n = n + 10")
        publisher.run(f"ALTER TABLE t {statement}")
        publisher.run("UPDATE t SET b = 'B' WHERE id = 1")
        (failure,) = subscriber.sync()
        assert failure.error.message.startswith(f'column "{column}" of table "public.t" cannot')
        assert detail in (failure.error.detail or "")
        hint = (failure.error.hint or "").replace("TYPE integer;", "TYPE integer USING 0;")
        assert subscriber.rows("SELECT min(n) FROM t") == publisher.rows("SELECT min(n) FROM t")
        follow_hint(hint, subscriber, {"test_pub": publisher}.__getitem__)
        assert subscriber.sync() == []
        _are_equal(publisher, subscriber)


def test_elements_of_arrays_are_widened(
    engine: Engine, publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    place = f"delta.`{tmp_path / 'owned'}`"
    engine.run(
        f"CREATE TABLE {place} (id INT, a ARRAY<INT>) USING delta"
        " TBLPROPERTIES (delta.enableTypeWidening = true)"
    )
    engine.run(f"INSERT INTO {place} VALUES (1, array(1, NULL)), (2, NULL), (3, array(3))")
    publisher.run(
        f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / 'owned'}';"
        " CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, a int[])")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (follow_schema = true)"
    )
    assert subscriber.sync() == []
    for statement in (
        "UPDATE {} SET a = array(11) WHERE id = 1",
        "ALTER TABLE {} ALTER COLUMN a.element TYPE BIGINT",
        "UPDATE {} SET a = array(30000000000, NULL) WHERE id = 2",
        "DELETE FROM {} WHERE id = 3",
    ):
        engine.run(statement.format(place))
    assert subscriber.sync() == []
    rows = [("1", "{11}"), ("2", "{30000000000,NULL}")]
    for database in (publisher, subscriber):
        assert database.rows(_QUERY) == rows
        assert ("a", "bigint[]", "f") in database.rows(_COLUMNS)


def test_partitions_follow_in_their_root(publisher: Database, subscriber: Database) -> None:
    table = (
        "CREATE TABLE t (id int PRIMARY KEY, a text, b text) PARTITION BY RANGE (id);"
        " CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);"
        " CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)"
    )
    publisher.run(f"{table}; INSERT INTO t VALUES (1, 'a', 'b'), (11, 'a', 'b')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(table)
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (follow_schema = true)"
    )
    assert subscriber.sync() == []
    exchange = f"BEGIN; {_EXCHANGE[1]}; COMMIT"
    add = "ALTER TABLE t ADD COLUMN n int"
    _run(publisher, _EXCHANGE[0], exchange, _EXCHANGE[2], add, "UPDATE t SET n = id")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)
    _run(publisher, "ALTER TABLE t DROP COLUMN a", "INSERT INTO t (id, b) VALUES (2, 'new')")
    assert subscriber.sync() == []
    _are_equal(publisher, subscriber)

    # Another partition of the target still needs the column
    publisher.run("ALTER PUBLICATION p ADD TABLE low; ALTER TABLE t DETACH PARTITION low")
    publisher.run("ALTER TABLE low DROP COLUMN n; ALTER TABLE low ADD COLUMN m int")
    publisher.run("INSERT INTO low (id, m) VALUES (3, 3); INSERT INTO high (id, n) VALUES (13, 13)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, n, m FROM t ORDER BY id") == [
        ("1", "1", None),
        ("2", None, None),
        ("3", None, "3"),
        ("11", "11", None),
        ("13", "13", None),
    ]
