"""Define a run of a subscription, which table synchronization and apply share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from replctl.catalog.pg_subscription import Subscription, SubscriptionRelation
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.node import Publisher, RemoteTransaction, RowCounts, Subscriber
from replctl.replication.table_definition import SchemaChange

#: A function that is called with transactions that were applied together, and with the number of
#: rows that they have changed.
OnApplied: TypeAlias = Callable[[Sequence[RemoteTransaction], RowCounts], None]


@dataclass(frozen=True, slots=True)
class SubscriptionRun:
    """A running subscription with its publisher and subscriber.

    Attributes:
        on_progress: called with a description of the current work, the amount done, and the total.
        on_applied: called after transactions are written.  After a copy it is called without
            transactions.
        follow_schema: called with each change of published definitions, after all changes before it
            are applied; None if the subscriber does not follow them.
        follow_copied: called with a table and the LSN of a snapshot before a copy reads the
            snapshot; None if the subscriber does not follow changes of definitions.
    """

    publisher: Publisher
    subscriber: Subscriber
    subscription: Subscription
    on_progress: Callable[[str, int, int], None] = field(default=lambda what, done, total: None)
    on_applied: OnApplied = field(default=lambda transactions, rows: None)
    follow_schema: Callable[[SubscriptionRun, SchemaChange], None] | None = None
    follow_copied: Callable[[SubscriptionRun, RelationName, int], None] | None = None

    def of_table(self, relation: SubscriptionRelation) -> SubscriptionRun:
        """Return the run of the same subscription for the synchronization of one table."""
        return replace(
            self,
            subscriber=self.subscriber.of_table(relation),
            on_progress=lambda what, done, total: None,
        )

    def schema_changes(self, from_lsn: int, to_lsn: int) -> list[SchemaChange]:
        """Return the changes of published definitions in (from_lsn, to_lsn] that the subscriber
        has to follow.
        """
        if self.follow_schema is None:
            return []
        names = self.subscription.publications
        changes = self.publisher.tables.schema_changes(names, from_lsn, to_lsn)
        followed = self.subscriber.state.followed_lsn() if changes else 0
        return [change for change in changes if change.lsn > followed]

    def log_range(self, from_lsn: int, to_lsn: int) -> LogRange:
        """Return a range of the publisher's log, with the changes that the subscriber now
        requires.
        """
        positions = self.subscriber.state.applied_positions()
        return LogRange.of_subscription(self.subscription, positions, to_lsn, from_lsn)

    def slot_name(self, relation: SubscriptionRelation) -> str:
        """Return the name of the slot of a table that is being synchronized."""
        identifier = self.subscriber.state.synchronization_id
        return self.subscription.table_slot_name(relation.relid, identifier)
