"""Compare a subscriber's table with its publisher for `replctl verify`, at the versions that the
subscription has applied.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_replication_slots import origin_progress
from replctl.catalog.pg_subscription import (
    Subscription,
    SubscriptionRelation,
    subscription_relations,
)
from replctl.catalog.pg_wal import last_committed_version
from replctl.catalog.transaction import Catalog
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.expr.nodes import Expr
from replctl.lake import commit_log
from replctl.lake.catalog_name import check_names
from replctl.lake.file_access import check_readable
from replctl.lake.native_target import check_native
from replctl.lake.received_type import received_types
from replctl.lake.remote_relation import sent_columns
from replctl.lake.table_read import enter_foreign_versions, numbered_as, visible_versions
from replctl.lake.target import replication_target
from replctl.lake.target_relations import TargetRelations, leaves_of_root
from replctl.own_command import own_command
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import RemoteRelation, Rows
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import Comparison, Leaf, Sides, SparkQuery


@dataclass(frozen=True, slots=True)
class PinnedTarget:
    """A table to compare, with fixed versions.

    Attributes:
        relation: the table.
        tree: the table's partition tree, by OID.
        lsn: the position in the publisher's log that the table has reached; 0 if nothing was copied
            or applied.
        versions: the Delta version of each leaf, by OID; None for a Delta table that does not exist
            yet.
    """

    relation: Relation
    tree: dict[int, Relation]
    lsn: int
    versions: dict[int, int | None]


def pinned_target(
    local: TargetRelations, subscription: Subscription, name: RelationName
) -> PinnedTarget:
    """Return a subscription's table with the versions to read, from one transaction of the catalog.
    First record the commits of other writers.  An unfinished batch is not visible.

    Args:
        name: the name of the published table.

    Raises:
        InsufficientPrivilege: the subscription may not read the table (42501).
        ObjectNotInPrerequisiteState: the table is not synchronized yet (55000).
        PostgresError: the table cannot be read.
    """
    session = local.session
    ((root, tree),) = local.trees([name]).values()
    local.check_comparison(root)
    leaves = {leaf.oid: leaf for leaf in leaves_of_root(root, tree)}
    enter_foreign_versions(session, list(leaves))
    with session.read() as catalog:
        check_readable(catalog, leaves.values())
        commit_log.newest_versions(catalog, leaves)
        lsn = _applied_lsn(catalog, subscription, root, session.cluster.path)
        visible = visible_versions(catalog, leaves)
        versions = {
            oid: visible[oid] if oid in visible else last_committed_version(catalog, oid)
            for oid in leaves
        }
    check_names(session, leaves)
    return PinnedTarget(root, tree, lsn, versions)


def compared(
    session: Session,
    pinned: PinnedTarget,
    remote: RemoteRelation,
    rows: Rows,
    owned: tuple[Expr, ...] | None,
    limit: int,
) -> Comparison:
    """Compare a table's own rows with the published rows.  If UPDATE is not published, rows with
    different values do not count as a difference.

    Args:
        rows: the publisher's rows at the table's LSN.
        owned: an unpublished row counts as a difference if it satisfies one of these conditions.
            With (), all unpublished rows count; with None, none.
        limit: maximum number of rows of each kind to return.

    Raises:
        PostgresError: the rows cannot be compared.
    """
    with session.read() as catalog:
        user_types = received_types(session.environment(catalog), pinned.relation)
        check_native(catalog, pinned.relation, remote)
    target = replication_target(pinned.relation, remote, pinned.tree, pinned.versions, user_types)
    sides = Sides(
        cast("SparkQuery", rows),
        sent_columns(remote),
        replace(target, leaves=tuple(_at_version(pinned, leaf) for leaf in target.leaves)),
        counts_different=Action.UPDATE in remote.actions,
        owned=owned,
    )
    return spark.jobs.compare(session.engine(), sides, limit)


def _at_version(pinned: PinnedTarget, leaf: Leaf) -> Leaf:
    """Return a leaf partition with the columns that its table has at the fixed version."""
    version = pinned.versions[leaf.relid]
    source = numbered_as(pinned.relation, pinned.tree[leaf.relid], version)
    return replace(leaf, source=source if version is not None else replace(source, location=None))


def _applied_lsn(catalog: Catalog, subscription: Subscription, root: Relation, home: Path) -> int:
    """Return the position in the publisher's log that a table has reached."""
    members = subscription_relations(catalog, subscription.oid)
    member = next((item for item in members if item.relid == root.oid), None)
    if member is None or not member.state.is_copied:
        raise ObjectNotInPrerequisiteState(
            f'table "{root.qualified_name}" is not synchronized yet',
            hint=f"Run: {own_command('sync', home=home, names=[subscription.name])}",
        )
    progress = origin_progress(catalog.connection, _origin_name(subscription, member)) or 0
    return max(member.lsn or 0, progress)


def _origin_name(subscription: Subscription, member: SubscriptionRelation) -> str:
    if member.state.is_applied:
        return subscription.origin_name
    return subscription.table_origin_name(member.relid)
