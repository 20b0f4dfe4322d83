"""A reconcile deletes target rows whose key contains NULL.  Only other programs write such rows."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.spark import staging
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = (
    "CREATE TABLE one (id int PRIMARY KEY, v text);"
    " CREATE TABLE two (a text, b numeric, v text, PRIMARY KEY (a, b));"
    " CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY LIST (id);"
    " CREATE TABLE low PARTITION OF parted FOR VALUES IN (1);"
    " CREATE TABLE high PARTITION OF parted DEFAULT"
)


def test_a_row_with_null_in_its_key_is_deleted(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The write finds it in a table with one key column, with two, and in a partition.  Other rows
    differ, too, and some have keys that are equal but not stored identically."""
    publisher.run(
        f"{_TABLES}; INSERT INTO one VALUES (1, 'a'), (2, 'b');"
        " INSERT INTO two VALUES ('a', 1.0, 'x'), ('b', 2, 'y');"
        " INSERT INTO parted VALUES (1, 'a');"
        " CREATE PUBLICATION p FOR TABLE one, two, parted WITH (publish_via_partition_root)"
    )
    subscriber.run(_TABLES)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for table, rows in (
        ("one", "(NULL, 'x'), (3, 'extra')"),
        ("two", "('a', NULL, 'x'), (NULL, '1.0', 'y'), (NULL, '1.00', 'y'), ('a', '1.00', 'x')"),
        ("high", "(NULL, 'x'), (NULL, 'y')"),
    ):
        engine.rows(f"INSERT INTO delta.`{subscriber.location(table)}` VALUES {rows}")
    subscriber.run("UPDATE one SET v = 'changed' WHERE id = 1")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE one, two, parted WITH (delete = all)")
    assert subscriber.sync() == []
    for table in ("one", "two", "parted"):
        read = f"SELECT * FROM {table} ORDER BY v"
        assert subscriber.rows(read) == publisher.rows(read)

    monkeypatch.setattr(staging, "SMALL", 0)  # no difference stays in this process
    engine.rows(f"INSERT INTO delta.`{subscriber.location('one')}` VALUES (NULL, 'x')")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE one WITH (delete = all)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*) FROM one") == [("2",)]


def test_a_statement_changes_only_rows_that_it_finds(subscriber: Database, engine: Engine) -> None:
    """UPDATE and DELETE find a row with NULL in its key by the whole row: others have NULL, too."""
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
    place = subscriber.location()
    engine.rows(f"INSERT INTO delta.`{place}` VALUES (NULL, 'x'), (NULL, 'y'), (NULL, 'z')")
    tags = subscriber.run("DELETE FROM t WHERE v IN ('a', 'x'); UPDATE t SET id = 7 WHERE v = 'z'")
    assert tags == ["DELETE 2", "UPDATE 1"]
    assert subscriber.rows("SELECT * FROM t ORDER BY v") == [(None, "y"), ("7", "z")]
