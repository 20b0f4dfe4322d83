"""Present a database of a cluster as a subscriber."""

from __future__ import annotations

from replctl.catalog.pg_subscription import Subscription, SubscriptionRelation
from replctl.lake.batch_apply import BatchApply
from replctl.lake.schema_rewrite import rewrite_when_free
from replctl.lake.subscriber_state import SubscriberState
from replctl.lake.target_check import applied_leaves
from replctl.lake.target_copy import TargetCopy
from replctl.lake.target_origins import TargetOrigins
from replctl.session import Session


class LakeSubscriber:
    """The subscriber of a session's database, for one subscription (replication.node.Subscriber).

    Args:
        table: the table to synchronize; None: apply changes to the tables that are ready.
    """

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        table: SubscriptionRelation | None = None,
    ) -> None:
        self.state = SubscriberState(session, subscription, table)
        self.copies = TargetCopy(self.state)
        self.changes = BatchApply(self.state)
        self.origins = TargetOrigins(self.state)

    def change_columns(self) -> None:
        """Rewrite the Delta tables that lack the columns of their relations, as a write does.

        Raises:
            PostgresError: a table cannot be written.
        """
        session, table = self.state.session, self.state.table
        with session.read() as catalog:
            relid = None if table is None else table.relid
            leaves = applied_leaves(catalog, self.state.subscription, relid)
        rewrite_when_free(session, leaves.values())

    def of_table(self, relation: SubscriptionRelation) -> LakeSubscriber:
        """Return the subscriber of the same subscription for the synchronization of one table."""
        return LakeSubscriber(self.state.session, self.state.subscription, relation)
