"""Copy a cluster consistently while commits continue.  Copy the catalog first, then each of the
cluster's own tables up to the version that the copied catalog knows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from replctl.absolute_path import absolute_path
from replctl.catalog.auto_conf import AUTO_CONF
from replctl.catalog.cluster import Cluster
from replctl.catalog.home_directory import (
    CATALOG,
    check_is_outside_others,
    is_on_read_only_file_system,
)
from replctl.catalog.state_schema import XactStatus
from replctl.catalog.table_home import BASE
from replctl.durable_file import durable_rename
from replctl.errors import (
    DataCorrupted,
    FeatureNotSupported,
    IoError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedFile,
)
from replctl.injection_point import injection_point
from replctl.lake.delta_log import latest_version, version_digest
from replctl.lake.delta_names import (
    LAST_CHECKPOINT,
    LOG_FOLDER,
    checked_name,
    is_unfinished_name,
    last_version,
)
from replctl.own_command import own_command
from replctl.private_file import make_private, open_private
from replctl.record import dataclass
from replctl.types.quote import quote_qualified_identifier

_UNFINISHED = f"unfinished-{CATALOG}"


@dataclass(frozen=True, slots=True)
class Backup:
    """The result of a backup.

    Attributes:
        tables, files: the numbers of copied tables and files.
        elsewhere: the tables with a LOCATION, as (name, location).  A backup does not copy these
            tables.
        problems: an error for each copied table that is not as the catalog knows it.
    """

    tables: int
    files: int
    elsewhere: list[tuple[str, str]]
    problems: list[PostgresError]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table to copy.

    Attributes:
        location: its directory, relative to the home.
        database, schema, name: its names; None for a dropped table.
        logged: the newest version in the commit log; None if the log has no version.
        digest: the digest of that version; None if it is unknown.
        intended: the newest version that a transaction in progress has recorded; None if there is
            none.
    """

    relid: int
    location: str
    database: str | None
    schema: str | None
    name: str | None
    logged: int | None
    digest: str | None
    intended: int | None

    @property
    def version(self) -> int:
        """Return the last version to copy: the newest one that the catalog knows.  Every existing
        table has a version.
        """
        return max(0, self.logged or 0, self.intended or 0)


def back_up(cluster: Cluster, directory: Path) -> Backup:
    """Copy a cluster into a new directory.  If that fails, the directory is left empty.

    VACUUM waits until the backup ends; other statements do not wait.

    Raises:
        FeatureNotSupported: the cluster is a standby, whose tables belong to its primary.
        ObjectNotInPrerequisiteState: the directory is not empty, or lies inside the directory of a
            cluster or of a table (55000).
        UndefinedFile: the Delta table of a relation is missing (58P01).
        IoError: something cannot be read or written.
        DiskFull, FileAccessDenied, IoError: VACUUM cannot be stopped, because the home is full or
            cannot be written by this process.
    """
    directory = absolute_path(directory)
    if cluster.is_in_recovery:
        raise FeatureNotSupported(
            f'the cluster in "{cluster.path}" is a standby, which has no tables of its own',
            hint="Back up its primary.",
        )
    check_is_outside_others(directory)
    with _without_vacuum(cluster, directory):
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if any(directory.iterdir()):
                raise ObjectNotInPrerequisiteState(
                    f'directory "{directory}" exists but is not empty'
                )
            os.chmod(directory, 0o700)
            with _emptied_on_failure(directory):
                return _copy(cluster, directory)
        except OSError as error:
            raise IoError(f'could not back up into "{directory}": {error}') from error


@contextmanager
def _without_vacuum(cluster: Cluster, directory: Path) -> Iterator[None]:
    """Let VACUUM wait, which would remove files before they are copied.  On a read-only file system
    nobody can run it.
    """
    if cluster.refusal is None:
        with cluster.lock("vacuum"):
            yield
        return
    if not is_on_read_only_file_system(cluster.path):
        error = copy(cluster.refusal)
        moved = own_command("cluster", "identify", "--moved", home=directory)
        error.hint = (
            f'Stop all programs that use the cluster, copy its directory with "cp -r", and run'
            f' "{moved}" to use the copy instead.'
        )
        raise error
    yield


@contextmanager
def _emptied_on_failure(directory: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for entry in directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        raise


def _copy(cluster: Cluster, directory: Path) -> Backup:
    catalog = directory / _UNFINISHED
    _copy_catalog(cluster, catalog)
    injection_point("backup.after-catalog")
    tables, elsewhere = _tables(catalog)
    copied = files = 0
    problems: list[PostgresError] = []
    for table in tables:
        source, target = cluster.path / table.location, directory / table.location
        if source.exists():
            files += _copy_table(source, target, table.version)
            copied += 1
            fault = None if table.name is None else _fault(table, target)
            if fault is not None:
                message = f'table "{table.name}" in the backup is not as the catalog knows it'
                error = _named(DataCorrupted(message), table, source, fault)
                if _is_cleaned(table, source):
                    error.hint = _read_hint(table)
                problems.append(error)
        elif table.name is not None:
            missing = UndefinedFile(f'could not find the Delta table "{source}"')
            raise _named(missing, table, source)
    _forget_later_columns(catalog, tables)
    _forget_blocks(catalog)
    if (cluster.path / AUTO_CONF).exists():
        shutil.copy2(cluster.path / AUTO_CONF, directory / AUTO_CONF)
        make_private(directory / AUTO_CONF)
    os.sync()  # the catalog turns the directory into a cluster: it must be copied last
    durable_rename(catalog, directory / CATALOG)
    return Backup(copied, files, elsewhere, problems)


def _fault(table: _Table, copied: Path) -> str | None:
    """Return why a copied table is not as the catalog knows it; None if it is."""
    found = version_digest(str(copied), table.version)
    if found is None:
        return f"It has no version {table.version}."
    is_other = table.logged == table.version and table.digest not in (None, found)
    return f"It has another version {table.version}." if is_other else None


def _is_cleaned(table: _Table, source: Path) -> bool:
    """Return whether the log of a table was cleaned up to versions that the catalog does not know
    (Chain.CLEANED): the table is whole, but the backup cannot have its state in the catalog.
    """
    newest = latest_version(str(source))
    is_newer = newest is not None and newest > table.version
    return is_newer and version_digest(str(source), table.version) is None


def _read_hint(table: _Table) -> str:
    """Return the hint with the query that lets the catalog learn a table's newest version."""
    name = quote_qualified_identifier(table.schema or "", table.name or "")
    return (
        f'In database "{table.database}", use SELECT count(*) FROM {name}; then back up into'
        " another directory."
    )


def _named(error: PostgresError, table: _Table, source: Path, fault: str = "") -> PostgresError:
    """Add the names of a table to an error, and how to repair the table."""
    assert table.name is not None
    place = (
        f'Table "{table.schema}.{table.name}" of database "{table.database}" is stored at'
        f' "{source}".'
    )
    error.detail = f"{place} {fault}".rstrip()
    name = quote_qualified_identifier(table.schema, table.name)
    error.hint = f"Restore the directory from a backup, or use DROP TABLE {name}."
    return error


def _copy_catalog(cluster: Cluster, path: Path) -> None:
    """Copy one state of the catalog with SQLite's own backup."""
    open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb").close()
    target = sqlite3.connect(path)
    try:
        with cluster.engine.connect() as connection:
            source: Any = connection.connection.driver_connection
            source.backup(target)
    except sqlite3.Error as error:
        raise IoError(f'could not copy the catalog into "{path}"', detail=str(error)) from error
    finally:
        target.close()


#: The cluster's own tables, as `_Table`.
_KNOWN = f"""
    SELECT s.relid, s.location, d.datname, n.nspname, c.relname, w.version, w.digest,
        (SELECT max(i.version) FROM intent i WHERE i.relid = s.relid)
    FROM storage_table s
    LEFT JOIN pg_class c ON c.oid = s.relid AND c.xmax = 0
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace AND n.dbid = c.dbid AND n.xmax = 0
    LEFT JOIN pg_database d ON d.oid = c.dbid AND d.xmax = 0
    LEFT JOIN pg_wal w ON w.lsn =
        (SELECT lsn FROM pg_wal v WHERE v.relid = s.relid ORDER BY v.version DESC LIMIT 1)
    WHERE s.is_made AND s.location LIKE '{BASE}/%' ORDER BY s.location
"""
_ELSEWHERE = f"""
    SELECT relname, location FROM storage_table JOIN pg_class ON oid = relid AND xmax = 0
    WHERE location NOT LIKE '{BASE}/%' ORDER BY 1
"""


def _tables(catalog: Path) -> tuple[list[_Table], list[tuple[str, str]]]:
    """Return the cluster's own tables, and the tables stored elsewhere."""
    with closing(sqlite3.connect(f"{catalog.as_uri()}?mode=ro", uri=True)) as connection:
        known = [_Table(*row) for row in connection.execute(_KNOWN)]
        elsewhere = [(str(name), str(place)) for name, place in connection.execute(_ELSEWHERE)]
    return known, elsewhere


def _forget_later_columns(catalog: Path, tables: Sequence[_Table]) -> None:
    """Record that the copied tables lack the columns of later versions, which the backup does not
    have.  Then the columns can be added again.
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.executemany(
            "UPDATE storage_column SET since_version = NULL WHERE relid = ? AND since_version > ?",
            [(table.relid, table.version) for table in tables],
        )


#: The writes of open transactions into tables that a backup does not copy: transaction and table.
#: A transaction of a single commit is left out, because its commit proves that it is complete.
_OPEN_WRITES = f"""
    SELECT x.xid, i.relid FROM intent i
    JOIN storage_table s ON s.relid = i.relid AND s.location NOT LIKE '{BASE}/%'
    JOIN pg_xact x ON (x.xid = i.xid OR x.block_xid = i.xid) AND x.status = ?
    WHERE NOT i.is_whole
"""


def _forget_blocks(catalog: Path) -> None:
    """Remove the writes of open transactions into tables that the backup does not copy.

    The transactions may commit after the backup.  A cluster that is made from the backup must not
    undo them: it refuses the tables, because it does not know the commits (unknown_mark.py).
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        writes = connection.execute(_OPEN_WRITES, (XactStatus.IN_PROGRESS,)).fetchall()
        for table in ("pg_wal", "commit_nonce", "intent"):
            connection.executemany(f"DELETE FROM {table} WHERE xid = ? AND relid = ?", writes)


def _copy_table(source: Path, target: Path, version: int) -> int:
    """Copy a table up to a version: its log without later versions, and its files.

    Returns:
        the number of files.
    """
    copied = 0
    for path in _files(source):
        relative = path.relative_to(source)
        if relative.parts[0] == LOG_FOLDER and _is_left_out(path.name, version):
            continue
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(path, target / relative)
        except FileNotFoundError:  # a writer's temporary file
            continue
        copied += 1
    return copied


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder.  Do not follow symbolic links."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _is_left_out(name: str, version: int) -> bool:
    """Return whether the backup omits a file of Delta's log.  It omits files of later versions,
    incomplete files, and _last_checkpoint.  Delta does not need _last_checkpoint, which may change
    during the copy.
    """
    last = last_version(checked_name(name))
    if last is not None:
        return last > version
    return checked_name(name) == LAST_CHECKPOINT or is_unfinished_name(name)
