"""VACUUM: what no slot, copy, transaction, batch or recent reader needs goes away: data files and
files of changes, entries of Delta's logs, tables that were dropped, and the catalog's own log and
history.

Everything is found again by the next VACUUM, wherever this one dies: files go before the entries of
the log that tell of them, and what a table consists of is never touched.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from replctl.catalog.horizon import (
    DroppedTable,
    Horizon,
    dropped_tables,
    forget_tables,
    oldest_needed_version,
    oldest_slot_lsn,
    trim,
)
from replctl.catalog.intent import list_intents
from replctl.catalog.pg_class import Relation, Storage, get_relation
from replctl.catalog.pg_subscription import list_apply_batches, unfinished_copies
from replctl.catalog.storage import relations_with_storage
from replctl.catalog.transaction import Catalog
from replctl.errors import IoError
from replctl.injection_point import injection_point
from replctl.lake.delta_files import unneeded_files, unneeded_log
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.table_write import recover
from replctl.record import dataclass
from replctl.replication.replica_identity import target_key
from replctl.session import Session


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What VACUUM has done to a table.

    Attributes:
        version: the oldest Delta version that can still be read; None if nothing could go.
        files, log_entries: how many it has removed.
    """

    version: int | None
    files: int
    log_entries: int


def vacuum_table(
    session: Session, oid: int, *, is_full: bool, waits: bool = True
) -> Vacuumed | None:
    """Remove what nobody needs of a table.

    Args:
        is_full: write its files anew before.
        waits: for those who write it.

    Returns:
        None for a table that has no storage of ours.

    Raises:
        LockNotAvailable: somebody writes it, and it is not to be waited for, or for longer than
            lock_timeout (55P03).
    """
    with ExitStack() as stack:
        if waits:
            session.lock_relations([oid], stack)
        else:
            stack.enter_context(session.cluster.lock(f"relation-{oid}", timeout=0))
        with session.read() as catalog:
            relation = get_relation(catalog, oid)
        if relation is None or not _is_ours(relation.storage):
            return None
        recover(session, [oid])
        enter_foreign_versions(session, [relation.oid])
        assert relation.storage is not None
        location = relation.storage.location
        if is_full:
            _compact(session, relation, location)
        horizon = _horizon(session)
        with session.read() as catalog:
            version = _oldest_version(catalog, oid, horizon)
        if version is None or version < 0:
            return Vacuumed(None, 0, 0)
        return _clean(location, version, horizon)


def _is_ours(storage: Storage | None) -> bool:
    return storage is not None and storage.is_made and not storage.is_adopted


def _compact(session: Session, relation: Relation, location: str) -> None:
    """Write a table's files anew: no row changes, so decoding passes the commit over, and there is
    nothing to undo."""
    assert relation.storage is not None
    stored = [relation.storage.columns[attnum] for attnum in target_key(relation)]
    is_there = all(column.since_version is not None for column in stored)
    session.engine().optimize(location, [c.name for c in stored] if is_there else [])
    enter_foreign_versions(session, [relation.oid])


def _clean(location: str, version: int, horizon: Horizon) -> Vacuumed:
    folder = TableFolder.of(location)
    files = unneeded_files(location, version, horizon.time / 1_000_000)
    _delete(folder, files, "vacuum.after-first-file")
    injection_point("vacuum.before-log")
    entries = unneeded_log(location, version)
    _delete(folder, entries, "vacuum.after-first-log-entry")
    return Vacuumed(version, len(files), len(entries))


def _delete(folder: TableFolder, paths: Collection[str], point: str) -> None:
    for path in paths:
        try:
            folder.delete(path)
        except OSError as error:
            raise IoError(f'could not remove file "{folder.location}/{path}": {error}') from error
        injection_point(point)


# ---------------------------------------------------------------------------------------------
# What is needed


def _horizon(session: Session, *, is_for_cluster: bool = False) -> Horizon:
    """The oldest need of the session's database, or of all."""
    retention = int(session.setting("replctl.vacuum_retention"))
    database_oid = None if is_for_cluster else session.database_oid
    with session.read() as catalog:
        slots = oldest_slot_lsn(catalog.connection, database_oid)
        copies = [copy.lsn for copy in unfinished_copies(catalog)]
    return Horizon(min([slots, *copies]), time.time_ns() // 1000 - retention * 1_000_000)


def _oldest_version(catalog: Catalog, oid: int, horizon: Horizon) -> int | None:
    """The oldest version of a table that somebody may read; None where it cannot be said, or there
    is none."""
    versions = [oldest_needed_version(catalog, oid, horizon)]
    versions += [
        intent.version for intent in list_intents(catalog.connection) if intent.relid == oid
    ]
    for targets in (
        *(batch.targets for batch in list_apply_batches(catalog)),
        *(copy.targets for copy in unfinished_copies(catalog)),
    ):
        if oid in targets:
            versions.append(targets[oid][0])
    for copy in unfinished_copies(catalog):
        read = copy.publisher_state.get("versions", {})
        if str(oid) in read:
            versions.append(read[str(oid)])
    known = [version for version in versions if version is not None]
    return min(known) if len(known) == len(versions) else None


# ---------------------------------------------------------------------------------------------
# The cluster


def vacuum_cluster(session: Session) -> None:
    """Remove dropped tables, and what nobody needs of the catalogs' history and the log."""
    horizon = _horizon(session, is_for_cluster=True)
    with session.read() as catalog:
        dropped = dropped_tables(catalog.connection, horizon)
    for table in dropped:
        _remove(session, table)
    _remove_abandoned(session, horizon)
    injection_point("vacuum.before-catalog")
    with session.cluster.begin(write=True) as connection:
        trim(connection, horizon)


def _remove(session: Session, table: DroppedTable) -> None:
    """Remove a dropped table; of one that was adopted only what is known of it."""
    with session.cluster.lock(f"relation-{table.relid}"):
        if not table.is_adopted:
            _delete_folder(table.location)
        with session.cluster.begin(write=True) as connection:
            forget_tables(connection, [table.relid])


def _remove_abandoned(session: Session, horizon: Horizon) -> None:
    """Remove folders of tables whose CREATE TABLE was rolled back."""
    folders = [
        folder
        for folder in (session.cluster.path / "base").glob("*/*")
        if folder.name.isdecimal() and _changed(folder) < horizon.time / 1_000_000
    ]
    with session.read() as catalog:
        known = relations_with_storage(catalog.connection)
    for folder in folders:
        if int(folder.name) not in known:
            _delete_folder(str(folder))


def _changed(folder: Path) -> float:
    """When something was last written into a folder."""
    log = folder / "_delta_log"
    return max(path.stat().st_mtime for path in (folder, log) if path.exists())


def _delete_folder(location: str) -> None:
    try:
        TableFolder.of(location).delete_all()
    except OSError as error:
        raise IoError(f'could not remove "{location}": {error}') from error
