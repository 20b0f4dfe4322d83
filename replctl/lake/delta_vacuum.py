"""Execute VACUUM: remove versions that no slot, copy, transaction, batch or recent reader needs.

VACUUM removes only these files:

1. Files that a table's own log names and that no kept version needs.
2. Files with Delta's names that no log names, if the directory was empty when replctl created the
   table.  They must be older than a week, the retention and every open intent.
3. Files of Delta's log that are older than a kept checkpoint.
4. All files with Delta's names of a dropped table whose directory replctl chose.

VACUUM also trims the catalog's own log and history.  It removes files before the log entries that
name them, so that after a crash the next VACUUM continues.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from uuid import uuid4

from replctl import spark
from replctl.catalog.intent import list_intents, oldest_intent
from replctl.catalog.pg_class import Relation, get_relation, load_relations
from replctl.catalog.pg_database import database_exists, recorded_databases
from replctl.catalog.pg_subscription import unfinished_copies
from replctl.catalog.pg_wal import last_logged_version
from replctl.catalog.storage import Storage, forget_foreign_commit, relations_with_storage
from replctl.catalog.table_home import BASE
from replctl.catalog.transaction import Catalog
from replctl.catalog.unfinished_write import unfinished_writes
from replctl.catalog.vacuum_horizon import (
    DroppedTable,
    Horizon,
    dropped_tables,
    forget_tables,
    oldest_needed_version,
    oldest_slot_lsn,
    trim,
)
from replctl.errors import IoError, LockNotAvailable
from replctl.injection_point import injection_point
from replctl.lake.delta_files import superfluous_files, unneeded_files, unneeded_log
from replctl.lake.delta_log import commits_after, latest_version
from replctl.lake.delta_names import is_data_name, is_log_name
from replctl.lake.durable_version import sync_versions
from replctl.lake.file_layout import current_layout, wanted_layout
from replctl.lake.leftovers import removing_leftovers
from replctl.lake.location import adopters_of
from replctl.lake.recovery import recover
from replctl.lake.schema_rewrite import rewrite_schemas
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_metadata import MAPPING_MODE
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.table_state import table_state
from replctl.record import dataclass
from replctl.relation_lock import lock_relations, remove_lock_files
from replctl.replication.replica_identity import target_key
from replctl.session import Session
from replctl.spark import OPTIMIZED_FILE_SIZE, CommitNote

#: Files that no log names are removed only after this number of seconds: Delta's default of
#: deletedFileRetentionDuration.
UNTRACKED_AGE = 7 * 86400
#: The lock that VACUUM holds while it removes files, and a backup while it copies them.
_NO_BACKUP = "vacuum"
#: The name of a table's directory in the home: its OID, with a number if the directory of the OID
#: already had a table (storage_place.py).
_TABLE_NAME = re.compile(r"(?P<relid>[0-9]+)(_[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of VACUUM for a table.

    Attributes:
        version: the oldest Delta version that is still readable; None if nothing could be removed.
        files, log_entries: the numbers of removed files and of removed log files.
        superfluous_files: the number of files that VACUUM FULL would save.
    """

    version: int | None
    files: int = 0
    log_entries: int = 0
    superfluous_files: int = 0


def vacuum_table(
    session: Session, oid: int, *, is_full: bool, waits: bool = True
) -> Vacuumed | None:
    """Remove the unneeded files of a table.

    Args:
        is_full: first remove dropped columns, and rewrite the table's files.
        waits: wait for writers of the table.

    Returns:
        the result; None for a table whose storage replctl does not own.

    Raises:
        LockNotAvailable: another session writes the table, and `waits` is false or lock_timeout has
            passed (55P03).
    """
    if is_full and waits:
        with session.read() as catalog:
            rewrite_schemas(session, load_relations(catalog, [oid]).values())
    with ExitStack() as stack:
        users = _lock_users(session, oid, stack, waits=waits)
        with session.read() as catalog:
            relation = get_relation(catalog, oid)
        if relation is None or not _is_ours(relation.storage):
            return None
        _settle(session, users)
        assert relation.storage is not None
        location = relation.storage.location
        if is_full:
            versions = {oid: latest_version(location)}
            with removing_leftovers(session, {oid: relation}, versions):
                _compact(session, relation, location)
            _settle(session, users)
        horizon = _horizon(session, set(users.values()))
        with session.read() as catalog:
            version = _oldest_version(catalog, oid, users, horizon)
        if version is None or version < 0:
            return Vacuumed(None)
        return _clean(session, relation.storage, version, horizon)


def _lock_users(session: Session, oid: int, stack: ExitStack, *, waits: bool) -> dict[int, int]:
    """Lock a relation, and the relations of other databases that have adopted its Delta table.
    Return all of them: a dict from OID to database.

    Raises:
        LockNotAvailable: see `vacuum_table`.
    """
    users = _users(session, oid)
    while True:
        with ExitStack() as taken:
            _lock(session, sorted(users), taken, waits=waits)
            current = _users(session, oid)  # others may have adopted the table in the meantime
            if current == users:
                stack.push(taken.pop_all())
                return users
        users = current


def _users(session: Session, oid: int) -> dict[int, int]:
    with session.read() as catalog:
        relation = get_relation(catalog, oid)
        users = {oid: session.database_oid}
        if relation is not None and _is_ours(relation.storage):
            assert relation.storage is not None
            users |= adopters_of(catalog, oid, relation.storage.location)
    return users


def _settle(session: Session, users: Mapping[int, int]) -> None:
    """End the transactions of dead processes in relations, and enter foreign versions.

    Args:
        users: a dict from OID to database.
    """
    with session.read() as catalog:
        databases = [oid for oid in sorted(set(users.values())) if database_exists(catalog, oid)]
    for database_oid in databases:
        there = session.in_database(database_oid)
        oids = [oid for oid, database in users.items() if database == database_oid]
        recover(there, oids)
        enter_foreign_versions(there, oids)


def _lock(session: Session, oids: Sequence[int], stack: ExitStack, *, waits: bool) -> None:
    """Lock relations, and prevent backups from copying files.  While this waits for a backup, other
    sessions can write the relations.

    Raises:
        LockNotAvailable: see `vacuum_table`.
    """
    cluster = session.cluster
    while waits:
        with cluster.lock(_NO_BACKUP):
            pass
        with ExitStack() as taken:
            lock_relations(session, oids, taken)
            try:
                taken.enter_context(cluster.lock(_NO_BACKUP, timeout=0))
            except LockNotAvailable:  # a backup started in the meantime
                continue
            stack.push(taken.pop_all())
            return
    for oid in oids:
        stack.enter_context(cluster.lock(f"relation-{oid}", timeout=0))
    stack.enter_context(cluster.lock(_NO_BACKUP, timeout=0))


def _is_ours(storage: Storage | None) -> bool:
    return (
        storage is not None
        and storage.is_made
        and not storage.is_adopted
        and not storage.is_read_only
    )


def _compact(session: Session, relation: Relation, location: str) -> None:
    """Rewrite a table's files.  No row changes, so the commits are neither decoded nor undone.

    With column mapping, the files may have values of dropped columns.  Rewrite these files first.
    """
    assert relation.storage is not None
    enter_foreign_versions(session, [relation.oid])
    stored = [relation.storage.columns[attnum] for attnum in target_key(relation)]
    is_there = all(column.since_version is not None for column in stored)
    layout = current_layout(table_state(location), location)
    wanted = wanted_layout(relation).clusters
    if wanted and not layout.clusters:  # a process died after it had rewritten the columns
        _commit_unmarked(
            session,
            relation,
            lambda token: spark.jobs.cluster(session.engine(), location, wanted, CommitNote(token)),
        )
    # Delta sorts rows by the clustering columns; partition columns are not in the files
    names = () if layout.clusters or wanted or not is_there else (c.name for c in stored)
    key = [name for name in names if name not in layout.partitions]
    if MAPPING_MODE in table_state(location).properties:
        _commit_unmarked(
            session,
            relation,
            lambda token: spark.jobs.purge(session.engine(), location, CommitNote(token)),
        )
    _commit_unmarked(
        session,
        relation,
        lambda token: spark.jobs.optimize(session.engine(), location, key, CommitNote(token)),
    )


def _commit_unmarked(session: Session, relation: Relation, run: Callable[[str], None]) -> None:
    """Run a job that commits to a table without replctl's mark.  The commit does not count as one
    of another writer if it is certain that the job made it, and that it is the only one.

    Args:
        run: runs the job.  Its commit has the given text as `userMetadata`.
    """
    assert relation.storage is not None
    enter_foreign_versions(session, [relation.oid])
    with session.read() as catalog:
        current = get_relation(catalog, relation.oid)
        before = last_logged_version(catalog.connection, relation.oid)
    token = uuid4().hex
    run(token)
    sync_versions(relation.storage.location, before)
    enter_foreign_versions(session, [relation.oid])
    if current is None or current.storage is None or current.storage.has_foreign or before is None:
        return
    commits = list(commits_after(relation.storage.location, before))
    if [(commit.user_metadata, commit.changes_data) for commit in commits] != [(token, False)]:
        return
    with session.cluster.begin(write=True) as connection:  # nobody else enters versions meanwhile
        if last_logged_version(connection, relation.oid) == commits[0].version:
            forget_foreign_commit(connection, relation.oid)


def _clean(session: Session, storage: Storage, version: int, horizon: Horizon) -> Vacuumed:
    location, folder = storage.location, TableFolder.of(storage.location)
    old = _time_of_untracked(session, horizon)
    files = unneeded_files(location, version, old if storage.was_empty else None)
    _delete(folder, files, "vacuum.after-first-file")
    injection_point("vacuum.before-log")
    entries = unneeded_log(location, version, old)
    _delete(folder, entries, "vacuum.after-first-log-entry")
    return Vacuumed(
        version, len(files), len(entries), superfluous_files(location, OPTIMIZED_FILE_SIZE)
    )


def _time_of_untracked(session: Session, horizon: Horizon) -> float:
    """Return the time, in seconds since 1970, before which VACUUM removes files that no log names.
    Writers may still commit newer files.
    """
    with session.cluster.begin(write=False) as connection:
        intent = oldest_intent(connection)
    times = [horizon.time, time.time_ns() // 1000 - UNTRACKED_AGE * 1_000_000]
    return min(times if intent is None else [*times, intent]) / 1_000_000


def _delete(folder: TableFolder, paths: Collection[str], point: str) -> None:
    for path in paths:
        try:
            folder.delete(path)
        except OSError as error:
            raise IoError(f'could not remove file "{folder.location}/{path}": {error}') from error
        injection_point(point)


# ---------------------------------------------------------------------------------------------
# Needed versions


def _horizon(session: Session, databases: Collection[int] | None = None) -> Horizon:
    """Return the horizon of some databases (OIDs), or of all databases."""
    retention = int(session.setting("replctl.vacuum_retention"))
    with session.read() as catalog:
        slots = oldest_slot_lsn(catalog.connection, databases)
        copies = [copy.lsn for _oid, copy in unfinished_copies(catalog)]
        now = time.time_ns() // 1000
        before = now - retention * 1_000_000
        return Horizon.of(catalog.connection, min([slots, *copies]), before, now)


def _oldest_version(
    catalog: Catalog, oid: int, users: Collection[int], horizon: Horizon
) -> int | None:
    """Return the oldest version of a relation's table that is still needed; None if it is unknown,
    or if there is none.

    Args:
        users: the relations of all databases that use the table.
    """
    wanted = {*users}
    if len(users) > 1:
        wanted -= {table.relid for table in dropped_tables(catalog.connection, horizon)} - {oid}
    versions = [_oldest_version_of(catalog, user, horizon) for user in wanted]
    known = [version for version in versions if version is not None]
    return min(known) if len(known) == len(versions) else None


def _oldest_version_of(catalog: Catalog, oid: int, horizon: Horizon) -> int | None:
    versions = [oldest_needed_version(catalog, oid, horizon)]
    versions += [
        intent.version for intent in list_intents(catalog.connection) if intent.relid == oid
    ]
    for _subscription, targets in unfinished_writes(catalog):
        if oid in targets:
            versions.append(targets[oid].version)
    for _subscription, copy in unfinished_copies(catalog):
        read = copy.publisher_state.get("versions", {})
        if str(oid) in read:
            versions.append(read[str(oid)])
    known = [version for version in versions if version is not None]
    return min(known) if len(known) == len(versions) else None


# ---------------------------------------------------------------------------------------------
# The cluster


def vacuum_cluster(session: Session) -> None:
    """Remove dropped tables with their lock files, and the unneeded parts of the catalog's history
    and the log.
    """
    horizon = _horizon(session)
    with session.read() as catalog:
        dropped = dropped_tables(catalog.connection, horizon)
    with session.cluster.lock(_NO_BACKUP):  # a backup may be copying these files
        for table in dropped:
            _remove(session, table)
        _remove_abandoned(session, horizon)
    injection_point("vacuum.before-catalog")
    with session.cluster.begin(write=True) as connection:
        trim(connection, horizon)
    remove_lock_files(session)
    _remove_databases(session)


def _remove(session: Session, table: DroppedTable) -> None:
    """Remove a dropped table.  If replctl does not own its directory, only remove the catalog's
    records.
    """
    with session.cluster.lock(f"relation-{table.relid}"):
        with session.read() as catalog:
            adopters = adopters_of(catalog, table.relid, table.location)
        if table.is_own and not adopters:
            _remove_files(session, table.location)
        with session.cluster.begin(write=True) as connection:
            forget_tables(connection, [table.relid])


def _remove_files(session: Session, location: str) -> None:
    """Remove the files of a dropped table, and its directory if nothing else is in it."""
    folder = TableFolder.of(location)
    if folder.is_link():
        session.notice(f'"{location}" is a link: VACUUM leaves the directory that it leads to')
        return
    try:
        others = 0
        for path, _changed in sorted(folder.all_files()):
            if is_data_name(path) or is_log_name(path):
                folder.delete(path)
            else:
                others += 1
        is_gone = folder.remove_empty()
    except OSError as error:
        raise IoError(f'could not remove the files of "{location}": {error}') from error
    if not is_gone:
        session.notice(
            f'directory "{location}" of a dropped table is not removed',
            detail=f"It has {others} files that are not Delta's."
            if others
            else "It has links, or directories that are not empty.",
        )


def _remove_abandoned(session: Session, horizon: Horizon) -> None:
    """Remove the empty directories of tables whose CREATE TABLE was rolled back."""
    with session.read() as catalog:
        known = relations_with_storage(catalog.connection)
    for path in (session.cluster.path / BASE).glob("*/*"):
        folder = TableFolder(str(path), is_local=True)
        named = _TABLE_NAME.fullmatch(path.name)
        if (
            named is not None
            and int(named["relid"]) not in known
            and path.is_dir()
            and folder.is_empty()
            and path.stat().st_mtime < horizon.time / 1_000_000
        ):
            folder.remove_empty()


def _remove_databases(session: Session) -> None:
    """Remove the empty directories of dropped databases that the catalog has forgotten."""
    with session.cluster.begin(write=False) as connection:
        known = recorded_databases(connection)
    for path in (session.cluster.path / BASE).glob("*"):
        if path.name.isdecimal() and int(path.name) not in known and path.is_dir():
            with suppress(OSError):  # it has other files, or is a link
                path.rmdir()
