"""Single tables of a subscription: synchronize a table again, or remove a table that is being
synchronized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from replctl.catalog.column_origin import put_column_origins
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_class import Relation, leaf_partitions, load_relations
from replctl.catalog.pg_replication_slots import drop_origin
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    change_subscription,
    clear_fault,
    delete_subscription_relation,
    get_subscription,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.catalog.transaction import Catalog
from replctl.catalog.unfinished_write import writers_of
from replctl.commands.subscription_options import SubscriptionOptions, exclusive, parse_options
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedObject, UndefinedTable
from replctl.lake.definition import changing_definitions
from replctl.lake.resync import begin_again
from replctl.lake.subscriber import LakeSubscriber
from replctl.lake.unfinished_batch import leave_batch
from replctl.open_node import open_publisher
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.replication.node import Publisher, RemoteRelation, Rows
from replctl.replication.reconcile_rules import has_changed
from replctl.replication.tablesync import drop_slot, published_rows
from replctl.session import Session
from replctl.transaction_block import prevent_in_block


def read_again(catalog: Catalog, subscription: Subscription) -> Subscription:
    """Return the current state of a subscription that a statement has read before.

    Raises:
        UndefinedObject: another session has dropped the subscription (42704).
    """
    current = get_subscription(catalog, subscription.oid)
    if current is None:
        raise UndefinedObject(f'subscription "{subscription.name}" does not exist')
    return current


def has_publications_of(catalog: Catalog, subscription: Subscription) -> bool:
    """Return whether a subscription still has the publications and the map with which a statement
    has determined its tables.

    Raises:
        UndefinedObject: see read_again.
    """
    current = read_again(catalog, subscription)
    return (current.publications, current.table_map) == (
        subscription.publications,
        subscription.table_map,
    )


def change_known(
    catalog: Catalog, subscription: Subscription, change: Callable[[Subscription], Subscription]
) -> None:
    """Change a subscription that a statement has read before.

    Args:
        change: see change_subscription.

    Raises:
        UndefinedObject: see read_again.
    """
    read_again(catalog, subscription)
    change_subscription(catalog, subscription.oid, change)


def check_can_be_enabled(subscription: Subscription) -> None:
    """Check that a subscription can run.

    Raises:
        ObjectNotInPrerequisiteState: the subscription has no slot (55000).
    """
    if subscription.slot_name is None:
        raise ObjectNotInPrerequisiteState(
            "cannot enable subscription that does not have a slot name"
        )


def enabled(subscription: Subscription) -> Subscription:
    """Return a subscription in the enabled state.

    Raises:
        ObjectNotInPrerequisiteState: see check_can_be_enabled (55000).
    """
    check_can_be_enabled(subscription)
    return replace(subscription, enabled=True)


def refresh_tables(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    """Synchronize tables again (REFRESH TABLE, which PostgreSQL does not have).

    By default the synchronization writes only the rows that differ from the published rows.  With
    `replace` it writes all rows.  With `copy_data = false` it writes no rows, and the subscription
    applies the changes from now on.  `enabled` also enables a disabled subscription.

    Raises:
        UndefinedTable: the subscriber or the publisher has no such table.
        UndefinedObject: the table does not belong to the subscription (42704).
        ObjectNotInPrerequisiteState: the subscription is disabled, a table is being synchronized,
            or the statement must specify which rows to delete.
    """
    options = parse_options(statement.options, ("copy_data", "replace", "delete", "enabled"))
    is_enabling = options.has("enabled") and options.enabled and not subscription.enabled
    if not subscription.enabled and not is_enabling:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION ... REFRESH is not allowed for disabled subscriptions"
        )
    check_can_be_enabled(subscription)
    options.check_deletion(is_reconciled=options.copy_data and not options.replace)
    if options.replace and not options.copy_data:
        raise exclusive("copy_data = false", "replace = true")
    prevent_in_block(session.block, "ALTER SUBSCRIPTION ... REFRESH")
    with session.read() as catalog:
        environment = session.environment(catalog)
        named = [open_relation(environment, name) for name in statement.relations]
        relations = {item.oid: item for item in named if isinstance(item, Relation)}
        members = {item.oid: _member(catalog, subscription, item.oid, item.name) for item in named}
    method = CopyMethod.REPLACE if options.replace else CopyMethod.RECONCILE
    with open_publisher(session, subscription) as publisher:
        publisher.slots.current_lsn()  # record the columns that other programs have changed
        published = _published(publisher, subscription, list(relations.values()))
        if options.copy_data and method is CopyMethod.RECONCILE:
            for oid, remote in published.items():
                check_reconcile(
                    session, publisher, subscription, members[oid], remote, options.delete
                )
        lsn = publisher.slots.current_lsn([item.relation_name for item in published.values()])
        digest = publisher.slots.digest_at(lsn)
    with session.read() as catalog:
        leaves = {
            oid: [leaf.oid for leaf in leaf_partitions(catalog, relation)]
            for oid, relation in relations.items()
        }
        writers = writers_of(catalog, [oid for found in leaves.values() for oid in found])
    with ExitStack() as stack:
        begun = [member for member in members.values() if _is_begun(member)]
        if (begun or subscription.oid in writers) and options.copy_data:
            # A sync must not continue a copy that is abandoned here
            stack.enter_context(session.cluster.lock(f"subscription-{subscription.oid}"))
            subscriber = LakeSubscriber(session, subscription)
            for member in begun:
                subscriber.of_table(member).copies.abandon()
        catalog = stack.enter_context(changing_definitions(session))
        if is_enabling:
            change_known(catalog, subscription, enabled)
        for oid, relation in relations.items():
            member = _member(catalog, subscription, oid, relation.name)
            if options.copy_data:
                if not any(known.relid == oid for known in begun):
                    _check_not_begun(member, relation)
                if subscription.oid in writers:
                    leave_batch(catalog, session, subscription, leaves[oid])
                begin_again(catalog, subscription, member, method, options.delete)
            elif member.state is RelState.READY:
                update_subscription_relation(catalog, replace(member, lsn=lsn, digest=digest))
                clear_fault(catalog.connection, subscription.oid, oid)
                # The user takes the published columns as they are now
                put_column_origins(catalog.connection, subscription.oid, oid, {})
            else:
                raise _in_progress(member, relation)


def check_reconcile(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    member: SubscriptionRelation,
    remote: RemoteRelation,
    deletion: Deletion | None,
) -> None:
    """Check that a reconcile of a table can decide which rows to delete.

    Args:
        member: the table in the subscription.
        remote: the published table.
        deletion: the statement's rule for rows to delete, if it has one.

    Raises:
        ObjectNotInPrerequisiteState: the statement must specify the rule (55000).
    """

    subscriber = LakeSubscriber(session, subscription)
    with ExitStack() as stack:

        def rows() -> Rows:
            name = remote.relation_name
            snapshot = publisher.tables.snapshot(name)
            read = published_rows(publisher, subscriber, subscription, name, snapshot)
            return stack.enter_context(read)[1]

        said = replace(member, method=CopyMethod.RECONCILE, deletion=deletion)
        subscriber.copies.check_reconcile(said, remote, rows)


def new_member(
    subscription: Subscription,
    relid: int,
    table: RemoteRelation,
    options: SubscriptionOptions,
    start: LogPosition | None = None,
) -> SubscriptionRelation:
    """Return the entry for a table that a statement adds to a subscription.

    Args:
        start: the position in the log from which its changes apply if the table is not copied.
    """
    if options.copy_data:
        return SubscriptionRelation(
            subscription.oid,
            relid,
            RelState.INIT,
            method=options.copies_by,
            deletion=options.delete,
        )
    return SubscriptionRelation(
        subscription.oid,
        relid,
        RelState.READY,
        None if start is None else start.lsn,
        definition=table.definition,
        digest=None if start is None else start.digest,
    )


def check_reconciles(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    members: Sequence[SubscriptionRelation],
    tables: Mapping[int, RemoteRelation],
) -> None:
    """Check that the reconciles of new tables can decide which rows to delete."""
    for member in members:
        if member.method is CopyMethod.RECONCILE:
            remote = tables[member.relid]
            check_reconcile(session, publisher, subscription, member, remote, member.deletion)


def reconcile_changed(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    tables: Mapping[int, RemoteRelation],
    deletion: Deletion | None,
) -> None:
    """Reconcile the tables of a subscription whose row filter or column list has changed since they
    were copied.

    Args:
        tables: the published tables, by the OIDs of their targets.
        deletion: the statement's rule for rows to delete.

    Raises:
        ObjectNotInPrerequisiteState: one of the tables is being synchronized, or the statement must
            specify which rows to delete (55000).
    """
    with session.read() as catalog:
        relations = load_relations(catalog, tables)
        changed = [
            member
            for member in subscription_relations(catalog, subscription.oid)
            if member.relid in tables and has_changed(member, tables[member.relid])
        ]
    for member in changed:
        _check_not_begun(member, relations[member.relid])
        check_reconcile(session, publisher, subscription, member, tables[member.relid], deletion)
    with changing_definitions(session) as catalog:
        for known in changed:
            relation = relations[known.relid]
            member = _member(catalog, subscription, known.relid, relation.name)
            _check_not_begun(member, relation)
            begin_again(catalog, subscription, member, CopyMethod.RECONCILE, deletion)


def _member(
    catalog: Catalog, subscription: Subscription, relid: int, name: str
) -> SubscriptionRelation:
    for relation in subscription_relations(catalog, subscription.oid):
        if relation.relid == relid:
            return relation
    raise UndefinedObject(f'relation "{name}" is not part of the subscription')


def _published(
    publisher: Publisher, subscription: Subscription, relations: Sequence[Relation]
) -> dict[int, RemoteRelation]:
    """Return the published relations of tables, by the OIDs of these tables."""
    published = {
        subscription.table_map.target(remote.relation_name): remote
        for remote in publisher.tables.relations(subscription.publications)
    }
    for relation in relations:
        name = relation.relation_name
        if name not in published:
            source = ".".join(subscription.table_map.published(name) or name)
            raise UndefinedTable(
                f'could not fetch table info for table "{source}" from publisher: table not found'
            )
    return {relation.oid: published[relation.relation_name] for relation in relations}


def _is_begun(member: SubscriptionRelation) -> bool:
    """Return whether a copy of a table, or changes after the copy, may be partly written."""
    return member.snapshot is not None or member.state in (
        RelState.FINISHEDCOPY,
        RelState.SYNCDONE,
    )


def _check_not_begun(member: SubscriptionRelation, relation: Relation) -> None:
    if _is_begun(member):
        raise _in_progress(member, relation)


def _in_progress(member: SubscriptionRelation, relation: Relation) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f'relation "{relation.name}" is being synchronized',
        detail=f'Its state is "{member.state.value}".',
        hint="Finish the synchronization with \\sync, then repeat the command.",
    )


def leave_subscription(
    session: Session, publisher: Publisher, subscription: Subscription, relids: Collection[int]
) -> bool:
    """Remove tables from a subscription, and undo their unfinished synchronization.

    Returns:
        False if nothing was done, because the subscription no longer has the same publications.
    """
    if not relids:
        return True
    # A sync must not run the subscription meanwhile (give_up)
    with session.cluster.lock(f"subscription-{subscription.oid}"):
        with session.read() as catalog:
            if not has_publications_of(catalog, subscription):
                return False
        give_up(session, publisher, subscription, relids)
        with changing_definitions(session) as catalog:
            for relid in relids:
                delete_subscription_relation(catalog, subscription.oid, relid)
    return True


def give_up(
    session: Session, publisher: Publisher, subscription: Subscription, relids: Collection[int]
) -> None:
    """Undo the unfinished synchronization of tables.  Drop their slots at the publisher, and undo
    partly written data at the subscriber.

    The caller ensures that no other process runs the subscription meanwhile.
    """
    for name in table_slot_names(session, subscription, relids):
        if drop_slot(publisher, name):
            session.notice(f'dropped replication slot "{name}" on publisher')
    abandon(session, subscription, relids)


def table_slot_names(
    session: Session, subscription: Subscription, relids: Collection[int] | None = None
) -> list[str]:
    """Return the names that the slots of tables in synchronization have, if they exist.

    Args:
        relids: the OIDs of the tables; None for all tables of the subscription.
    """
    identifier = session.cluster.system_identifier
    return [
        subscription.table_slot_name(relation.relid, identifier)
        for relation in _unfinished(session, subscription, relids)
    ]


def abandon(
    session: Session, subscription: Subscription, relids: Collection[int] | None = None
) -> None:
    """End the synchronization of tables, and undo partly written data.  If `relids` is None, do
    this for all tables of the subscription.

    The caller ensures that no other process runs the subscription meanwhile.
    """
    subscriber = LakeSubscriber(session, subscription)
    unfinished = _unfinished(session, subscription, relids)
    for relation in unfinished:
        subscriber.of_table(relation).copies.abandon()
    with session.cluster.begin(write=True) as connection:
        for relation in unfinished:
            drop_origin(connection, subscription.table_origin_name(relation.relid))


def _unfinished(
    session: Session, subscription: Subscription, relids: Collection[int] | None
) -> list[SubscriptionRelation]:
    with session.read() as catalog:
        return [
            relation
            for relation in subscription_relations(catalog, subscription.oid)
            if relation.state is not RelState.READY and (relids is None or relation.relid in relids)
        ]
