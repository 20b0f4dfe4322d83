"""Errors of SQLite about a cluster's catalog, as PostgreSQL would make them."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import exc

from replctl.catalog.home_directory import refusal_of
from replctl.errors import (
    DataCorrupted,
    DiskFull,
    InternalError,
    IoError,
    LockNotAvailable,
    PostgresError,
)


def is_busy(error: exc.DBAPIError) -> bool:
    """Return whether another process holds what SQLite needs."""
    name = getattr(error.orig, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def translated(error: exc.DBAPIError, home: Path) -> PostgresError:
    """Return SQLite's complaint about a cluster's catalog as PostgreSQL would make it."""
    name = getattr(error.orig, "sqlite_errorname", "")
    reason = str(error.orig)
    if is_busy(error):
        return LockNotAvailable("canceling statement due to lock timeout", detail=reason)
    if name == "SQLITE_FULL":
        return DiskFull(
            f'could not write the catalog in "{home}": No space left on device',
            hint="Check free disk space.",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DataCorrupted("catalog is damaged", detail=reason)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
        unknown = IoError(f'could not access the catalog in "{home}"', detail=reason)
        return refusal_of(home, unknown)
    return InternalError(f"catalog: {reason}")
