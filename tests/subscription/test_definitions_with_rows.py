"""ALTER TABLE of tables with rows: it fills columns, and runs in transactions."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

_CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def _subscribe(publisher: Database, subscriber: Database, tables: str) -> None:
    subscriber.run(tables)
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(f"CREATE SUBSCRIPTION s {_CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []


def test_a_key_that_rows_get_afterwards(publisher: Database, subscriber: Database) -> None:
    """Filling the columns does not change rows.  The subscription continues with the new key."""
    publisher.run(
        "CREATE TABLE t (v text); INSERT INTO t VALUES ('a'), ('b');"
        "CREATE TABLE l (v text, b int) PARTITION BY LIST (b);"
        "CREATE TABLE l1 PARTITION OF l FOR VALUES IN (1);"
        "CREATE TABLE l2 PARTITION OF l FOR VALUES IN (2);"
        "INSERT INTO l VALUES ('x', 2), ('y', 1);"
        "ALTER TABLE t ADD COLUMN id serial PRIMARY KEY;"
        "ALTER TABLE l ADD COLUMN id int GENERATED ALWAYS AS IDENTITY"
    )
    _subscribe(
        publisher,
        subscriber,
        "CREATE TABLE t (v text, id int PRIMARY KEY, k bigint, r float8);"
        "CREATE TABLE l1 (v text, b int, id int);"
        "CREATE TABLE l2 (v text, b int, id int);",
    )
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == [("1", "a"), ("2", "b")]
    assert subscriber.rows("SELECT id, v FROM l2") == [("2", "x")]
    publisher.run("INSERT INTO t VALUES ('c')")
    publisher.run("ALTER TABLE t ADD COLUMN k bigserial, ADD COLUMN r float8 DEFAULT random()")
    publisher.run("INSERT INTO t (v, r) VALUES ('d', 0.5); UPDATE t SET v = 'bb' WHERE k = 2")
    publisher.run("INSERT INTO l VALUES ('z', 1)")
    assert subscriber.sync() == []
    ours = subscriber.rows("SELECT id, v, k FROM t ORDER BY id")
    assert ours == [("1", "a", None), ("2", "bb", "2"), ("3", "c", None), ("4", "d", "4")]
    assert subscriber.rows("SELECT id, v FROM l1 ORDER BY id") == [("1", "y"), ("3", "z")]
    assert publisher.rows("SELECT id, v, k FROM t WHERE k = 3") == [("3", "c", "3")]


def test_rows_written_before_a_definition_in_one_block(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'copied');"
        "CREATE TABLE u (id int PRIMARY KEY, v text)"
    )
    _subscribe(
        publisher,
        subscriber,
        "CREATE TABLE t (id int PRIMARY KEY, v text, c int, d int DEFAULT 7);"
        "CREATE TABLE u (id int PRIMARY KEY, v text)",
    )
    publisher.run(
        "BEGIN; INSERT INTO t VALUES (2, 'before'); UPDATE t SET v = 'old' WHERE id = 1;"
        "ALTER TABLE t ADD COLUMN c int, ADD COLUMN d int DEFAULT 7;"
        "INSERT INTO t VALUES (3, 'after', 30, 8); UPDATE t SET c = 20 WHERE id = 2; COMMIT"
    )
    assert subscriber.sync() == []
    ours = subscriber.rows("SELECT * FROM t ORDER BY id")
    assert ours == publisher.rows("SELECT * FROM t ORDER BY id")
    subscriber.run("ALTER TABLE t RENAME COLUMN v TO label; ALTER TABLE u RENAME TO w")
    publisher.run(
        "BEGIN; INSERT INTO t VALUES (4, 'four'); INSERT INTO u VALUES (1, 'u');"
        "ALTER TABLE t RENAME COLUMN v TO label; ALTER TABLE u RENAME TO w;"
        "INSERT INTO t VALUES (5, 'five'); INSERT INTO w VALUES (2, 'w');"
        "DELETE FROM t WHERE id = 1; COMMIT"
    )
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (copy_data = false)")
    assert subscriber.sync() == []
    ours = subscriber.rows("SELECT * FROM t ORDER BY id")
    assert ours == publisher.rows("SELECT * FROM t ORDER BY id")


def test_a_partition_finds_rows_by_its_own_identity(
    publisher: Database, subscriber: Database
) -> None:
    """The partitioned table has no identity.  If the identities of its partitions differ, replctl
    cannot find rows."""
    publisher.run("CREATE TABLE t (a int PRIMARY KEY, b int, c text)")
    _subscribe(
        publisher,
        subscriber,
        "CREATE TABLE t (a int, b int, c text) PARTITION BY RANGE (a);"
        "CREATE TABLE t1 (c text, b int, a int NOT NULL, UNIQUE (a));"
        "ALTER TABLE t1 REPLICA IDENTITY USING INDEX t1_a_key;"
        "ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20);"
        "ALTER TABLE t2 ADD PRIMARY KEY (a);",
    )
    publisher.run("INSERT INTO t VALUES (1, 1, 'a'), (11, 11, 'b'), (2, 2, 'c')")
    assert subscriber.sync() == []
    subscriber.run("UPDATE t SET b = 0")  # the changes do not compare this column
    publisher.run("UPDATE t SET c = 'x' WHERE a <> 2; UPDATE t SET a = 12 WHERE a = 1")
    publisher.run("DELETE FROM t WHERE a = 11")
    assert subscriber.sync() == []
    rows = subscriber.rows("SELECT a, b, c FROM t ORDER BY a")
    assert rows == [("2", "0", "c"), ("12", "1", "x")]
    subscriber.run(
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30);"
        "ALTER TABLE t3 REPLICA IDENTITY FULL"
    )
    publisher.run("INSERT INTO t VALUES (21, 21, 'c')")
    assert subscriber.sync() == []
    publisher.run("DELETE FROM t WHERE a = 21")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "0A000"
    assert "its partitions identify rows by different columns" in failure.error.message


def test_rows_deleted_before_their_partition_is_detached(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run(
        "CREATE TABLE r (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
        "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (1) TO (10);"
        "CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (10) TO (20);"
        "INSERT INTO r VALUES (1, 'a'), (2, 'b'), (11, 'c');"
        "CREATE PUBLICATION p FOR TABLE r WITH (publish_via_partition_root)"
    )
    subscriber.run("CREATE TABLE r (id int PRIMARY KEY, v text)")
    subscriber.run(f"CREATE SUBSCRIPTION s {_CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run(
        "BEGIN; UPDATE r SET v = 'bb' WHERE id = 2; DELETE FROM r1 WHERE id = 1;"
        "ALTER TABLE r DETACH PARTITION r1; DELETE FROM r1; INSERT INTO r VALUES (12, 'd'); COMMIT"
    )
    assert subscriber.sync() == []
    rows = [("2", "bb"), ("11", "c"), ("12", "d")]
    assert subscriber.rows("SELECT * FROM r ORDER BY id") == rows
    publisher.run("BEGIN; INSERT INTO r VALUES (13, 'e'); DROP TABLE r, r1; COMMIT")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM r ORDER BY id") == [*rows, ("13", "e")]
