"""The catalog of a publisher or a subscriber was restored from a backup, so the other side knows a
position that the log no longer has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from replctl.catalog.apply_batch import ApplyBatch, insert_apply_batch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_subscription import (
    CopySnapshot,
    RelState,
    Subscription,
    SubscriptionRelation,
    find_subscription,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.table_copy import CopyMethod
from replctl.catalog.transaction import begin_transaction
from replctl.errors import PostgresError, UndefinedObject
from replctl.execute import execute
from replctl.lake.publisher import LakePublisher
from replctl.lake.subscriber import LakeSubscriber
from replctl.launcher import sync
from replctl.replication.history import check_history
from replctl.replication.subscription_run import SubscriptionRun
from replctl.session import Session

_REFRESH = "ALTER SUBSCRIPTION s REFRESH TABLE public.t, public.u;"


class Pair:
    """Two clusters: a subscription in the second one to tables of the first."""

    def __init__(self, path: Path) -> None:
        self.publisher, self.subscriber = path / "pub", path / "sub"
        self._backups = path / "backups"
        tables = "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)"
        self.run(self.publisher, f"{tables}; CREATE PUBLICATION p FOR TABLE t, u")
        connection = f"CONNECTION 'host={self.publisher} dbname=postgres'"
        self.run(self.subscriber, f"{tables}; CREATE SUBSCRIPTION s {connection} PUBLICATION p")
        self.put_states(state=RelState.READY)

    @contextmanager
    def session(self, home: Path) -> Iterator[Session]:
        """Yield a session in a cluster that is opened as in a new process."""
        cluster = open_cluster(home)
        session = Session.connect(cluster, "postgres", "postgres")
        yield session
        session.close()
        cluster.close()

    def run(self, home: Path, sql: str) -> None:
        """Run statements, each by itself."""
        with self.session(home) as session:
            for statement in filter(None, sql.split(";")):
                list(execute(session, statement))

    def commit(self, count: int) -> None:
        """Let the publisher's log grow by `count` commits."""
        self.run(self.publisher, "; ".join(["COMMENT ON TABLE t IS 'x'"] * count))

    def back_up(self, home: Path) -> None:
        shutil.copytree(home, self._backups / home.name)

    def put_back(self, home: Path) -> None:
        shutil.copy(self._backups / home.name / "catalog.db", home / "catalog.db")

    def error(self) -> PostgresError | None:
        """Return the error that stops the subscription in a sync, in which no row changes."""
        with self.session(self.subscriber) as session:
            failures = sync(session)
        assert len(failures) <= 1
        return failures[0].error if failures else None

    def put_states(self, name: str | None = None, **fields: object) -> None:
        """Change the recorded state of the subscription's tables, or of one of them."""
        with self.session(self.subscriber) as session, session.write() as catalog:
            for member in subscription_relations(catalog, self._found(session).oid):
                known = session.environment(catalog).relation_oid(None, name) if name else None
                if known in (None, member.relid):
                    update_subscription_relation(catalog, replace(member, **fields))  # type: ignore[arg-type]

    def states(self) -> list[SubscriptionRelation]:
        with self.session(self.subscriber) as session, session.read() as catalog:
            return subscription_relations(catalog, self._found(session).oid)

    def _found(self, session: Session) -> Subscription:
        with session.read() as catalog:
            found = find_subscription(catalog, "s")
        assert found is not None
        return found

    @contextmanager
    def nodes(self) -> Iterator[tuple[LakePublisher, LakeSubscriber, Subscription]]:
        with ExitStack() as stack:
            there = stack.enter_context(self.session(self.publisher))
            here = stack.enter_context(self.session(self.subscriber))
            found = self._found(here)
            yield LakePublisher(there), LakeSubscriber(here, found), found

    def position(self) -> LogPosition:
        """Return the end of the publisher's log."""
        with self.nodes() as (publisher, _subscriber, _subscription):
            lsn = publisher.slots.current_lsn()
            return LogPosition(lsn, publisher.slots.digest_at(lsn))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_a_subscription_remembers_where_it_is(pair: Pair) -> None:
    pair.commit(3)
    assert pair.error() is None
    with pair.nodes() as (publisher, subscriber, _subscription):
        end = publisher.slots.current_lsn()
        assert subscriber.state.position() == LogPosition(end, publisher.slots.digest_at(end))
        assert subscriber.state.position().digest is not None
        assert publisher.slots.applied_lsn("s") == end


@pytest.mark.parametrize("count", [0, 1, 40])
def test_a_publisher_that_was_put_back_stops_the_subscription(pair: Pair, count: int) -> None:
    pair.back_up(pair.publisher)
    pair.commit(9)
    assert pair.error() is None
    pair.put_back(pair.publisher)
    if count:
        pair.commit(count)
    error = pair.error()
    assert error is not None
    assert error.sqlstate == "55000"
    what = "is not in this server's history" if count == 40 else "is ahead of the WAL flush"
    assert what in error.message
    assert "restored from a backup" in (error.detail or "")
    assert error.hint == _REFRESH
    assert pair.error() is not None  # the error remains until somebody follows the HINT

    pair.run(pair.subscriber, _REFRESH)
    assert {member.state for member in pair.states()} == {RelState.INIT}
    with pair.nodes() as (publisher, subscriber, subscription):
        check_history(SubscriptionRun(publisher, subscriber, subscription))
        end = publisher.slots.current_lsn()
        assert subscriber.state.position() == LogPosition(end, publisher.slots.digest_at(end))
    pair.put_states(state=RelState.READY)  # as if they had been reconciled
    pair.commit(2)
    assert pair.error() is None


def test_tables_are_reconciled_without_a_statement_where_that_is_allowed(pair: Pair) -> None:
    pair.run(pair.subscriber, "ALTER SUBSCRIPTION s SET (resync = auto)")
    pair.back_up(pair.publisher)
    pair.commit(9)
    assert pair.error() is None
    pair.put_back(pair.publisher)
    pair.commit(40)
    with pair.nodes() as nodes, pytest.raises(PostgresError) as caught:
        check_history(SubscriptionRun(*nodes))
    assert caught.value.reconciles == (("public", "t"), ("public", "u"))
    with pair.nodes() as nodes:
        assert nodes[1].copies.resynchronize(caught.value.reconciles) is None
        check_history(SubscriptionRun(*nodes))
    assert [(m.state, m.method) for m in pair.states()] == [(RelState.INIT, CopyMethod.RESYNC)] * 2


def test_a_publisher_that_loses_nothing_that_was_applied_continues(pair: Pair) -> None:
    assert pair.error() is None
    pair.back_up(pair.publisher)
    pair.commit(9)
    pair.put_back(pair.publisher)
    pair.commit(2)
    assert pair.error() is None


def test_a_slot_that_is_newer_than_the_backup_is_made_again(pair: Pair) -> None:
    pair.run(pair.publisher, "SELECT pg_drop_replication_slot('s')")
    pair.back_up(pair.publisher)
    pair.run(pair.publisher, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    pair.commit(1)
    assert pair.error() is None
    pair.put_back(pair.publisher)
    pair.commit(9)
    error = pair.error()
    assert error is not None
    assert error.hint == _REFRESH
    pair.run(pair.subscriber, _REFRESH)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
        assert nodes[0].slots.position("s") > 0


def test_a_subscription_that_is_newer_than_the_backup_begins_again(pair: Pair) -> None:
    """It has copied no rows, so no log has its position.  Its slot is also missing."""
    pair.run(pair.publisher, "SELECT pg_drop_replication_slot('s')")
    error = pair.error()
    assert error is not None
    assert error.message == 'replication slot "s" does not exist'
    assert error.hint == _REFRESH
    pair.run(pair.subscriber, _REFRESH)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
        assert nodes[0].slots.position("s") == nodes[1].state.position().lsn


def test_a_slot_that_its_user_has_not_made_yet_is_no_fault(pair: Pair) -> None:
    pair.put_states(state=RelState.INIT)
    pair.run(pair.publisher, "SELECT pg_drop_replication_slot('s')")
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
        with pytest.raises(UndefinedObject):
            nodes[0].slots.position("s")


def test_a_slot_that_was_invalidated_is_made_again(pair: Pair) -> None:
    assert pair.error() is None
    pair.run(pair.publisher, "ALTER SYSTEM SET max_slot_wal_keep_size = 0; SELECT pg_switch_wal()")
    pair.commit(1)
    pair.run(pair.publisher, "CHECKPOINT; ALTER SYSTEM RESET max_slot_wal_keep_size")
    error = pair.error()
    assert error is not None
    assert error.message == 'can no longer get changes from replication slot "s"'
    assert error.hint == _REFRESH
    pair.run(pair.subscriber, _REFRESH)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
        assert nodes[0].slots.position("s") == nodes[1].state.position().lsn
    pair.put_states(state=RelState.READY)
    pair.commit(2)
    assert pair.error() is None


def test_tables_that_the_backup_does_not_publish_leave_the_subscription(pair: Pair) -> None:
    """The backup also has earlier publications."""
    pair.run(pair.publisher, "ALTER PUBLICATION p DROP TABLE u")
    pair.back_up(pair.publisher)
    pair.run(pair.publisher, "ALTER PUBLICATION p ADD TABLE u")
    assert pair.error() is None
    pair.put_back(pair.publisher)
    pair.commit(9)
    for expected in (
        "ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (copy_data = reconcile);",
        "ALTER SUBSCRIPTION s REFRESH TABLE public.t;",
    ):
        error = pair.error()
        assert error is not None
        assert error.hint == expected
        pair.run(pair.subscriber, expected)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
    assert [member.state for member in pair.states()] == [RelState.INIT]


def test_only_tables_whose_position_is_lost_are_named(pair: Pair) -> None:
    assert pair.error() is None
    pair.back_up(pair.publisher)
    pair.commit(9)
    lost = pair.position()
    pair.put_states("u", lsn=lost.lsn, digest=lost.digest)
    pair.put_back(pair.publisher)
    pair.commit(20)
    error = pair.error()
    assert error is not None
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.u;"
    pair.run(pair.subscriber, error.hint)
    pair.put_states(state=RelState.READY)
    assert pair.error() is None


def test_a_copy_from_a_lost_state_is_not_finished(pair: Pair) -> None:
    assert pair.error() is None
    pair.back_up(pair.publisher)
    pair.commit(9)
    lost = pair.position()
    begun = CopySnapshot(lost.lsn, {"versions": {}}, 900, {}, lost.digest)
    pair.put_states("u", state=RelState.DATASYNC, snapshot=begun)
    pair.put_back(pair.publisher)
    pair.commit(20)
    error = pair.error()
    assert error is not None
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.u;"
    pair.run(pair.subscriber, error.hint)
    assert sorted(str(m.state.value) for m in pair.states()) == ["i", "r"]
    assert all(member.snapshot is None for member in pair.states())


def test_a_batch_of_lost_changes_is_not_finished(pair: Pair) -> None:
    """The position of the subscription itself is in the restored log."""
    assert pair.error() is None
    pair.back_up(pair.publisher)
    start = pair.position()
    pair.commit(9)
    lost = pair.position()
    with pair.nodes() as (_publisher, subscriber, subscription):
        session = subscriber.state.session
        with session.write() as catalog:
            xid = begin_transaction(catalog.connection, session.database_oid, "dead")
            batch = ApplyBatch(subscription.oid, start.lsn, lost.lsn, xid, ({},), 0, lost.digest)
            insert_apply_batch(catalog, batch)
    pair.put_back(pair.publisher)
    pair.commit(20)
    error = pair.error()
    assert error is not None
    assert "is not in this server's history" in error.message
    assert error.hint == _REFRESH
    pair.run(pair.subscriber, error.hint)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
        assert nodes[1].state.unfinished_batch() is None
    pair.put_states(state=RelState.READY)
    assert pair.error() is None


@pytest.mark.parametrize("has_moved", [True, False])
def test_a_subscriber_that_was_put_back_stops(pair: Pair, *, has_moved: bool) -> None:
    if has_moved:
        pair.commit(1)
    else:
        copied = pair.position()
        pair.put_states(lsn=copied.lsn, digest=copied.digest)
    assert pair.error() is None
    pair.back_up(pair.subscriber)
    pair.commit(4)
    assert pair.error() is None
    pair.put_back(pair.subscriber)
    error = pair.error()
    assert error is not None
    assert error.sqlstate == "55000"
    assert "but has confirmed" in error.message
    assert "catalog of the subscription was restored" in (error.detail or "")
    assert error.hint == _REFRESH
    pair.run(pair.subscriber, _REFRESH)
    with pair.nodes() as nodes:
        check_history(SubscriptionRun(*nodes))
    copied = pair.position()
    pair.put_states(state=RelState.READY, lsn=copied.lsn, digest=copied.digest)
    assert pair.error() is None


def test_what_users_set_is_believed(pair: Pair) -> None:
    """Users skip or repeat changes with pg_replication_slot_advance() and
    pg_replication_origin_advance()."""
    assert pair.error() is None
    pair.commit(4)
    end = pair.position().lsn
    pair.run(pair.publisher, f"SELECT pg_replication_slot_advance('s', '0/{end:X}')")
    assert pair.error() is None
    pair.commit(2)
    assert pair.error() is None
    pair.commit(2)
    with pair.session(pair.subscriber) as session, session.read() as catalog:
        found = find_subscription(catalog, "s")
    assert found is not None
    pair.run(
        pair.subscriber,
        f"SELECT pg_replication_origin_advance('{found.origin_name}', '0/{end:X}')",
    )
    assert pair.error() is None


def test_a_subscription_that_is_disabled_by_the_error_is_enabled_by_the_hint(pair: Pair) -> None:
    pair.run(pair.subscriber, "ALTER SUBSCRIPTION s SET (disable_on_error = true)")
    pair.back_up(pair.publisher)
    pair.commit(9)
    assert pair.error() is None
    pair.put_back(pair.publisher)
    pair.commit(40)
    error = pair.error()
    assert error is not None
    assert error.hint is not None
    assert error.hint.endswith(" WITH (enabled = true);")
    pair.run(pair.subscriber, error.hint)
    with pair.nodes() as (publisher, subscriber, subscription):
        assert subscription.enabled
        check_history(SubscriptionRun(publisher, subscriber, subscription))
