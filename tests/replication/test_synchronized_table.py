"""Apply writes a table that is synchronized (state s), even before the table is ready (state r)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_subscription import (
    RelState,
    SubscriptionRelation,
    find_subscription,
)
from replctl.lake.subscriber import LakeSubscriber
from replctl.launcher import sync
from replctl.open_node import open_publisher, open_subscriber
from replctl.relation_name import RelationName
from replctl.replication.apply import apply_changes
from replctl.replication.subscription_run import SubscriptionRun
from replctl.replication.tablesync import hand_over
from replctl.session import Session
from replctl.status import table_positions

_TABLE = RelationName("public", "t")


@pytest.fixture
def publisher(cluster: Cluster, session: Session) -> Database:
    """Return a database that publishes an empty table t."""
    for name in ("test_pub", "test_sub"):
        Database(session).run(f"CREATE DATABASE {name}")
    publisher = Database(Session.connect(cluster, "test_pub", "postgres"))
    publisher.run("CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")
    return publisher


@pytest.fixture
def subscriber(cluster: Cluster, publisher: Database) -> Database:
    """Return a database that subscribes to table t."""
    subscriber = Database(Session.connect(cluster, "test_sub", "postgres"))
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY)")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false)"
    )
    assert sync(subscriber.session) == []
    return subscriber


@contextmanager
def _running(database: Database) -> Iterator[SubscriptionRun]:
    with database.session.read() as catalog:
        found = find_subscription(catalog, "s")
    assert found is not None
    with (
        open_subscriber(database.session, found) as subscriber,
        open_publisher(database.session, found) as publisher,
    ):
        yield SubscriptionRun(publisher, subscriber, found)


def _member(run: SubscriptionRun) -> SubscriptionRelation:
    return run.subscriber.state.relations()[_TABLE]


def test_changes_before_the_table_is_ready(publisher: Database, subscriber: Database) -> None:
    """A process that was killed before the table became ready leaves state s."""
    with _running(subscriber) as run:
        state = run.subscriber.state
        at = state.position()
        state.put_state(
            replace(_member(run), state=RelState.SYNCDONE, lsn=at.lsn, digest=at.digest)
        )
        publisher.run("TRUNCATE t")
        assert apply_changes(run)
        position = state.position().lsn
        assert position > at.lsn
        assert isinstance(run.subscriber, LakeSubscriber)
        assert table_positions(run.subscriber, position) == {_TABLE: position}
        hand_over(run, _TABLE)
        assert _member(run).state is RelState.READY
        assert not apply_changes(run)
        publisher.run("TRUNCATE t")
        assert apply_changes(run)


def test_changes_of_the_own_synchronization_are_not_repeated(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("TRUNCATE t")
    with _running(subscriber) as run:
        end = run.publisher.slots.current_lsn()
        run.subscriber.state.put_state(replace(_member(run), state=RelState.SYNCDONE, lsn=end))
        assert not apply_changes(run)
