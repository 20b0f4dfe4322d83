"""Remove the leftovers of a failed write from a table's directory: files that no commit names.

Delta does not remove files of a failed write (`DelayedCommitProtocol.abortJob`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.storage import Storage, note_takeover
from replctl.catalog.transaction import backend_of
from replctl.errors import ConnectionFailure, PostgresError
from replctl.lake.commit_log import commits_since
from replctl.lake.delta_files import untracked_files
from replctl.lake.free_space import check_space
from replctl.lake.table_folder import TableFolder
from replctl.session import Session


@contextmanager
def removing_leftovers(
    session: Session, relations: Mapping[int, Relation], versions: Mapping[int, int | None]
) -> Iterator[None]:
    """Refuse a write if the disk is full, and remove the leftovers of a write that fails.  The
    caller holds the tables' locks.

    replctl removes such files only from tables in base/ that no other program has written.  For
    other tables, a NOTICE reports the number of files that remain.

    If Spark may still be writing, VACUUM removes the files later.  This is the case after a Ctrl-C
    that did not reach Spark, if Spark's server is lost, and for a day after the death of a process
    that wrote the table.

    Args:
        relations: the tables that may be written, by OID; the mapping may change in the `with`
            block.
        versions: the tables' newest versions before the write.

    Raises:
        DiskFull: a table's disk is full (53100).
    """
    check_space(relations.values())
    began = time.time() - _CLOCK_TICK
    try:
        yield
    except ConnectionFailure:
        raise
    except Exception:
        for relid in list(relations):
            version = versions.get(relid)
            _remove(session, relid, -1 if version is None else version, began)
        raise


def take_over(session: Session, xid: int, relids: Collection[int]) -> None:
    """Record that this process continues the write of another process."""
    with session.cluster.begin(write=True) as connection:
        if backend_of(connection, xid) != session.cluster.backend:
            note_takeover(connection, relids, time.time_ns() // 1000)


def report_files(session: Session, locations: Sequence[str]) -> None:
    """Report directories that still have files of tables whose CREATE TABLE was rolled back."""
    for location in locations:
        session.notice(f'files of a table that was rolled back remain in "{location}"')


#: Seconds by which Linux's clock for file times may lag.
_CLOCK_TICK = 0.01
#: Seconds after which Spark has certainly finished writing for a dead process.
_LONGEST_WRITE = 86400
#: Seconds between attempts, and the number of attempts: tasks of a failed job may continue for a
#: while.
_PAUSE, _ROUNDS = 0.2, 5


def _remove(session: Session, relid: int, version: int, began: float) -> None:
    with session.read() as catalog:
        relation = load_relations(catalog, [relid]).get(relid)
    if relation is None or relation.storage is None:
        return
    storage = relation.storage
    try:
        left = untracked_files(storage.location, version, began)
        if not left:
            return
        if _is_removable(session, relation, storage, version):
            _remove_files(storage.location, version, began)
            return
    except (OSError, PostgresError) as error:  # the error of the statement matters more
        session.notice(
            "could not look for files that the failed statement has left in table"
            f' "{relation.name}"',
            severity="WARNING",
            detail=str(error),
        )
        return
    session.notice(
        f'the failed statement has left files in "{storage.location}"',
        detail=f"Another program may be writing there: replctl does not remove these {len(left)}"
        " files.",
    )


def _remove_files(location: str, version: int, began: float) -> None:
    folder = TableFolder.of(location)
    for _round in range(_ROUNDS):
        left = untracked_files(location, version, began)
        if not left:
            return
        for path in left:
            folder.delete(path, is_emptied=True)  # Spark does not close unwritten files
        time.sleep(_PAUSE)


def _is_removable(session: Session, relation: Relation, storage: Storage, version: int) -> bool:
    """Return whether only this process can have written the files of a failed statement."""
    if not storage.is_in_base or storage.has_foreign:
        return False
    if time.time() - (storage.taken_over or 0) / 1_000_000 < _LONGEST_WRITE:
        return False
    with session.read() as catalog:
        commits = commits_since(catalog, session.cluster, relation, version)
    return all(commit.mark is not None for commit in commits)
