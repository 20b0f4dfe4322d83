"""CREATE, ALTER and DROP SUBSCRIPTION (subscriptioncmds.c).

The publisher is asked before the catalog is changed: it may be a database of the same cluster, and
what is changed there stands in its own transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from replctl.catalog.pg_class import RELKIND_PLURAL, find_relation_oid, load_relations
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_replication_slots import create_origin, drop_origin, origin_progress
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    delete_subscription,
    delete_subscription_relation,
    find_subscription,
    get_apply_batch,
    insert_subscription,
    put_subscription_relation,
    subscription_relations,
    update_subscription,
)
from replctl.catalog.transaction import Catalog
from replctl.commands.define import get_string
from replctl.commands.subscription_options import SubscriptionOptions, parse_options
from replctl.conninfo import parse_conninfo
from replctl.errors import (
    ConnectionFailure,
    DuplicateObject,
    InvalidParameterValue,
    InvalidSchemaName,
    ObjectNotInPrerequisiteState,
    PostgresError,
    SqlSyntaxError,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
    error_class,
)
from replctl.lake.definition import changing_definitions
from replctl.lsn import INVALID_LSN, format_lsn, parse_lsn
from replctl.open_node import open_publisher
from replctl.parser import ast
from replctl.replication.node import Publisher, RemoteRelation
from replctl.session import Session

_CREATE_OPTIONS = (
    "connect", "enabled", "create_slot", "slot_name", "copy_data", "synchronous_commit", "binary",
    "streaming", "two_phase", "disable_on_error", "password_required", "run_as_owner", "failover",
    "origin",
)  # fmt: skip
_SET_OPTIONS = (
    "slot_name", "synchronous_commit", "binary", "streaming", "disable_on_error",
    "password_required", "run_as_owner", "failover", "origin",
)  # fmt: skip


def create_subscription(session: Session, statement: ast.CreateSubscription) -> str:
    """Subscribe to publications: note their tables and, unless told not to, make the slot.

    Raises:
        DuplicateObject: there is a subscription of that name, or a slot.
        ConnectionFailure: the connection string leads nowhere.
        UndefinedTable: a published table has no counterpart here.
    """
    options = parse_options(statement.options, _CREATE_OPTIONS)
    options.check_combinations()
    if options.create_slot:
        session.prevent_in_block("CREATE SUBSCRIPTION ... WITH (create_slot = true)")
    with session.read() as catalog:
        if find_subscription(catalog, statement.name) is not None:
            raise DuplicateObject(f'subscription "{statement.name}" already exists')
    parse_conninfo(statement.conninfo)
    _check_publication_list(statement.publications)
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
            two_phase_state="p" if options.two_phase else "d",
        )
    )
    if not options.connect:
        _insert(session, subscription, [], RelState.INIT, 0)
        session.notice(
            "subscription was created, but is not connected",
            severity="WARNING",
            hint="To initiate replication, you must manually create the replication slot, enable"
            " the subscription, and refresh the subscription.",
        )
        return "CREATE SUBSCRIPTION"
    with _connected(session, statement.conninfo) as publisher:
        _warn_of_missing(session, publisher, statement.publications)
        tables = _fetch_tables(publisher, statement.publications)
        relids = [_target(session, table) for table in tables]
        if options.create_slot:
            assert slot_name is not None
            _create_slot(publisher, subscription, slot_name)
            session.notice(f'created replication slot "{slot_name}" on publisher')
        try:
            state = RelState.INIT if options.copy_data else RelState.READY
            _insert(session, subscription, relids, state, publisher.current_lsn())
        except PostgresError:
            if options.create_slot and slot_name is not None:
                publisher.drop_slot(slot_name)
            raise
    return "CREATE SUBSCRIPTION"


def alter_subscription(session: Session, statement: ast.AlterSubscription) -> str:
    """Change a subscription.

    Raises:
        UndefinedObject: there is none of that name.
        ObjectNotInPrerequisiteState: it is not in a state in which that may be done.
    """
    with session.read() as catalog:
        subscription = _found(catalog, statement.name)
    match statement.action:
        case "options":
            _set_options(session, subscription, statement)
        case "connection":
            conninfo = statement.conninfo or ""
            parse_conninfo(conninfo)
            _update(session, replace(subscription, conninfo=conninfo))
        case "enable" | "disable":
            is_enabled = statement.action == "enable"
            if is_enabled and subscription.slot_name is None:
                raise ObjectNotInPrerequisiteState(
                    "cannot enable subscription that does not have a slot name"
                )
            _update(session, replace(subscription, enabled=is_enabled))
        case "refresh":
            _refresh_publication(session, subscription, statement)
        case "set_publication" | "add_publication" | "drop_publication":
            _change_publications(session, subscription, statement)
        case "skip":
            _skip(session, subscription, statement)
    return "ALTER SUBSCRIPTION"


def drop_subscription(session: Session, statement: ast.DropSubscription) -> str:
    """End a subscription, and drop its slot at the publisher.

    Raises:
        UndefinedObject: there is none of that name, and IF EXISTS was not said.
        ConnectionFailure: the publisher cannot be reached to drop the slot.
    """
    with session.read() as catalog:
        subscription = find_subscription(catalog, statement.name)
    if subscription is None:
        if not statement.missing_ok:
            raise UndefinedObject(f'subscription "{statement.name}" does not exist')
        session.notice(f'subscription "{statement.name}" does not exist, skipping')
        return "DROP SUBSCRIPTION"
    with session.cluster.lock(f"subscription-{subscription.oid}"):
        _check_no_batch(session, subscription)
        if subscription.slot_name is not None:
            session.prevent_in_block("DROP SUBSCRIPTION")
            _drop_slot(session, subscription, subscription.slot_name)
        with changing_definitions(session) as catalog:
            delete_subscription(catalog, subscription.oid)
            drop_origin(catalog.connection, subscription.origin_name)
    return "DROP SUBSCRIPTION"


# ---------------------------------------------------------------------------------------------
# ALTER


def _set_options(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    options = parse_options(statement.options, _SET_OPTIONS)
    for name, has_problem in (
        ("slot_name = NONE", options.has("slot_name") and options.slot_name is None),
        ("failover", options.has("failover")),
    ):
        if has_problem and name == "failover" and subscription.slot_name is None:
            raise ObjectNotInPrerequisiteState(
                f"cannot set {name} for a subscription that does not have a slot name"
            )
        if has_problem and subscription.enabled:
            raise ObjectNotInPrerequisiteState(f"cannot set {name} for enabled subscription")
    if options.has("failover"):
        session.prevent_in_block("ALTER SUBSCRIPTION ... SET (failover)")
    changed = options.applied(subscription)
    if options.has("slot_name"):
        changed = replace(changed, slot_name=options.slot_name)
    _update(session, changed)


def _refresh_publication(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    if not subscription.enabled:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION ... REFRESH is not allowed for disabled subscriptions"
        )
    options = parse_options(statement.options, ("copy_data",))
    session.prevent_in_block("ALTER SUBSCRIPTION ... REFRESH")
    with _connected(session, subscription.conninfo) as publisher:
        _refresh(session, publisher, subscription, options)


def _change_publications(
    session: Session, subscription: Subscription, statement: ast.AlterSubscription
) -> None:
    """SET, ADD and DROP PUBLICATION, with a refresh unless told not to."""
    is_drop = statement.action == "drop_publication"
    options = parse_options(
        statement.options, ("refresh",) if is_drop else ("copy_data", "refresh")
    )
    _check_publication_list(statement.publications)
    changed = replace(subscription, publications=_merged(subscription, statement))
    verb = statement.action.split("_")[0].upper()
    if not options.refresh:
        _update(session, changed)
        return
    if not subscription.enabled:
        raise ObjectNotInPrerequisiteState(
            "ALTER SUBSCRIPTION with refresh is not allowed for disabled subscriptions",
            hint=f"Use ALTER SUBSCRIPTION ... {verb} PUBLICATION ... WITH (refresh = false).",
        )
    session.prevent_in_block("ALTER SUBSCRIPTION with refresh")
    with _connected(session, subscription.conninfo) as publisher:
        if not is_drop:
            _warn_of_missing(session, publisher, statement.publications)
        _refresh(session, publisher, changed, options)


def _merged(subscription: Subscription, statement: ast.AlterSubscription) -> tuple[str, ...]:
    """The new list of publications (merge_publications)."""
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
                    raise SqlSyntaxError(
                        f'publication "{name}" is not in subscription "{subscription.name}"'
                    )
            kept = tuple(name for name in old if name not in statement.publications)
            if not kept:
                raise SqlSyntaxError("cannot drop all the publications from a subscription")
            return kept
        case _:
            return statement.publications


def _refresh(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    options: SubscriptionOptions,
) -> None:
    """Make the subscription's tables those of its publications (AlterSubscription_refresh)."""
    tables = _fetch_tables(publisher, subscription.publications)
    relids = [_target(session, table) for table in tables]
    lsn = publisher.current_lsn()
    state = RelState.INIT if options.copy_data else RelState.READY
    with changing_definitions(session) as catalog:
        update_subscription(catalog, subscription)
        known = {item.relid for item in subscription_relations(catalog, subscription.oid)}
        for relid in relids:
            if relid not in known:
                _add_table(catalog, subscription.oid, relid, state, lsn)
        for relid in known.difference(relids):
            delete_subscription_relation(catalog, subscription.oid, relid)


def _skip(session: Session, subscription: Subscription, statement: ast.AlterSubscription) -> None:
    """SKIP (lsn = ...): the transaction that finished there is not applied."""
    lsn = INVALID_LSN
    for option in statement.options:
        if option.name != "lsn":
            raise SqlSyntaxError(f'unrecognized subscription parameter: "{option.name}"')
        lsn = _skip_lsn(get_string(option))
    with session.read() as catalog:
        progress = origin_progress(catalog.connection, subscription.origin_name) or 0
    if lsn != INVALID_LSN and progress and lsn < progress:
        raise InvalidParameterValue(
            f"skip WAL location (LSN {format_lsn(lsn)}) must be greater than origin LSN"
            f" {format_lsn(progress)}"
        )
    _update(session, replace(subscription, skip_lsn=lsn))


def _skip_lsn(text: str) -> int:
    if text == "none":
        return INVALID_LSN
    lsn = parse_lsn(text)
    if lsn == INVALID_LSN:
        raise InvalidParameterValue(f"invalid WAL location (LSN): {text}")
    return lsn


# ---------------------------------------------------------------------------------------------
# The publisher


@contextmanager
def _connected(session: Session, conninfo: str) -> Iterator[Publisher]:
    with open_publisher(session, conninfo) as publisher:
        yield publisher


def _warn_of_missing(session: Session, publisher: Publisher, names: Sequence[str]) -> None:
    """A publication that does not exist yet may be made later (check_publications)."""
    missing = publisher.missing_publications(names)
    if not missing:
        return
    shown = ", ".join(f'"{name}"' for name in missing)
    verb = "publication {} does not" if len(missing) == 1 else "publications {} do not"
    session.notice(
        f"{verb.format(shown)} exist on the publisher", severity="WARNING", sqlstate="42704"
    )


def _fetch_tables(publisher: Publisher, names: Sequence[str]) -> list[RemoteRelation]:
    return publisher.published_relations(names)


def _create_slot(publisher: Publisher, subscription: Subscription, slot_name: str) -> None:
    try:
        publisher.create_slot(
            slot_name,
            two_phase=subscription.two_phase_state != "d",
            failover=subscription.failover,
        )
    except PostgresError as error:
        raise error_class(error.sqlstate)(
            f'could not create replication slot "{slot_name}": ERROR:  {error.message}'
        ) from error


def _drop_slot(session: Session, subscription: Subscription, slot_name: str) -> None:
    try:
        with open_publisher(session, subscription.conninfo) as publisher:
            try:
                publisher.drop_slot(slot_name)
            except UndefinedObject as error:
                raise UndefinedObject(
                    f'could not drop replication slot "{slot_name}" on publisher:'
                    f" ERROR:  {error.message}"
                ) from error
    except ConnectionFailure as error:
        reason = error.message.removeprefix("could not connect to the publisher: ")
        raise ConnectionFailure(
            "could not connect to publisher when attempting to drop replication slot"
            f' "{slot_name}": {reason}',
            hint="Use ALTER SUBSCRIPTION ... DISABLE to disable the subscription, and then use"
            " ALTER SUBSCRIPTION ... SET (slot_name = NONE) to disassociate it from the slot.",
        ) from error
    session.notice(f'dropped replication slot "{slot_name}" on publisher')


# ---------------------------------------------------------------------------------------------
# The catalog


def _insert(
    session: Session,
    subscription: Subscription,
    relids: Sequence[int],
    state: RelState,
    lsn: int,
) -> None:
    """Add a subscription with its tables, and the origin that will hold its progress."""
    with changing_definitions(session) as catalog:
        created = replace(subscription, oid=catalog.new_oid())
        insert_subscription(catalog, created)
        create_origin(catalog.connection, created.origin_name, 0)
        for relid in relids:
            _add_table(catalog, created.oid, relid, state, lsn)


def _add_table(catalog: Catalog, oid: int, relid: int, state: RelState, lsn: int) -> None:
    """A table that is not copied has what is committed from now on."""
    start = lsn if state is RelState.READY else None
    put_subscription_relation(catalog, SubscriptionRelation(oid, relid, state, start))


def _update(session: Session, subscription: Subscription) -> None:
    with changing_definitions(session) as catalog:
        update_subscription(catalog, subscription)


def _found(catalog: Catalog, name: str) -> Subscription:
    subscription = find_subscription(catalog, name)
    if subscription is None:
        raise UndefinedObject(f'subscription "{name}" does not exist')
    return subscription


def _target(session: Session, table: RemoteRelation) -> int:
    """The OID of the table that a published one is written into."""
    with session.read() as catalog:
        schema_oid = find_schema(catalog, table.schema)
        if schema_oid is None:
            raise InvalidSchemaName(f'schema "{table.schema}" does not exist')
        oid = find_relation_oid(catalog, table.name, schema_oid)
        if oid is None:
            raise UndefinedTable(f'relation "{table.qualified_name}" does not exist')
        relation = load_relations(catalog, [oid])[oid]
    if relation.kind not in ("r", "p"):
        raise WrongObjectType(
            f'cannot use relation "{table.qualified_name}" as logical replication target',
            detail=f"This operation is not supported for {RELKIND_PLURAL[relation.kind]}.",
        )
    return oid


def _check_publication_list(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DuplicateObject(f'publication name "{name}" used more than once')


def _check_no_batch(session: Session, subscription: Subscription) -> None:
    """What a crash has left half written is finished first, or the tables would stay so."""
    with session.read() as catalog:
        if get_apply_batch(catalog, subscription.oid) is not None:
            raise ObjectNotInPrerequisiteState(
                f'subscription "{subscription.name}" has changes that are not written completely',
                hint="Finish them with \\sync, then repeat the command.",
            )
