"""A writer that ignores locks commits after replctl reads and before it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fix_replication import Database, connect

from replctl import spark
from replctl.catalog.cluster import Cluster
from replctl.errors import (
    InternalError,
    ObjectNotInPrerequisiteState,
    SerializationFailure,
)
from replctl.lake import replicated_table, small_definition
from replctl.lake.table_write import TableWriter, undo_relation
from replctl.query import truncate, write
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_BEFORE_CHECK, _BEFORE_WRITE = "leaf_changes", "write_leaf"


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Callable[[Engine, str, list[str]], None]:
    """Return a function that lets another program write between two steps of replctl.  Spark runs
    one statement at each of the next calls of a function of replctl for table t.  Calls for other
    tables run no statement."""

    def begin(engine: Engine, job: str, statements: list[str]) -> None:
        owners = [spark.jobs] if job == _BEFORE_CHECK else [write, replicated_table]
        original = getattr(owners[0], job)

        def raced(*arguments: Any) -> Any:
            if job == _BEFORE_CHECK:
                answer = original(*arguments)
            outcome = arguments[0] if job == _BEFORE_CHECK else arguments[1]
            if statements and outcome.target.name == "public.t":
                engine.run(statements.pop(0))
            return answer if job == _BEFORE_CHECK else original(*arguments)

        for owner in owners:
            monkeypatch.setattr(owner, job, raced)

    return begin


def _path(node: Database, table: str) -> str:
    ((path,),) = node.rows(f"SELECT pg_relation_filepath('{table}')")
    return f"delta.`{path}`"


def _subscribe(publisher: Database, subscriber: Database) -> None:
    """Replicate table t without an initial copy, which would need another sync."""
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false)"
    )


def test_statements_are_repeated(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    race: Callable[[Engine, str, list[str]], None],
) -> None:
    for node in (publisher, subscriber):
        node.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    _subscribe(publisher, subscriber)
    publisher.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    foreign = f"UPDATE {_path(publisher, 't')} SET v = v + 10 WHERE id = 1"
    for job in (_BEFORE_CHECK, _BEFORE_WRITE):
        race(engine, job, [foreign])
        publisher.run("UPDATE t SET v = v + 1 WHERE id < 3")
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == [
        ("1", "22"),
        ("2", "2"),
        ("3", "0"),
    ]

    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (4, 4)")
    race(engine, _BEFORE_WRITE, [foreign])
    publisher.run("UPDATE t SET v = v + 100 WHERE id <> 2")
    publisher.run("COMMIT")
    expected = [("1", "132"), ("2", "2"), ("3", "100"), ("4", "104")]
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == expected
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == expected

    race(engine, _BEFORE_CHECK, [foreign] * 10)
    with pytest.raises(SerializationFailure) as raised:
        publisher.run("DELETE FROM t WHERE id < 3")
    assert raised.value.message == "could not serialize access due to concurrent update"
    assert publisher.rows("SELECT count(*) FROM t") == [("4",)]


def test_apply_is_repeated(
    cluster: Cluster,
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    race: Callable[[Engine, str, list[str]], None],
) -> None:
    """replctl also repeats changes of the tables of a batch that are not written yet.  It finds a
    key that another program inserts in the meantime."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE u (a int PRIMARY KEY)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v int, own int DEFAULT 0)")
    subscriber.run("CREATE TABLE u (a int PRIMARY KEY)")
    publisher.run("INSERT INTO t VALUES (1, 0), (2, 0); INSERT INTO u VALUES (1)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t, u")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    subscriber.run("CREATE PUBLICATION down FOR TABLE t")
    down = connect(cluster, "test_down", engine)
    down.run("CREATE TABLE t (id int PRIMARY KEY, v int, own int)")
    down.run("CREATE SUBSCRIPTION d CONNECTION 'dbname=test_sub' PUBLICATION down")
    assert subscriber.sync() == []
    path = _path(subscriber, "t")
    publisher.run("UPDATE t SET v = 1; UPDATE u SET a = 5")
    publisher.run("UPDATE t SET v = 2; INSERT INTO u VALUES (6)")
    race(engine, _BEFORE_CHECK, [f"UPDATE {path} SET own = own + 1 WHERE id = 1"] * 2)
    race(engine, _BEFORE_WRITE, [f"UPDATE {path} SET own = own + 10, v = 7 WHERE id = 1"])
    assert subscriber.sync() == []
    for node in (subscriber, down):
        assert node.rows("SELECT id, v, own FROM t ORDER BY id") == [
            ("1", "2", "12"),
            ("2", "2", "0"),
        ]
    assert subscriber.rows("SELECT a FROM u ORDER BY a") == [("5",), ("6",)]
    publisher.run("INSERT INTO t VALUES (3, 3)")
    race(engine, _BEFORE_CHECK, [f"INSERT INTO {path} VALUES (3, 0, 0)"])
    (failure,) = subscriber.sync()
    assert failure.error.message == 'duplicate key value violates unique constraint "t_pkey"'


def test_a_row_of_another_program_with_an_inserted_key_stays(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    race: Callable[[Engine, str, list[str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another program inserts the same key immediately before the write, and another key after it.
    replctl undoes the write, and releases the table even if it does not write again."""
    for node in (publisher, subscriber):
        node.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    subscriber.run("INSERT INTO t VALUES (1, 1)")
    _subscribe(publisher, subscriber)
    publisher.run("INSERT INTO t VALUES (5, 0)")
    path, check = _path(subscriber, "t"), TableWriter.check_not_overtaken

    def raced(writer: TableWriter, relid: int) -> None:
        engine.run(f"INSERT INTO {path} VALUES (9, 9)")
        check(writer, relid)

    def fail(writer: TableWriter, relid: int) -> None:
        undo_relation(writer, relid)
        raise InternalError("failed")

    race(engine, _BEFORE_WRITE, [f"INSERT INTO {path} VALUES (5, 7)"])
    with monkeypatch.context() as patch:
        patch.setattr(TableWriter, "check_not_overtaken", raced)
        patch.setattr("replctl.lake.target_write.undo_relation", fail)
        (failure,) = subscriber.sync()
    assert failure.error.message == "failed"
    rows = "SELECT id, v FROM t ORDER BY id"
    assert subscriber.rows(rows) == [("1", "1"), ("5", "7"), ("9", "9")]
    (failure,) = subscriber.sync()
    assert failure.error.message == 'duplicate key value violates unique constraint "t_pkey"'
    subscriber.run("DELETE FROM t WHERE id = 5")
    assert subscriber.sync() == []
    assert subscriber.rows(rows) == [("1", "1"), ("5", "0"), ("9", "9")]


def test_rollback_leaves_what_others_have_committed(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    for node in (publisher, subscriber):
        node.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    _subscribe(publisher, subscriber)
    publisher.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
    path = _path(publisher, "t")
    publisher.run("BEGIN")
    publisher.run("UPDATE t SET v = 1 WHERE id < 4")
    publisher.run("DELETE FROM t WHERE id = 4")
    publisher.run("INSERT INTO t VALUES (5, 1), (6, 1)")
    engine.run(f"UPDATE {path} SET v = v + 10 WHERE id IN (2, 5)")
    engine.run(f"DELETE FROM {path} WHERE id IN (3, 6)")
    engine.run(f"INSERT INTO {path} VALUES (6, 5)")
    publisher.run("ROLLBACK")
    expected = [("1", "0"), ("2", "11"), ("4", "0"), ("6", "5")]
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == expected
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == expected

    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (7, 1)")
    engine.run(f"UPDATE {path} SET v = v + 10 WHERE id = 7")
    publisher.run("UPDATE t SET v = v + 100 WHERE id = 7")
    publisher.run("COMMIT")
    expected.append(("7", "111"))
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == expected
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == expected


def test_rollback_of_a_key_that_others_have_also_inserted(
    publisher: Database, engine: Engine
) -> None:
    """The rows of the two programs are distinguished until both have changed."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)")
    path = _path(publisher, "t")
    publisher.run("BEGIN; UPDATE t SET v = 1; INSERT INTO t VALUES (2, 2)")
    engine.run(f"INSERT INTO {path} VALUES (2, 7)")
    publisher.run("ROLLBACK")
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == [("1", "0"), ("2", "7")]

    publisher.run("BEGIN; INSERT INTO t VALUES (3, 3)")
    engine.run(f"INSERT INTO {path} VALUES (3, 7)")
    engine.run(f"UPDATE {path} SET v = v + 1 WHERE id = 3")
    publisher.run("ROLLBACK")
    with pytest.raises(ObjectNotInPrerequisiteState) as raised:
        publisher.run("INSERT INTO t VALUES (4, 4)")
    assert str(raised.value.detail).startswith(
        "Another program has also inserted a row with the key (id)=(3)."
    )
    assert raised.value.hint == "Delete all rows with this key in the other program."
    engine.run(f"DELETE FROM {path} WHERE id = 3")
    publisher.run("INSERT INTO t VALUES (4, 4)")
    expected = [("1", "0"), ("2", "7"), ("4", "4")]
    assert publisher.rows("SELECT id, v FROM t ORDER BY id") == expected


@pytest.fixture
def down(cluster: Cluster, engine: Engine, subscriber: Database) -> Callable[[str], Database]:
    """Return a function that makes a subscriber of the subscriber."""

    def subscribe(options: str) -> Database:
        node = connect(cluster, "test_down", engine)
        node.run("CREATE TABLE t (id int PRIMARY KEY, v int, own int)")
        subscriber.run("CREATE PUBLICATION down FOR TABLE t")
        node.run(
            "CREATE SUBSCRIPTION d CONNECTION 'dbname=test_sub' PUBLICATION down"
            f" WITH (copy_data = false, {options})"
        )
        return node

    return subscribe


def test_a_commit_of_another_program_within_an_apply_has_no_origin(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    race: Callable[[Engine, str, list[str]], None],
    down: Callable[[str], Database],
) -> None:
    for node in (publisher, subscriber):
        node.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    _subscribe(publisher, subscriber)
    publisher.run("INSERT INTO t VALUES (1, 1)")
    assert subscriber.sync() == []
    subscriber.run("ALTER TABLE t ADD COLUMN own int")  # apply adds it to the Delta table
    node = down("origin = none")
    publisher.run("INSERT INTO t VALUES (2, 2)")
    race(engine, _BEFORE_WRITE, [f"INSERT INTO {_path(subscriber, 't')} (id, v) VALUES (9, 9)"])
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("9",)]
    assert node.rows("SELECT id FROM t") == [("9",)]


def test_a_truncate_also_removes_what_was_committed_before_it(
    monkeypatch: pytest.MonkeyPatch,
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    race: Callable[[Engine, str, list[str]], None],
    down: Callable[[str], Database],
) -> None:
    """Another program commits after a TRUNCATE, which apply repeats, and before another one, in a
    block."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v int, own int)")
    _subscribe(publisher, subscriber)
    node = down("origin = any")
    publisher.run("INSERT INTO t VALUES (1, 1)")
    assert subscriber.sync() == []
    path = _path(subscriber, "t")
    publisher.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (2, 2); COMMIT")
    race(engine, _BEFORE_WRITE, [f"INSERT INTO {path} (id, v) VALUES (9, 9)"])
    assert subscriber.sync() == []
    for database in (subscriber, node):
        assert database.rows("SELECT id FROM t") == [("2",)]

    original = small_definition.remove_rows

    def raced(*arguments: Any) -> None:
        engine.run(f"INSERT INTO {path} (id, v) VALUES (9, 9)")
        original(*arguments)

    subscriber.run("BEGIN; INSERT INTO t VALUES (3, 3)")
    monkeypatch.setattr(truncate, "remove_rows", raced)
    subscriber.run("TRUNCATE t; INSERT INTO t VALUES (4, 4); COMMIT")
    assert subscriber.sync() == []
    for database in (subscriber, node):
        assert database.rows("SELECT id FROM t") == [("4",)]
