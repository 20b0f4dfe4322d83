"""Run a subscription: synchronize tables, apply changes, and record errors (worker.c)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from threading import Lock
from typing import ParamSpec, TypeVar

from replctl.catalog.apply_batch import list_apply_batches
from replctl.catalog.pg_subscription import (
    Resync,
    Subscription,
    get_subscription,
)
from replctl.catalog.subscription_error import put_subscription_error, subscription_error
from replctl.catalog.worker import (
    claim_worker,
    client_name,
    release_worker,
    report_worker,
)
from replctl.conninfo import application_name
from replctl.disable_on_error import note_error
from replctl.errors import (
    LockWait,
    Notice,
    PostgresError,
    QueryCanceled,
    SessionEnded,
)
from replctl.lake.subscriber import LakeSubscriber
from replctl.lake.table_error import named
from replctl.lake.unfinished_batch import note_part_written
from replctl.open_node import open_publisher, open_subscriber
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.apply import apply_changes
from replctl.replication.apply_error import name_both
from replctl.replication.history import check_history
from replctl.replication.node import Publisher, RemoteTransaction, RowCounts
from replctl.replication.subscription_run import SubscriptionRun
from replctl.replication.table_definition import SchemaChange
from replctl.replication.tablesync import hand_over, synchronize, unsynchronized
from replctl.retry_schedule import RetrySchedule
from replctl.session import Session
from replctl.spark import SharedFeeds, cancel_jobs

_T = TypeVar("_T")
_Arguments = ParamSpec("_Arguments")

#: Seconds between two applies of ready tables, while other tables are copied.
_PATIENCE = 1.0
#: The backend types of the process, as in pg_stat_activity.
APPLY_WORKER = "logical replication apply worker"
_TABLESYNC_WORKER = "logical replication tablesync worker"


@dataclass(slots=True)
class Applied:
    """Counts of the changes that a run of a subscription has written.

    Attributes:
        transactions: transactions of the publisher.
        changes: entries of the publisher's log.  An entry has the changes of one transaction in one
            table.
        forwarded: transactions that had been replicated to the publisher.
        rows: rows of the subscriber's tables; rows of copies count as inserted.
        is_something: the run had work to do, even if no row changed.
        lsn: the subscription's position in the publisher's log; None if unknown.
        is_parallel: other threads synchronize tables at the same time.  Then a transaction may be
            counted in several parts.
    """

    transactions: int = 0
    changes: int = 0
    forwarded: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    is_something: bool = False
    lsn: int | None = None
    is_parallel: bool = False
    _counted: set[int] = field(default_factory=set)
    _counting: Lock = field(default_factory=Lock)  # threads that copy tables also count

    def add(self, transactions: Sequence[RemoteTransaction], rows: RowCounts) -> None:
        """Count transactions that were written together."""
        with self._counting:
            self.is_something = True
            self.rows += rows
            self.changes += sum(t.last - t.first + 1 for t in transactions)
            if self.is_parallel:
                transactions = [t for t in transactions if t.commit_lsn not in self._counted]
                self._counted |= {t.commit_lsn for t in transactions}
            self.transactions += len(transactions)
            self.forwarded += sum(t.origin is not None for t in transactions)


class Stopping(Exception):
    """Raised after a request to stop: as soon as the current work is finished, or immediately in a
    wait for other processes.
    """


class ApplyWorker:
    """Runs a subscription once.

    Args:
        copying: a lock, held while tables are synchronized.  So only one subscription synchronizes
            tables at a time, which limits slots and memory.
        copies: the failed copies of earlier runs.  This run skips those whose retry is not due.
        feeds: feeds of the publisher that several subscriptions share.
        is_new: this process has not run the subscription before.
        only_unfinished: only finish an unfinished batch, because a statement waits for it.
        longest_wait: seconds to wait for a transaction or a statement of another process; None: no
            limit.

    Attributes:
        error: the error that stopped the subscription or one of its tables.
        is_stopped: the subscription's apply has stopped.  If only copies fail, it continues.
        is_unwanted: the subscription was disabled or dropped before the run.
        applied: counts of the changes that the run has written.
    """

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        copying: Lock,
        *,
        copies: RetrySchedule[RelationName] | None = None,
        feeds: SharedFeeds | None = None,
        is_new: bool = False,
        only_unfinished: bool = False,
        is_stopping: Callable[[], bool] = lambda: False,
        longest_wait: float | None = None,
    ) -> None:
        self._session = replace(session, on_wait=self._on_wait)
        self._subscription = subscription
        self._copying = copying
        self._copies = RetrySchedule[RelationName]() if copies is None else copies
        self._feeds = feeds
        self._is_new = is_new
        self._only_unfinished = only_unfinished
        self._stop_requested = is_stopping
        self._is_interrupted = False
        self._longest_wait = longest_wait
        self._resynchronized: set[RelationName] = set()
        self._deciding = Lock()  # tables may fail at once, but each is reconciled only once
        self.is_unwanted = self.is_stopped = False
        self.error: PostgresError | None = None
        self.cause: PostgresError | None = None  # `error` without the note on partly written tables
        self.applied = Applied()

    def once(self, patience: float = -1, suspended_after: float | None = None) -> bool:
        """Run copies and changes, and return whether there was any work.

        Args:
            patience: seconds to wait while another process runs the subscription; negative: no
                limit.
            suspended_after: seconds to wait for a suspended process; None for the usual time.

        Raises:
            LockNotAvailable: another process ran the subscription for all this time, or is
                suspended (55P03).
            PostgresError: the subscription's database cannot be opened, or the catalog cannot be
                written.
            Stopping: a signal requested a stop.
        """
        # Two processes must not apply the same changes
        name = f"subscription-{self._subscription.oid}"
        lock = self._session.cluster.lock(
            name, patience, suspended_after=suspended_after, on_wait=self._on_wait
        )
        try:
            with lock:
                return self._once()
        except LockWait as error:  # of this lock: the tables' locks are handled below
            self.error, self.is_stopped = error, True
            self._note_outcome()
            return False

    def _once(self) -> bool:
        session, oid = self._session, self._subscription.oid
        with session.read() as catalog:
            current = get_subscription(catalog, oid)
            is_wanted = not self._only_unfinished or bool(list_apply_batches(catalog, oid))
        if current is None or not (current.enabled or self._only_unfinished):
            self.is_unwanted = True
            return False
        if not is_wanted:
            return False
        self._subscription = current
        if self._is_new:
            message = (
                f'logical replication apply worker for subscription "{current.name}" has started'
            )
            self._log(message, APPLY_WORKER)
        with open_subscriber(session, current) as subscriber:
            has_moved = self._connect(subscriber)
        self._note_outcome()
        return has_moved

    @property
    def is_waiting(self) -> bool:
        """Return whether the only error is that the run would have to wait for other processes."""
        return isinstance(self.error, LockWait)

    def _interrupt(self) -> None:
        """End the running jobs and waits."""
        self._is_interrupted = True
        cancel_jobs()

    def _is_stopping(self) -> bool:
        return self._is_interrupted or self._stop_requested()

    def _on_wait(
        self, waited: float, processes: Collection[int], xids: Collection[int] = ()
    ) -> None:
        """End a wait after a request to stop, or for other processes after `longest_wait`.

        Raises:
            Stopping, LockWait: see above.
        """
        if self._is_stopping():
            raise Stopping
        if processes and self._longest_wait is not None and waited >= self._longest_wait:
            raise LockWait(processes, xids)

    def _connect(self, subscriber: LakeSubscriber) -> bool:
        session, subscription = self._session, self._subscription
        try:
            with open_publisher(session, subscription, self._feeds) as publisher:
                self._start_replication(publisher)
                run = SubscriptionRun(
                    publisher,
                    subscriber,
                    self._subscription,
                    self._progress,
                    self.applied.add,
                    *self._followers(),
                )
                has_moved = self._run(run, subscriber)
                self.applied.is_something |= has_moved
                self._report(publisher, subscriber)
                return has_moved
        except QueryCanceled:
            raise
        except PostgresError as error:  # the error stops no other subscription
            self.is_stopped = True
            if isinstance(error, LockWait):
                self.error = self.error or error
            elif self.error is None or self.is_waiting:
                self.error = self.cause = error = named(session, error, subscription)
                session.cluster.log.report_error(error, backend_type=APPLY_WORKER)
            return False

    def _followers(
        self,
    ) -> tuple[
        Callable[[SubscriptionRun, SchemaChange], None] | None,
        Callable[[SubscriptionRun, RelationName, int], None] | None,
    ]:
        """Return SubscriptionRun.follow_schema and follow_copied."""
        if not self._subscription.follow_schema:
            return None, None
        from replctl.commands.follow_schema import follow_copied, follow_schema

        return partial(follow_schema, self._session), partial(follow_copied, self._session)

    def _run(self, run: SubscriptionRun, subscriber: LakeSubscriber) -> bool:
        """Synchronize tables and apply changes, if the publisher's log has the commits that were
        applied.  Repeat this if an error started reconciles of tables.
        """
        if not self._check_history(run, subscriber):
            return False
        has_moved, known = False, -1
        while known != len(self._resynchronized):
            known = len(self._resynchronized)
            has_moved |= self._pass(run, subscriber)
        return has_moved

    def _check_history(self, run: SubscriptionRun, subscriber: LakeSubscriber) -> bool:
        """Return whether the publisher's log has the commits that the subscription has applied.  If
        it does not, start reconciles of all affected tables if `resync = auto`, and also return
        True.
        """
        while True:
            try:
                check_history(run)
                return True
            except PostgresError as error:  # `_failed` may have started reconciles, so check again
                if not self._failed(subscriber, error, "apply"):
                    return False

    def _pass(self, run: SubscriptionRun, subscriber: LakeSubscriber) -> bool:
        """Synchronize tables, and apply changes of the other tables at the same time."""
        has_moved = False
        with self._synchronizing(run, subscriber) as pending:
            while pending:
                done, pending = wait(pending, _PATIENCE)
                for name in [future.result() for future in done]:
                    has_moved |= name is not None and self._hand_over(run, subscriber, name)
                if pending:
                    has_moved |= self._apply(run, subscriber)
        if self._is_stopping():
            raise Stopping
        return self._apply(run, subscriber) or has_moved

    def _start_replication(self, publisher: Publisher) -> None:
        subscription, cluster = self._subscription, self._session.cluster
        assert subscription.slot_name is not None
        if self._only_unfinished:
            return
        client = client_name(cluster.system_identifier, subscription.oid)
        application = application_name(subscription.conninfo, subscription.name)
        publisher.slots.start_replication(
            subscription.slot_name, client, application, subscription.publications
        )

    def _report(self, publisher: Publisher, subscriber: LakeSubscriber) -> None:
        """Record the subscription's position.  At the end of the log, report it to publisher and
        subscriber.
        """
        slot_name = self._subscription.slot_name
        assert slot_name is not None
        if self._only_unfinished:
            return
        confirmed = publisher.slots.position(slot_name)
        self.applied.lsn = max(subscriber.state.position().lsn, confirmed)
        if self.is_stopped:
            return
        report_worker(self._session.cluster, self._subscription.oid, confirmed)
        publisher.slots.report_end(slot_name)

    def _progress(self, what: str, done: int, total: int) -> None:
        self._session.on_progress(what, done, total)
        if self._is_stopping():
            raise Stopping

    @contextmanager
    def _synchronizing(
        self, run: SubscriptionRun, subscriber: LakeSubscriber
    ) -> Iterator[set[Future[RelationName | None]]]:
        """Synchronize tables, several at a time.  Each result is the table's name, or None after a
        failure.
        """
        names = unsynchronized(subscriber)
        self._copies.keep(names)
        names = [name for name in names if self._copies.is_due(name)]
        if not names:
            yield set()
            return
        self.applied.is_parallel = True
        workers = int(self._session.setting("max_sync_workers_per_subscription"))
        done = 0

        def bring_up(name: RelationName) -> RelationName | None:
            nonlocal done
            if self._is_stopping():
                return None
            try:
                with self._tablesync_worker(subscriber, name):
                    _in_live_session(synchronize, run, name)
            except PostgresError as error:  # the other tables continue
                name_both(error, self._subscription, name)
                self._copy_failed(subscriber, name, error)
                return None
            finally:
                done += 1
                self._session.on_progress("copying tables", done, len(names))
            return name

        self._session.on_progress("copying tables", 0, len(names))
        with self._copying:
            pool = ThreadPoolExecutor(max(1, workers))
            try:
                yield {pool.submit(bring_up, name) for name in names}
            except (KeyboardInterrupt, QueryCanceled):  # it has not reached the threads
                self._interrupt()
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    @contextmanager
    def _tablesync_worker(self, subscriber: LakeSubscriber, name: RelationName) -> Iterator[None]:
        """Record a separate worker, which synchronizes a table, during the `with` block."""
        cluster, subscription = self._session.cluster, self._subscription
        relation = subscriber.state.relations().get(name)
        if relation is None:  # a refresh has removed it from the subscription
            yield
            return
        slot = subscription.table_slot_name(relation.relid, cluster.system_identifier)
        maximum = maximum_workers(self._session)
        claim_worker(cluster, subscription.oid, slot, relation.relid, maximum=maximum)
        worker = (
            "logical replication table synchronization worker for subscription"
            f' "{subscription.name}", table "{subscription.table_map.target(name)[1]}" has'
        )
        self._log(f"{worker} started", _TABLESYNC_WORKER)
        try:
            yield
            self._log(f"{worker} finished", _TABLESYNC_WORKER)
        finally:
            release_worker(cluster, subscription.oid, relation.relid, stays=False)

    def _hand_over(
        self, run: SubscriptionRun, subscriber: LakeSubscriber, name: RelationName
    ) -> bool:
        """Hand a synchronized table over to apply, and return whether that succeeded."""
        if subscriber.state.unfinished_batch() is not None:  # the run was planned without the table
            return False
        try:
            _in_live_session(hand_over, run, name)
        except PostgresError as error:  # the table stays in state f, and a later run retries
            self._copy_failed(subscriber, name, error)
            return False
        self._copies.succeeded(name)
        return True

    def _apply(self, run: SubscriptionRun, subscriber: LakeSubscriber) -> bool:
        """Apply changes of the ready tables, and return whether there were any."""
        if self.is_stopped:
            return False
        try:
            return _in_live_session(apply_changes, run)
        except PostgresError as error:  # the copies of other tables continue
            self._failed(subscriber, error, "apply")
            return False

    def _copy_failed(
        self, subscriber: LakeSubscriber, name: RelationName, error: PostgresError
    ) -> None:
        if not self._failed(subscriber, error, "sync"):
            self._copies.failed(name, named(self._session, error, self._subscription))

    def _failed(self, subscriber: LakeSubscriber, error: PostgresError, kind: str) -> bool:
        """Record the error that stopped a copy or apply.  Ctrl-C is not an error of the
        subscription, and a wait does not disable it.

        Returns:
            True if the run continues, because the affected tables will be reconciled.
        """
        if isinstance(error, QueryCanceled):
            raise error
        if isinstance(error, LockWait):
            self.error = self.error or error
            self.is_stopped |= kind == "apply"
            return False
        error = named(self._session, error, self._subscription)
        if self._reconciles(subscriber, error):
            return True
        self.cause = self.cause or error
        error = note_part_written(self._session, self._subscription, error)
        if self.error is None or self.is_waiting:
            self.error = error
        backend_type = APPLY_WORKER if kind == "apply" else _TABLESYNC_WORKER
        self._session.cluster.log.report_error(error, backend_type=backend_type)
        is_disabled = note_error(subscriber, self._subscription, kind)
        self.is_stopped |= is_disabled or kind == "apply"
        return False

    def _reconciles(self, subscriber: LakeSubscriber, error: PostgresError) -> bool:
        """Start reconciles of the tables that an error concerns if the subscription has `resync =
        auto`, and return whether that succeeded.  A run reconciles each table at most once.
        """
        tables, subscription = error.reconciles, self._subscription
        if not tables or subscription.resync is not Resync.AUTO or self._only_unfinished:
            return False
        with self._deciding:
            if not self._resynchronized.isdisjoint(tables):
                return False
            try:
                why_not = subscriber.copies.resynchronize(tables)
            except (QueryCanceled, LockWait):
                raise
            except PostgresError as reason:  # a table cannot be read
                why_not = f"{reason.message}."
            if why_not is not None:
                error.detail = why_not if error.detail is None else f"{error.detail} {why_not}"
                return False
            self._resynchronized.update(tables)
        for table in tables:
            subscriber.state.report(
                Notice(
                    "WARNING",
                    f'table "{table}" of subscription "{subscription.name}" is synchronized again',
                    "01000",
                    detail=f"{error.message}." + (f" {error.detail}" if error.detail else ""),
                    context=error.context,
                )
            )
        return True

    def _log(self, message: str, backend_type: str) -> None:
        self._session.cluster.log.report(message, backend_type=backend_type)

    def _note_outcome(self) -> None:
        """Record the error that stopped the subscription, for the subscription's status.  Remove
        the record if there was no error.  Report the beginning of a wait for other processes.
        """
        oid, error = self._subscription.oid, self.error
        if error is None or self.is_waiting:
            error = self._copies.error() or error
        with self._session.cluster.begin(write=False) as connection:
            known = subscription_error(connection, oid)
        if isinstance(error, LockWait) and not (known is not None and known.is_wait):
            message = f'subscription "{self._subscription.name}" is {error.message}'
            notice = Notice("LOG", message, detail=error.detail)
            self._session.cluster.log.report_error(notice, backend_type=APPLY_WORKER)
            self._session.on_notice(notice)
        if error is not None or known is not None:
            stops_apply = self.is_stopped and error is self.error and not self.is_waiting
            with self._session.cluster.begin(write=True) as connection:
                put_subscription_error(connection, oid, error, stops_apply=stops_apply)


def _in_live_session(
    step: Callable[_Arguments, _T], *arguments: _Arguments.args, **named: _Arguments.kwargs
) -> _T:
    """Run a step of a subscription.  If the Spark Connect server ends the session meanwhile, run
    the step once more.  It skips the work that it has finished.
    """
    try:
        return step(*arguments, **named)
    except SessionEnded:  # the next call opens a new session
        return step(*arguments, **named)


def maximum_workers(session: Session) -> int:
    """Return the maximum number of workers of a cluster."""
    return int(session.setting("max_logical_replication_workers"))
