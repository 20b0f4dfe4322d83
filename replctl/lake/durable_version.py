"""Force the commits of local tables to the disk.

Spark, Hadoop and delta-rs leave this to the operating system.  But the catalog's commits are on the
disk at once: after a power failure it would know versions whose files are empty or missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from replctl.durable_file import sync_directory, sync_file
from replctl.lake.delta_actions import file_uris
from replctl.lake.delta_log import log_names, read_actions, versions_in
from replctl.lake.delta_names import LAST_CHECKPOINT, LOG_FOLDER
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_paths import TablePaths

_OF_VERSION = re.compile(r"\d{20}(?=\.)", re.ASCII)


def sync_versions(location: str, after: int | None) -> None:
    """Force the newer versions of a table, and the files that they add, to the disk.

    Object storage needs nothing.

    Args:
        after: the newest version that is on the disk; None if the table is new.

    Raises:
        IoError: a file cannot be forced to the disk (58030).
    """
    folder = TableFolder.of(location)
    if not folder.is_local:
        return
    known = -1 if after is None else after
    names = log_names(location)
    newer = sorted(version for version in versions_in(names) if version > known)
    files = [path for version in newer for path in _added(location, version)]
    if newer:  # last: no version may name files that are missing
        files += sorted(f"{LOG_FOLDER}/{name}" for name in names if _is_newer(name, known))
    folders = {"", LOG_FOLDER} if newer else set()
    for path in files:
        sync_file(f"{folder.location}/{path}")
        parts = path.split("/")[:-1]
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    for path in folders:
        sync_directory(f"{folder.location}/{path}".rstrip("/"))
    if after is None and newer:
        for parent in list(folder.parents())[:2]:  # a new table, perhaps the first of its database
            sync_directory(parent.location)


def _is_newer(name: str, version: int) -> bool:
    """Return whether a log's file belongs to a newer version (its commit, checksum or checkpoint),
    or names the newest checkpoint.
    """
    found = _OF_VERSION.match(name)
    return name == LAST_CHECKPOINT if found is None else int(found[0]) > version


def _added(location: str, version: int) -> Iterator[str]:
    """Yield the paths, relative to the table, of the files that a version adds."""
    paths = TablePaths(location)
    for action in read_actions(location, version):
        for kind in ("add", "cdc"):
            for uri in file_uris(action[kind]) if kind in action else ():
                path = paths.relative(uri)
                if path is not None:  # else a file of another table, which replctl has not written
                    yield path
