"""Check that a publisher's log is still the one that a subscription has applied (timeline history).

A publisher's catalog that was restored from a backup continues with other commits at the LSNs of
the lost commits.  A restored catalog of a subscriber does not know which changes it has applied
since.  In both cases rows would be missing without an error.  So each recorded position of a
subscription has the digest of the publisher's commit there.  A run checks the digests before it
reads anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replctl.catalog.commit_digest import LogPosition, missing_position
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    TwoPhaseState,
)
from replctl.catalog.wal_availability import SlotInvalidated
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedObject
from replctl.lsn import INVALID_LSN, format_lsn
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import Publisher, Subscriber
from replctl.replication.refresh_hint import publication_refresh, refresh_all_hint
from replctl.replication.subscription_run import SubscriptionRun

_PUBLISHER_WENT_BACK = (
    "The publisher's catalog was restored from a backup, or another one has taken its place: its"
    " log does not have the commits that were applied."
)
_NO_SLOT = (
    "It was dropped, or the publisher is in a state from before the subscription: changes that the"
    " subscription needs may be gone."
)
_SUBSCRIBER_WENT_BACK = (
    "The catalog of the subscription was restored from a backup: it does not know which changes"
    " were applied since then."
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """The reason why a position cannot be used: message and DETAIL of the error."""

    message: str
    detail: str


def check_history(run: SubscriptionRun) -> None:
    """Check that the publisher's log still contains the applied commits, up to each recorded
    position of the subscription and its tables.

    If all tables will be reconciled, no table depends on the subscription's position.  Then the
    subscription continues from the publisher's current log.

    Raises:
        ObjectNotInPrerequisiteState: the log lacks applied commits.  The HINT has the statement
            that reconciles the tables (55000).
        PostgresError: another program has replaced rows of a table.  This is reported instead
            (SubscriberState.check_targets).
    """
    publisher, subscriber, subscription = run.publisher, run.subscriber, run.subscription
    main = subscriber.state.position()
    relations = subscriber.state.relations()
    lost = _slot_fault(publisher, subscription, relations.values())
    fault = lost or _fault(publisher, subscription, main) or _batch_fault(publisher, subscriber)
    faults: dict[RelationName, _Fault] = {}
    own: list[int] = []
    for name, relation in relations.items():
        position = _own_position(subscriber, relation, main)
        if lost is not None and relation.state.is_copied:
            faults[name] = lost
            continue
        if position is None:
            if fault is not None and relation.state.is_copied:
                faults[name] = fault
            continue
        is_first = main.lsn == INVALID_LSN and relation.state.is_applied
        found = (
            _fault(publisher, subscription, position)
            if is_first  # the subscription itself has not made progress since the copies
            else _publisher_fault(publisher, position)
        )
        if relation.state.is_copied:
            found = found or _batch_fault(publisher, subscriber.of_table(relation))
        if found is not None:
            faults[name] = found
        elif relation.state.is_copied:
            own.append(position.lsn)
    if faults:
        subscriber.state.check_targets()
        raise _error(publisher, subscription, faults)
    if fault is not None:
        _restart(run, own)


def _error(
    publisher: Publisher, subscription: Subscription, faults: Mapping[RelationName, _Fault]
) -> ObjectNotInPrerequisiteState:
    """Return the error for the faults of tables, with the statement that helps in its HINT."""
    (first, *_others) = faults.values()
    tables = sorted(map(subscription.table_map.target, faults))
    error = ObjectNotInPrerequisiteState(first.message, detail=first.detail)
    relations = publisher.tables.relations(subscription.publications)
    if faults.keys() <= {relation.relation_name for relation in relations}:
        error.hint = refresh_all_hint(subscription, tables)
        error.reconciles = tuple(tables)
    else:  # the publications were restored, too, and lack some tables
        error.hint = publication_refresh(subscription, "copy_data = reconcile")
    return error


def _own_position(
    subscriber: Subscriber, relation: SubscriptionRelation, main: LogPosition
) -> LogPosition | None:
    """Return a table's own position; None if the table uses the subscription's position, or has
    none.
    """
    if relation.snapshot is not None:
        return LogPosition(relation.snapshot.lsn, relation.snapshot.digest)
    if relation.state is RelState.FINISHEDCOPY:
        return subscriber.of_table(relation).state.position()
    if relation.state.is_copied and relation.lsn is not None and relation.lsn > main.lsn:
        return LogPosition(relation.lsn, relation.digest)
    return None


def _fault(
    publisher: Publisher, subscription: Subscription, position: LogPosition
) -> _Fault | None:
    """Return the fault of a recorded position; None if there is none.

    Args:
        position: the position of the subscription, or of one of its synchronized tables.
    """
    fault = _publisher_fault(publisher, position)
    if fault is not None or position.digest is None:  # a user has set the position, or it is new
        return fault
    applied = publisher.slots.applied_lsn(subscription.slot_name or "") or INVALID_LSN
    if position.lsn >= applied:
        return None
    return _Fault(
        f'subscription "{subscription.name}" is at {format_lsn(position.lsn)}, but has confirmed'
        f" {format_lsn(applied)} to its publisher",
        _SUBSCRIBER_WENT_BACK,
    )


def _slot_fault(
    publisher: Publisher, subscription: Subscription, relations: Iterable[SubscriptionRelation]
) -> _Fault | None:
    """Return the fault of a subscription's slot: required changes may be gone.  Return None if
    there is none.

    A missing slot is no fault for a new subscription with create_slot = false, because the user
    creates its slot.
    """
    name = subscription.slot_name or ""
    try:
        has_slot = publisher.slots.applied_lsn(name) is not None
    except SlotInvalidated as error:  # the user must decide, so report a fault
        return _Fault(error.message, error.detail or "")
    if has_slot or not any(item.state.is_copied or item.method.compares for item in relations):
        return None
    return _Fault(f'replication slot "{name}" does not exist', _NO_SLOT)


def _batch_fault(publisher: Publisher, subscriber: Subscriber) -> _Fault | None:
    """Return the fault of a partly written batch: it cannot be finished, because the publisher no
    longer has its changes.  Return None if there is none.
    """
    batch = subscriber.state.unfinished_batch()
    if batch is None:
        return None
    return _publisher_fault(publisher, LogPosition(batch.to_lsn, batch.to_digest))


def _publisher_fault(publisher: Publisher, position: LogPosition) -> _Fault | None:
    """Return the fault of a position that the publisher's log does not contain; None if it does."""
    if publisher.slots.has_position(position):
        return None
    message = missing_position(position.lsn, publisher.slots.current_lsn())
    return _Fault(message, _PUBLISHER_WENT_BACK)


def _restart(run: SubscriptionRun, own: list[int]) -> None:
    """Let a subscription continue from the publisher's current log.  Create its slot again if
    necessary.

    Args:
        own: the own positions of tables, from which the log must be read.
    """
    publisher, subscription = run.publisher, run.subscription
    assert subscription.slot_name is not None
    try:
        publisher.slots.position(subscription.slot_name)
    except (UndefinedObject, SlotInvalidated):  # undefined if it is newer than the backup
        publisher.slots.create(
            subscription.slot_name,
            two_phase=subscription.two_phase_state == TwoPhaseState.ENABLED,
            failover=subscription.failover,
            publications=subscription.publications,
        )
    lsn = min([publisher.slots.current_lsn(), *own])
    run.subscriber.state.restart(LogPosition(lsn, publisher.slots.digest_at(lsn)))
