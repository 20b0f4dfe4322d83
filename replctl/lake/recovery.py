"""Finish or undo the transactions of dead processes (recovery)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from replctl.catalog.cluster import Cluster
from replctl.catalog.intent import Intent, delete_intents, mark_abandoned, writers_of, writes_others
from replctl.catalog.lock import OpenBlock
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import SessionOrigin, commit_with_origin
from replctl.catalog.pg_wal import move_to_new_transaction, take_back
from replctl.catalog.storage import abandon_storage
from replctl.catalog.transaction import (
    abort_transaction,
    backend_of,
    blocks_of_others,
    xids_of_block,
)
from replctl.errors import PostgresError, QueryCanceled
from replctl.lake import commit_log
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.durable_version import sync_versions
from replctl.lake.leftovers import report_files, take_over
from replctl.lake.undo import commits_since, storage_of, undo_commits, warn_of_undo, written_tables
from replctl.session import Session


def recover(session: Session, relids: Sequence[int] | None = None) -> None:
    """Finish or undo transactions of dead processes.  Do nothing on a standby: its primary does
    this.

    A transaction may also have written tables outside `relids`.  If it cannot be undone in one of
    them, it is undone only in `relids`, and the next process that uses the other table retries.

    Args:
        relids: handle the transactions that write these tables.  None: handle the database's
            transaction blocks, which may have changed definitions.

    Raises:
        PostgresError: the changes of a table in `relids` cannot be undone.
    """
    cluster = session.cluster
    if cluster.is_in_recovery:
        return
    _record_abandoned(cluster)
    with cluster.begin(write=False) as connection:
        if relids is None:
            candidates = blocks_of_others(connection, session.database_oid, cluster.backend)
        else:
            candidates = writers_of(connection, cluster.backend, relids)
    for xid, backend in candidates.items():
        if cluster.is_alive(backend):
            continue
        try:
            _end_abandoned(session, xid, backend)
        except QueryCanceled:
            raise
        except PostgresError as error:  # one unreadable table must not stop the others
            if relids is None:
                warn_of_undo(session, xid, error)
                continue
            with cluster.begin(write=False) as connection:
                if not writes_others(connection, xid, relids):
                    raise
            _undo_tables(session, xid, relids)


def recover_blocks(session: Session, blocks: Collection[OpenBlock]) -> None:
    """Finish or undo the blocks whose processes have died, in any database, like `recover`."""
    dead = [block for block in blocks if not session.cluster.is_alive(block.backend)]
    if not dead or session.cluster.is_in_recovery:
        return
    for block in dead:
        _end_abandoned(session.in_database(block.database_oid), block.xid, block.backend)


def undo_or_leave(session: Session, xid: int) -> None:
    """Undo a transaction.  If this fails, the next process that uses its tables undoes it."""
    try:
        _undo(session, xid)
    except PostgresError as error:  # the error that led to the undo matters more
        leave(session, [xid])
        warn_of_undo(session, xid, error)


def leave(session: Session, xids: Collection[int]) -> None:
    """Let the next process that uses the tables of these transactions undo them.  If the catalog is
    not writable now, this process records that with its next statement.
    """
    session.cluster.abandoned.update(xids)
    with suppress(PostgresError):  # the error that led to the undo matters more
        _record_abandoned(session.cluster)


def _record_abandoned(cluster: Cluster) -> None:
    """Mark the transactions that this process could not undo as abandoned, so that the next process
    that uses their tables undoes them.  If the catalog is not writable, the next call retries this.
    """
    for xid in list(cluster.abandoned):
        with cluster.begin(write=True) as connection:
            mark_abandoned(connection, xid)
        cluster.abandoned.discard(xid)


def _end_abandoned(session: Session, xid: int, backend: str) -> None:
    """End the transaction of a dead process: commit it if all its changes are present, else undo
    it.  Do nothing if another process has ended it in the meantime.

    Args:
        backend: the dead process.
    """
    with session.cluster.lock("recovery"):  # two processes must not undo the same writes
        with session.cluster.begin(write=False) as connection:
            if backend_of(connection, xid) != backend:
                return
        _end_in_progress(session, xid)


def _end_in_progress(session: Session, xid: int) -> None:
    intents, relations = written_tables(session, xid)
    take_over(session, xid, relations)
    done = [
        commit.mark
        for intent in intents
        for commit in _commits_of(session, relations, intent, xid)
        if commit.changes_data and commit.mark is not None and not commit.is_silent
    ]
    if not (done and any(intent.is_whole for intent in intents)):
        _undo(session, xid)
        return
    for intent in intents:
        if (relation := relations.get(intent.relid)) is not None:
            sync_versions(storage_of(relation).location, intent.version)
    origin = None
    if done[0].origin is not None and done[0].origin_at is not None:
        origin = SessionOrigin(done[0].origin, *done[0].origin_at)
    with session.cluster.write(session.database_oid) as catalog:
        for relation in relations.values():
            commit_log.enter_versions(catalog, session.cluster, relation, own_xid=xid)
        delete_intents(catalog.connection, xid)
        commit_with_origin(catalog.connection, xid, origin, changes_catalog=False)


def _undo(session: Session, xid: int) -> None:
    """Undo the writes and definitions of a transaction, and remove it."""
    cluster = session.cluster
    relations = undo_commits(session, xid)
    with cluster.write(session.database_oid) as catalog:
        # First: commits of other writers within the transaction must precede their later commits
        take_back(catalog, xid)
        move_to_new_transaction(catalog, xid)
        # Before columns of other programs are added: its definitions and locks would be in the way
        for own in xids_of_block(catalog.connection, xid):
            abort_transaction(catalog.connection, own)
        left = abandon_storage(catalog.connection)
        for relation in load_relations(catalog, relations).values():
            commit_log.enter_versions(catalog, cluster, relation, undone_xid=xid)
    report_files(session, left)


def _undo_tables(session: Session, xid: int, relids: Collection[int]) -> None:
    """Undo the writes of a dead process's transaction in some tables.  One of its other tables is
    unreadable, so a later process undoes the writes there.
    """
    relations = undo_commits(session, xid, only=relids)
    with session.cluster.write(session.database_oid) as catalog:
        for relation in relations.values():
            take_back(catalog, xid, relid=relation.oid)
            move_to_new_transaction(catalog, xid, relid=relation.oid)
            commit_log.enter_versions(catalog, session.cluster, relation, undone_xid=xid)
        delete_intents(catalog.connection, xid, relids)


def _commits_of(
    session: Session, relations: dict[int, Relation], intent: Intent, xid: int
) -> list[DeltaCommit]:
    relation = relations.get(intent.relid)
    if relation is None:
        return []
    commits = commits_since(session, relation, intent.version)
    return [commit for commit in commits if commit.is_of(xid)]
