"""Handle batches that a subscription has written in part and cannot finish: compose errors, and
remove tables from a batch.

Such a batch affects only its subscription, and writers of its tables.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy

from replctl.catalog.apply_batch import (
    ApplyBatch,
    delete_apply_batch,
    get_apply_batch,
    insert_apply_batch,
    list_apply_batches,
)
from replctl.catalog.commit_nonce import hand_over_nonces
from replctl.catalog.intent import mark_abandoned
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_subscription import Subscription, subscription_relations
from replctl.catalog.transaction import (
    Catalog,
    abort_transaction,
    begin_transaction,
    commit_transaction,
)
from replctl.errors import (
    ConnectionFailure,
    DiskFull,
    FileAccessDenied,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.lake import commit_log
from replctl.lake.abandoned_write import note_abandoned
from replctl.own_command import own_command
from replctl.replication.refresh_hint import refresh_hint
from replctl.session import Session


def unfinished_error(
    session: Session,
    subscription: Subscription,
    relids: Collection[int],
    cause: PostgresError | None,
) -> PostgresError:
    """Return the error for a statement that writes tables of a batch that cannot be finished.

    Args:
        relids: the OIDs of the tables.
        cause: the reason; None: the statement's own transaction has locked one of the tables.
    """
    with session.cluster.read(subscription.database_oid) as catalog:
        leaf = load_relations(catalog, relids)[min(relids)]
        member = next(iter(_members(catalog, subscription, relids)), leaf)
    error = ObjectNotInPrerequisiteState(
        f'cannot write table "{leaf.qualified_name}": subscription "{subscription.name}" has'
        " written changes into it in part"
    )
    if cause is None:
        error.hint = "End the transaction, then repeat it."
        return error
    error.detail = _sentences(f"They cannot be finished: {cause.message}", cause.detail)
    error.hint = cause.hint or _help(subscription, member, cause, "repeat the statement")
    return error


def note_part_written(
    session: Session, subscription: Subscription, error: PostgresError
) -> PostgresError:
    """Add a hint and the partly written tables to the error that has stopped a subscription.
    Return the error unchanged if there are no such tables.
    """
    with session.cluster.read(subscription.database_oid) as catalog:
        batches = list_apply_batches(catalog, subscription.oid)
        relids = {relid for batch in batches for relid in batch.targets}
        members = _members(catalog, subscription, relids)
    if not members:
        return error
    database = session.cluster.database_name(subscription.database_oid)
    names = ", ".join(f'"{member.qualified_name}"' for member in members)
    noun = "table" if len(members) == 1 else "tables"
    noted = copy(error)
    noted.detail = _sentences(
        error.detail, f'Changes of {noun} {names} of database "{database}" are written in part'
    )
    sync = own_command("sync", home=session.cluster.path)
    noted.hint = error.hint or _help(subscription, members[0], error, f'run "{sync}"')
    return noted


def leave_batch(
    catalog: Catalog, session: Session, subscription: Subscription, leaves: Collection[int]
) -> None:
    """Remove tables from the subscription's partly written batch, because they will be reconciled
    or copied.  Rows that are already written into them stay, as a separate transaction.  But if
    published tables of the batch share targets, the next process that uses a table undoes the whole
    batch.

    The caller ensures that no other process runs the subscription meanwhile.

    Args:
        leaves: the OIDs of the tables.
    """
    batch = get_apply_batch(catalog, subscription.oid)
    if batch is None or batch.targets.keys().isdisjoint(leaves):
        return
    if len(batch.writes) > 1:
        note_abandoned(catalog, subscription, 0, [(batch.xid, batch.targets)])
        mark_abandoned(catalog.connection, batch.xid)
        return
    _end_for(catalog, session, subscription, batch, batch.targets.keys() & set(leaves))
    left = batch.without(leaves)
    delete_apply_batch(catalog, subscription.oid)
    if left.targets:
        insert_apply_batch(catalog, left)
    else:
        abort_transaction(catalog.connection, batch.xid)


def _end_for(
    catalog: Catalog,
    session: Session,
    subscription: Subscription,
    batch: ApplyBatch,
    relids: Collection[int],
) -> None:
    """Record the writes of a batch into some tables as a committed transaction of its own."""
    connection, cluster = catalog.connection, session.cluster
    xid = begin_transaction(connection, catalog.database_oid, cluster.backend)
    hand_over_nonces(connection, batch.xid, xid, relids)
    relations = load_relations(catalog, relids).values()
    commit_log.enter_readable(catalog, cluster, relations, xid, ends=True)
    commit_transaction(
        connection,
        xid,
        changes_catalog=False,
        origin=subscription.origin_name,
        origin_lsn=batch.from_lsn,
    )


def _members(
    catalog: Catalog, subscription: Subscription, relids: Collection[int]
) -> list[Relation]:
    """Return the tables that belong to a subscription, among these tables and their ancestors."""
    known = {member.relid for member in subscription_relations(catalog, subscription.oid)}
    above = {oid for relid in relids for oid in (relid, *ancestors_of(catalog, relid))}
    return [relation for _oid, relation in sorted(load_relations(catalog, known & above).items())]


def _help(
    subscription: Subscription, member: Relation, cause: PostgresError, then: str
) -> str | None:
    """Return the hint for an error that has no hint of its own."""
    if isinstance(cause, ConnectionFailure):
        return None
    if isinstance(cause, (DiskFull, FileAccessDenied)):
        return f"Allow replctl to write the table's files, then {then}."
    return refresh_hint(subscription, member.relation_name)


def _sentences(*texts: str | None) -> str:
    """Join sentences: ("it fails", None, "It is full.") -> "it fails. It is full." """
    return " ".join(text if text.endswith(".") else f"{text}." for text in texts if text)
