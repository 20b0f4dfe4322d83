"""Reconcile tables automatically (subscriptions with resync = auto)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from replctl import spark
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import drop_origin
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    update_subscription_relation,
)
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.catalog.transaction import Catalog
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.partition_tree import partition_tree
from replctl.lake.replicated_table import ReplicatedTable
from replctl.lake.row_owner import has_own_rows
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.target_relations import leaves_of_root
from replctl.replication.reconcile_rules import RowOwnership, loses_too_many
from replctl.replication.refresh_hint import refresh_hint
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark import Staged

_NOT_OWN = "Others have changed rows of the table, so replctl does not reconcile it automatically."


def objection(
    session: Session, subscription: Subscription, member: SubscriptionRelation
) -> str | None:
    """Return the reason why a table may not be reconciled automatically; None if it may.

    First record the commits of other writers.
    """
    with session.read() as catalog:
        root = load_relations(catalog, [member.relid])[member.relid]
        tree = partition_tree(catalog, root)
    enter_foreign_versions(session, [leaf.oid for leaf in leaves_of_root(root, tree)])
    with session.read() as catalog:
        is_own = has_own_rows(catalog, subscription, member, root, tree)
    return None if is_own else _NOT_OWN


def begin_again(
    catalog: Catalog,
    subscription: Subscription,
    member: SubscriptionRelation,
    method: CopyMethod,
    deletion: Deletion | None = None,
) -> None:
    """Set a table to state i, so that its next synchronization starts from the beginning.

    Args:
        member: the table's current state, without a partly written copy or batch.
        method: the effect of the copy on existing rows.
        deletion: the rule for the rows that the copy may delete.
    """
    new = replace(
        member,
        state=RelState.INIT,
        lsn=None,
        digest=None,
        snapshot=None,
        method=method,
        deletion=deletion,
    )
    update_subscription_relation(catalog, new)
    drop_origin(catalog.connection, subscription.table_origin_name(member.relid))


def check_ownership(
    subscription: Subscription, relation: Relation, ownership: RowOwnership
) -> None:
    """Check that an automatically reconciled table still has only rows of the subscription.

    Raises:
        ObjectNotInPrerequisiteState: the table has other rows (55000).
    """
    if not ownership.is_own:
        raise ObjectNotInPrerequisiteState(
            f'table "{relation.qualified_name}" cannot be reconciled automatically',
            detail=_NOT_OWN,
            hint=refresh_hint(subscription, relation.relation_name),
        )


def check_loss(
    session: Session, subscription: Subscription, table: ReplicatedTable, difference: Staged
) -> None:
    """Check that an automatically reconciled table does not lose too many rows.

    Raises:
        ObjectNotInPrerequisiteState: more than resync_max_delete percent would be lost (55000).
    """
    deleted, total = spark.jobs.count_deleted(session.engine(), table.target, difference)
    percentage = subscription.resync_max_delete
    if not loses_too_many(deleted, total, percentage):
        return
    relation = table.relation
    raise ObjectNotInPrerequisiteState(
        f'table "{relation.qualified_name}" cannot be reconciled automatically:'
        f" {deleted} of its {total} rows would be deleted",
        detail=f"That is more than {percentage} percent, which resync_max_delete allows. The table"
        " at the publisher may be empty only until a program loads it again.",
        hint=refresh_hint(subscription, relation.relation_name),
    )
