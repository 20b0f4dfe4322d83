"""Compute the status of subscriptions: their errors, and their lag behind the publishers.

This decodes and writes nothing, and does not need Spark.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from replctl.catalog.pg_subscription import RelState, Resync, Subscription, list_subscriptions
from replctl.catalog.subscription_error import SubscriptionError, subscription_error
from replctl.catalog.table_verification import Verification, verifications
from replctl.catalog.wal_availability import SlotInvalidated
from replctl.catalog.worker import APPLY, Worker, live_workers
from replctl.errors import ObjectNotInPrerequisiteState, PostgresError, UndefinedObject
from replctl.lake.subscriber import LakeSubscriber
from replctl.open_node import open_publisher, open_subscriber
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.node import PendingChanges, Publisher, TableRetention
from replctl.replication.reconcile_rules import has_changed
from replctl.session import Session
from replctl.shown_error import may_see_rows


@dataclass(frozen=True, slots=True)
class Lag:
    """The changes that are not applied yet; None means unknown.

    Attributes:
        size: bytes of the publisher's log, as pg_wal_lsn_diff counts them.
        transactions: the number of transactions that change the subscription's tables.
        rows: the number of rows that these transactions change, by Delta's log and before row
            filters.
        seconds: the age of the oldest of these transactions.
    """

    size: int | None
    transactions: int | None
    rows: int | None
    seconds: float | None


UNKNOWN = Lag(None, None, None, None)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a subscription.

    Attributes:
        published: schema and name of the published table.
        state: the table's state in pg_subscription_rel.
        retention: the effect of the published table's retention on changes not applied yet.
        is_changed: the row filter or column list has changed since the table was copied.
        verified: the last time when `replctl verify` found the table equal to the published rows.
    """

    schema: str
    name: str
    published: RelationName
    state: str
    lag: Lag
    retention: TableRetention | None = None
    verified: Verification | None = None
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """A subscription and its tables.

    Attributes:
        pid: the process ID of the apply worker, if any.
        error: the error that stopped the last run, or that would stop a run now; or the wait of
            the worker for other processes.
    """

    name: str
    database: str
    enabled: bool
    pid: int | None
    lag: Lag
    error: SubscriptionError | None
    tables: tuple[TableStatus, ...]

    @property
    def state(self) -> str:
        """Return the state in one word: broken, disabled, waiting (for other processes), copying,
        active or inactive (no worker)."""
        if self.error is not None and not self.error.is_wait:
            return "broken"
        if not self.enabled:
            return "disabled"
        if self.error is not None:
            return "waiting"
        if any(table.state != RelState.READY.value for table in self.tables):
            return "copying"
        return "inactive" if self.pid is None else "active"


def subscription_status(session: Session, names: Sequence[str] = ()) -> list[SubscriptionStatus]:
    """Return the status of the subscriptions of all databases of the cluster.

    Args:
        names: the subscriptions to return; () for all.

    Raises:
        UndefinedObject: there is no subscription with one of these names.
    """
    with session.read() as catalog:
        subscriptions = list_subscriptions(catalog, all_databases=True)
    for name in names:
        if name not in {subscription.name for subscription in subscriptions}:
            raise UndefinedObject(f'subscription "{name}" does not exist')
    chosen = [item for item in subscriptions if not names or item.name in names]
    return status_of(session, chosen)


def status_of(session: Session, subscriptions: Sequence[Subscription]) -> list[SubscriptionStatus]:
    """Return the status of these subscriptions."""
    with session.read() as catalog:
        workers = live_workers(session.cluster, catalog.connection)
    return [_status(session, subscription, workers) for subscription in subscriptions]


def _status(
    session: Session, subscription: Subscription, workers: Sequence[Worker]
) -> SubscriptionStatus:
    key = (subscription.oid, APPLY)
    own = (worker.pid for worker in workers if (worker.subscription_oid, worker.relid) == key)
    pid = next(own, None)
    error = _last_error(session, subscription, pid)
    with session.cluster.begin(write=False) as connection:
        found_equal = verifications(connection, subscription.oid)
    lag, pending, end = UNKNOWN, {}, None
    retentions: dict[RelationName, TableRetention] = {}
    required: dict[RelationName, int] = {}
    changed: set[RelationName] = set()
    with open_subscriber(session, subscription) as subscriber:
        if subscription.slot_name is not None:
            try:
                with open_publisher(session, subscription) as publisher:
                    end, position = positions(publisher, subscriber, subscription.slot_name)
                    required = table_positions(subscriber, position)
                    pending = publisher.decoding.pending(
                        LogRange.of_subscription(subscription, required, end)
                    )
                    lag = _lag(list(pending.values()), max(end - position, 0))
                    changed = _changed(publisher, subscriber, subscription)
                    retentions = {
                        item.relation_name: item
                        for item in publisher.slots.retention(subscription.slot_name)
                        if item.relation_name in required  # the other tables are copied again
                    }
                    error = error or _foreseen(subscription, list(retentions.values()))
            except PostgresError as failure:  # a disabled subscription needs no publisher
                if subscription.enabled or isinstance(failure, SlotInvalidated):
                    error = error or SubscriptionError.of(failure)
        if error is not None and not may_see_rows(session, subscription):
            error = error.without_rows()
        tables = []
        for published, relation in sorted(subscriber.state.relations().items()):
            table_lag = UNKNOWN
            if end is not None and published in required:
                found = pending.get(published)
                size = max(end - required[published], 0) if found else 0
                table_lag = _lag([found] if found else [], size)
            tables.append(
                TableStatus(
                    *subscription.table_map.target(published),
                    published,
                    relation.state.value,
                    table_lag,
                    retentions.get(published),
                    found_equal.get(relation.relid),
                    published in changed,
                )
            )
    return SubscriptionStatus(
        subscription.name,
        session.cluster.database_name(subscription.database_oid),
        subscription.enabled,
        pid,
        lag,
        error,
        tuple(tables),
    )


def _last_error(
    session: Session, subscription: Subscription, pid: int | None
) -> SubscriptionError | None:
    """Return the error of the last run, or the wait of the worker `pid`."""
    with session.cluster.begin(write=False) as connection:
        error = subscription_error(connection, subscription.oid)
    has_ended = error is not None and error.is_wait and pid is None
    return None if has_ended else error


def _foreseen(
    subscription: Subscription, retentions: Sequence[TableRetention]
) -> SubscriptionError | None:
    """Return the error that will stop a subscription because a table's owner has removed changes
    that it needs; None if there is no such table.
    """
    lost = [f'"{item.schema}.{item.name}"' for item in retentions if item.is_lost]
    if not lost or subscription.resync is Resync.AUTO:
        return None
    noun = "table" if len(lost) == 1 else "tables"
    return SubscriptionError.of(
        ObjectNotInPrerequisiteState(
            f"changes of {noun} {', '.join(lost)} were removed before they were read"
        )
    )


def changed_tables(session: Session, subscription: Subscription) -> list[RelationName]:
    """Return the subscriber's tables whose row filter or column list has changed since their copy;
    none if the publisher is unreachable."""
    try:
        with (
            open_subscriber(session, subscription) as subscriber,
            open_publisher(session, subscription) as publisher,
        ):
            changed = _changed(publisher, subscriber, subscription)
            return sorted(map(subscription.table_map.target, changed))
    except PostgresError:  # sync and status report the publisher's errors
        return []


def _changed(
    publisher: Publisher, subscriber: LakeSubscriber, subscription: Subscription
) -> set[RelationName]:
    members = subscriber.state.relations()
    return {
        name
        for remote in publisher.tables.relations(subscription.publications)
        if (name := remote.relation_name) in members and has_changed(members[name], remote)
    }


def table_positions(subscriber: LakeSubscriber, position: int) -> dict[RelationName, int]:
    """Return the LSN up to which each copied table has its changes: the position of apply, or of
    the table's own synchronization.
    """
    return {
        name: max(
            relation.lsn or 0,
            position
            if relation.state.is_applied
            else subscriber.of_table(relation).state.position().lsn,
        )
        for name, relation in subscriber.state.relations().items()
        if relation.state.is_copied
    }


def positions(publisher: Publisher, subscriber: LakeSubscriber, slot_name: str) -> tuple[int, int]:
    """Return the end of the publisher's log, and the subscription's position in it."""
    end = publisher.slots.current_lsn(subscriber.state.applied_positions())
    return end, max(subscriber.state.position().lsn, publisher.slots.position(slot_name))


def _lag(pending: Sequence[PendingChanges], size: int) -> Lag:
    rows = [item.rows for item in pending]
    known_rows = [count for count in rows if count is not None]
    oldest = min((item.oldest_commit_time for item in pending), default=None)
    return Lag(
        size,
        sum(item.transactions for item in pending),
        sum(known_rows) if len(known_rows) == len(rows) else None,
        0.0 if oldest is None else max(time.time() - oldest / 1_000_000, 0.0),
    )
