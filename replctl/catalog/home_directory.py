"""The directory of a cluster: how it is made, for its owner alone, where it may not lie, and why it
cannot be written."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
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
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Bytes that a catalog needs at least to be opened for writing: those of SQLite's shared memory.
_NEEDED = 32768


def make_home(path: Path) -> bool:
    """Make the directory of a cluster, if it is not there; return whether it was not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def make_home_private(path: Path) -> None:
    """Keep the directory of a cluster and its catalog from other users; SQLite gives the files that
    it makes next to the catalog the catalog's mode."""
    make_private_directory(path)
    # To open and close a catalog that is in use would take SQLite's locks from this process
    with suppress(FileExistsError):
        open_private(path / CATALOG, os.O_RDWR | os.O_CREAT | os.O_EXCL, "r+b").close()
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):  # another process has closed the catalog
            make_private(path / f"{CATALOG}{suffix}")


#: What a cluster's directory has before its catalog is complete.
_TABLES = "base"
_OWN_NAMES = frozenset(("cluster.lock", "lock", "log", "tmp", "spark", _TABLES, AUTO_CONF))


def check_is_outside_tables(path: Path) -> None:
    """Check that a home directory is not inside the directory of a Delta table.

    Raises:
        ObjectNotInPrerequisiteState: the directory lies in that of a Delta table, whose owner may
            remove what its log does not name.
    """
    place = path.absolute()
    for parent in (place, *place.parents):
        if (parent / "_delta_log").is_dir():
            raise ObjectNotInPrerequisiteState(
                f'directory "{path}" lies in the Delta table at "{parent}"'
            )


def check_holds_nothing_else(path: Path) -> None:
    """Check that a directory only holds files of a cluster.

    Raises:
        ObjectNotInPrerequisiteState: the directory has what no cluster puts there (initdb), or
            tables of one whose catalog is lost.
    """
    for entry in path.iterdir():
        is_own = entry.name in _OWN_NAMES or entry.name.startswith(CATALOG)
        if not is_own or (entry.name == _TABLES and any(entry.iterdir())):
            raise ObjectNotInPrerequisiteState(
                f'directory "{path}" exists but is not empty',
                hint="If you want to create a new cluster, either remove or empty the directory"
                f' "{path}" or choose another one.',
            )


def refusal_of(path: Path, error: Exception) -> PostgresError:
    """Return why a cluster cannot be opened for writing, with its directory and the reason.

    Args:
        error: of the system, or what SQLite has made of it.
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
        f'could not use directory "{path}": {reason.strerror}',
        hint="Until it can be written, only status and queries of catalogs work.",
    )


def _why_not_writable(path: Path) -> OSError | None:
    """Return what the system says of a new file in a directory; None if it can be written."""
    import tempfile  # not for every command

    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(_NEEDED))
    except OSError as error:
        return error
    return None
