"""Read the revision of a catalog, and upgrade it to this program's revision with migrations.

An upgrade is one SQLite transaction, so a failed upgrade is undone.  The process that opens the
cluster upgrades it under a lock.  Other processes that open the cluster wait for the lock.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, inspect, text

from replctl.catalog import schema
from replctl.catalog.home_directory import CATALOG
from replctl.durable_file import durable_rename
from replctl.errors import IoError, ObjectInUse, ObjectNotInPrerequisiteState
from replctl.injection_point import injection_point
from replctl.private_file import open_private

if TYPE_CHECKING:
    from collections.abc import Collection

    from alembic.config import Config

_MIGRATIONS = "replctl.catalog:migrations"


def stored_revision(connection: Connection) -> str | None:
    """Return the revision of a catalog; None if the catalog is not created yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    query = text("SELECT version_num FROM alembic_version")
    return connection.execute(query).scalar_one_or_none()


def check_upgradable(home: Path, revision: str, users: Collection[int]) -> None:
    """Check that a catalog of another revision can be upgraded now.

    Args:
        users: the process IDs of the programs that have the catalog open.

    Raises:
        ObjectNotInPrerequisiteState: no migration leads from the catalog's revision to this
            program's (55000).
        ObjectInUse: other programs use the catalog, and know only its present revision (55006).
    """
    if revision not in _known_revisions():
        is_newer = revision > schema.REVISION
        raise ObjectNotInPrerequisiteState(
            f'catalog of cluster "{home}" has revision {revision}, which this replctl does not'
            " support",
            detail=f"This replctl supports revision {schema.REVISION}, which is"
            f" {'older' if is_newer else 'newer'}.",
            hint="Use a newer replctl: the one that made or upgraded the cluster."
            if is_newer
            else "Use the replctl that made the cluster. Or write its databases with its"
            ' "replctl dump", and create them again in a new home.',
        )
    if users:
        pids = ", ".join(map(str, sorted(users)))
        raise ObjectInUse(
            f'catalog of cluster "{home}" cannot be upgraded from revision {revision} to'
            f" {schema.REVISION}: it is being used by other programs",
            detail=f"Processes that use it: {pids}.",
            hint="Stop these programs first.",
        )


def keep_copy(engine: Engine, home: Path, revision: str) -> Path:
    """Copy the catalog before an upgrade, and return the path of the copy.

    Raises:
        IoError: the copy cannot be written.
    """
    copy, unfinished = home / f"{CATALOG}.{revision}", home / f"unfinished-{CATALOG}.{revision}"
    try:
        unfinished.unlink(missing_ok=True)
        open_private(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb").close()
        target = sqlite3.connect(unfinished)
        try:
            with engine.connect() as connection:
                source: Any = connection.connection.driver_connection
                source.backup(target)
        finally:
            target.close()
        durable_rename(unfinished, copy)
    except (OSError, sqlite3.Error) as error:
        raise IoError(
            f'could not copy the catalog of cluster "{home}" before its upgrade',
            detail=f"{error}.",
        ) from error
    return copy


def migrate(connection: Connection) -> None:
    """Create a catalog, or upgrade it to this program's revision.  The caller has begun a write
    transaction.
    """
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.execute(text("UPDATE pg_control SET revision = :it"), {"it": schema.REVISION})
    injection_point("upgrade.before-commit")


def _known_revisions() -> set[str]:
    """Return the revisions from which migrations lead to the newest revision."""
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _MIGRATIONS)
    return config
