"""A partitioned target without a key has equal published rows in several partitions: the partition
key is a column of its own."""

from __future__ import annotations

from collections import Counter

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark


def test_each_change_finds_one_of_them(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (id int, v text); ALTER TABLE t REPLICA IDENTITY FULL")
    publisher.run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, 'b')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE TABLE t (id int, v text, region text DEFAULT 'north') PARTITION BY LIST (region);"
        " CREATE TABLE north PARTITION OF t FOR VALUES IN ('north');"
        " CREATE TABLE south PARTITION OF t FOR VALUES IN ('south')"
    )
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO t VALUES (1, 'a', 'south'), (1, 'a', 'south'), (2, 'b', 'south')")

    def rows() -> Counter[tuple[str | None, ...]]:
        return Counter(subscriber.rows("SELECT id, v FROM t"))

    publisher.run("DELETE FROM t WHERE id = 2")
    assert subscriber.sync() == []
    assert rows() == {("1", "a"): 5, ("2", "b"): 1}
    publisher.run("DELETE FROM t WHERE id = 1")
    assert subscriber.sync() == []
    assert rows() == {("1", "a"): 2, ("2", "b"): 1}
    publisher.run("INSERT INTO t VALUES (1, 'a'), (1, 'a')")
    publisher.run("UPDATE t SET v = 'z'")
    assert subscriber.sync() == []
    assert rows() == {("1", "a"): 2, ("1", "z"): 2, ("2", "b"): 1}
