"""Translate SQLite's errors about a cluster's catalog to PostgreSQL's errors."""

from __future__ import annotations

import re
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
    ProgramLimitExceeded,
    StatementTooComplex,
)


def is_busy(error: exc.DBAPIError) -> bool:
    """Return whether another process holds a lock that SQLite needs."""
    name = getattr(error.orig, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


#: SQLite's messages about the depth of a query, and about other limits.
_TOO_DEEP = re.compile(r"parser stack overflow|Expression tree is too large")
_TOO_MUCH = re.compile(r"too many |at most |too large|too big")


def refusal_of_query(error: exc.DBAPIError) -> PostgresError:
    """Return the error for a query that SQLite refuses."""
    reason = str(error.orig)
    if _TOO_DEEP.match(reason):
        return StatementTooComplex("stack depth limit exceeded")
    if _TOO_MUCH.search(reason):
        return ProgramLimitExceeded("query of catalogs is too large", detail=f"{reason}.")
    return InternalError(f"catalog query failed: {reason}")


def translated(error: exc.DBAPIError, home: Path) -> PostgresError:
    """Return PostgreSQL's equivalent of an SQLite error about a cluster's catalog."""
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
