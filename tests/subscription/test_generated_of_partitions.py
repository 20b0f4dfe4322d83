"""A subscription computes generated columns by the expressions of the target's partitions."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark


def test_changes_get_the_values_of_their_partition(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("CREATE TABLE t (k int PRIMARY KEY, a int)")
    publisher.run("INSERT INTO t VALUES (1, 5), (2, 5)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE TABLE t (k int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED)"
        " PARTITION BY RANGE (k)"
    )
    subscriber.run("CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (2)")
    subscriber.run(
        "CREATE TABLE t2 PARTITION OF t (b GENERATED ALWAYS AS (a * 3) STORED)"
        " FOR VALUES FROM (2) TO (9)"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
    )
    assert subscriber.sync() == []
    rows = "SELECT k, a, b FROM t ORDER BY k"
    assert subscriber.rows(rows) == [("1", "5", "10"), ("2", "5", "15")]
    publisher.run("INSERT INTO t VALUES (0, 6), (3, 6)")
    publisher.run("UPDATE t SET a = 7 WHERE k = 2")
    publisher.run("UPDATE t SET k = 4 WHERE k = 1")
    assert subscriber.sync() == []
    assert subscriber.rows(rows) == [
        ("0", "6", "12"), ("2", "7", "21"), ("3", "6", "18"), ("4", "5", "15"),
    ]  # fmt: skip
