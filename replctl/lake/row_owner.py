"""Find out from the catalog and the commit log which rows of a subscriber's table belong to a
subscription.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_subscription import Subscription, SubscriptionRelation
from replctl.catalog.row_history import feeding_members, has_changes_of_others
from replctl.catalog.table_copy import CopyMethod, Deletion, merged_filters
from replctl.catalog.transaction import Catalog
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.target_fault import note_removal
from replctl.lake.target_relations import leaves_of_root
from replctl.replication.node import RemoteRelation
from replctl.replication.reconcile_rules import (
    LocalColumn,
    RowOwnership,
    UnpublishedRows,
    scope_of,
    undecided_reasons,
)
from replctl.replication.refresh_hint import refresh_hint
from replctl.replication.update_transformation import Action


def row_ownership(
    catalog: Catalog,
    subscription: Subscription,
    member: SubscriptionRelation,
    remote: RemoteRelation,
    root: Relation,
    tree: Mapping[int, Relation],
) -> RowOwnership:
    """Return the known facts about the ownership of a table's rows.

    Args:
        member: the table's entry in the subscription.
        remote: the published table.
        root: the target, which may be partitioned.
        tree: the relations of the target's partition tree, by OID.  It includes `root`.
    """
    feeds = _other_feeds(catalog, subscription, member, root, tree)
    overlapping = _overlapping(feeds, root, tree)
    columns = {c.name: LocalColumn(c.attnum, c.type, c.typmod) for c in root.columns}
    return RowOwnership(
        publishes_delete=Action.DELETE in remote.actions,
        is_own=has_own_rows(catalog, subscription, member, root, tree),
        has_other_feeds=subscription.oid in overlapping
        or any(oid != subscription.oid for oid, _relid in feeds),
        has_any_origin=subscription.origin.lower() == "any",
        scope=scope_of(merged_filters(member.applied, remote.filters), remote, columns),
    )


def has_own_rows(
    catalog: Catalog,
    subscription: Subscription,
    member: SubscriptionRelation,
    root: Relation,
    tree: Mapping[int, Relation],
) -> bool:
    """Return whether all rows of a table come from this published table.  This is so if the
    subscription made every commit that changed rows since the table was empty, copied or
    reconciled.  A RESTORE by another program counts as a commit of that program.

    Args:
        member, root, tree: see `row_ownership`.
    """
    feeds = _other_feeds(catalog, subscription, member, root, tree)
    if subscription.oid in _overlapping(feeds, root, tree):
        return False
    origins = (subscription.origin_name, subscription.table_origin_name(member.relid))
    leaves = _leaf_oids(root, tree)
    return not has_changes_of_others(catalog, leaves, origins, member.owned_since)


def _other_feeds(
    catalog: Catalog,
    subscription: Subscription,
    member: SubscriptionRelation,
    root: Relation,
    tree: Mapping[int, Relation],
) -> set[tuple[int, int]]:
    """Return the other subscriptions that write a partition tree, each with its table: two OIDs."""
    return feeding_members(catalog, {root.oid, *tree}) - {(subscription.oid, member.relid)}


def _overlapping(
    feeds: set[tuple[int, int]], root: Relation, tree: Mapping[int, Relation]
) -> set[int]:
    """Return the subscriptions among the feeds that write leaf partitions of a table."""
    leaves = _leaf_oids(root, tree)
    return {oid for oid, relid in feeds if leaves & _leaf_oids(tree.get(relid, root), tree)}


def _leaf_oids(root: Relation, tree: Mapping[int, Relation]) -> set[int]:
    return {leaf.oid for leaf in leaves_of_root(root, tree)}


def note_lost_rows(
    catalog: Catalog,
    subscription: Subscription,
    member: SubscriptionRelation,
    root: Relation,
    tree: Mapping[int, Relation],
) -> None:
    """Record a fault for the other subscriptions and tables whose rows a copy has removed: the copy
    has replaced all rows, or the statement had `delete = all`.

    Args:
        member, root, tree: see `row_ownership`.
    """
    if member.method is not CopyMethod.REPLACE and member.deletion is not Deletion.ALL:
        return
    leaves = _leaf_oids(root, tree)
    for oid, relid in _other_feeds(catalog, subscription, member, root, tree):
        if leaves & _leaf_oids(tree.get(relid, root), tree):
            note_removal(catalog, oid, relid, subscription, root)


def copied_member(
    member: SubscriptionRelation, remote: RemoteRelation, deletion: Deletion | None, local_lsn: int
) -> SubscriptionRelation:
    """Return the entry of a table in a subscription after its copy, with the new ownership of its
    rows.

    Args:
        remote: the published table at the time of the copy.
        deletion: the rule by which a reconcile deleted rows.
        local_lsn: the copy's position in the database's own log.
    """
    is_whole = member.method is CopyMethod.REPLACE or deletion is Deletion.ALL
    forgets = is_whole or deletion is Deletion.SCOPE
    return replace(
        member,
        method=CopyMethod.APPEND,
        deletion=None,
        definition=remote.definition,
        applied=merged_filters(() if forgets else member.applied, remote.filters),
        owned_since=local_lsn if is_whole else member.owned_since,
    )


def check_deletion(
    subscription: Subscription, relation: Relation, ownership: RowOwnership, said: Deletion | None
) -> None:
    """Check that a statement's rule for the rows to delete can be applied.

    Args:
        said: the rule; None if the statement has none.

    Raises:
        ObjectNotInPrerequisiteState: the rule cannot be applied (55000).
    """
    name = relation.qualified_name
    if said in (Deletion.SCOPE, Deletion.ALL) and not ownership.publishes_delete:
        raise ObjectNotInPrerequisiteState(
            f'rows of table "{name}" cannot be deleted: no publication of subscription'
            f' "{subscription.name}" publishes its deletes',
            hint=_statement(subscription, relation, "delete = none"),
        )
    if said is Deletion.SCOPE and ownership.scope.problem is not None:
        raise ObjectNotInPrerequisiteState(
            f'cannot determine which rows of table "{name}" pass the row filters of subscription'
            f' "{subscription.name}"',
            detail=ownership.scope.problem,
            hint=_statement(subscription, relation, "delete = none"),
        )


def undecided(
    subscription: Subscription,
    relation: Relation,
    ownership: RowOwnership,
    counts: UnpublishedRows,
) -> ObjectNotInPrerequisiteState:
    """Return the error for a reconcile that cannot decide which rows it may delete."""
    known = ["Other writers have changed the table.", *undecided_reasons(ownership)]
    deleted = {Deletion.SCOPE: counts.in_scope, Deletion.ALL: counts.total, Deletion.NONE: 0}
    shown = [
        f"delete = {choice.value} deletes {count} {'row' if count == 1 else 'rows'}"
        for choice, count in deleted.items()
        if count is not None
    ]
    choice = Deletion.NONE if counts.in_scope is None else Deletion.SCOPE
    return ObjectNotInPrerequisiteState(
        f'cannot determine which rows of table "{relation.qualified_name}" belong to subscription'
        f' "{subscription.name}"',
        detail=f"{' '.join(known)} {', '.join(shown)}.",
        hint=_statement(subscription, relation, f"delete = {choice.value}"),
    )


def _statement(subscription: Subscription, relation: Relation, option: str) -> str:
    return refresh_hint(subscription, relation.relation_name, option)
