"""Plan a sync without running it: the data to read, the rows that pass the row filters, and how
these rows would be written.

The plan reads the publisher's log as apply does.  It joins the first changes of each table with the
table's rows.  Later changes depend on earlier ones, so their write path is only estimated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from replctl.catalog.pg_subscription import Subscription, SubscriptionRelation
from replctl.errors import PostgresError, QueryCanceled
from replctl.lake.subscriber import LakeSubscriber
from replctl.launcher import enabled_subscriptions
from replctl.open_node import open_publisher, open_subscriber
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.apply import (
    Group,
    batch_ends,
    changes_between,
    conflict_error,
    groups,
    is_applicable,
)
from replctl.replication.apply_error import DecodingFailure, ReplicationConflict
from replctl.replication.log_range import LogRange
from replctl.replication.node import ChangeBatch, PendingChanges, Publisher, Snapshot
from replctl.replication.subscription_run import SubscriptionRun
from replctl.replication.tablesync import published_rows
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.session_thread import in_parallel
from replctl.shown_error import shown_error
from replctl.spark import cancel_jobs
from replctl.status import positions, table_positions


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of changes that are written into a table together.

    Attributes:
        to_lsn: the table's position afterwards.
        inserts, updates, deletes: the numbers of changes that the publisher sends, after its row
            filters.
        path: how they are written: copy, reconcile, append, replaceWhere, MERGE, TRUNCATE, skip or
            nothing; or several of these, separated by commas.
        is_estimated: the actual sync may differ.
    """

    to_lsn: int
    inserts: int
    updates: int
    deletes: int
    path: str
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The plan for a table of a subscription.

    Attributes:
        published: schema and name of the published table.
        state: the table's state in pg_subscription_rel.
        transactions: number of transactions that changed the published table; None for a copy.
        rows_read: number of rows that these transactions change, before row filters; None if
            unknown.
        bytes_read: size of the change feeds, or of the copied table.
    """

    schema: str
    name: str
    published: RelationName
    state: str
    transactions: int | None
    rows_read: int | None
    bytes_read: int
    runs: tuple[RunPlan, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """The plan of a sync of a subscription, and the error that would stop it.

    Attributes:
        from_lsn, to_lsn: the part of the publisher's log that the sync would read.
        tables: the plans of the tables that the sync would write.
    """

    name: str
    database: str
    from_lsn: int
    to_lsn: int
    tables: tuple[TablePlan, ...]
    error: PostgresError | None


def explain_sync(session: Session, names: Sequence[str] = ()) -> list[SubscriptionPlan]:
    """Return the plan of the first round of `launcher.sync`.

    Args:
        names: subscriptions, () for all that are enabled.

    Raises:
        UndefinedObject: one of the subscriptions does not exist.
        QueryCanceled: Ctrl-C.
    """
    return [_Explained(session, item).plan() for item in enabled_subscriptions(session, names)]


class _JoinedConflict(Exception):
    """Raised if one of several joined transactions has a conflict."""


class _Explained:
    """Plans the sync of one subscription."""

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self._session = session
        self._subscription = subscription
        self._runs: dict[RelationName, list[RunPlan]] = defaultdict(list)

    def plan(self) -> SubscriptionPlan:
        """Return the plans of the subscription's tables, and the error that would stop the sync."""
        subscription = self._subscription
        tables: list[TablePlan] = []
        start = end = 0
        error: PostgresError | None = None
        with open_subscriber(self._session, subscription) as subscriber:
            try:
                assert subscription.slot_name is not None
                with open_publisher(self._session, subscription) as publisher:
                    end, start = positions(publisher, subscriber, subscription.slot_name)
                    required = table_positions(subscriber, start)
                    log = LogRange.of_subscription(subscription, required, end)
                    pending = publisher.decoding.pending(log)
                    error = self._look(publisher, subscriber, start, end)
                    tables += self._table_plans(publisher, subscriber, pending)
            except QueryCanceled:
                raise
            except PostgresError as failure:  # the plan shows it next to the other subscriptions
                error = failure
        database = self._session.cluster.database_name(subscription.database_oid)
        if error is not None:
            error = shown_error(self._session, subscription, error)
        return SubscriptionPlan(subscription.name, database, start, end, tuple(tables), error)

    def _look(
        self, publisher: Publisher, subscriber: LakeSubscriber, start: int, end: int
    ) -> PostgresError | None:
        """Plan copies and changes, and return the first error that would stop one of them."""
        looks = []
        for name, relation in sorted(subscriber.state.relations().items()):
            if not relation.state.is_copied:
                looks.append(partial(self._copy, publisher, subscriber, name, relation))
            elif not relation.state.is_applied:
                table = subscriber.of_table(relation)
                looks.append(
                    partial(self._changes, publisher, table, table.state.position().lsn, end)
                )
        looks.append(partial(self._changes, publisher, subscriber, start, end))
        error: PostgresError | None = None
        for look in looks:
            try:
                look()
            except QueryCanceled:
                raise
            except PostgresError as failure:  # the plan still shows the other tables
                error = error or failure
        return error

    def _copy(
        self,
        publisher: Publisher,
        subscriber: LakeSubscriber,
        name: RelationName,
        relation: SubscriptionRelation,
    ) -> None:
        begun = relation.snapshot
        snapshot = (
            publisher.tables.snapshot(name)
            if begun is None
            else Snapshot(begun.lsn, begun.publisher_state)
        )
        read = published_rows(publisher, subscriber, self._subscription, name, snapshot)
        with read as (remote, rows):
            counts = subscriber.copies.planned(relation, remote, rows)
        path = "reconcile" if relation.method.compares else "copy"
        self._runs[name].append(
            RunPlan(snapshot.lsn, counts.inserted, counts.updated, counts.deleted, path)
        )

    def _changes(
        self, publisher: Publisher, subscriber: LakeSubscriber, start: int, end: int
    ) -> None:
        """Plan the changes of the log between two positions.

        Raises:
            PostgresError: the error that would stop apply."""
        run = SubscriptionRun(publisher, subscriber, self._subscription)
        for batch, group in self._groups(run, start, end):
            try:
                self._up_to_conflict(subscriber, batch, group)
            except _JoinedConflict:  # only single transactions show which one fails
                for single in self._single_groups(run, batch):
                    self._up_to_conflict(subscriber, *single)

    def _up_to_conflict(self, subscriber: LakeSubscriber, batch: ChangeBatch, group: Group) -> None:
        """Plan a group of transactions.  After a conflict, plan the transactions before it.

        Raises:
            PostgresError: the error that reports the conflict.
            _JoinedConflict: the transactions are joined, so it is unknown which one conflicts.
        """
        try:
            self._group(subscriber, batch, group)
        except ReplicationConflict as conflict:
            if batch.is_joined:
                raise _JoinedConflict from conflict
            before = group.before(conflict.position)
            if before is not None:
                self._up_to_conflict(subscriber, batch, before)
            raise conflict_error(
                subscriber.state.origin_name, self._subscription, batch, conflict
            ) from conflict

    def _single_groups(
        self, run: SubscriptionRun, joined: ChangeBatch
    ) -> Iterator[tuple[ChangeBatch, Group]]:
        """Decode a batch again without joining its transactions, and yield the groups."""
        span = (joined.from_lsn, joined.to_lsn)
        with changes_between(run, *span) as batch:
            for group in groups(run.subscriber, batch, skip_lsn=self._subscription.skip_lsn):
                yield batch, group

    def _groups(
        self, run: SubscriptionRun, start: int, end: int
    ) -> Iterator[tuple[ChangeBatch, Group]]:
        """Yield the groups of transactions between two positions, each with its batch.  A batch
        that a crash left unfinished is one group.
        """
        subscription, subscriber = run.subscription, run.subscriber
        unfinished = subscriber.state.unfinished_batch()
        try:
            if unfinished is not None:
                span = (unfinished.from_lsn, unfinished.to_lsn)
                with changes_between(run, *span) as batch:
                    yield batch, Group(batch.transactions)
                start = unfinished.to_lsn
            if start >= end:
                return
            for ends in batch_ends(run, start, end):
                for batch_end in ends:
                    skip_lsn = subscription.skip_lsn
                    may_join = not skip_lsn
                    with changes_between(run, start, batch_end, may_join=may_join) as batch:
                        if not batch.is_joined:
                            for group in groups(subscriber, batch, skip_lsn=skip_lsn):
                                yield batch, group
                        elif is_applicable(subscriber, batch):
                            yield batch, Group(batch.transactions)
                        else:
                            yield from self._single_groups(run, batch)
                    start = batch_end
        except DecodingFailure as failure:
            raise failure.reported(subscription, subscriber.origins.is_own) from failure

    def _table_plans(
        self,
        publisher: Publisher,
        subscriber: LakeSubscriber,
        pending: Mapping[RelationName, PendingChanges],
    ) -> Iterator[TablePlan]:
        """Yield the plans of the tables that will be copied or have changes."""
        for name, relation in sorted(subscriber.state.relations().items()):
            state, found, runs = relation.state, pending.get(name), tuple(self._runs[name])
            plan = partial(
                TablePlan, *self._subscription.table_map.target(name), name, state.value, runs=runs
            )
            if not state.is_copied:
                yield plan(None, None, publisher.tables.relation_size(name))
            elif found is not None:
                yield plan(found.transactions, found.rows, found.size)

    def _group(self, subscriber: LakeSubscriber, batch: ChangeBatch, group: Group) -> None:
        first, last = group.first, group.last
        changed = [
            changes
            for changes in batch.changes
            if any(first <= position <= last for position in changes.positions)
        ]
        counted = in_parallel(
            [
                (item.thread, partial(subscriber.changes.count_sent, item, first, last))
                for item in changed
            ],
            cancel_jobs,
        )
        paths: dict[RelationName, list[str]] = defaultdict(list)
        for truncation in batch.truncations:
            if first <= truncation.position <= last:
                for name in truncation.relations:
                    paths[name].append("TRUNCATE")
        counts = {
            item.relation.relation_name: sent for item, sent in zip(changed, counted, strict=True)
        }
        names = counts.keys() | paths.keys()
        is_known = all(not self._runs[name] for name in names) and not any(
            subscriber.changes.shares_leaves(item.relation) for item in changed
        )
        if self._subscription.skip_lsn == group.to_lsn:
            paths = defaultdict(list, {name: ["skip"] for name in names})
        elif is_known:
            with subscriber.changes.planned(batch, first, last) as outcomes:
                for outcome in outcomes:
                    remote = outcome.table.remote
                    paths[remote.relation_name] += sorted(outcome.paths)
        else:
            for item in changed:
                name = item.relation.relation_name
                estimate = partial(
                    subscriber.changes.estimated_paths, item, counts[name], first, last
                )
                paths[name] += item.thread.run(estimate)
        for name in names:
            sent = counts.get(name, {})
            self._runs[name].append(
                RunPlan(
                    group.to_lsn,
                    sent.get(Action.INSERT, 0),
                    sent.get(Action.UPDATE, 0),
                    sent.get(Action.DELETE, 0),
                    ", ".join(paths[name]) or "nothing",
                    is_estimated=not is_known,
                )
            )
