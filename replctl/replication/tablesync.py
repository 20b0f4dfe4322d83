"""Synchronization of tables, next to the apply of those that are ready: states i, d, f, s, r
(tablesync.c).

i  →  d  a snapshot of the publisher is fixed, and kept over a crash
   →  f  the rows are there, in one transaction of the subscriber; changes from behind the snapshot
          are applied to this table alone, until it is where apply is
   →  s  it is there
   →  r  the table belongs to the subscription's apply

A slot of the table's own holds back what its copy and its changes need.  When a copy fails, apply
goes on without the table.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_subscription import RelState, Subscription, SubscriptionRelation
from replctl.catalog.worker import client_name
from replctl.conninfo import application_name
from replctl.errors import (
    ConnectionFailure,
    PostgresError,
    UndefinedFile,
    UndefinedObject,
)
from replctl.injection_point import injection_point
from replctl.replication.apply import OnApplied, catch_up
from replctl.replication.conflict import ReplacedTable
from replctl.replication.node import Publisher, RowCounts, Snapshot, Subscriber


def unsynchronized(subscriber: Subscriber) -> list[tuple[str, str]]:
    """Return the tables, by (schema, name), that apply does not know yet."""
    relations = subscriber.state.relations()
    return [name for name, item in relations.items() if item.state is not RelState.READY]


def synchronize(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    on_applied: OnApplied,
) -> None:
    """Bring a table to state f, from whatever state a crash has left it in, and then to the end of
    the publisher's log.  Apply may go on meanwhile.

    Args:
        on_applied: called with what is written: the rows of the copy, without transactions, and
            then as apply calls it.

    Raises:
        PostgresError: its rows cannot be copied, or changes of it cannot be applied; the next
            attempt goes on from there, or begins again if nothing is written.
    """
    relation = subscriber.state.relations().get(name)
    if relation is not None and not relation.state.is_copied:
        on_applied((), _copy(publisher, subscriber, subscription, name, relation))
        relation = subscriber.state.relations().get(name)
    if relation is not None and relation.state is RelState.FINISHEDCOPY:
        _check_slot(publisher, _slot_name(subscriber, subscription, relation))
        table = subscriber.of_table(relation)
        table.state.check_targets()
        end = publisher.slots.sendable_lsn(_slot_name(subscriber, subscription, relation), [name])
        catch_up(publisher, table, subscription, end, on_applied)


def hand_over(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    on_applied: OnApplied,
) -> None:
    """Make a synchronized table apply's: states s and r.  Apply stands still meanwhile.

    Args:
        on_applied: as for `synchronize`.

    Raises:
        PostgresError: changes of it cannot be applied; it stays in state f.
    """
    relation = subscriber.state.relations().get(name)
    if relation is None:  # a refresh has taken it out of the subscription
        return
    if relation.state is RelState.FINISHEDCOPY:
        table = subscriber.of_table(relation)
        table.state.check_targets()
        lsn = catch_up(publisher, table, subscription, subscriber.state.progress(), on_applied)
        injection_point("tablesync.before-syncdone")
        digest = publisher.slots.digest_at(lsn)
        relation = replace(relation, state=RelState.SYNCDONE, lsn=lsn, digest=digest)
        subscriber.state.put_state(relation)
    injection_point("tablesync.before-ready")
    drop_slot(publisher, _slot_name(subscriber, subscription, relation))
    subscriber.state.put_state(replace(relation, state=RelState.READY))


def drop_slot(publisher: Publisher, name: str) -> bool:
    """Drop the slot of a table, if it is there; whether it was."""
    try:
        publisher.slots.drop(name)
    except UndefinedObject:
        return False
    return True


def _copy(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    relation: SubscriptionRelation,
) -> RowCounts:
    """Copy a table; if what its snapshot reads is gone meanwhile, once more from a newer one: what
    is written of it is undone."""
    begun = _begun_copy(publisher, subscriber, subscription, name, relation)
    try:
        return _copy_begun(publisher, subscriber, subscription, name, begun)
    except (UndefinedFile, ReplacedTable):
        newer = subscriber.state.relations().get(name)
        if newer is None:
            raise
        if newer.snapshot is not None:
            subscriber.of_table(newer).copies.abandon()
            newer = subscriber.state.relations()[name]
    begun = _begun_copy(publisher, subscriber, subscription, name, newer)
    return _copy_begun(publisher, subscriber, subscription, name, begun)


def _begun_copy(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    relation: SubscriptionRelation,
) -> SubscriptionRelation:
    """Return the table in state d: with the snapshot that a crash has left, or a new one."""
    if relation.snapshot is not None:
        return relation
    slot_name = _slot_name(subscriber, subscription, relation)
    drop_slot(publisher, slot_name)  # of an attempt before
    publisher.slots.create(
        slot_name,
        two_phase=False,
        failover=subscription.failover,
        publications=subscription.publications,
    )
    return subscriber.copies.begin(relation, publisher.tables.snapshot(*name))


def _copy_begun(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    relation: SubscriptionRelation,
) -> RowCounts:
    begun = relation.snapshot
    assert begun is not None
    snapshot = Snapshot(begun.lsn, begun.publisher_state, begun.digest)
    slot_name = _slot_name(subscriber, subscription, relation)
    client = client_name(subscriber.state.synchronization_id, subscription.oid)
    application = application_name(subscription.conninfo, slot_name)
    publisher.slots.start_replication(slot_name, client, application, subscription.publications)
    try:
        _check_slot(publisher, slot_name)
        remote, rows = publisher.tables.copy(subscription.publications, *name, snapshot)
        return subscriber.copies.write(relation, remote, rows)
    except ConnectionFailure:  # a Spark server may still write: the same copy again, which is seen
        raise
    except PostgresError:
        subscriber.copies.give_up(relation)
        raise
    finally:
        publisher.slots.end_replication(slot_name, stays=False)


def _check_slot(publisher: Publisher, name: str) -> None:
    """Check whether what the slot of a table holds back is still there; without a slot nobody
    knows."""
    try:
        publisher.slots.position(name)
    except UndefinedObject:
        return


def _slot_name(
    subscriber: Subscriber, subscription: Subscription, relation: SubscriptionRelation
) -> str:
    return subscription.table_slot_name(relation.relid, subscriber.state.synchronization_id)
