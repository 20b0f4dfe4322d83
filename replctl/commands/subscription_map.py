"""The option table_map of a subscription: read its value, find the targets, and change the map for
tables that are not synchronized yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replctl.catalog.pg_class import (
    find_relation_oid,
    load_relations,
    relation_names,
)
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    delete_subscription_relation,
    insert_subscription_relation,
    subscription_relations,
)
from replctl.catalog.relation_kind import TABLE_KINDS, RelPersistence
from replctl.catalog.table_copy import CopyMethod
from replctl.catalog.table_map import TableMap, parse_table_map, shown_pair
from replctl.catalog.transaction import Catalog
from replctl.commands.naming import creation_schema
from replctl.commands.subscription_table import change_known, give_up, read_again
from replctl.does_not_exist import no_relation, no_schema
from replctl.errors import ObjectNotInPrerequisiteState, WrongObjectType
from replctl.lake.definition import changing_definitions
from replctl.open_node import open_publisher
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import RemoteRelation
from replctl.session import Session
from replctl.transaction_block import prevent_in_block


def given_map(session: Session, text: str, *, creates: bool = False) -> TableMap:
    """Return the map that a value of table_map describes.  Look up a target without a schema on the
    search path.

    Args:
        creates: the statement creates missing targets.  A target that no schema of the search path
            has is then in the schema in which CREATE TABLE would create it.

    Raises:
        UndefinedTable: there is no such target.
        InvalidSchemaName, InsufficientPrivilege: see creation_schema.
        InvalidParameterValue, SqlSyntaxError, DuplicateObject: see parse_table_map.
    """

    def schema_of(name: str) -> str:
        with session.read() as catalog:
            environment = session.environment(catalog)
            oid = environment.relation_oid(None, name)
            if oid is None and creates:
                return creation_schema(environment, None, name).name
            found = {} if oid is None else relation_names(catalog, [oid])
        if oid not in found:
            raise no_relation(name)
        return found[oid][0]

    return parse_table_map(text, schema_of)


def published_by_target(
    session: Session, subscription: Subscription, published: Sequence[RemoteRelation]
) -> dict[int, RemoteRelation]:
    """Return the published tables by the OIDs of their targets.

    Raises:
        UndefinedTable: a target does not exist (42P01).
        WrongObjectType: a target is not a table (42809).
        InvalidParameterValue: two published tables have the same target (22023).
    """
    map_ = subscription.table_map
    map_.check_targets(item.relation_name for item in published)
    with session.read() as catalog:
        return {_target_oid(catalog, map_.target(item.relation_name)): item for item in published}


def warn_of_unpublished(
    session: Session, subscription: Subscription, published: Sequence[RemoteRelation]
) -> None:
    """Warn of source tables in the map that are not published, at least not yet."""
    known = {item.relation_name for item in published}
    for name, _target in subscription.table_map.pairs:
        if name not in known:
            session.notice(
                f'table "{name}" of table_map is not published',
                severity="WARNING",
                sqlstate="42704",
            )


def change_map(
    session: Session, subscription: Subscription, change: Callable[[Subscription], Subscription]
) -> None:
    """Change a subscription and its map.  If a table with a new target is not synchronized yet,
    undo its partial copy in the old target, and let the next sync copy it into the new target.

    Args:
        change: see change_subscription.

    Raises:
        ObjectNotInPrerequisiteState: a table with a new target is already synchronized (55000).
        UndefinedTable: a new target does not exist.
    """
    prevent_in_block(session.block, "ALTER SUBSCRIPTION ... SET (table_map)")
    with changing_definitions(session) as catalog:
        if not _moves(catalog, subscription, change):
            change_known(catalog, subscription, change)
            return

    # A sync must not run the subscription meanwhile (give_up)
    with (
        open_publisher(session, subscription) as publisher,
        session.cluster.lock(f"subscription-{subscription.oid}"),
    ):
        with session.read() as catalog:  # read again under the lock
            moves = _moves(catalog, subscription, change)
        give_up(session, publisher, subscription, [move.member.relid for move in moves])
        with changing_definitions(session) as catalog:
            moves = _moves(catalog, subscription, change)  # others may have joined, but not begun
            change_known(catalog, subscription, change)
            for move in moves:
                delete_subscription_relation(catalog, subscription.oid, move.member.relid)
            for move in moves:
                insert_subscription_relation(catalog, move.entering)


@dataclass(frozen=True, slots=True)
class _Move:
    """A table of a subscription that gets another target or another published table."""

    member: SubscriptionRelation
    target_oid: int

    @property
    def entering(self) -> SubscriptionRelation:
        """Return the table with its new target, in its initial state.  An automatic
        resynchronization becomes a reconcile.
        """
        method = self.member.method
        return SubscriptionRelation(
            self.member.subscription_oid,
            self.target_oid,
            RelState.INIT,
            method=CopyMethod.RECONCILE if method is CopyMethod.RESYNC else method,
            deletion=self.member.deletion,
        )


def _moves(
    catalog: Catalog, known: Subscription, change: Callable[[Subscription], Subscription]
) -> list[_Move]:
    """Return the tables whose target or published table a change of the map changes."""
    subscription = read_again(catalog, known)
    return list(_moves_between(catalog, subscription, change(subscription)))


def _moves_between(
    catalog: Catalog, subscription: Subscription, changed: Subscription
) -> Iterator[_Move]:
    members = subscription_relations(catalog, subscription.oid)
    names = relation_names(catalog, [member.relid for member in members])
    old, new = subscription.table_map, changed.table_map
    sources = {
        item.relid: old.published(names[item.relid]) for item in members if item.relid in names
    }
    new.check_targets(source for source in sources.values() if source is not None)
    for member in members:
        published = sources.get(member.relid)
        if published is None or new.published(names[member.relid]) == published:
            continue
        if member.state.is_applied:
            raise ObjectNotInPrerequisiteState(
                f'cannot change the target of published table "{published}"',
                detail=f'Subscription "{subscription.name}" has synchronized it:'
                f" {shown_pair(published, names[member.relid])}.",
                hint="Use DROP/CREATE SUBSCRIPTION.",
            )
        yield _Move(member, _target_oid(catalog, new.target(published)))


def _target_oid(catalog: Catalog, target: RelationName) -> int:
    schema_oid = find_schema(catalog, target[0])
    if schema_oid is None:
        raise no_schema(target[0])
    oid = find_relation_oid(catalog, target[1], schema_oid)
    if oid is None:
        raise no_relation(str(target))
    relation = load_relations(catalog, [oid])[oid]
    if relation.kind in TABLE_KINDS and relation.persistence != RelPersistence.TEMPORARY:
        return oid
    kinds = (
        "temporary tables"
        if relation.persistence == RelPersistence.TEMPORARY
        else relation.kind.plural
    )
    raise WrongObjectType(
        f'cannot use relation "{target}" as logical replication target',
        detail=f"This operation is not supported for {kinds}.",
    )
