"""Run subscriptions until every committed change is applied (launcher.c).  This includes cascades:
subscriptions whose publisher is the subscriber of another one.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from threading import Lock

from replctl.apply_worker import APPLY_WORKER, Applied, ApplyWorker, maximum_workers
from replctl.catalog.pg_subscription import (
    Subscription,
    get_subscription,
    list_subscriptions,
)
from replctl.catalog.subscription_error import put_subscription_error
from replctl.catalog.unfinished_write import writers_of
from replctl.catalog.worker import (
    claim_worker,
    release_worker,
)
from replctl.errors import (
    ConfigurationLimitExceeded,
    LockNotAvailable,
    ObjectInUse,
    PostgresError,
    QueryCanceled,
    UndefinedObject,
    UnfinishedBatch,
)
from replctl.lake.unfinished_batch import unfinished_error
from replctl.open_node import open_publisher, open_subscriber, publisher_key
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.retry_schedule import RetrySchedule, never
from replctl.session import Session
from replctl.session_thread import CALLING_THREAD, gathered
from replctl.shown_error import shown_error
from replctl.spark import SharedFeeds, cancel_jobs
from replctl.transaction_block import prevent_in_block


@dataclass(frozen=True, slots=True)
class SyncFailure:
    """The error of a subscription that failed.

    Attributes:
        is_stopped: apply of the subscription has stopped.  If false, only copies have failed.
    """

    subscription: str
    error: PostgresError
    oid: int = field(default=0, compare=False)
    database: str = field(default="", compare=False)
    is_stopped: bool = field(default=True, compare=False)


class Launcher:
    """Runs subscriptions and holds them: no other process applies them until the launcher is
    closed.

    Args:
        is_stopping: called before each batch and each copy; returns whether to stop there.
        on_applied: called with the counts of changes after each run.
        retry_delay: the delay of failed copies; see RetrySchedule.
        suspended_after: seconds to wait for a suspended process that runs a subscription; None for
            the usual time.
        longest_wait: see ApplyWorker.

    Raises:
        PostgresError: the cluster's directory cannot be written.
    """

    def __init__(
        self,
        session: Session,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        on_applied: Callable[[Subscription, Applied], None] = lambda subscription, applied: None,
        retry_delay: Callable[[int], float] = never,
        suspended_after: float | None = None,
        longest_wait: float | None = None,
    ) -> None:
        if session.cluster.refusal is not None:
            raise session.cluster.refusal
        self._session = session
        self._stop_requested = is_stopping
        self._is_canceled = False
        self._on_applied = on_applied
        self._suspended_after = suspended_after
        self._longest_wait = longest_wait
        self._held: dict[int, Subscription] = {}
        self._unreleased: dict[int, Subscription] = {}  # see _release_slot
        self._copying = Lock()  # see ApplyWorker
        self._copies: defaultdict[int, RetrySchedule[RelationName]] = defaultdict(
            partial(RetrySchedule, retry_delay)
        )

    def sync(self, subscriptions: Sequence[Subscription]) -> list[SyncFailure]:
        """Run subscriptions until none of them has work, and return the failures.

        Raises:
            Stopping: a signal requested a stop.
        """
        failures: list[SyncFailure] = []
        for _round in range(len(subscriptions) + 1):
            stopped = {failure.oid for failure in failures if failure.is_stopped}
            going = [
                subscription for subscription in subscriptions if subscription.oid not in stopped
            ]
            moved = self.round(going, failures)
            if not moved:
                return failures
        forwarding = sorted(f'"{name}"' for name, applied in moved.items() if applied.forwarded)
        if forwarding:  # otherwise other writers commit all the time
            self._session.notice(
                f"subscriptions {', '.join(forwarding)} did not come to an end",
                severity="WARNING",
                detail="Each round of the sync has made new changes to apply.",
                hint="Publications and subscriptions form a loop: origin = none keeps replicated"
                " changes from being sent on.",
            )
        return failures

    def round(
        self, subscriptions: Sequence[Subscription], failures: list[SyncFailure]
    ) -> dict[str, Applied]:
        """Run subscriptions in parallel, each once.  Return those that had work, with the counts of
        their changes.

        Args:
            failures: a list to which failures are added.

        Raises:
            Stopping: a signal requested a stop.
        """
        publishers = {item.oid: publisher_key(item) for item in subscriptions}
        followed = Counter(publishers.values())
        with SharedFeeds() as feeds, ThreadPoolExecutor(os.cpu_count()) as pool:
            begin = pool.submit if len(subscriptions) > 1 else CALLING_THREAD.submit
            runs = (
                begin(
                    partial(self.run, item, feeds if followed[publishers[item.oid]] > 1 else None)
                )
                for item in subscriptions
            )
            ended = gathered(runs, self._cancel)
        moved = {}
        for subscription, (applied, failure) in zip(subscriptions, ended, strict=True):
            if applied is not None:
                moved[subscription.name] = applied
            if failure is not None:
                failures.append(failure)
        return moved

    def _cancel(self) -> None:
        """End the running jobs and waits."""
        self._is_canceled = True
        cancel_jobs()

    def _is_stopping(self) -> bool:
        return self._is_canceled or self._stop_requested()

    def run(
        self, subscription: Subscription, feeds: SharedFeeds | None = None
    ) -> tuple[Applied | None, SyncFailure | None]:
        """Run the copies of a subscription, then apply its changes.

        Args:
            feeds: feeds of the publisher that several subscriptions share.

        Returns:
            two values: the counts of written changes (None without work), and the error of apply or
            of a copy (None without one).

        Raises:
            PostgresError: the cluster's catalog was replaced, or cannot be reached.
            QueryCanceled: Ctrl-C.
            Stopping: a signal requested a stop.
        """
        try:
            return self._run(subscription, feeds)
        except QueryCanceled:
            raise
        except PostgresError as error:  # the error stops no other subscription
            if not self._session.cluster.is_in_place:
                raise
            self._session.cluster.log.report_error(error, backend_type=APPLY_WORKER)
            self._give_up(subscription, error)
            return None, self._failure(subscription, error)

    def _run(
        self, subscription: Subscription, feeds: SharedFeeds | None
    ) -> tuple[Applied | None, SyncFailure | None]:
        cluster = self._session.cluster
        assert subscription.slot_name is not None
        try:
            is_new = claim_worker(
                cluster,
                subscription.oid,
                subscription.slot_name,
                maximum=maximum_workers(self._session),
            )
        except (ObjectInUse, ConfigurationLimitExceeded) as error:  # others use the workers
            cluster.log.report_error(error, backend_type=APPLY_WORKER)
            return None, self._failure(subscription, error)
        self._held[subscription.oid] = subscription
        run = ApplyWorker(
            self._session,
            subscription,
            self._copying,
            copies=self._copies[subscription.oid],
            feeds=feeds,
            is_new=is_new,
            is_stopping=self._is_stopping,
            longest_wait=self._longest_wait,
        )
        try:
            has_moved = run.once(suspended_after=self._suspended_after)
        finally:
            self._on_applied(subscription, run.applied)
        if (run.is_stopped and not run.is_waiting) or run.is_unwanted:
            self._let_go(subscription, stays=False)
        applied = run.applied if has_moved else None
        if run.error is None:
            return applied, None
        return applied, self._failure(subscription, run.error, is_stopped=run.is_stopped)

    def _failure(
        self, subscription: Subscription, error: PostgresError, *, is_stopped: bool = True
    ) -> SyncFailure:
        database = self._session.cluster.database_name(subscription.database_oid)
        shown = shown_error(self._session, subscription, error)
        return SyncFailure(subscription.name, shown, subscription.oid, database, is_stopped)

    def _give_up(self, subscription: Subscription, error: PostgresError) -> None:
        """Release a subscription after an error, and record the error for its status.  If the
        catalog cannot be written, log the reason.
        """
        cluster = self._session.cluster
        try:
            if subscription.oid in self._held:
                self._let_go(subscription, stays=False)
            with cluster.begin(write=True) as connection:
                put_subscription_error(connection, subscription.oid, error)
        except PostgresError as reason:
            cluster.log.report_error(reason, backend_type=APPLY_WORKER)

    def has_due_copies(self, subscription: Subscription) -> bool:
        """Return whether failed copies of a subscription must be retried now."""
        return self._copies[subscription.oid].has_due()

    def keep(self, subscriptions: Sequence[Subscription]) -> None:
        """Release all held subscriptions except these.  Also release slots whose release has
        failed.
        """
        kept = {subscription.oid for subscription in subscriptions}
        used = {subscription.slot_name for subscription in self._held.values()}
        for subscription in list(self._unreleased.values()):
            if subscription.slot_name not in used:
                self._release_slot(subscription, stays=False)
        for oid in self._copies.keys() - kept:
            del self._copies[oid]
        for oid, subscription in list(self._held.items()):
            if oid not in kept:
                self._let_go(subscription, stays=False)

    def close(self, *, stays: bool) -> None:
        """Release the held subscriptions.

        Args:
            stays: keep this process recorded as the worker of the subscriptions that it ran.
        """
        for subscription in list(self._held.values()):
            self._let_go(subscription, stays=stays)

    def _let_go(self, subscription: Subscription, *, stays: bool) -> None:
        del self._held[subscription.oid]
        if not self._session.cluster.is_in_place:  # the current catalog does not know it
            return
        release_worker(self._session.cluster, subscription.oid, stays=stays)
        self._release_slot(subscription, stays=stays)

    def _release_slot(self, subscription: Subscription, *, stays: bool) -> None:
        """Release the slot of a subscription.  If its publisher is unreachable, `keep` repeats
        that: the publisher regards the slot as active while this process lives.
        """
        assert subscription.slot_name is not None
        self._unreleased.pop(subscription.oid, None)
        try:
            with open_publisher(self._session, subscription, is_leaving=True) as publisher:
                publisher.slots.end_replication(subscription.slot_name, stays=stays)
        except PostgresError:
            self._unreleased[subscription.oid] = subscription


def sync(
    session: Session,
    names: Sequence[str] = (),
    *,
    on_applied: Callable[[Subscription, Applied], None] = lambda subscription, applied: None,
) -> list[SyncFailure]:
    """Bring the enabled subscriptions of all databases of the cluster to the end of their
    publishers' logs, and return the failures.  Unfinished copies come first.  A standby runs none,
    because its primary runs them.

    Args:
        names: subscriptions to run; () for all.
        on_applied: see Launcher.

    Raises:
        UndefinedObject: there is no subscription of that name.
        ActiveSqlTransaction: the open block of the session has made changes, so the sync might
            wait for it (25001).
    """
    if session.xids is not None and session.xids.top is not None:
        prevent_in_block(session.block, "\\sync")
    launcher = Launcher(session, on_applied=on_applied)
    try:
        return launcher.sync(enabled_subscriptions(session, names))
    finally:
        launcher.close(stays=True)


def finish_batches(session: Session, found: UnfinishedBatch) -> None:
    """Finish partly written batches, and undo partly written copies, which dead or failed processes
    left, before a statement writes their tables.  The next sync runs the copies again.

    Args:
        found: the batches and copies in the statement's tables; others are ignored.

    Raises:
        ObjectNotInPrerequisiteState: a batch cannot be finished (55000).
        LockNotAvailable: another process applies the subscription for longer than lock_timeout, or
            than deadlock_timeout if the statement is in a block (55P03).
    """
    is_locked = session.block is not None and not session.block.locked.isdisjoint(found.relids)
    for oid in sorted(found.subscriptions):
        with session.read() as catalog:
            subscription = get_subscription(catalog, oid)
        if subscription is None:
            raise found
        error = None if is_locked else _finish_batch(session, subscription, found.relids)
        with session.read() as catalog:
            left = writers_of(catalog, found.relids)
        if oid in left:
            raise unfinished_error(session, subscription, found.relids, error)


def _finish_batch(
    session: Session, subscription: Subscription, relids: Collection[int]
) -> PostgresError | None:
    """Finish a partly written batch of a subscription, and undo its copies into some tables.  If
    that fails, return the part of the error that the session's role may see.

    Raises:
        LockNotAvailable: see `finish_batches`.
    """
    settings = ["lock_timeout"] if session.block is None else ["lock_timeout", "deadlock_timeout"]
    timeouts = [int(session.setting(name)) / 1000 for name in settings]
    run = ApplyWorker(session, subscription, Lock(), only_unfinished=True)  # it copies no tables
    try:
        patience = min(filter(None, timeouts), default=-1)
        run.once(patience)
        with (
            session.cluster.lock(f"subscription-{subscription.oid}", patience),
            open_subscriber(session, subscription) as subscriber,
        ):
            subscriber.copies.take_back(relids)
    except LockNotAvailable as error:
        raise LockNotAvailable("canceling statement due to lock timeout") from error
    return None if run.cause is None else shown_error(session, subscription, run.cause)


def enabled_subscriptions(session: Session, names: Sequence[str] = ()) -> list[Subscription]:
    """Return the enabled subscriptions of all databases of the cluster; none on a standby, because
    the primary runs them.

    Args:
        names: the subscriptions to choose from; () for all.

    Raises:
        UndefinedObject: there is no subscription of that name.
    """
    if session.cluster.is_in_recovery:
        return []
    with session.read() as catalog:
        subscriptions = list_subscriptions(catalog, all_databases=True)
    for name in names:
        if name not in {subscription.name for subscription in subscriptions}:
            raise UndefinedObject(f'subscription "{name}" does not exist')
    return [
        subscription
        for subscription in subscriptions
        if subscription.enabled and (not names or subscription.name in names)
    ]
