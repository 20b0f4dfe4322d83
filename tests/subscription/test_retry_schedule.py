"""Copies fail repeatedly while `replctl sync --watch` applies the other tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fix_clock import Clock
from fix_replication import Database

from replctl.errors import CheckViolation, UniqueViolation
from replctl.relation_name import RelationName
from replctl.retry_schedule import RetrySchedule
from replctl.status import subscription_status
from replctl.watch import Watch

_TABLES = "CREATE TABLE good (id int PRIMARY KEY); CREATE TABLE bad (id int PRIMARY KEY)"
_STATES = (
    "SELECT relname, srsubstate FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
    " ORDER BY relname DESC"
)
_APPLYING = "SELECT application_name, state FROM pg_stat_replication"
_T, _U = RelationName("public", "t"), RelationName("public", "u")


@pytest.fixture
def watcher(subscriber: Database) -> Iterator[Watch]:
    watcher = Watch(subscriber.session, interval=1.0)
    yield watcher
    watcher.close()


def test_the_delays_of_each_table(clock: Clock) -> None:
    retries = RetrySchedule[RelationName](lambda failures: 10.0 * failures)
    first, second = CheckViolation("first"), UniqueViolation("second")
    assert (retries.is_due(_T), retries.has_due(), retries.error()) == (True, False, None)
    retries.failed(_T, first)
    clock.now += 5
    retries.failed(_U, second)
    assert (retries.is_due(_T), retries.is_due(_U), retries.has_due()) == (False, False, False)
    clock.now += 5
    assert (retries.is_due(_T), retries.is_due(_U), retries.has_due()) == (True, False, True)
    retries.failed(_T, first)
    clock.now += 19
    assert not retries.is_due(_T)
    clock.now += 1
    assert retries.is_due(_T)
    assert retries.error() is first
    retries.keep([_U])
    assert retries.error() is second
    assert retries.is_due(_T)


def test_without_a_delay_a_copy_is_not_tried_again(clock: Clock) -> None:
    retries = RetrySchedule[RelationName]()
    retries.failed(_T, CheckViolation("first"))
    clock.now += 1e9
    assert not retries.is_due(_T)


@pytest.mark.spark
def test_apply_continues_and_the_copy_is_retried(
    publisher: Database, subscriber: Database, clock: Clock, watcher: Watch
) -> None:
    publisher.run(_TABLES + "; INSERT INTO bad VALUES (-1)")
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(_TABLES)
    subscriber.run("ALTER TABLE bad ADD CHECK (id > 0)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    (failure,) = watcher.round()
    assert "violates check constraint" in failure.error.message
    assert not failure.is_stopped
    publisher.run("INSERT INTO good VALUES (1)")
    assert watcher.round() == []  # without a new attempt of the copy
    assert subscriber.rows("SELECT id FROM good") == [("1",)]
    assert subscriber.rows(_STATES) == [("good", "r"), ("bad", "d")]
    assert subscriber.rows(_APPLYING) == [("s", "streaming")]
    assert (_error(subscriber) or "").startswith(failure.error.message)
    clock.now += 2.1
    (failure,) = watcher.round()
    assert subscriber.rows(_APPLYING) == [("s", "streaming")]
    clock.now += 2.1
    assert watcher.round() == []
    subscriber.run("ALTER TABLE bad DROP CONSTRAINT bad_id_check")
    clock.now += 2.0
    assert watcher.round() == []
    assert subscriber.rows(_STATES) == [("good", "r"), ("bad", "r")]
    assert subscriber.rows("SELECT id FROM bad") == [("-1",)]
    assert _error(subscriber) is None


def _error(subscriber: Database) -> str | None:
    (status,) = subscription_status(subscriber.session)
    return None if status.error is None else status.error.message
