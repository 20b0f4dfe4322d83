"""Tables on S3 are published, and used as copies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from faulty_proxy import Fault
from fix_replication import Database
from fix_s3 import S3
from long_tests import LONG

from replctl.errors import PostgresError

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server has another account"),
]


def _write(s3: S3, name: str, ids: Iterable[int]) -> None:
    numbers = list(ids)
    s3.write(name, numbers, [f"row {i}" for i in numbers])


def _subscribe(publisher: Database, subscriber: Database, s3: S3, scheme: str = "s3") -> None:
    """Make a table with five rows, and a subscription that has not copied it yet."""
    _write(s3, "north/orders", range(5))
    source, target = (s3.location(name, scheme) for name in ("north/orders", "copy of orders"))
    publisher.run(f"CREATE TABLE orders USING delta LOCATION '{source}'")
    publisher.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    publisher.run("CREATE PUBLICATION p FOR TABLE orders WHERE (id <> 3)")
    subscriber.run(f"CREATE TABLE orders (id int, v text) USING delta LOCATION '{target}'")
    subscriber.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    subscriber.run("SET replctl.s3_single_writer = on")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")


@pytest.mark.parametrize("scheme", ["s3", pytest.param("s3a", marks=LONG)])
def test_a_table_is_published_and_copied(
    publisher: Database, subscriber: Database, s3: S3, scheme: str
) -> None:
    _subscribe(publisher, subscriber, s3, scheme)
    assert subscriber.sync() == []
    table = DeltaTable(s3.location("north/orders"), storage_options=s3.options)
    table.delete("id = 1")
    table.update(updates={"v": "'new'"}, predicate="id = 2")
    _write(s3, "north/orders", [9])
    assert subscriber.sync() == []
    expected = [("0", "row 0"), ("2", "new"), ("4", "row 4"), ("9", "row 9")]
    assert subscriber.rows("SELECT * FROM orders ORDER BY id") == expected
    copy = DeltaTable(s3.location("copy of orders"), storage_options=s3.options)
    assert copy.version() >= 1
    assert publisher.rows("SELECT count(*) FROM orders") == [("5",)]
    before = len(s3.proxy.requests)
    assert subscriber.sync() == []
    asked = sorted(request.split(" ")[0] for request in s3.proxy.requests[before:])
    assert asked == ["GET", "GET", "HEAD", "HEAD"]  # each table's log, and its newest commit


def _refused(database: Database, statement: str) -> PostgresError:
    with pytest.raises(PostgresError) as caught:
        database.run(statement)
    return caught.value


def test_writes_need_somebody_who_vouches(publisher: Database, s3: S3) -> None:
    """A table that is only read needs no such setting."""
    _write(s3, "t", [1])
    publisher.run(f"CREATE TABLE t USING delta LOCATION '{s3.location('t', 's3a')}'")
    assert publisher.rows("SELECT v FROM t") == [("row 1",)]
    refused = _refused(publisher, "INSERT INTO t VALUES (2, 'b')")
    assert refused.sqlstate == "55000"
    message = 'cannot write table "t": Delta does not exclude other writers on S3'
    assert refused.message == message
    assert "io.delta.storage.S3DynamoDBLogStore" in (refused.hint or "")
    refused = _refused(publisher, "ALTER TABLE t SET (delta.enableChangeDataFeed = false)")
    assert refused.message == message
    statement = (refused.hint or "").partition("all sessions, ")[2].partition(". Otherwise")[0]
    assert statement == "ALTER DATABASE test_pub SET replctl.s3_single_writer = on"
    publisher.run(statement)
    publisher.run("SET replctl.s3_single_writer = on")
    publisher.run("INSERT INTO t VALUES (2, 'b')")
    publisher.run("BEGIN; DELETE FROM t WHERE id = 1; ROLLBACK")
    assert publisher.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",)]
    assert "replctl.s3_single_writer=on" in str(
        publisher.rows("SELECT setconfig FROM pg_db_role_setting")
    )


_METHODS = ("GET", "HEAD", "PUT", "DELETE")


def test_faults_in_a_copy_and_in_a_batch_are_survived(
    publisher: Database, subscriber: Database, s3: S3
) -> None:
    _subscribe(publisher, subscriber, s3)
    for _round in range(2):
        faults = [
            Fault(f"{method} .*copy", kind, times=1)
            for method in _METHODS
            for kind in ("closed", "busy", "lost")
        ]
        with s3.proxy.failing(*faults):
            assert subscriber.sync() == []
        seen = {(fault.pattern[:3], fault.kind) for fault in faults if fault.seen}
        assert seen >= {("PUT", kind) for kind in ("closed", "busy", "lost")}
        _write(s3, "north/orders", [9])
    expected = [("0",), ("1",), ("2",), ("4",), ("9",)]
    assert subscriber.rows("SELECT id FROM orders ORDER BY id") == expected


def test_a_commit_whose_answers_are_lost_for_good(
    publisher: Database, subscriber: Database, s3: S3, engine: Engine
) -> None:
    """The commit exists, although Spark reports a failure.  The next sync neither loses nor doubles
    it."""
    _make_impatient(engine, s3)
    _subscribe(publisher, subscriber, s3)
    assert subscriber.sync() == []
    _write(s3, "north/orders", [9])
    fault = Fault(r"PUT .*copy.*/_delta_log/0+\d+\.json", "lost")
    with s3.proxy.failing(fault):
        (failure,) = subscriber.sync()
    assert fault.seen
    assert failure.error.sqlstate == "08006"
    assert subscriber.sync() == []
    expected = [("0",), ("1",), ("2",), ("4",), ("9",)]
    assert subscriber.rows("SELECT id FROM orders ORDER BY id") == expected


def _make_impatient(engine: Engine, s3: S3) -> None:
    """Let Spark fail at once in a bucket that it has not used yet."""
    hadoop = engine.session.sparkContext._jsc.hadoopConfiguration()
    for name, value in {"attempts.maximum": "1", "retry.limit": "1"}.items():
        hadoop.set(f"fs.s3a.bucket.{s3.bucket}.{name}", value)
