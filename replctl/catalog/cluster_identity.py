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
from replctl.catalog.pg_control import read_control
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
            the opened one is a copy; or the recorded home cannot be read; or a promoted standby has
            replaced the cluster, so the opened one counts as a copy, for example a backup (55000).
    """
    control = read_control(connection)
    if is_at_home(control.home, path):
        return
    try:
        found = identifier_at(Path(control.home))
    except ObjectNotInPrerequisiteState as error:
        error.hint = _identify_hint(path)
        raise
    if found == control.system_identifier:
        raise ObjectNotInPrerequisiteState(
            f'directory "{path}" is a copy of the cluster in "{control.home}"',
            detail=f"Both have the system identifier {control.system_identifier}.",
            hint=_identify_hint(path),
        )
    # As a recorded home, the directory could not become a separate cluster (check_is_copy)
    standby = control.promoted_to or promoted_standby(connection)
    if standby is not None:
        raise ObjectNotInPrerequisiteState(
            f'directory "{path}" is a copy of the cluster in "{control.home}"',
            detail=f'The standby "{standby}" was promoted in place of that cluster.',
            hint=_replaced_hint(path),
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


def promoted_standby(connection: Connection) -> str | None:
    """Return the home of a standby that was promoted while it could not reach this cluster; None if
    no standby is known to be promoted.
    """
    control = read_control(connection)
    home = state_schema.pg_replication_slots.c.standby_home
    standbys = connection.execute(select(home).where(home.is_not(None))).scalars().all()
    for standby in standbys:
        if _timeline_of(Path(standby), control.system_identifier) > control.timeline:
            return str(standby)
    return None


def _timeline_of(home: Path, system_identifier: int) -> int:
    """Return the timeline of a promoted standby; 0 for one that still follows its primary, or if
    its catalog cannot be read.
    """
    try:
        connection = sqlite3.connect(f"{(home / _CATALOG).as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:  # the standby's disk may be unmounted; the next start tries again
        return 0
    query = "SELECT timeline FROM pg_control WHERE system_identifier = ? AND NOT is_in_recovery"
    try:
        row = connection.execute(query, (system_identifier,)).fetchone()
        return 0 if row is None else int(row[0])
    except sqlite3.Error:  # such as a damaged file: the primary must start anyway
        return 0
    finally:
        connection.close()


def _identify_hint(copy: Path) -> str:
    """Return the hint with the commands that say whether a directory is a moved cluster or a
    copy.
    """
    copied, moved = _identify_commands(copy)
    return (
        f'To make the copy a cluster of its own, run "{copied}". If the original is given up, run'
        f' "{moved}".'
    )


def _replaced_hint(copy: Path) -> str:
    """Return the hint for a copy of a primary that a standby has replaced.  --moved is only for the
    home of this primary, which has tables of the new primary.
    """
    copied, moved = _identify_commands(copy)
    return (
        f'To make the copy a cluster of its own, run "{copied}". If it is no copy, but the moved'
        f' home of the old primary, run "{moved}".'
    )


def _identify_commands(copy: Path) -> tuple[str, str]:
    copied, moved = (
        own_command("cluster", "identify", option, home=copy) for option in ("--copied", "--moved")
    )
    return copied, moved
