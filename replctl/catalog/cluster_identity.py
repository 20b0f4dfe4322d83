"""Check that a directory is the recorded home of its cluster.  A copy of a home
would write the original's tables and use its slots.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, select, update

from replctl.catalog import state_schema
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.own_command import own_command

_CATALOG = "catalog.db"


def check_identity(connection: Connection, path: Path) -> None:
    """Check that a cluster is opened in its own home.  If the cluster was moved, record its new
    home.

    Args:
        connection: a transaction that writes the cluster's catalog.

    Raises:
        ObjectNotInPrerequisiteState: the recorded home still has a cluster with this identifier, so
            the opened one is a copy; or the recorded home cannot be read (55000).
    """
    control = state_schema.pg_control
    row = connection.execute(select(control.c.home, control.c.system_identifier)).one()
    if is_at_home(row.home, path):
        return
    try:
        found = identifier_at(Path(row.home))
    except ObjectNotInPrerequisiteState as error:
        error.hint = _identify_hint(path)
        raise
    if found == int(row.system_identifier):
        raise ObjectNotInPrerequisiteState(
            f'directory "{path}" is a copy of the cluster in "{row.home}"',
            detail=f"Both have the system identifier {row.system_identifier}.",
            hint=_identify_hint(path),
        )
    record_home(connection, path)


def is_at_home(home: str, path: Path) -> bool:
    """Return whether a recorded home is this directory, perhaps under another name."""
    if home == str(path):
        return True
    try:
        return os.path.samefile(home, path)
    except OSError:  # the recorded home no longer exists
        return False


def record_home(connection: Connection, path: Path) -> None:
    """Record a directory as the home of its cluster."""
    connection.execute(update(state_schema.pg_control).values(home=str(path)))


def identifier_at(home: Path) -> int | None:
    """Return the system identifier of the cluster in a directory; None if there is no cluster.

    Raises:
        ObjectNotInPrerequisiteState: there is a catalog that cannot be read (55000).
    """
    path = home / _CATALOG
    try:
        path.stat()
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (is_made,) = connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE name = 'pg_control'"
            ).fetchone()
            query = "SELECT system_identifier FROM pg_control"
            row = connection.execute(query).fetchone() if is_made else None
    except (FileNotFoundError, NotADirectoryError):  # no cluster is there
        return None
    except (OSError, sqlite3.Error) as error:
        raise ObjectNotInPrerequisiteState(
            f'could not read the catalog in "{home}"',
            detail=f"The cluster was in this directory: {error}.",
        ) from error
    return None if row is None else int(row[0])


def _identify_hint(copy: Path) -> str:
    """Return the hint with the commands that say whether a directory is a moved cluster or a
    copy.
    """
    copied, moved = (
        own_command("cluster", "identify", option, home=copy) for option in ("--copied", "--moved")
    )
    return (
        f'To make the copy a cluster of its own, run "{copied}". If the original is given up, run'
        f' "{moved}".'
    )
