"""Transactions at the same time as other sessions, and with replication."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.errors import LockNotAvailable
from replctl.session import Session

pytestmark = pytest.mark.spark


@pytest.fixture
def other(publisher: Database) -> Database:
    """Return a second session of the publisher's database."""
    session = publisher.session
    return Database(
        Session.connect(session.cluster, session.database_name, "postgres", engine=session.engine)
    )


def test_others_see_a_block_after_its_commit(publisher: Database, other: Database) -> None:
    publisher.run("CREATE TABLE t (a int PRIMARY KEY)")
    publisher.run("INSERT INTO t VALUES (1)")
    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (2)")
    publisher.run("CREATE TABLE made (a int)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    assert publisher.rows("SELECT count(*) FROM t") == [("2",)]
    assert other.rows("SELECT * FROM t") == [("1",)]
    assert other.rows("SELECT count(*) FROM pg_class WHERE relname = 'made'") == [("0",)]
    assert other.rows("SELECT pubname FROM pg_publication") == []
    publisher.run("COMMIT")
    assert other.rows("SELECT count(*) FROM t") == [("2",)]
    assert other.rows("SELECT count(*) FROM pg_class WHERE relname = 'made'") == [("1",)]
    assert other.rows("SELECT pubname FROM pg_publication") == [("p",)]


def test_what_a_block_has_changed_is_not_changed_by_others(
    publisher: Database, other: Database
) -> None:
    publisher.run("CREATE PUBLICATION p")
    publisher.run("BEGIN")
    publisher.run("ALTER PUBLICATION p SET (publish = 'insert')")
    other.run("SET lock_timeout = 100")
    with pytest.raises(LockNotAvailable):
        other.run("DROP PUBLICATION p")
    publisher.run("ROLLBACK")
    other.run("DROP PUBLICATION p")
    publisher.run("CREATE TABLE t (a int PRIMARY KEY)")
    for statement, others in (
        ("INSERT INTO t VALUES (1)", ("INSERT INTO t VALUES (2)", "DROP TABLE t")),
        ("ALTER TABLE t ADD COLUMN b int", ("INSERT INTO t VALUES (2)", "DROP TABLE t")),
    ):
        publisher.run("BEGIN")
        publisher.run(statement)
        for refused in others:
            with pytest.raises(LockNotAvailable) as raised:
                other.run(refused)
            assert raised.value.message == "canceling statement due to lock timeout"
        publisher.run("ROLLBACK")
    other.run("INSERT INTO t VALUES (1)")


def test_a_block_is_replicated_as_one_transaction(
    publisher: Database, subscriber: Database
) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TABLE t (a int PRIMARY KEY, b text)")
        database.run("CREATE TABLE u (a int)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t WHERE (a < 100), u")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (200, 'out')")
    publisher.run("INSERT INTO u VALUES (1)")
    publisher.run("SAVEPOINT s")
    publisher.run("INSERT INTO t VALUES (3, 'undone')")
    publisher.run("TRUNCATE u")
    publisher.run("ROLLBACK TO s")
    publisher.run("UPDATE t SET a = 20 WHERE a = 200")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*) FROM t") == [("0",)]
    ((finish,),) = publisher.rows("SELECT pg_current_wal_insert_lsn()")
    publisher.run("COMMIT")
    assert finish is not None
    publisher.run("BEGIN")
    publisher.run("DELETE FROM t")
    publisher.run("TRUNCATE u")
    publisher.run("ROLLBACK")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY a") == [
        ("1", "a"),
        ("2", "b"),
        ("20", "out"),
    ]
    assert subscriber.rows("SELECT * FROM u") == [("1",)]
    publisher.run("BEGIN")
    publisher.run("TRUNCATE u")
    publisher.run("INSERT INTO t VALUES (30, 'goes again')")
    publisher.run("TRUNCATE t")
    publisher.run("INSERT INTO t VALUES (31, 'c')")
    publisher.run("COMMIT")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t") == [("31", "c")]
    assert subscriber.rows("SELECT * FROM u") == []
    publisher.run("BEGIN")
    publisher.run("TRUNCATE t")
    publisher.run("INSERT INTO t VALUES (31, 'loaded again'), (32, 'd')")
    publisher.run("UPDATE t SET b = 'e' WHERE a = 32")
    publisher.run("COMMIT")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY a") == [("31", "loaded again"), ("32", "e")]


def test_a_conflict_names_the_finish_lsn_of_the_block(
    publisher: Database, subscriber: Database
) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TABLE t (a int PRIMARY KEY)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO t VALUES (2)")
    publisher.run("BEGIN")
    publisher.run("INSERT INTO t VALUES (1)")
    publisher.run("INSERT INTO t VALUES (2)")
    ((finish,),) = publisher.rows("SELECT pg_current_wal_insert_lsn()")
    publisher.run("COMMIT")
    (failure,) = subscriber.sync()
    assert f"finished at {finish}" in (failure.error.context or "")
    assert subscriber.rows("SELECT * FROM t") == [("2",)]
    subscriber.run(f"ALTER SUBSCRIPTION s SKIP (lsn = '{finish}')")
    publisher.run("INSERT INTO t VALUES (3)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY a") == [("2",), ("3",)]
