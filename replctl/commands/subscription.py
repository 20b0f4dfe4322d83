"""CREATE, ALTER and DROP SUBSCRIPTION (subscriptioncmds.c).

replctl contacts the publisher before it changes the subscriber's catalog.  The publisher may be a
database of the same cluster, but replctl changes it in a separate transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from replctl.catalog.aclchk import Privileges
from replctl.catalog.apply_batch import get_apply_batch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.lock import LockMode, object_lock
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_replication_slots import create_origin, drop_origin, origin_progress
from replctl.catalog.pg_subscription import (
    Subscription,
    SubscriptionRelation,
    TwoPhaseState,
    delete_subscription,
    find_subscription,
    insert_subscription,
    insert_subscription_relation,
    subscription_relations,
)
from replctl.catalog.subscription_error import subscription_error
from replctl.catalog.table_copy import CopyMethod
from replctl.catalog.transaction import Catalog
from replctl.commands.create_missing import RunStatement, creating_tables
from replctl.commands.define import get_string, options_by_name
from replctl.commands.subscription_map import (
    change_map,
    given_map,
    published_by_target,
    warn_of_unpublished,
)
from replctl.commands.subscription_options import SubscriptionOptions, parse_options
from replctl.commands.subscription_permission import (
    check_creation,
    check_password_option,
    check_password_requirement,
    check_subscription_owner,
)
from replctl.commands.subscription_publisher import (
    create_slot,
    drop_slots,
    stop_workers,
    warn_of_missing,
    warn_of_origins,
)
from replctl.commands.subscription_table import (
    abandon,
    change_known,
    check_reconciles,
    enabled,
    has_publications_of,
    leave_subscription,
    new_member,
    read_again,
    reconcile_changed,
    refresh_tables,
)
from replctl.conninfo import parse_conninfo
from replctl.errors import (
    DuplicateObject,
    InvalidObjectDefinition,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    ProtocolViolation,
    SqlSyntaxError,
    UndefinedObject,
)
from replctl.lake.definition import changing_definitions
from replctl.lsn import INVALID_LSN, format_lsn, parse_lsn
from replctl.open_node import check_password, open_publisher
from replctl.parser import ast
from replctl.replication.node import Publisher
from replctl.session import Session
from replctl.transaction_block import prevent_in_block

_CREATE_OPTIONS = (
    "connect", "enabled", "create_slot", "slot_name", "copy_data", "synchronous_commit", "binary",
    "streaming", "two_phase", "disable_on_error", "password_required", "run_as_owner", "failover",
    "origin", "delete", "resync", "resync_max_delete", "table_map", "create_tables",
    "table_options", "follow_schema",
)  # fmt: skip
#: Options of statements that add tables to a subscription.
_TABLE_OPTIONS = ("create_tables", "table_options")
_SET_OPTIONS = (
    "slot_name", "synchronous_commit", "binary", "streaming", "disable_on_error",
    "password_required", "run_as_owner", "failover", "origin", "resync", "resync_max_delete",
    "table_map", "follow_schema",
)  # fmt: skip


def create_subscription(
    session: Session, statement: ast.CreateSubscription, run: RunStatement
) -> str:
    """Create a subscription to publications.  Record their tables and create the slot, unless the
    options forbid it.

    Raises:
        DuplicateObject: there already is a subscription of that name.
        ConnectionFailure: replctl cannot connect to the publisher.
        ProtocolViolation: the publisher cannot create the slot.
        UndefinedTable: the database has no table for a published table.
    """
    options = parse_options(statement.options, _CREATE_OPTIONS)
    options.check_combinations()
    options.check_deletion(is_reconciled=options.copies_by is CopyMethod.RECONCILE)
    if options.create_slot:
        prevent_in_block(session.block, "CREATE SUBSCRIPTION ... WITH (create_slot = true)")
    slot_name = options.slot_name if options.has("slot_name") else statement.name
    subscription = options.applied(
        Subscription(
            0,
            session.database_oid,
            statement.name,
            session.role_oid,
            statement.conninfo,
            statement.publications,
            slot_name,
            enabled=options.enabled,
            two_phase_state=TwoPhaseState.PENDING if options.two_phase else TwoPhaseState.DISABLED,
        )
    )
    with session.read() as catalog:
        privileges = session.privileges(catalog)
        check_creation(privileges, session.database_name, subscription)
        if find_subscription(catalog, statement.name) is not None:
            raise DuplicateObject(f'subscription "{statement.name}" already exists')
        parse_conninfo(statement.conninfo)
        check_password(privileges, subscription)
    _check_publication_list(statement.publications)
    table_map = given_map(session, options.table_map, creates=options.create_tables)
    subscription = replace(subscription, table_map=table_map)
    if not options.connect:
        _insert(session, subscription, [])
        session.notice(
            "subscription was created, but is not connected",
            severity="WARNING",
            hint="To initiate replication, you must manually create the replication slot, enable"
            " the subscription, and refresh the subscription.",
        )
        return "CREATE SUBSCRIPTION"
    with open_publisher(session, subscription) as publisher, ExitStack() as if_it_fails:
        publisher.slots.current_lsn()  # record the columns that other programs have changed
        warn_of_missing(session, publisher, statement.publications)
        if options.copy_data:
            warn_of_origins(session, publisher, subscription, ())
        with creating_tables(session, publisher, subscription, options, run):
            _insert_with_tables(session, publisher, subscription, options, if_it_fails)
        if_it_fails.pop_all()
    return "CREATE SUBSCRIPTION"


def _insert_with_tables(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    options: SubscriptionOptions,
    if_it_fails: ExitStack,
) -> None:
    """Add a subscription with all tables of its publications, and create its slot.

    Args:
        if_it_fails: a stack that gets a callback to drop the slot.
    """
    slot_name = subscription.slot_name
    published = publisher.tables.relations(subscription.publications)
    tables = published_by_target(session, subscription, published)
    warn_of_unpublished(session, subscription, published)
    members = [new_member(subscription, *item, options) for item in tables.items()]
    check_reconciles(session, publisher, subscription, members, tables)
    if options.two_phase and not options.copy_data and tables:  # otherwise after the copies
        subscription = replace(subscription, two_phase_state=TwoPhaseState.ENABLED)
    if options.create_slot:
        assert slot_name is not None
        create_slot(publisher, subscription, slot_name)
        if_it_fails.callback(publisher.slots.drop, slot_name)
        session.notice(f'created replication slot "{slot_name}" on publisher')
    _insert(session, subscription, members)


def alter_subscription(
    session: Session, statement: ast.AlterSubscription, run: RunStatement
) -> str:
    """Change a subscription.

    Raises:
        UndefinedObject: there is no such subscription.
        ObjectNotInPrerequisiteState: the state of the subscription does not allow the change.
    """
    with session.read() as catalog:
        subscription = _found(catalog, statement.name)
        privileges = session.privileges(catalog)
        check_subscription_owner(privileges, subscription)
        check_password_requirement(privileges, subscription)
    match statement.action:
        case "options":
            _set_options(session, subscription, statement)
        case "connection":
            conninfo = statement.conninfo or ""
            parse_conninfo(conninfo)
            changed = replace(subscription, conninfo=conninfo)
            with session.read() as catalog:
                check_password(Privileges(catalog, subscription.owner), changed)
            _change(session, subscription, lambda current: replace(current, conninfo=conninfo))
            stop_workers(session, subscription)
        case "enable":
            _change(session, subscription, enabled)
        case "disable":
            _change(session, subscription, lambda current: replace(current, enabled=False))
            stop_workers(session, subscription)
        case "refresh":
            _refresh_publication(session, subscription, statement, run)
        case "refresh_tables":
            refresh_tables(session, subscription, statement)
        case "set_publication" | "add_publication" | "drop_publication":
            _change_publications(session, subscription, statement, run)
        case "skip":
            _skip(session, subscription, statement)
    return "ALTER SUBSCRIPTION"


def drop_subscription(session: Session, statement: ast.DropSubscription) -> str:
    """Drop a subscription, and its slot at the publisher.

    Raises:
        UndefinedObject: there is no such subscription, and IF EXISTS was not given.
        ConnectionFailure: replctl cannot drop the slot at the publisher.
    """
    with session.read() as catalog:
        subscription = find_subscription(catalog, statement.name)
    if subscription is None:
        if not statement.missing_ok:
            raise UndefinedObject(f'subscription "{statement.name}" does not exist')
        session.notice(f'subscription "{statement.name}" does not exist, skipping')
        return "DROP SUBSCRIPTION"
    with session.read() as catalog:
        check_subscription_owner(session.privileges(catalog), subscription)
    if subscription.slot_name is not None:
        prevent_in_block(session.block, "DROP SUBSCRIPTION")
    with session.write() as catalog:  # must precede all steps that cannot be repeated
        catalog.lock({object_lock(0, subscription.oid, LockMode.CHANGE)})
    # A sync must not run the subscription while its parts are dropped
    with session.cluster.lock(f"subscription-{subscription.oid}"):
        _check_no_batch(session, subscription)
        stop_workers(session, subscription)
        drop_slots(session, subscription)
        abandon(session, subscription)
        with changing_definitions(session) as catalog:
            read_again(catalog, subscription)
            delete_subscription(catalog, subscription.oid)
            drop_origin(catalog.connection, subscription.origin_name)
    return "DROP SUBSCRIPTION"


# ---------------------------------------------------------------------------------------------
# ALTER


def _set_options(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    options = parse_options(statement.options, _SET_OPTIONS)

    def change(current: Subscription) -> Subscription:
        changed = options.applied(current)
        if not options.has("slot_name"):
            return changed
        if options.slot_name is None and current.enabled:
            raise ObjectNotInPrerequisiteState(
                "cannot set slot_name = NONE for enabled subscription"
            )
        return replace(changed, slot_name=options.slot_name)

    with session.read() as catalog:
        check_password_option(session.privileges(catalog), change(subscription))
    map_ = given_map(session, options.table_map) if options.has("table_map") else None
    if options.has("failover"):
        _set_failover(session, subscription, options.failover)
    if map_ is None:
        _change(session, subscription, change)
    else:
        change_map(session, subscription, lambda current: replace(change(current), table_map=map_))


def _set_failover(session: Session, subscription: Subscription, failover: bool) -> None:
    """Change the option failover of the slot that the subscription had before the statement."""
    slot_name = subscription.slot_name
    if slot_name is None:
        raise ObjectNotInPrerequisiteState(
            'cannot set option "failover" for a subscription that does not have a slot name'
        )
    if subscription.enabled:
        raise ObjectNotInPrerequisiteState("cannot set failover for enabled subscription")
    prevent_in_block(session.block, "ALTER SUBSCRIPTION ... SET (failover)")
    with open_publisher(session, subscription) as publisher:
        try:
            publisher.slots.alter(slot_name, failover=failover)
        except UndefinedObject as error:
            raise ProtocolViolation(
                f'could not alter replication slot "{slot_name}": ERROR:  {error.message}'
            ) from error


def _refresh_publication(
    session: Session,
    subscription: Subscription,
    statement: ast.AlterSubscription,
    run: RunStatement,
) -> None:
    if not subscription.enabled:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION ... REFRESH is not allowed for disabled subscriptions"
        )
    options = parse_options(
        statement.options, ("copy_data", "reconcile", "delete", *_TABLE_OPTIONS)
    )
    options.check_table_options()
    options.check_deletion(
        is_reconciled=options.reconcile or options.copies_by is CopyMethod.RECONCILE
    )
    if subscription.two_phase_state == TwoPhaseState.ENABLED and options.copy_data:
        raise SqlSyntaxError(
            "ALTER SUBSCRIPTION ... REFRESH with copy_data is not allowed when two_phase is"
            " enabled",
            hint="Use ALTER SUBSCRIPTION ... REFRESH with copy_data = false, or use DROP/CREATE"
            " SUBSCRIPTION.",
        )
    prevent_in_block(session.block, "ALTER SUBSCRIPTION ... REFRESH")
    with open_publisher(session, subscription) as publisher:
        _refresh(session, publisher, subscription, _unchanged, options, run)


def _change_publications(
    session: Session,
    subscription: Subscription,
    statement: ast.AlterSubscription,
    run: RunStatement,
) -> None:
    """Run SET, ADD or DROP PUBLICATION.  Then refresh the tables, unless `refresh = false`."""
    options = parse_options(statement.options, ("copy_data", "refresh", "delete", *_TABLE_OPTIONS))
    options.check_table_options()
    options.check_deletion(is_reconciled=options.copies_by is CopyMethod.RECONCILE)
    _check_publication_list(statement.publications)

    def change(current: Subscription) -> Subscription:
        return replace(current, publications=_merged(current, statement))

    change(subscription)  # the errors of the lists come first
    verb = statement.action.split("_")[0].upper()
    if not options.refresh:
        _change(session, subscription, change)
        return
    if not subscription.enabled:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION with refresh is not allowed for disabled subscriptions",
            hint=f"Use ALTER SUBSCRIPTION ... {verb} PUBLICATION ... WITH (refresh = false)"
            + ("." if verb == "SET" else " instead."),
        )
    if subscription.two_phase_state == TwoPhaseState.ENABLED and options.copy_data:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION with refresh and copy_data is not allowed when two_phase is"
            " enabled",
            hint=f"Use ALTER SUBSCRIPTION ... {verb} PUBLICATION with refresh = false, or with"
            " copy_data = false, or use DROP/CREATE SUBSCRIPTION.",
        )
    prevent_in_block(session.block, "ALTER SUBSCRIPTION with refresh")
    with open_publisher(session, subscription) as publisher:
        if verb != "DROP":
            warn_of_missing(session, publisher, statement.publications)
        _refresh(session, publisher, subscription, change, options, run)


def _merged(subscription: Subscription, statement: ast.AlterSubscription) -> tuple[str, ...]:
    """Return the new list of publications (merge_publications)."""
    old = subscription.publications
    match statement.action:
        case "add_publication":
            for name in statement.publications:
                if name in old:
                    raise DuplicateObject(
                        f'publication "{name}" is already in subscription "{subscription.name}"'
                    )
            return (*old, *statement.publications)
        case "drop_publication":
            for name in statement.publications:
                if name not in old:
                    raise InvalidObjectDefinition(
                        f'publication "{name}" is not in subscription "{subscription.name}"'
                    )
            kept = tuple(name for name in old if name not in statement.publications)
            if not kept:
                raise InvalidObjectDefinition(
                    "cannot drop all the publications from a subscription"
                )
            return kept
        case _:
            return statement.publications


def _refresh(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    change: Callable[[Subscription], Subscription],
    options: SubscriptionOptions,
    run: RunStatement,
) -> None:
    """Change the publications of a subscription, add tables and remove others, so that it has the
    tables of its publications (AlterSubscription_refresh).

    The created tables remain in the database, even if a later step fails.

    Args:
        change: changes the publications (change_subscription).
    """
    with session.read() as catalog:
        known = read_again(catalog, subscription)
    subscription = change(known)
    publisher.slots.current_lsn()  # record the columns that other programs have changed
    with creating_tables(session, publisher, subscription, options, run):
        pass
    published = publisher.tables.relations(subscription.publications)
    tables = published_by_target(session, subscription, published)
    with session.read() as catalog:
        relids = {item.relid for item in subscription_relations(catalog, subscription.oid)}
        relations = load_relations(catalog, relids).values()
    if options.copy_data:
        names = (subscription.table_map.published(relation.relation_name) for relation in relations)
        known_names = {name for name in names if name is not None}
        warn_of_origins(session, publisher, subscription, known_names)
    start = _first_position(session, publisher, known)
    members = [
        new_member(subscription, relid, table, options, start)
        for relid, table in tables.items()
        if relid not in relids
    ]
    check_reconciles(session, publisher, subscription, members, tables)
    if options.reconcile:
        reconcile_changed(session, publisher, subscription, tables, options.delete)
    with changing_definitions(session) as catalog:
        is_planned = has_publications_of(catalog, known)
        if is_planned:
            change_known(catalog, known, change)
            present = {item.relid for item in subscription_relations(catalog, known.oid)}
            for member in members:
                if member.relid not in present:
                    insert_subscription_relation(catalog, member)
    if not is_planned:  # another session has changed the publications meanwhile
        _refresh(session, publisher, known, change, options, run)
    elif not leave_subscription(session, publisher, subscription, relids.difference(tables)):
        _refresh(session, publisher, known, _unchanged, options, run)


def _first_position(
    session: Session, publisher: Publisher, subscription: Subscription
) -> LogPosition | None:
    """Return the position after which changes of an added table apply if the table is not copied.

    A worker of PostgreSQL has already passed over the changes before the statement, because it runs
    all the time.  The result is the publisher's current position.  If an error has stopped the
    apply, the worker has not reached the waiting changes: PostgreSQL applies all of them later, and
    the result is None.
    """
    with session.read() as catalog:
        error = subscription_error(catalog.connection, subscription.oid)
    if error is not None and error.stops_apply:
        return None
    lsn = publisher.slots.current_lsn()
    return LogPosition(lsn, publisher.slots.digest_at(lsn))


def _unchanged(subscription: Subscription) -> Subscription:
    return subscription


def _skip(session: Session, subscription: Subscription, statement: ast.AlterSubscription) -> None:
    """Run SKIP (lsn = ...): exclude the transaction that finished at this LSN from replication."""
    given = options_by_name(statement.options, ("lsn",), "subscription")
    lsn = _skip_lsn(get_string(given["lsn"]))
    with session.read() as catalog:
        progress = origin_progress(catalog.connection, subscription.origin_name) or 0
    if lsn != INVALID_LSN and progress and lsn < progress:
        raise InvalidParameterValue(
            f"skip WAL location (LSN {format_lsn(lsn)}) must be greater than origin LSN"
            f" {format_lsn(progress)}"
        )
    _change(session, subscription, lambda current: replace(current, skip_lsn=lsn))


def _skip_lsn(text: str) -> int:
    if text == "none":
        return INVALID_LSN
    lsn = parse_lsn(text)
    if lsn == INVALID_LSN:
        raise InvalidParameterValue(f"invalid WAL location (LSN): {text}")
    return lsn


# ---------------------------------------------------------------------------------------------
# The catalog


def _insert(
    session: Session, subscription: Subscription, members: Sequence[SubscriptionRelation]
) -> None:
    """Add a subscription with its tables, and the origin for its progress."""
    with changing_definitions(session) as catalog:
        if find_subscription(catalog, subscription.name) is not None:  # another session was first
            raise DuplicateObject(f'subscription "{subscription.name}" already exists')
        created = replace(subscription, oid=catalog.new_oid())
        insert_subscription(catalog, created)
        create_origin(catalog.connection, created.origin_name, LogPosition(INVALID_LSN))
        for member in members:
            insert_subscription_relation(catalog, replace(member, subscription_oid=created.oid))


def _change(
    session: Session, subscription: Subscription, change: Callable[[Subscription], Subscription]
) -> None:
    with changing_definitions(session) as catalog:
        change_known(catalog, subscription, change)


def _found(catalog: Catalog, name: str) -> Subscription:
    subscription = find_subscription(catalog, name)
    if subscription is None:
        raise UndefinedObject(f'subscription "{name}" does not exist')
    return subscription


def _check_publication_list(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DuplicateObject(f'publication name "{name}" used more than once')


def _check_no_batch(session: Session, subscription: Subscription) -> None:
    """Check that the subscription has no partly written batch.  The batch must be finished first;
    otherwise the tables would remain partly written.
    """
    with session.read() as catalog:
        if get_apply_batch(catalog, subscription.oid) is not None:
            raise ObjectNotInPrerequisiteState(
                f'subscription "{subscription.name}" has changes that are not written completely',
                hint="Finish them with \\sync, or give them up with ALTER SUBSCRIPTION ... REFRESH"
                " TABLE; then repeat the command.",
            )
