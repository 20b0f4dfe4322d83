"""A copy of a cluster that is consistent although commits go on: the catalog first, then each of
its own tables up to the version that this catalog knows."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replctl.catalog.auto_conf import AUTO_CONF
from replctl.catalog.cluster import CATALOG, Cluster
from replctl.catalog.table_home import BASE
from replctl.errors import IoError, ObjectNotInPrerequisiteState
from replctl.injection_point import injection_point
from replctl.lake.delta_names import LOG_FOLDER
from replctl.record import dataclass

_UNFINISHED = f"unfinished-{CATALOG}"
_VERSION = re.compile(r"\.?(\d{20})\.")
_LAST_CHECKPOINT = "_last_checkpoint"


@dataclass(frozen=True, slots=True)
class Backup:
    """What was copied: how many tables and files; and tables with a LOCATION, as (name, location),
    which are not."""

    tables: int
    files: int
    elsewhere: list[tuple[str, str]]


def back_up(cluster: Cluster, directory: Path) -> Backup:
    """Copy a cluster into a new directory.

    VACUUM waits meanwhile; nobody else does.

    Raises:
        ObjectNotInPrerequisiteState: the directory is not empty (55000).
        IoError: something cannot be read or written.
    """
    directory = directory.absolute()
    with cluster.lock("vacuum"):
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if any(directory.iterdir()):
                raise ObjectNotInPrerequisiteState(
                    f'directory "{directory}" exists but is not empty'
                )
            os.chmod(directory, 0o700)
            _copy_catalog(cluster, directory / _UNFINISHED)
            injection_point("backup.after-catalog")
            tables, elsewhere = _tables(directory / _UNFINISHED)
            files = sum(
                _copy_table(cluster.path / location, directory / location, version)
                for location, version in tables
            )
            if (cluster.path / AUTO_CONF).exists():
                shutil.copy2(cluster.path / AUTO_CONF, directory / AUTO_CONF)
            os.replace(directory / _UNFINISHED, directory / CATALOG)
        except OSError as error:
            raise IoError(f'could not back up into "{directory}": {error}') from error
    return Backup(len(tables), files, elsewhere)


def _copy_catalog(cluster: Cluster, path: Path) -> None:
    """One state of the catalog, by SQLite's own backup."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    target = sqlite3.connect(path)
    try:
        with cluster.engine.connect() as connection:
            source: Any = connection.connection.driver_connection
            source.backup(target)
    except sqlite3.Error as error:
        raise IoError(f'could not copy the catalog into "{path}"', detail=str(error)) from error
    finally:
        target.close()


def _tables(catalog: Path) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """The cluster's own tables with their newest known versions, and those that lie elsewhere."""
    connection = sqlite3.connect(f"{catalog.as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT location, (SELECT max(version) FROM pg_wal w WHERE w.relid = s.relid)"
            " FROM storage_table s WHERE is_made AND location LIKE ? ORDER BY 1",
            (f"{BASE}/%",),
        ).fetchall()
        elsewhere = connection.execute(
            "SELECT relname, location FROM storage_table JOIN pg_class ON oid = relid AND xmax = 0"
            " WHERE location NOT LIKE ? ORDER BY 1",
            (f"{BASE}/%",),
        ).fetchall()
    finally:
        connection.close()
    known = [(str(location), int(version)) for location, version in rows if version is not None]
    return known, [(str(name), str(location)) for name, location in elsewhere]


def _copy_table(source: Path, target: Path, version: int) -> int:
    """Copy a table up to a version: its files, then its log, in which later versions are left out.

    Returns:
        How many files there are.
    """
    copied = 0
    for path in _files(source):
        relative = path.relative_to(source)
        if relative.parts[0] == LOG_FOLDER and _is_newer(path, version):
            continue
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(path, target / relative)
        except FileNotFoundError:  # a writer's temporary file
            continue
        copied += 1
    return copied


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _is_newer(path: Path, version: int) -> bool:
    """Return whether a file of Delta's log tells of a later version."""
    if path.name == _LAST_CHECKPOINT:
        try:
            return int(json.loads(path.read_text("utf-8"))["version"]) > version
        except (ValueError, KeyError, TypeError):
            return True  # Delta finds the newest checkpoint without it
    match = _VERSION.match(path.name)
    return match is not None and int(match[1]) > version
