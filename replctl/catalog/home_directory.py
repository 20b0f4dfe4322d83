"""Create the directory of a cluster, restrict it to its owner, check its place, and explain why it
cannot be written.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from replctl.catalog.auto_conf import AUTO_CONF
from replctl.errors import (
    DiskFull,
    FileAccessDenied,
    IoError,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.private_file import make_private, make_private_directory, open_private

CATALOG = "catalog.db"
#: Bytes of the header of a -wal, before its first page.
WAL_HEADER = 32
#: Tables that the catalog of a cluster always has.
_CATALOG_TABLES = frozenset(("alembic_version", "pg_control"))
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Minimum of bytes for opening a catalog for writing: the size of SQLite's shared memory.
_NEEDED = 32768


def has_catalog(path: Path) -> bool:
    """Return whether a directory has the catalog of a cluster, without a change to its files.

    A process that was killed while it created a cluster leaves an empty database.  An SQLite
    database of another program is no catalog either.  A damaged file counts as a catalog.

    Raises:
        OSError: the directory cannot be read.
    """
    try:
        if (path / CATALOG).stat().st_size == 0:  # an empty file is new, or lost
            return False
        names = _stored_tables(path)
        if names:
            return names >= _CATALOG_TABLES
        return names is None or (path / f"{CATALOG}-wal").stat().st_size > WAL_HEADER
    except (FileNotFoundError, NotADirectoryError):  # no home there yet
        return False


def _stored_tables(path: Path) -> set[str] | None:
    """Return the names of the tables in catalog.db without its -wal; None if the file cannot be
    read, for example during a checkpoint.
    """
    url = f"{(path / CATALOG).absolute().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(url, uri=True)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {name for (name,) in rows}
    except sqlite3.DatabaseError:  # opening the cluster reports the reason
        return None


def make_home(path: Path) -> bool:
    """Create the directory of a cluster if it does not exist, and return whether it was created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:  # another program was faster
        return False
    return True


def make_home_private(path: Path) -> None:
    """Protect the directory of a cluster and its catalog from other users.  SQLite creates files
    next to the catalog with the catalog's mode.
    """
    make_private_directory(path)
    # Opening and closing a catalog in use would release this process's SQLite locks
    with suppress(FileExistsError):
        open_private(path / CATALOG, os.O_RDWR | os.O_CREAT | os.O_EXCL, "r+b").close()
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):  # another process has closed the catalog
            make_private(path / f"{CATALOG}{suffix}")


#: The entry of a cluster's directory that holds tables.
_TABLES = "base"
_OWN_NAMES = frozenset(("cluster.lock", "lock", "log", "tmp", "spark", _TABLES, AUTO_CONF))


def check_is_outside_others(path: Path) -> None:
    """Check that a new home directory is not inside the directory of a Delta table or of a cluster.

    Raises:
        ObjectNotInPrerequisiteState: the directory is inside such a directory.  The table's owner
            may remove files that the Delta log does not name, and the cluster's owner may remove
            its whole home.
    """
    place = path.resolve()
    for parent in (place, *place.parents):
        if has_catalog(parent):
            raise ObjectNotInPrerequisiteState(
                f'directory "{path}" lies in the directory of the cluster in "{parent}"'
            )
        if (parent / "_delta_log").is_dir():
            raise ObjectNotInPrerequisiteState(
                f'directory "{path}" lies in the Delta table at "{parent}"'
            )


def check_holds_nothing_else(path: Path) -> None:
    """Check that a directory only holds files of a cluster.

    Raises:
        ObjectNotInPrerequisiteState: the directory has other files, another program's catalog.db,
            or tables of a cluster whose catalog is lost (as initdb).
    """
    is_free = not _stored_tables(path) if (path / CATALOG).exists() else True
    for entry in path.iterdir():
        is_own = entry.name in _OWN_NAMES or (is_free and entry.name.startswith(CATALOG))
        if not is_own or (entry.name == _TABLES and any(entry.iterdir())):
            raise holds_other_files(path)


def holds_other_files(path: Path) -> ObjectNotInPrerequisiteState:
    """Return the error for a directory in which no cluster can be created (initdb)."""
    return ObjectNotInPrerequisiteState(
        f'directory "{path}" exists but is not empty',
        hint=f'If you want to create a new cluster, either remove or empty the directory "{path}"'
        " or choose another one.",
    )


def refusal_of(path: Path, error: Exception) -> PostgresError:
    """Return the error that says why the cluster in a directory cannot be opened for writing.

    Args:
        error: an error of the operating system, or SQLite's error after `translated`.
    """
    reason = error if isinstance(error, OSError) else _why_not_writable(path)
    if reason is None:
        assert isinstance(error, PostgresError)
        return error
    kind: type[PostgresError] = IoError
    if reason.errno in _FULL:
        kind = DiskFull
    elif reason.errno in _DENIED:
        kind = FileAccessDenied
    return kind(
        f"could not {_use_of(path, reason)}: {reason.strerror}",
        hint="Until this is corrected, only status and queries of catalogs work.",
    )


def is_on_read_only_file_system(path: Path) -> bool:
    """Return whether nobody can write a directory now, because its file system is read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def is_writable(path: Path) -> bool:
    """Return whether a file can be created in a directory now."""
    return _why_not_writable(path) is None


def _use_of(path: Path, reason: OSError) -> str:
    """Return what has failed: the use of the home, or of a file in it that another user has made,
    for example with sudo.
    """
    file = reason.filename
    is_of_disk = reason.errno in (*_FULL, errno.EROFS)
    if is_of_disk or file is None or Path(file) == path or not os.path.lexists(file):
        return f'use directory "{path}"'
    return f'use directory "{file}"' if os.path.isdir(file) else f'access file "{file}"'


def _why_not_writable(path: Path) -> OSError | None:
    """Return the operating system's error when a file is created in a directory; None if that
    works.
    """
    import tempfile  # most commands do not need it

    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(_NEEDED))
    except OSError as error:  # it is the reason to report
        return error
    return None
