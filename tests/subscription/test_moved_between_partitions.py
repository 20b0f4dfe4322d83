"""An UPDATE that moves rows between partitions is sent as a DELETE and an INSERT, in this order."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

_TABLE = """
    CREATE TABLE t (id int, r int, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
    CREATE TABLE t_1 PARTITION OF t FOR VALUES IN (1);
    CREATE TABLE t_2 PARTITION OF t FOR VALUES IN (2);
"""
_CHANGES = "SELECT data FROM pg_logical_slot_get_changes('l', NULL, NULL) WHERE data LIKE 'table%'"


def test_to_each_side(publisher: Database, subscriber: Database) -> None:
    publisher.run(
        f"{_TABLE} INSERT INTO t VALUES (1, 2), (2, 1);"
        " CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, r int)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.rows("SELECT pg_create_logical_replication_slot('l', 'test_decoding')")
    publisher.run("UPDATE t SET r = 1 WHERE id = 1; UPDATE t SET r = 2 WHERE id = 2")
    publisher.run("UPDATE t SET r = 3 - r")
    publisher.run("INSERT INTO t VALUES (3, 1), (4, 2)")
    assert subscriber.sync() == []
    rows = [("1", "2"), ("2", "1"), ("3", "1"), ("4", "2")]
    assert subscriber.rows("SELECT * FROM t ORDER BY 1") == rows
    sent = [data.split()[2] for (data,) in publisher.rows(_CHANGES) if data is not None]
    assert sent == [
        *("DELETE:", "INSERT:", "DELETE:", "INSERT:"),
        *("DELETE:", "DELETE:", "INSERT:", "INSERT:", "INSERT:", "INSERT:"),
    ]
