"""Initial copies of tables, and their hand-over to apply: states i, d, f, s, r (tablesync.c).

i  ->  d  a snapshot of the publisher is fixed, and kept over a crash
   ->  f  the rows are there, in one transaction of the subscriber
   ->  s  changes from behind the snapshot count
   ->  r  the table belongs to the subscription's apply
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_subscription import RelState, Subscription, SubscriptionRelation
from replctl.errors import FeatureNotSupported
from replctl.injection_point import injection_point
from replctl.replication.node import Publisher, Snapshot, Subscriber


def unsynchronized(subscriber: Subscriber) -> list[tuple[str, str]]:
    """The tables, by (schema, name), that apply does not know yet."""
    relations = subscriber.relations()
    return [name for name, item in relations.items() if item.state is not RelState.READY]


def has_begun_copies(subscriber: Subscriber) -> bool:
    """Whether a copy is half done, so that it still needs the changes from behind its snapshot."""
    return any(item.snapshot is not None for item in subscriber.relations().values())


def synchronize(
    publisher: Publisher, subscriber: Subscriber, subscription: Subscription, name: tuple[str, str]
) -> None:
    """Bring a table to state r, from whatever state a crash has left it in.

    Raises:
        PostgresError: its rows cannot be copied; it stays in state d, and the next attempt begins
            anew.
    """
    relation = subscriber.relations()[name]
    if not relation.state.is_copied:
        _copy(publisher, subscriber, subscription, name, relation)
        relation = subscriber.relations()[name]
    if relation.state is RelState.FINISHEDCOPY:
        relation = replace(relation, state=RelState.SYNCDONE)
        subscriber.put_state(relation)
    injection_point("tablesync.before-ready")
    subscriber.put_state(replace(relation, state=RelState.READY))


def _copy(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    name: tuple[str, str],
    relation: SubscriptionRelation,
) -> None:
    if relation.snapshot is None:
        relation = subscriber.begin_copy(relation, publisher.snapshot(*name))
    begun = relation.snapshot
    assert begun is not None
    _check_origin(subscription)
    snapshot = Snapshot(begun.lsn, begun.publisher_state)
    remote, rows = publisher.copy(subscription.publications, *name, snapshot)
    subscriber.copy(relation, remote, rows)


def _check_origin(subscription: Subscription) -> None:
    """What a copy cannot do."""
    if subscription.origin not in ("any", "none"):
        raise FeatureNotSupported(f'origin "{subscription.origin}" is not supported')
