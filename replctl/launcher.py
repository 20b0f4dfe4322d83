"""Which subscriptions run, and how far: every change committed so far, cascades to the end
(launcher.c)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from threading import Lock

from replctl.apply_worker import APPLY_WORKER, Applied, ApplyWorker, maximum_workers
from replctl.catalog.apply_batch import batches_writing
from replctl.catalog.pg_subscription import (
    Subscription,
    get_subscription,
    list_subscriptions,
)
from replctl.catalog.worker import (
    claim_worker,
    release_worker,
)
from replctl.errors import (
    ConfigurationLimitExceeded,
    LockNotAvailable,
    ObjectInUse,
    PostgresError,
    UndefinedObject,
    UnfinishedBatch,
)
from replctl.lake.unfinished_batch import unfinished_error
from replctl.lane import OWN_LANE, gathered
from replctl.open_node import open_publisher, publisher_key
from replctl.record import dataclass
from replctl.session import Session
from replctl.shown_error import shown_error
from replctl.spark import SharedFeeds, cancel_jobs
from replctl.transaction_block import prevent_in_block


@dataclass(frozen=True, slots=True)
class SyncFailure:
    """A subscription that could not go on, and why."""

    subscription: str
    error: PostgresError
    oid: int = field(default=0, compare=False)
    database: str = field(default="", compare=False)


class Launcher:
    """Runs subscriptions, and holds those that it has run: until it is closed no other process
    applies them.

    Args:
        is_stopping: asked before each batch and each copy whether to end here.
        on_applied: told of what a run has written.

    Raises:
        PostgresError: the cluster's directory cannot be written.
    """

    def __init__(
        self,
        session: Session,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        on_applied: Callable[[Subscription, Applied], None] = lambda subscription, applied: None,
    ) -> None:
        if session.cluster.refusal is not None:
            raise session.cluster.refusal
        self._session = session
        self._is_stopping = is_stopping
        self._on_applied = on_applied
        self._held: dict[int, Subscription] = {}
        self._copying = Lock()

    def sync(self, subscriptions: Sequence[Subscription]) -> list[SyncFailure]:
        """Run subscriptions until none of them has anything to do; those that could not go on.

        Raises:
            Stopping: a signal requested a stop.
        """
        failures: list[SyncFailure] = []
        for _round in range(len(subscriptions) + 1):
            stopped = {failure.oid for failure in failures}
            going = [
                subscription for subscription in subscriptions if subscription.oid not in stopped
            ]
            moved = self.round(going, failures)
            if not moved:
                return failures
        forwarding = sorted(f'"{name}"' for name, applied in moved.items() if applied.forwarded)
        if forwarding:  # else somebody else commits all the time
            self._session.notice(
                f"subscriptions {', '.join(forwarding)} did not come to an end",
                severity="WARNING",
                detail="Every round of applying changes has made new ones.",
                hint="Publications and subscriptions form a loop: origin = none keeps replicated"
                " changes from being sent on.",
            )
        return failures

    def round(
        self, subscriptions: Sequence[Subscription], failures: list[SyncFailure]
    ) -> dict[str, Applied]:
        """Run subscriptions side by side, each once; those that had something to do, with what
        they have written.

        Args:
            failures: what could not go on is added here.

        Raises:
            Stopping: a signal requested a stop.
        """
        publishers = {item.oid: publisher_key(item) for item in subscriptions}
        followed = Counter(publishers.values())
        with SharedFeeds() as feeds, ThreadPoolExecutor(os.cpu_count()) as pool:
            begin = pool.submit if len(subscriptions) > 1 else OWN_LANE.submit
            runs = (
                begin(
                    partial(self.run, item, feeds if followed[publishers[item.oid]] > 1 else None)
                )
                for item in subscriptions
            )
            ended = gathered(runs, cancel_jobs)
        moved = {}
        for subscription, (applied, error) in zip(subscriptions, ended, strict=True):
            if applied is not None:
                moved[subscription.name] = applied
            if error is not None:
                database = self._session.cluster.database_name(subscription.database_oid)
                shown = shown_error(self._session, subscription, error)
                failures.append(SyncFailure(subscription.name, shown, subscription.oid, database))
        return moved

    def run(
        self, subscription: Subscription, feeds: SharedFeeds | None = None
    ) -> tuple[Applied | None, PostgresError | None]:
        """Copies of a subscription, then its changes; what it has written, None if there was
        nothing to do, and what has stopped it.

        Args:
            feeds: what other subscriptions read of the publisher, too.

        Raises:
            Stopping: a signal requested a stop.
        """
        cluster = self._session.cluster
        assert subscription.slot_name is not None
        try:
            is_new = claim_worker(
                cluster,
                subscription.oid,
                subscription.slot_name,
                maximum=maximum_workers(self._session),
            )
        except (ObjectInUse, ConfigurationLimitExceeded) as error:
            cluster.log.report_error(error, backend_type=APPLY_WORKER)
            return None, error
        self._held[subscription.oid] = subscription
        run = ApplyWorker(
            self._session,
            subscription,
            self._copying,
            feeds=feeds,
            is_new=is_new,
            is_stopping=self._is_stopping,
        )
        try:
            has_moved = run.once()
        finally:
            self._on_applied(subscription, run.applied)
        if run.error is not None or run.is_unwanted:
            self._let_go(subscription, stays=False)
        return run.applied if has_moved else None, run.error

    def keep(self, subscriptions: Sequence[Subscription]) -> None:
        """Let go of all that is held but these."""
        kept = {subscription.oid for subscription in subscriptions}
        for oid, subscription in list(self._held.items()):
            if oid not in kept:
                self._let_go(subscription, stays=False)

    def close(self, *, stays: bool) -> None:
        """Let go of what is held.

        Args:
            stays: this process is still seen as the worker of what it has run.
        """
        for subscription in list(self._held.values()):
            self._let_go(subscription, stays=stays)

    def _let_go(self, subscription: Subscription, *, stays: bool) -> None:
        del self._held[subscription.oid]
        if self._session.cluster.is_replaced:  # the catalog that is there now does not know of it
            return
        release_worker(self._session.cluster, subscription.oid, stays=stays)
        assert subscription.slot_name is not None
        try:
            with open_publisher(self._session, subscription, is_leaving=True) as publisher:
                publisher.slots.end_replication(subscription.slot_name, stays=stays)
        except PostgresError:
            pass  # a publisher that cannot be reached has nobody at its slot


def sync(
    session: Session,
    names: Sequence[str] = (),
    *,
    on_applied: Callable[[Subscription, Applied], None] = lambda subscription, applied: None,
) -> list[SyncFailure]:
    """Apply everything that is committed on the publishers so far to the enabled subscriptions of
    all databases of the cluster, unfinished copies first; those that could not go on.  On a standby
    none runs: the primary runs them.

    Args:
        names: subscriptions to run, () for all.
        on_applied: as for Launcher.

    Raises:
        UndefinedObject: there is no subscription of that name.
        ActiveSqlTransaction: the open block of the session has changed something, so that it might
            wait for itself (25001).
    """
    if session.xids is not None and session.xids.top is not None:
        prevent_in_block(session.block, "\\sync")
    launcher = Launcher(session, on_applied=on_applied)
    try:
        return launcher.sync(enabled_subscriptions(session, names))
    finally:
        launcher.close(stays=True)


def finish_batches(session: Session, found: UnfinishedBatch) -> None:
    """Finish what appliers that died, or failed, have written in part, before a statement writes
    their tables.

    Args:
        found: by that statement; what others have written in part concerns others.

    Raises:
        ObjectNotInPrerequisiteState: it cannot be finished (55000).
        LockNotAvailable: the applier is at work for longer than lock_timeout, or than
            deadlock_timeout if the statement is in a block (55P03).
    """
    is_locked = session.block is not None and not session.block.locked.isdisjoint(found.relids)
    for oid in sorted(found.subscriptions):
        with session.read() as catalog:
            subscription = get_subscription(catalog, oid)
        if subscription is None:
            raise found
        error = None if is_locked else _finish_batch(session, subscription)
        with session.read() as catalog:
            left = batches_writing(catalog, found.relids)
        if any(batch.subscription_oid == oid for batch in left):
            raise unfinished_error(session, subscription, found.relids, error)


def _finish_batch(session: Session, subscription: Subscription) -> PostgresError | None:
    """Finish what a subscription has written in part; return why that fails, as the session's role
    may see it.

    Raises:
        LockNotAvailable: as `finish_batches`.
    """
    settings = ["lock_timeout"] if session.block is None else ["lock_timeout", "deadlock_timeout"]
    timeouts = [int(session.setting(name)) / 1000 for name in settings]
    run = ApplyWorker(session, subscription, Lock(), only_unfinished=True)
    try:
        run.once(min(filter(None, timeouts), default=-1))
    except LockNotAvailable as error:
        raise LockNotAvailable("canceling statement due to lock timeout") from error
    return None if run.cause is None else shown_error(session, subscription, run.cause)


def enabled_subscriptions(session: Session, names: Sequence[str] = ()) -> list[Subscription]:
    """Return the enabled subscriptions of all databases of the cluster; none on a standby, whose
    primary runs them.

    Args:
        names: those to choose from, () for all.

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
