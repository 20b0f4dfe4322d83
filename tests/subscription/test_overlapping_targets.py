"""Published tables of one subscription whose targets share a leaf partition: t and its partition
t_hi.  Both are ordinary tables at the publisher."""

from __future__ import annotations

from types import ModuleType

import pytest
from fix_replication import Database

from replctl.errors import InternalError
from replctl.lake import batch_apply, target_copy

pytestmark = pytest.mark.spark

_PARTITIONED = (
    "CREATE TABLE t ({columns}) PARTITION BY RANGE (a);"
    " CREATE TABLE t_lo PARTITION OF t FOR VALUES FROM (0) TO (100)"
)
_ATTACH = "ALTER TABLE t ATTACH PARTITION t_hi FOR VALUES FROM (100) TO (200)"


def _create(publisher: Database, subscriber: Database, columns: str) -> None:
    """Create the tables at both sides; t_hi is not yet a partition."""
    for table in ("t", "t_hi"):
        publisher.run(f"CREATE TABLE {table} ({columns})")
    publisher.run("CREATE PUBLICATION p FOR TABLE t, t_hi")
    subscriber.run(_PARTITIONED.format(columns=columns))
    subscriber.run(f"CREATE TABLE t_hi ({columns})")


def _subscribe(subscriber: Database, options: str = "") -> None:
    subscriber.run(f"CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p {options}")


def _rows(node: Database) -> list[tuple[str | None, ...]]:
    return node.rows("SELECT a, b FROM t ORDER BY a, b")


def _fail_at(patch: pytest.MonkeyPatch, module: ModuleType, name: str, visit: int = 1) -> None:
    """Let a module fail at a visit of an injection point."""
    visits = 0

    def visited(point: str) -> None:
        nonlocal visits
        visits += point == name
        if point == name and visits == visit:
            raise InternalError("injected")

    patch.setattr(module, "injection_point", visited)


def test_changes_of_both_tables_are_applied_in_their_order(
    publisher: Database, subscriber: Database
) -> None:
    _create(publisher, subscriber, "a int PRIMARY KEY, b text")
    subscriber.run(_ATTACH)
    publisher.run("INSERT INTO t VALUES (1, 't'), (101, 't'); INSERT INTO t_hi VALUES (102, 'hi')")
    _subscribe(subscriber)
    with pytest.MonkeyPatch.context() as patch:  # the copy begun first is written last
        _fail_at(patch, target_copy, "tablesync.after-snapshot")
        (failure,) = subscriber.sync()
    assert failure.error.message == "injected"
    assert subscriber.sync() == []
    assert _rows(subscriber) == [("1", "t"), ("101", "t"), ("102", "hi")]
    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (103, 't')")
    publisher.run("INSERT INTO t_hi VALUES (104, 'hi')")
    publisher.run("DELETE FROM t WHERE a = 101")
    publisher.run("INSERT INTO t_hi VALUES (101, 'moved')")
    publisher.run("DELETE FROM t_hi WHERE a = 102")
    publisher.run("INSERT INTO t VALUES (102, 'moved')")
    publisher.run("COMMIT")
    moved = [("1", "t"), ("101", "moved"), ("102", "moved"), ("103", "t"), ("104", "hi")]
    for visit in (1, 2):  # a crash after a stage, and one of the process that continues
        with pytest.MonkeyPatch.context() as patch:
            _fail_at(patch, batch_apply, "apply.after-tables", visit)
            (failure,) = subscriber.sync()
        assert failure.error.message == "injected"
    assert len(_rows(subscriber)) == 3
    assert subscriber.sync() == []
    assert _rows(subscriber) == moved

    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (105, 't')")
    publisher.run("INSERT INTO t_hi VALUES (105, 'hi')")
    publisher.run("COMMIT")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'duplicate key value violates unique constraint "t_hi_pkey"'
    assert _rows(subscriber) == moved
    publisher.run("DELETE FROM t WHERE a = 105")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23505"
    assert _rows(subscriber) == moved


def test_a_truncate_empties_what_the_other_table_wrote_before(
    publisher: Database, subscriber: Database
) -> None:
    _create(publisher, subscriber, "a int PRIMARY KEY, b text")
    subscriber.run(_ATTACH)
    publisher.run("INSERT INTO t VALUES (1, 't'), (101, 't')")
    _subscribe(subscriber, "WITH (copy_data = false)")
    publisher.run("BEGIN")
    publisher.run("INSERT INTO t_hi VALUES (102, 'hi')")
    publisher.run("TRUNCATE t")
    publisher.run("INSERT INTO t VALUES (2, 't'), (103, 't')")
    publisher.run("INSERT INTO t_hi VALUES (104, 'hi')")
    publisher.run("COMMIT")
    assert subscriber.sync() == []
    assert _rows(subscriber) == [("2", "t"), ("103", "t"), ("104", "hi")]
    publisher.run("BEGIN")
    publisher.run("TRUNCATE t_hi")
    publisher.run("INSERT INTO t VALUES (105, 't')")
    publisher.run("COMMIT")
    assert subscriber.sync() == []
    assert _rows(subscriber) == [("2", "t"), ("105", "t")]


def test_a_partition_attached_during_a_batch_gets_its_rows_once(
    publisher: Database, subscriber: Database
) -> None:
    _create(publisher, subscriber, "a int, b text")
    _subscribe(subscriber, "WITH (copy_data = false)")
    publisher.run("INSERT INTO t VALUES (1, 't')")
    publisher.run("INSERT INTO t_hi VALUES (101, 'hi')")
    with pytest.MonkeyPatch.context() as patch:
        _fail_at(patch, batch_apply, "apply.after-tables")
        (failure,) = subscriber.sync()
    assert failure.error.message == "injected"
    subscriber.run(_ATTACH)
    publisher.run("INSERT INTO t VALUES (101, 't')")
    assert subscriber.sync() == []
    assert _rows(subscriber) == [("1", "t"), ("101", "hi"), ("101", "t")]
