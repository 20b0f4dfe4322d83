"""Execute transaction blocks (xact.c): statements that take effect together or not at all.

The definitions that a block makes are rows of the catalog.  Other sessions see them after its
commit.  Changes of tables become Delta commits immediately, under the relations' locks.  The log
records these commits with the block's transaction number, and they become valid when this
transaction commits.  ROLLBACK undoes them by inverse commits, which replctl does not decode.  If
the process dies, the next session that uses one of the tables undoes the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.intent import delete_intents, intents_of
from replctl.catalog.lock import release_locks
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.pg_replication_slots import advance_origin, commit_with_origin
from replctl.catalog.pg_wal import take_back
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.storage import abandon_storage
from replctl.catalog.transaction import (
    BlockXids,
    abort_transaction,
    insert_lsn,
    put_definitions_lsn,
)
from replctl.errors import InvalidSavepointSpecification, PostgresError
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.catalog_registration import unregister_dropped
from replctl.lake.delta_log import latest_version
from replctl.lake.leftovers import report_files
from replctl.lake.located_table import make_tables
from replctl.lake.recovery import undo_or_leave
from replctl.lake.schema_rewrite import rewrite_schemas
from replctl.lake.undo import undo_commits
from replctl.session import Session
from replctl.transaction_block import Savepoint, TransactionBlock


def begin(session: Session, *, is_implicit: bool = False) -> TransactionBlock:
    """Open a block.

    Args:
        is_implicit: the block is opened without BEGIN, for the statements of one query string.
    """
    session.transaction_start = session.statement_start
    session.block = TransactionBlock(
        session.transaction_start,
        dict(session.settings),
        is_implicit=is_implicit,
        is_read_only=session.is_read_only,
    )
    return session.block


def commit(session: Session) -> None:
    """Commit the open block: all its changes take effect at one LSN."""
    block = _open(session)
    block.is_ending = True
    top = block.xids.top
    written: list[Relation] = []
    if top is not None:
        injection_point("block.before-commit")
        with session.cluster.write(session.database_oid, block.xids) as catalog:
            oids = (
                relation_oids(catalog, [RelKind.TABLE])
                if block.changes_definitions
                else block.locked
            )
            relations = load_relations(catalog, oids).values()
            broken = commit_log.enter_readable(catalog, session.cluster, relations, top, ends=True)
            intended = [intent.relid for intent in intents_of(catalog.connection, top)]
            for relid in intended:
                if relid in broken:
                    raise broken[relid]
            written = [relation for relation in relations if relation.oid in intended]
            delete_intents(catalog.connection, top)
            if block.definitions_lsn is not None:
                put_definitions_lsn(catalog.connection, top, block.definitions_lsn)
            commit_with_origin(
                catalog.connection,
                top,
                session.origin,
                changes_catalog=block.changes_definitions,
                savepoints=block.xids.all,
            )
            release_locks(catalog.connection, block.xids.all)
        injection_point("block.after-commit")
    for name, value in block.local_settings.items():
        session.put_setting(name, value)
    _close(session, block)
    make_tables(session, block.located)
    _rewrite_schemas(session, written)
    if top is not None:
        unregister_dropped(session)


def _rewrite_schemas(session: Session, written: Sequence[Relation]) -> None:
    """Remove dropped columns from the Delta tables that the block has written, and rename renamed
    columns there.
    """
    try:
        rewrite_schemas(session, written)
    except PostgresError as error:  # the block is committed; the tables' next write retries it
        session.notice(
            "dropped and renamed columns could not be changed in the Delta tables yet",
            severity="WARNING",
            detail=error.message,
        )


def rollback(session: Session) -> None:
    """Roll back the open block, with all its changes."""
    block = _open(session)
    top = block.xids.top
    session.settings = block.settings
    try:
        if top is not None:
            session.block = None  # undoing is not part of the transaction
            undo_or_leave(session, top)
            if session.origin is not None:
                with session.cluster.begin(write=True) as connection:
                    advance_origin(
                        connection,
                        session.origin.name,
                        LogPosition(session.origin.lsn),
                        insert_lsn(connection),
                    )
    finally:
        _close(session, block)
    if top is not None:
        unregister_dropped(session)


def fail(session: Session) -> None:
    """Mark the open block as failed: it refuses statements until it ends or returns to a savepoint.
    Without savepoints, the block is undone immediately.  A failed COMMIT ends the block.
    """
    block = _open(session)
    if block.is_implicit or block.is_ending:
        rollback(session)
        return
    if block.savepoints:
        block.has_failed = True
        return
    try:
        rollback(session)
    finally:  # otherwise the next statements would run outside of a block
        session.block = TransactionBlock(block.start, block.settings, has_failed=True)


def savepoint(session: Session, name: str) -> None:
    """Define a savepoint at the current state of the block."""
    block = _open(session)
    with session.cluster.begin(write=False) as connection:
        lsn = insert_lsn(connection)
    versions = _versions(session, block)
    block.savepoints.append(
        Savepoint(
            name,
            lsn,
            dict(session.settings),
            dict(block.local_settings),
            versions,
            block.definitions_lsn,
            block.is_read_only,
        )
    )
    block.xids.levels.append([])


def release(session: Session, name: str) -> None:
    """Forget a savepoint and the later ones, and keep the changes since then.  SET TRANSACTION READ
    ONLY ends with the savepoint (CommitSubTransaction in xact.c).

    Raises:
        InvalidSavepointSpecification: there is no such savepoint (3B001).
    """
    block = _open(session)
    place = _place(block, name)
    block.is_read_only = block.savepoints[place].is_read_only
    levels = block.xids.levels
    levels[place] += [xid for level in levels[place + 1 :] for xid in level]
    del levels[place + 1 :]
    del block.savepoints[place:]


def rollback_to(session: Session, name: str) -> None:
    """Undo the changes since a savepoint, and keep the savepoint.

    Raises:
        InvalidSavepointSpecification: there is no such savepoint (3B001).
    """
    block = _open(session)
    place = _place(block, name)
    goal = block.savepoints[place]
    block.definitions_lsn = goal.definitions_lsn
    block.is_read_only = goal.is_read_only
    top = block.xids.top
    kept = BlockXids(block.xids.levels[: place + 1])
    relations = {} if top is None else undo_commits(session, top, goal.versions, kept=kept)
    gone = [xid for level in block.xids.levels[place + 1 :] for xid in level]
    with session.cluster.write(session.database_oid, block.xids) as catalog:
        # Before columns of other programs are added: their definitions would be in the way
        for xid in gone:
            abort_transaction(catalog.connection, xid)
        left = abandon_storage(catalog.connection)
        for relation in relations.values():
            commit_log.enter_versions(catalog, session.cluster, relation, own_xid=top)
        if top is not None:
            take_back(catalog, top, goal.log_lsn)
    report_files(session, left)
    block.xids.levels[place + 1 :] = [[]]
    del block.savepoints[place + 1 :]
    session.settings = dict(goal.settings)
    block.local_settings = dict(goal.local_settings)
    block.has_failed = False


def _open(session: Session) -> TransactionBlock:
    assert session.block is not None
    return session.block


def _close(session: Session, block: TransactionBlock) -> None:
    session.block = None
    block.locks.close()
    block.locks = ExitStack()


def _place(block: TransactionBlock, name: str) -> int:
    for place in reversed(range(len(block.savepoints))):
        if block.savepoints[place].name == name:
            return place
    raise InvalidSavepointSpecification(f'savepoint "{name}" does not exist')


def _versions(session: Session, block: TransactionBlock) -> dict[int, int]:
    """Return the versions of the tables that the block may have written."""
    with session.read() as catalog:
        relations = load_relations(catalog, block.locked)
    found = {
        oid: latest_version(relation.storage.location)
        for oid, relation in relations.items()
        if relation.storage is not None
    }
    return {oid: version for oid, version in found.items() if version is not None}
