"""Synchronize tables, while apply continues for tables that are ready (tablesync.c).

A table's synchronization goes through these states:

i  (initialize) nothing has happened yet
d  (data) the subscription has recorded a snapshot of the publisher, so that it survives a crash
f  (finished copy) one transaction of the subscriber has written the rows.  Now the changes after
   the snapshot are applied to this table alone, until it has reached the position of apply
s  (synchronized) the table has reached the position of apply.  From now on the subscription's apply
   writes the changes after the table's LSN
r  (ready) the table no longer has a slot and an origin of its own

The table's own slot retains the versions that its copy and its changes need.  If a copy fails,
apply continues without the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from replctl.relation_name import RelationName
from replctl.replication.apply import catch_up
from replctl.replication.apply_error import DecodingFailure, ReplacedTable
from replctl.replication.node import (
    Publisher,
    RemoteRelation,
    RowCounts,
    Rows,
    Snapshot,
    Subscriber,
)
from replctl.replication.subscription_run import SubscriptionRun


def unsynchronized(subscriber: Subscriber) -> list[RelationName]:
    """Return the published tables, by schema and name, that are not handed over to apply yet."""
    relations = subscriber.state.relations()
    return [name for name, item in relations.items() if item.state is not RelState.READY]


def synchronize(
    run: SubscriptionRun,
    name: RelationName,
) -> None:
    """Copy a table (state f), and apply its changes up to the end of the publisher's log.  Apply of
    other tables may continue meanwhile.  An earlier attempt that was interrupted in any state is
    continued.

    Raises:
        PostgresError: the rows cannot be copied, or the changes cannot be applied.  The next
            attempt continues from there, or starts again if nothing is written.
    """
    relation = run.subscriber.state.relations().get(name)
    if relation is not None and not relation.state.is_copied:
        run.on_applied((), _copy(run, name, relation))
        relation = run.subscriber.state.relations().get(name)
    if relation is not None and relation.state is RelState.FINISHEDCOPY:
        _check_slot(run.publisher, run.slot_name(relation))
        table = run.of_table(relation)
        table.subscriber.state.check_targets()
        end = run.publisher.slots.sendable_lsn(run.slot_name(relation), [name])
        catch_up(table, end)


def hand_over(
    run: SubscriptionRun,
    name: RelationName,
) -> None:
    """Hand a copied table over to apply (states s and r).  Apply must pause meanwhile.

    Raises:
        PostgresError: the table's changes cannot be applied.  The table stays in state f.
    """
    relation = run.subscriber.state.relations().get(name)
    if relation is None:  # a REFRESH has removed the table from the subscription
        return
    if relation.state is RelState.FINISHEDCOPY:
        table = run.of_table(relation)
        table.subscriber.state.check_targets()
        state = run.subscriber.state
        # Apply may have repeated the definitions of its next commit: this table must do so, too
        lsn = catch_up(table, max(state.position().lsn, state.followed_lsn()))
        injection_point("tablesync.before-syncdone")
        digest = run.publisher.slots.digest_at(lsn)
        relation = replace(relation, state=RelState.SYNCDONE, lsn=lsn, digest=digest)
        run.subscriber.state.put_state(relation)
    injection_point("tablesync.before-ready")
    drop_slot(run.publisher, run.slot_name(relation))
    run.subscriber.state.put_state(replace(relation, state=RelState.READY))


def drop_slot(publisher: Publisher, name: str) -> bool:
    """Drop the slot of a table if it exists, and return whether it existed."""
    try:
        publisher.slots.drop(name)
    except UndefinedObject:  # an earlier attempt has dropped it
        return False
    return True


def _copy(
    run: SubscriptionRun,
    name: RelationName,
    relation: SubscriptionRelation,
) -> RowCounts:
    """Copy a table.  If the versions of its snapshot are gone, undo the copy and start again with a
    new snapshot.
    """
    begun = _begun_copy(run, name, relation)
    try:
        return _copy_begun(run, name, begun)
    except (UndefinedFile, ReplacedTable):  # a new snapshot may be readable
        newer = run.subscriber.state.relations().get(name)
        if newer is None:
            raise
        if newer.snapshot is not None:
            run.subscriber.of_table(newer).copies.abandon()
            newer = run.subscriber.state.relations()[name]
    begun = _begun_copy(run, name, newer)
    return _copy_begun(run, name, begun)


def _begun_copy(
    run: SubscriptionRun,
    name: RelationName,
    relation: SubscriptionRelation,
) -> SubscriptionRelation:
    """Return the table in state d, with the snapshot of an interrupted attempt, or with a new
    snapshot.
    """
    if relation.snapshot is not None:
        return relation
    slot_name = run.slot_name(relation)
    drop_slot(run.publisher, slot_name)  # a slot of an earlier attempt
    run.publisher.slots.create(
        slot_name,
        two_phase=False,
        failover=run.subscription.failover,
        publications=run.subscription.publications,
    )
    snapshot = run.publisher.tables.snapshot(name)
    if run.follow_copied is not None:  # later, the unfinished copy would refuse other types
        run.follow_copied(run, name, snapshot.lsn)
    return run.subscriber.copies.begin(relation, snapshot)


def _copy_begun(
    run: SubscriptionRun, name: RelationName, relation: SubscriptionRelation
) -> RowCounts:
    begun = relation.snapshot
    assert begun is not None
    snapshot = Snapshot(begun.lsn, begun.publisher_state, begun.digest)
    slot_name = run.slot_name(relation)
    client = client_name(run.subscriber.state.synchronization_id, run.subscription.oid)
    application = application_name(run.subscription.conninfo, slot_name)
    publications = run.subscription.publications
    run.publisher.slots.start_replication(slot_name, client, application, publications)
    try:
        _check_slot(run.publisher, slot_name)
        read = published_rows(run.publisher, run.subscriber, run.subscription, name, snapshot)
        with read as (remote, rows):
            return run.subscriber.copies.write(relation, remote, rows)
    except ConnectionFailure:  # Spark may still write; it recognises the same copy later
        raise
    except PostgresError:
        run.subscriber.copies.give_up(relation)
        raise
    finally:
        run.publisher.slots.end_replication(slot_name, stays=False)


@contextmanager
def published_rows(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: RelationName,
    snapshot: Snapshot,
) -> Iterator[tuple[RemoteRelation, Rows]]:
    """Yield the rows of a published table that a subscription copies or compares.

    Raises:
        PostgresError: the rows cannot be read (PublishedTables.copy).  The HINT is for the
            subscription.
    """
    try:
        with publisher.tables.copy(subscription.publications, name, snapshot) as found:
            yield found
    except DecodingFailure as failure:
        raise failure.reported(subscription, subscriber.origins.is_own) from failure


def _check_slot(publisher: Publisher, name: str) -> None:
    """Check that the versions that a table's slot retains still exist.  Do nothing if the slot does
    not exist.
    """
    try:
        publisher.slots.position(name)
    except UndefinedObject:  # reading the changes reports lost versions
        return
