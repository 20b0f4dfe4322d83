"""Single tables of a subscription: one is synchronized again, or leaves while it is being
synchronized."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_replication_slots import drop_origin
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    clear_fault,
    delete_subscription_relation,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.transaction import Catalog
from replctl.commands.subscription_options import parse_options
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedObject, UndefinedTable
from replctl.lake.definition import changing_definitions
from replctl.lake.subscriber import LakeSubscriber
from replctl.open_node import open_publisher
from replctl.parser import ast
from replctl.query.analyze import QueryAnalyzer
from replctl.replication.node import Publisher
from replctl.replication.tablesync import drop_slot
from replctl.session import Session


def refresh_tables(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    """REFRESH TABLE, which is ours: the rows of tables are replaced by a new copy, which readers
    see at once; or, without copy_data, their changes count from now on.

    Raises:
        UndefinedTable: there is no such table, here or at the publisher.
        UndefinedObject: it is no part of the subscription (42704).
        ObjectNotInPrerequisiteState: the subscription is disabled, or a table is being
            synchronized.
    """
    if not subscription.enabled:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION ... REFRESH is not allowed for disabled subscriptions"
        )
    options = parse_options(statement.options, ("copy_data",))
    session.prevent_in_block("ALTER SUBSCRIPTION ... REFRESH")
    with session.read() as catalog:
        analyzer = QueryAnalyzer(session.environment(catalog))
        named = [analyzer.relation(name) for name in statement.relations]
        relations = {item.oid: item for item in named if isinstance(item, Relation)}
        for item in named:
            _member(catalog, subscription, item.oid, item.name)
    with open_publisher(session, subscription) as publisher:
        _check_published(publisher, subscription, list(relations.values()))
        lsn = publisher.current_lsn([(item.schema, item.name) for item in relations.values()])
    with changing_definitions(session) as catalog:
        for oid, relation in relations.items():
            member = _member(catalog, subscription, oid, relation.name)
            if options.copy_data:
                _check_not_begun(member, relation)
                new = replace(member, state=RelState.INIT, lsn=None, replaces=True)
            elif member.state is RelState.READY:
                new = replace(member, lsn=lsn)
                clear_fault(catalog.connection, subscription.oid, oid)
            else:
                raise _in_progress(member, relation)
            update_subscription_relation(catalog, new)


def _member(
    catalog: Catalog, subscription: Subscription, relid: int, name: str
) -> SubscriptionRelation:
    for relation in subscription_relations(catalog, subscription.oid):
        if relation.relid == relid:
            return relation
    raise UndefinedObject(f'relation "{name}" is not part of the subscription')


def _check_published(
    publisher: Publisher, subscription: Subscription, relations: Sequence[Relation]
) -> None:
    published = {
        (remote.schema, remote.name)
        for remote in publisher.published_relations(subscription.publications)
    }
    for relation in relations:
        if (relation.schema, relation.name) not in published:
            raise UndefinedTable(
                f'could not fetch table info for table "{relation.qualified_name}" from publisher:'
                " table not found"
            )


def _check_not_begun(member: SubscriptionRelation, relation: Relation) -> None:
    if member.snapshot is not None or member.state in (RelState.FINISHEDCOPY, RelState.SYNCDONE):
        raise _in_progress(member, relation)


def _in_progress(member: SubscriptionRelation, relation: Relation) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f'relation "{relation.name}" is being synchronized',
        detail=f'Its state is "{member.state.value}".',
        hint="Finish that with \\sync, then repeat the command.",
    )


def leave_subscription(
    session: Session, publisher: Publisher, subscription: Subscription, relids: Collection[int]
) -> None:
    """Take tables out of a subscription; what their synchronization has left is undone."""
    if not relids:
        return
    with session.cluster.lock(f"subscription-{subscription.oid}"):
        for name in table_slot_names(session, subscription, relids):
            if drop_slot(publisher, name):
                session.notice(f'dropped replication slot "{name}" on publisher')
        abandon(session, subscription, relids)
        with changing_definitions(session) as catalog:
            for relid in relids:
                delete_subscription_relation(catalog, subscription.oid, relid)


def table_slot_names(
    session: Session, subscription: Subscription, relids: Collection[int] | None = None
) -> list[str]:
    """The slots that tables that are being synchronized may have, of all or of some."""
    identifier = session.cluster.system_identifier
    return [
        subscription.table_slot_name(relation.relid, identifier)
        for relation in _unfinished(session, subscription, relids)
    ]


def abandon(
    session: Session, subscription: Subscription, relids: Collection[int] | None = None
) -> None:
    """Tables, all or some, are not synchronized any further: what is written in part is undone.

    Nobody else runs the subscription meanwhile.
    """
    subscriber = LakeSubscriber(session, subscription)
    unfinished = _unfinished(session, subscription, relids)
    for relation in unfinished:
        subscriber.of_table(relation).abandon()
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
