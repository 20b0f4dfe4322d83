"""Two sessions that wait for each other have the same results as one session after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from patience import PATIENCE
from sqlalchemy import update

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.state_schema import pg_xact
from replctl.errors import (
    ActiveSqlTransaction,
    DeadlockDetected,
    LockNotAvailable,
    PostgresError,
    TransactionInProgress,
)
from replctl.execute import execute
from replctl.lake.subscriber import LakeSubscriber
from replctl.lake.waiting import when_free
from replctl.launcher import sync
from replctl.session import Session

_SETUP = (
    "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE PUBLICATION p; CREATE PUBLICATION q;"
    " CREATE SCHEMA s; CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE parent (a int)"
    " PARTITION BY RANGE (a); CREATE SEQUENCE seq"
)

#: A statement of an open transaction, a statement of another session, and the error of the latter
#: after COMMIT (None: it succeeds).  After ROLLBACK it succeeds.
_CASES = [
    ("CREATE TABLE made (a int)", "CREATE TABLE made (b int)", 'relation "made" already exists'),
    ("DROP TABLE t", "CREATE PUBLICATION new FOR TABLE t", 'relation "t" does not exist'),
    ("CREATE PUBLICATION new FOR TABLE t", "DROP TABLE t", None),
    ("ALTER PUBLICATION p ADD TABLE t", "ALTER PUBLICATION q ADD TABLE t", None),
    ("ALTER TABLE t DROP COLUMN b", "CREATE PUBLICATION new FOR TABLE t WHERE (b > 0)",
     'column "b" does not exist'),
    ("ALTER PUBLICATION p RENAME TO new", "CREATE PUBLICATION new",
     'publication "new" already exists'),
    ("DROP SCHEMA s", "CREATE TABLE s.made (a int)", 'schema "s" does not exist'),
    ("CREATE TABLE s.made (a int)", "DROP SCHEMA s",
     "cannot drop schema s because other objects depend on it"),
    ("CREATE TABLE made (m mood)", "DROP TYPE mood",
     "cannot drop type mood because other objects depend on it"),
    ("CREATE TABLE part PARTITION OF parent FOR VALUES FROM (0) TO (9)",
     "CREATE TABLE other PARTITION OF parent FOR VALUES FROM (5) TO (15)",
     'partition "other" would overlap partition "part"'),
    ("CREATE VIEW v AS SELECT a FROM t", "DROP TABLE t",
     "cannot drop table t because other objects depend on it"),
    ("ALTER TABLE t DROP COLUMN b", "CREATE VIEW v AS SELECT b FROM t",
     'column "b" does not exist'),
    ("COMMENT ON TABLE t IS 'here'", "DROP TABLE t", None),
    ("ALTER TABLE t ADD COLUMN c int", "ALTER TABLE t ADD COLUMN c text",
     'column "c" of relation "t" already exists'),
    ("ALTER SEQUENCE seq INCREMENT 5", "SELECT nextval('seq')", None),
    ("ALTER SEQUENCE seq RESTART", "SELECT setval('seq', 7)", None),
]  # fmt: skip


@pytest.fixture
def sessions(cluster: Cluster) -> tuple[Session, Session]:
    """Return two sessions in one database."""
    first, second = (Session.connect(cluster, "postgres", "postgres") for _ in range(2))
    _run(first, _SETUP)
    return first, second


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool with one thread, for statements that wait."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def _run(session: Session, sql: str) -> None:
    for _result in execute(session, sql):
        pass


def _answer(session: Session, sql: str) -> str | None:
    try:
        _run(session, sql)
    except PostgresError as error:
        return error.message
    return None


def _is_waiting(future: Future[str | None]) -> bool:
    time.sleep(0.2)
    return not future.done()


@pytest.mark.parametrize(("block", "statement", "answer"), _CASES)
def test_a_statement_waits_for_a_block(
    sessions: tuple[Session, Session],
    pool: ThreadPoolExecutor,
    block: str,
    statement: str,
    answer: str | None,
) -> None:
    first, second = sessions
    for end, expected in (("ROLLBACK", None), ("COMMIT", answer)):
        _run(first, "BEGIN")
        _run(first, block)
        _run(second, "BEGIN")
        future = pool.submit(_answer, second, statement)
        assert _is_waiting(future)
        _run(first, end)
        assert future.result(PATIENCE) == expected
        _run(second, "COMMIT" if end == "COMMIT" else "ROLLBACK")


def test_a_value_follows_the_block_that_alters_the_sequence(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
) -> None:
    first, second = sessions

    def next_value(session: Session) -> str | None:
        (result,) = execute(session, "SELECT nextval('seq')")
        return str(result.rows[0][0])

    assert next_value(second) == "1"
    _run(first, "BEGIN; ALTER SEQUENCE seq INCREMENT 10")
    assert next_value(first) == "11"
    future = pool.submit(next_value, second)
    time.sleep(0.2)
    assert not future.done()
    _run(first, "COMMIT")
    assert future.result(PATIENCE) == "21"


def test_what_does_not_concern_a_block_does_not_wait(sessions: tuple[Session, Session]) -> None:
    first, second = sessions
    _run(first, "BEGIN; SET LOCAL lock_timeout = 100")
    _run(first, "CREATE TABLE one (m mood); CREATE PUBLICATION one FOR TABLE t")
    _run(second, "SET lock_timeout = 100")
    _run(second, "CREATE TABLE two (m mood); CREATE PUBLICATION two FOR TABLE two")
    _run(first, "SAVEPOINT a; DROP TABLE parent; ROLLBACK TO a")
    _run(second, "DROP TABLE parent")
    _run(first, "COMMIT")


def test_nobody_applies_in_a_block_that_has_changed_something(
    sessions: tuple[Session, Session],
) -> None:
    first, _second = sessions
    _run(first, "BEGIN")
    assert sync(first) == []
    _run(first, "CREATE TABLE made (a int)")
    with pytest.raises(ActiveSqlTransaction, match=r"\\sync cannot run inside a transaction block"):
        sync(first)


def test_a_worker_waits_for_a_block(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
) -> None:
    first, second = sessions
    _run(first, "CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p WITH (connect = false)")
    with second.read() as catalog:
        (subscription,) = list_subscriptions(catalog)
    _run(first, "BEGIN; ALTER SUBSCRIPTION s SET (disable_on_error)")
    worker = LakeSubscriber(second, subscription)
    future = pool.submit(worker.state.clear_skip, None)
    time.sleep(0.2)
    assert not future.done()
    _run(first, "COMMIT")
    assert future.result(PATIENCE) is None


def test_lock_timeout(sessions: tuple[Session, Session]) -> None:
    first, second = sessions
    _run(first, "BEGIN; ALTER PUBLICATION p SET (publish = 'insert')")
    _run(second, "SET lock_timeout = '100ms'")
    with pytest.raises(LockNotAvailable) as raised:
        _run(second, "DROP PUBLICATION p")
    assert raised.value.message == "canceling statement due to lock timeout"
    _run(first, "ROLLBACK")
    _run(second, "DROP PUBLICATION p")


def test_a_deadlock_ends_one_of_two_blocks(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
) -> None:
    first, second = sessions
    for session, own in ((first, "p"), (second, "q")):
        _run(session, "SET deadlock_timeout = 100")
        _run(session, f"BEGIN; ALTER PUBLICATION {own} SET (publish = 'insert')")
    _run(second, "SET deadlock_timeout = 60000")
    future = pool.submit(_answer, second, "DROP PUBLICATION p")
    assert _is_waiting(future)
    with pytest.raises(DeadlockDetected) as raised:
        _run(first, "DROP PUBLICATION q")
    assert raised.value.message == "deadlock detected"
    assert len((raised.value.detail or "").splitlines()) == 2
    assert future.result(PATIENCE) is None
    _run(first, "ROLLBACK")
    _run(second, "COMMIT")


def test_a_dead_block_of_another_database_is_undone(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    _run(session, "CREATE DATABASE other")
    _run(session, "SET lock_timeout = '5s'")
    died = Session.connect(cluster, "other", "postgres")
    _run(died, "BEGIN; CREATE TABLE t (a int)")
    assert died.xids is not None
    with cluster.begin(write=True) as connection:
        connection.execute(update(pg_xact).values(backend="1-never").where(pg_xact.c.status == "i"))
    _run(session, "DROP DATABASE other")


def test_a_statement_does_not_wait_for_a_transaction_that_has_ended(session: Session) -> None:
    """Only the statement's own transaction can block it again after its end."""
    attempts = []

    def blocked() -> None:
        attempts.append(1)
        raise TransactionInProgress({999})

    with pytest.raises(LockNotAvailable):
        when_free(session, blocked)
    assert len(attempts) == 2
