"""Which subscriptions run, and how far: every change committed so far, cascades to the end
(launcher.c)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from replctl.catalog.pg_subscription import (
    Subscription,
    get_apply_batch,
    get_subscription,
    list_apply_batches,
    list_subscriptions,
)
from replctl.errors import PostgresError, UndefinedObject
from replctl.lake.subscriber import LakeSubscriber
from replctl.open_node import open_publisher, open_subscriber
from replctl.replication.apply import apply_changes
from replctl.replication.node import Publisher
from replctl.replication.tablesync import has_begun_copies, synchronize, unsynchronized
from replctl.session import Session


@dataclass(frozen=True, slots=True)
class SyncFailure:
    """A subscription that could not go on, and why."""

    subscription: str
    error: PostgresError


def sync(session: Session, names: Sequence[str] = ()) -> list[SyncFailure]:
    """Apply everything that is committed on the publishers so far to the enabled subscriptions of
    all databases of the cluster, unfinished copies first; those that could not go on.

    Args:
        names: subscriptions to run, () for all.

    Raises:
        UndefinedObject: there is no subscription of that name.
    """
    failures: dict[int, SyncFailure] = {}
    subscriptions = _enabled(session, names)
    for _round in range(len(subscriptions) + 1):
        moved = []
        for subscription in subscriptions:
            if subscription.oid in failures:
                continue
            run = _Run(session, subscription)
            if run.once():
                moved.append(subscription.name)
            if run.error is not None:
                failures[subscription.oid] = SyncFailure(subscription.name, run.error)
        if not moved:
            return list(failures.values())
        subscriptions = _enabled(session, names)
    shown = ", ".join(f'"{name}"' for name in sorted(moved))
    session.notice(
        f"subscriptions {shown} did not come to an end",
        severity="WARNING",
        detail="Every round of applying changes has made new ones.",
        hint="Publications and subscriptions form a loop: origin = none keeps replicated changes"
        " from being sent on.",
    )
    return list(failures.values())


def finish_batches(session: Session) -> None:
    """Finish what appliers that died have left half written, before somebody else writes their
    tables.

    Raises:
        PostgresError: it cannot be finished.
    """
    with session.read() as catalog:
        unfinished = [batch.subscription_oid for batch in list_apply_batches(catalog)]
    for oid in unfinished:
        with session.read() as catalog:
            subscription = get_subscription(catalog, oid)
        if subscription is None:
            continue
        run = _Run(session, subscription)
        run.once()
        with session.read() as catalog:
            is_finished = get_apply_batch(catalog, oid) is None
        if run.error is not None and not is_finished:
            raise run.error


def _enabled(session: Session, names: Sequence[str]) -> list[Subscription]:
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


class _Run:
    """One run of a subscription.

    Attributes:
        error: what has stopped it.
    """

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self._session = session
        self._subscription = subscription
        self.error: PostgresError | None = None

    def once(self) -> bool:
        """Copies, then changes; whether there was anything to do."""
        session, subscription = self._session, self._subscription
        with (
            session.cluster.lock(f"subscription-{subscription.oid}"),
            open_subscriber(session, subscription) as subscriber,
        ):
            try:
                with open_publisher(session, subscription.conninfo) as publisher:
                    has_copied = self._copy_tables(publisher, subscriber)
                    if has_begun_copies(subscriber):  # apply must not pass their snapshots
                        return has_copied
                    try:
                        progress = session.on_progress
                        has_applied = apply_changes(publisher, subscriber, subscription, progress)
                        return has_applied or has_copied
                    except PostgresError as error:
                        self._failed(subscriber, error, "apply")
            except PostgresError as error:
                self.error = self.error or error
        return False

    def _copy_tables(self, publisher: Publisher, subscriber: LakeSubscriber) -> bool:
        """Synchronize the tables that are not yet, some at a time; whether any was."""
        names = unsynchronized(subscriber)
        if not names:
            return False
        workers = int(self._session.setting("max_sync_workers_per_subscription"))
        done = 0

        def copy(name: tuple[str, str]) -> PostgresError | None:
            nonlocal done
            try:
                synchronize(publisher, subscriber, self._subscription, name)
            except PostgresError as error:
                return error
            finally:
                done += 1
                self._session.on_progress("copying tables", done, len(names))
            return None

        self._session.on_progress("copying tables", 0, len(names))
        with ThreadPoolExecutor(max(1, workers)) as pool:
            errors = [error for error in pool.map(copy, names) if error is not None]
        for error in errors:
            self._failed(subscriber, error, "sync")
        return len(errors) < len(names)

    def _failed(self, subscriber: LakeSubscriber, error: PostgresError, kind: str) -> None:
        self.error = self.error or error
        disable = self._subscription.disable_on_error
        subscriber.note_error(kind, disable=disable)
        if disable:
            self._session.notice(
                f'subscription "{self._subscription.name}" has been disabled because of an error',
                severity="LOG",
            )
