"""Detect that somebody has replaced the files of the catalog: catalog.db, and the -wal and -shm
files that SQLite keeps next to it.  Operators may copy and restore them.

SQLite does not notice that a file was replaced.  If a crash has left a -wal, SQLite applies it to
any catalog.db next to it.  SQLite also continues to use a deleted file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, exc, inspect, select

from replctl.catalog import state_schema
from replctl.catalog.commit_digest import LogPosition, base_digest, broken_link, is_in_log
from replctl.catalog.home_directory import CATALOG, WAL_HEADER
from replctl.errors import (
    CannotConnectNow,
    FileAccessDenied,
    IoError,
    ObjectNotInPrerequisiteState,
)
from replctl.own_command import own_command
from replctl.record import dataclass

_WAL, _SHM = f"{CATALOG}-wal", f"{CATALOG}-shm"
#: Bytes of the header of each page in a -wal.
_FRAME_HEADER = 24
#: The number of consecutive checks that must find catalog.db older, and the seconds between two
#: checks.
_ATTEMPTS, _PAUSE = 3, 0.05
#: The prefix of the names of copies in the home's directory for temporary files.
_COPY = "catalog-"


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """The catalog's files that a process has open, by device and inode; None if there was no such
    file.
    """

    catalog: tuple[int, int] | None
    wal: tuple[int, int] | None
    shm: tuple[int, int] | None

    @staticmethod
    def at(home: Path) -> CatalogFiles:
        """Return the files that are in a home directory now.

        Raises:
            IoError: the files cannot be examined.
        """
        return CatalogFiles(*(_identity(home / name) for name in (CATALOG, _WAL, _SHM)))

    def note(self, path: Path) -> None:
        """Record the files in the lock file of this process, for other processes."""
        path.write_text(json.dumps(astuple(self)))

    @staticmethod
    def noted(path: Path) -> CatalogFiles | None:
        """Return the files that a process has recorded in its lock file; None if it has not
        recorded them yet.
        """
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):  # the process is still starting
            return None
        return CatalogFiles(*(None if item is None else tuple(item) for item in found))


def is_replaced(home: Path, opened: CatalogFiles) -> bool:
    """Return whether the catalog in a home is no longer the one that a process has open.

    SQLite itself keeps all three files while a process has the catalog open.

    Raises:
        IoError: the files cannot be examined.
    """
    now = CatalogFiles.at(home)
    return any(
        known is not None and found != known
        for known, found in (
            (opened.catalog, now.catalog),
            (opened.wal, now.wal),
            (opened.shm, now.shm),
        )
    )


def is_overwritten(home: Path, known_lsn: int) -> bool:
    """Return whether catalog.db itself, without its -wal, is older than before.  Normally only
    checkpoints write the file, and they only add commits.

    Args:
        known_lsn: an earlier result of `stored_lsn`, so the newest commit at that time.
    """
    for _attempt in range(_ATTEMPTS):  # a checkpoint may run during the read
        found = stored_lsn(home)
        if found is None or found >= known_lsn:
            return False
        time.sleep(_PAUSE)
    return True


def stored_lsn(home: Path) -> int | None:
    """Return the LSN of the newest commit in catalog.db without its -wal; None if the file cannot
    be read now.
    """
    lsn = _stored(home, "SELECT max(commit_lsn) FROM pg_xact")
    return None if lsn is None else int(lsn)


def _stored(home: Path, query: str) -> Any:
    """Return a value in catalog.db without its -wal; None if the file cannot be read now."""
    try:
        url = f"{(home / CATALOG).as_uri()}?immutable=1"
        with closing(sqlite3.connect(url, uri=True)) as connection:
            row = connection.execute(query).fetchone()
    except sqlite3.DatabaseError:  # such as a damaged file
        return None
    return None if row is None else row[0]


def replaced(home: Path) -> CannotConnectNow:
    """Return the error for a process whose open catalog was replaced."""
    return CannotConnectNow(
        f'the catalog in "{home}" was replaced while this program had it open',
        detail=f'"{home / CATALOG}" is another file now, or was overwritten. Changes that this'
        " program makes in the former file are lost.",
        hint="Start the program again.",
    )


def abandon(engine: Engine) -> None:
    """Close a replaced catalog without writing to it. The usual close would write its -wal into the
    new file, if the new file has the same inode.
    """
    pool: Any = engine.pool
    idle = [engine.connect() for _idle in range(pool.checkedin())]
    for connection in idle:
        driver: Any = connection.connection.driver_connection
        if sys.version_info >= (3, 12):
            driver.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        else:  # keep the connection open: the end of the process does not run SQLite's close
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(driver))
        connection.close()
    if sys.version_info >= (3, 12):
        engine.dispose()


def check_wal(home: Path, users: Collection[Path]) -> None:
    """Check, before the catalog is opened, that a -wal belongs to the catalog.db next to it.  The
    check does not change the files.

    Args:
        users: the lock files of the processes that have the catalog open.

    Raises:
        ObjectNotInPrerequisiteState: catalog.db was restored, but the -wal is from another state of
            the catalog (55000).
    """
    if not _has_frames(home / _WAL) or not (home / CATALOG).exists():
        return
    if users:
        now = CatalogFiles.at(home)
        opened = [found for path in users if (found := CatalogFiles.noted(path)) is not None]
        is_stale = any(f.wal == now.wal and f.catalog != now.catalog for f in opened)
        reason = "Another program writes it, and has another catalog open." if is_stale else None
    else:
        with _copied(home) as copy:
            reason = _mismatch(copy)
    if reason is not None:
        raise ObjectNotInPrerequisiteState(
            f'"{_WAL}" in "{home}" does not belong to the "{CATALOG}" there',
            detail=f"{reason} {CATALOG} was restored without its {_WAL}.",
            hint=f"Stop all programs. Restore {CATALOG} together with its own {_WAL} and {_SHM}. If"
            f' the backup lacks these two, remove "{home / _WAL}" and "{home / _SHM}", and run'
            f' "{_completing_command(home)}".',
        )


def _completing_command(home: Path) -> str:
    """Return the command that adds to a restored catalog.db the commits that it lacks."""
    if _stored(home, "SELECT is_in_recovery FROM pg_control"):  # a standby
        return own_command("standby", "sync", home=home)
    return own_command("cluster", "identify", "--restored", home=home)


@contextmanager
def _copied(home: Path) -> Iterator[Path]:
    """Copy catalog.db and its -wal into a temporary directory, to examine them safely.  Remove the
    copies of killed processes: only one process at a time opens a cluster.
    """
    import shutil
    from tempfile import TemporaryDirectory

    folder = home / "tmp"
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.glob(f"{_COPY}*"):
        shutil.rmtree(left)
    with TemporaryDirectory(prefix=_COPY, dir=folder) as name:
        for file in (CATALOG, _WAL):
            shutil.copyfile(home / file, Path(name) / file)
        yield Path(name) / CATALOG


def _mismatch(copy: Path) -> str | None:
    """Return a sentence that says why a catalog and its -wal do not belong together; None if they
    do.
    """
    alone = _commits(copy, "immutable=1")
    try:
        lacks_commits = bool(alone) and _lacks_commits(copy, alone)
        with closing(sqlite3.connect(copy)) as connection:  # this merges the -wal into the file
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            return f"Read together they are damaged: {found}."
        with _reading(copy) as both:
            if not _has_digests(both):  # another revision; check_upgradable decides
                return None
            if alone and not is_in_log(both, LogPosition(alone[-1].lsn, alone[-1].digest)):
                return f"{_WAL} does not have the last commit of {CATALOG}."
            if lacks_commits or broken_link(both) is not None:
                return f"Between the commits of {CATALOG} and those of {_WAL} others are missing."
    except (sqlite3.DatabaseError, exc.DBAPIError) as error:  # they have pages of two states
        return f"Read together they are damaged: {error}."
    return None


def _lacks_commits(copy: Path, alone: Sequence[LogPosition]) -> bool:
    """Return whether commits are missing between a catalog and the first commits in its -wal.

    The function searches for the first transaction of the -wal that adds commits.  The catalog must
    have the newest commit before this transaction.  If it does not, catalog.db is older than the
    beginning of the -wal.

    Args:
        alone: the commits of the catalog without the -wal.
    """
    import shutil

    known = {commit.digest for commit in alone}
    log = (copy.parent / _WAL).read_bytes()
    ends = _transaction_ends(log)
    part = copy.parent / "part"
    part.mkdir()
    shutil.copyfile(copy, part / CATALOG)  # only for reading

    def after(number: int) -> list[LogPosition]:
        """Return the commits that the catalog has if the -wal ends after transaction `number`.
        The first transaction is 0.
        """
        (part / _WAL).write_bytes(log[: ends[number]])
        (part / _SHM).unlink(missing_ok=True)
        return _commits(part / CATALOG, "mode=ro")

    def is_new(number: int) -> bool:
        commits = after(number)
        return bool(commits) and commits[-1].digest not in known

    first = bisect_left(range(len(ends)), True, key=is_new)
    if first == len(ends):
        return False
    after(first)
    with _reading(part / CATALOG) as connection:
        return _has_digests(connection) and base_digest(connection) not in known


def _transaction_ends(log: bytes) -> list[int]:
    """Return the end positions of transactions in a -wal (SQLite's file format, 4.1 and 4.2)."""
    page_size = int.from_bytes(log[8:12], "big")
    salts, frame = log[16:24], _FRAME_HEADER + page_size
    ends = []
    for start in range(WAL_HEADER, len(log) - frame + 1, frame):
        if log[start + 8 : start + 16] != salts:  # a frame of an earlier round
            break
        if log[start + 4 : start + 8] != bytes(4):  # a commit frame holds the file's size
            ends.append(start + frame)
    return ends


def _commits(path: Path, mode: str) -> list[LogPosition]:
    """Return the commits of a catalog, oldest first; an empty list if it cannot be read.  A crash
    during a checkpoint may damage catalog.db, but then the -wal has all pages of the checkpoint.
    """
    query = "SELECT commit_lsn, digest FROM pg_xact NOT INDEXED WHERE status = 'c' ORDER BY 1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)) as connection:
            return [LogPosition(*row) for row in connection.execute(query)]
    except sqlite3.DatabaseError:  # the -wal may still repair it
        return []


@contextmanager
def _reading(path: Path) -> Iterator[Connection]:
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _has_digests(connection: Connection) -> bool:
    """Return whether a catalog is complete and its revision has digests."""
    found = inspect(connection)
    for table in (state_schema.pg_xact, state_schema.pg_control):
        if not found.has_table(table.name):
            return False
        if {column["name"] for column in found.get_columns(table.name)} < set(table.c.keys()):
            return False
    return connection.execute(select(state_schema.pg_control.c.insert_lsn)).first() is not None


def _has_frames(path: Path) -> bool:
    try:
        return path.stat().st_size > WAL_HEADER
    except FileNotFoundError:  # SQLite removes it after the last use
        return False


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):  # SQLite creates -wal and -shm at first use
        return None
    except OSError as error:  # such as a network file system that does not respond
        kind = FileAccessDenied if isinstance(error, PermissionError) else IoError
        raise kind(f'could not stat file "{path}": {error.strerror}') from error
    return found.st_dev, found.st_ino
