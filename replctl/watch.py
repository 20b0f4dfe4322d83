"""Apply subscriptions continuously: `replctl sync --watch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from replctl.apply_worker import Applied, Stopping
from replctl.catalog.cluster import Cluster
from replctl.catalog.lock import open_blocks
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.transaction import insert_lsn
from replctl.chosen_subscriptions import ChosenSubscriptions
from replctl.errors import CannotConnectNow, IoError, LockWait, PostgresError, UndefinedObject
from replctl.launcher import Launcher, SyncFailure
from replctl.open_node import open_publisher, publisher_home, publisher_key
from replctl.record import dataclass
from replctl.retry_schedule import RetrySchedule
from replctl.session import Session

#: Maximum delay in seconds before a failed subscription is retried.
_LONGEST_RETRY = 60.0
#: Seconds after which a subscription runs even without new commits, so that it reports its state.
_STATUS_INTERVAL = 10.0
#: Seconds to wait for a suspended process that runs a subscription.  The other subscriptions wait
#: too.
_SUSPENDED_AFTER = 1.0
#: Seconds to wait for a transaction or a statement of another process.
_LONGEST_WAIT = 1.0


@dataclass(slots=True)
class _Standing:
    """The state that `Watch` keeps of a subscription.

    Attributes:
        idle_since: the end of the last successful run; None after a failure.
        seen: the ends of the subscriber's and the publisher's log before that run.
    """

    idle_since: float | None = None
    seen: tuple[int, int | None] = (0, None)


class Watch:
    """Applies subscriptions in rounds, and holds them until it is closed.

    If a subscription fails, the others continue, and `Watch` retries it after increasing delays.
    If only the copy of a table fails, apply of the subscription's other tables continues, and
    `Watch` retries the copy after such delays.  `Watch` does not run a subscription if neither the
    publisher's log nor the subscriber's log has grown.

    If a subscription would have to wait for an open transaction of another process, `Watch` retries
    it when the transaction has ended.  This is not a failure.

    Args:
        names: subscriptions to run, also after they are renamed; () for all that exist in each
            round.
        interval: seconds between two rounds.  The first retry comes after twice this interval, and
            after at least two seconds.
        is_stopping, on_applied: see Launcher.
    """

    def __init__(
        self,
        session: Session,
        names: Sequence[str] = (),
        interval: float = 1.0,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        on_applied: Callable[[Subscription, Applied], None] = lambda subscription, applied: None,
    ) -> None:
        self._session = session
        self._interval = interval
        self._launcher = Launcher(
            session,
            is_stopping=is_stopping,
            on_applied=on_applied,
            retry_delay=self._delay,
            suspended_after=_SUSPENDED_AFTER,
            longest_wait=_LONGEST_WAIT,
        )
        self._publishers: set[Path] = set()  # the homes that the last round used
        self._standings: dict[int, _Standing] = {}
        self._retries = RetrySchedule[int](self._delay)
        self._chosen = ChosenSubscriptions(session, names)
        self._missing = self._chosen.missing
        if self._missing:
            raise _does_not_exist(self._missing[0])

    def round(self) -> list[SyncFailure]:
        """Run the due subscriptions, and return the failures.  End early after a signal to stop.

        Raises:
            UndefinedObject: all named subscriptions were dropped.
            CannotConnectNow: a restored catalog has replaced the cluster's, or has overwritten that
                of a publisher in another home.
        """
        self._session.cluster.check_file()
        failures: list[SyncFailure] = []
        subscriptions = self._subscriptions(failures)
        self._publishers = {home for s in subscriptions if (home := publisher_home(s)) is not None}
        for publisher in self._open_publishers():
            _check_file(publisher)
        self._launcher.keep(subscriptions)
        known = self._standings
        self._standings = {s.oid: known.get(s.oid, _Standing()) for s in subscriptions}
        self._retries.keep(self._standings)
        due = self._due(subscriptions)
        try:
            self._launcher.round(due, failures)
        except Stopping:  # the user ends the watch
            return []
        failed = {failure.oid: failure.error for failure in failures if failure.is_stopped}
        now = time.monotonic()
        for subscription in due:
            standing = self._standings[subscription.oid]
            if subscription.oid in failed:
                self._retries.failed(subscription.oid, failed[subscription.oid])
                standing.idle_since = None
            else:
                self._retries.succeeded(subscription.oid)
                standing.idle_since = now
        return [item for item in failures if not isinstance(item.error, LockWait)]

    def _subscriptions(self, failures: list[SyncFailure]) -> list[Subscription]:
        """Return the enabled subscriptions; none on a standby.  Report each name once whose
        subscription was dropped.

        Args:
            failures: a list to which failures are added.
        """
        found = self._chosen.current()
        missing = self._chosen.missing
        if self._chosen.is_gone:
            raise _does_not_exist(missing[0])
        failures += [
            SyncFailure(name, _does_not_exist(name))
            for name in missing
            if name not in self._missing
        ]
        self._missing = missing
        if self._session.cluster.is_in_recovery:
            return []
        return [subscription for subscription in found if subscription.enabled]

    @property
    def must_end(self) -> bool:
        """Return whether this process cannot use the cluster's catalog again, because it was
        replaced, or that of a publisher, because it was overwritten.  Or its subscriptions are
        dropped.
        """
        try:
            is_replaced = self._session.cluster.is_replaced
        except IoError:  # the next round reports it
            return False
        return (
            is_replaced or self._chosen.is_gone or any(map(_needs_restart, self._open_publishers()))
        )

    def _open_publishers(self) -> list[Cluster]:
        """Return the publishers' clusters in other homes, if open.  Homes that subscriptions used
        before stay open, but do not matter.
        """
        others = self._session.cluster.others
        return [other for home, other in others.items() if home in self._publishers]

    def _delay(self, failures: int) -> float:
        """Return the seconds before a subscription or a copy is retried after this number of
        successive failures.
        """
        doublings = min(failures, 16)  # more doublings would exceed the maximum anyway
        return min(max(self._interval, 1.0) * 2.0**doublings, _LONGEST_RETRY)

    def _due(self, subscriptions: Sequence[Subscription]) -> list[Subscription]:
        """Return the subscriptions that may have work."""
        now = time.monotonic()
        with self._session.cluster.begin(write=False) as connection:
            own_end = insert_lsn(connection)
        ends: dict[Hashable, int | None] = {}
        due = []
        for subscription in subscriptions:
            standing = self._standings[subscription.oid]
            if not self._retries.is_due(subscription.oid) or self._waits(subscription.oid):
                continue
            publisher = publisher_key(subscription)
            if publisher not in ends:
                ends[publisher] = self._publisher_end(subscription)
            seen = (own_end, ends[publisher])
            is_idle = standing.idle_since is not None and (
                now - standing.idle_since < _STATUS_INTERVAL
            )
            is_idle &= seen == standing.seen and seen[1] is not None
            if not is_idle or self._launcher.has_due_copies(subscription):
                standing.seen = seen
                due.append(subscription)
        return due

    def _waits(self, oid: int) -> bool:
        """Return whether the last run of a subscription waited for transactions of live processes
        that are all still open.
        """
        xids = self._retries.waits_for(oid)
        if not xids:
            return False
        cluster = self._session.cluster
        with cluster.begin(write=False) as connection:
            blocks = open_blocks(connection, xids)
        return blocks.keys() == xids and all(cluster.is_alive(b.backend) for b in blocks.values())

    def _publisher_end(self, subscription: Subscription) -> int | None:
        """Return the end of a publisher's log; None if it cannot be read.  The next run reports the
        error.
        """
        try:
            with open_publisher(self._session, subscription) as publisher:
                return publisher.slots.current_lsn()
        except PostgresError:  # an unknown end counts as work, and the run reports it
            return None

    def close(self) -> None:
        """Release the subscriptions."""
        self._launcher.close(stays=False)


def _does_not_exist(name: str) -> UndefinedObject:
    return UndefinedObject(f'subscription "{name}" does not exist')


def _check_file(publisher: Cluster) -> None:
    """Check that the catalog of a publisher in another home was not overwritten.

    Raises:
        CannotConnectNow: see Watch.round.
    """
    try:
        publisher.check_file()
    except IoError:  # the run reports a home that does not respond
        return
    except CannotConnectNow:
        if _needs_restart(publisher):
            raise


def _needs_restart(publisher: Cluster) -> bool:
    """Return Cluster.needs_restart; False if the home does not respond now."""
    try:
        return publisher.needs_restart
    except IoError:  # the run reports it
        return False
