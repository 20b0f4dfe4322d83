"""The tables that CREATE SUBSCRIPTION makes contain the published rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_replication import Database

pytestmark = pytest.mark.spark

_TABLES = ("keyed", "indexed", "whole", "sales.parted")


def _check_equal(publisher: Database, subscriber: Database) -> None:
    assert subscriber.sync() == []
    for table in _TABLES:
        query = f"SELECT * FROM {table} ORDER BY a, b"
        assert subscriber.rows(query) == publisher.rows(query), table


def test_they_are_copied_and_kept_up_to_date(publisher: Database, subscriber: Database) -> None:
    publisher.run(
        """
        CREATE SCHEMA sales;
        CREATE TYPE mood AS ENUM ('good', 'bad');
        CREATE DOMAIN price AS numeric(10,2) CHECK (VALUE > 0);
        CREATE TABLE keyed (a int, b mood, c price, PRIMARY KEY (a, b));
        CREATE TABLE indexed (a int NOT NULL, b timestamptz(3));
        CREATE UNIQUE INDEX indexed_a ON indexed (a);
        ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_a;
        CREATE TABLE whole (a int, b int[]);
        ALTER TABLE whole REPLICA IDENTITY FULL;
        CREATE TABLE sales.parted (a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
        CREATE TABLE sales.low PARTITION OF sales.parted FOR VALUES FROM (0) TO (10);
        CREATE TABLE sales.high PARTITION OF sales.parted FOR VALUES FROM (10) TO (100);
        INSERT INTO keyed VALUES (1, 'good', 1), (2, 'bad', 2.50);
        INSERT INTO indexed VALUES (1, '2026-01-01 00:00:00.123+00'), (2, NULL);
        INSERT INTO whole VALUES (1, '{1,NULL}'), (1, '{1,NULL}'), (NULL, NULL);
        INSERT INTO sales.parted VALUES (1, 'low'), (11, 'high');
        CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root);
        """
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_tables = true)"
    )
    _check_equal(publisher, subscriber)
    publisher.run(
        "UPDATE keyed SET c = 3 WHERE a = 1; DELETE FROM indexed WHERE a = 1;"
        " UPDATE whole SET b = '{2}' WHERE a = 1; UPDATE sales.parted SET a = 12 WHERE a = 1"
    )
    _check_equal(publisher, subscriber)


def test_they_have_the_columns_that_the_owner_has_just_added(
    publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    """No statement and no sync has seen the owner's changes before."""
    place = str(tmp_path / "t")
    write_deltalake(place, pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    publisher.run(f"CREATE TABLE t (PRIMARY KEY (a)) USING delta LOCATION '{place}'")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")

    def add(name: str, number: int) -> None:
        rows = pa.table({"a": pa.array([number], pa.int32()), name: [name]})
        write_deltalake(place, rows, mode="append", schema_mode="merge")

    add("c", 2)
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_tables = true)"
    )
    assert subscriber.sync() == []
    add("d", 3)
    subscriber.run("ALTER TABLE t ADD COLUMN d text")
    subscriber.run("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b text")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    assert subscriber.sync() == []
    query = "SELECT a, b, c, d FROM t ORDER BY a"
    assert subscriber.rows(query) == publisher.rows(query)
