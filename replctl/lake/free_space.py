"""Refuse a write for which a disk has no room.

Spark leaves a file of each write that fails, and replctl removes it only where no other program can
have written it: on a disk that is full, each new attempt would leave one more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from replctl.catalog.pg_class import Relation
from replctl.errors import DiskFull
from replctl.lake.table_folder import TableFolder

#: Bytes that the smallest write takes, about: a file of rows, one of the log, and their checksums.
_LEAST = 32 << 10


def check_space(relations: Iterable[Relation]) -> None:
    """Check that the disks of tables have room for a small write; of storage that is no disk of
    this machine nothing is known.

    Raises:
        DiskFull: one has none (53100).
    """
    for location in sorted({r.storage.location for r in relations if r.storage is not None}):
        folder = TableFolder.of(location)
        if not folder.is_local:
            continue
        free = _free(Path(folder.location))
        if free is not None and free < _LEAST:
            error = DiskFull(
                "could not write a file: No space left on device",
                detail=f'The disk of "{folder.location}" has {free} bytes left.',
                hint="Check free disk space.",
            )
            error.path = location
            raise error


def _free(path: Path) -> int | None:
    """Return the bytes that this user can still write at a path, or where it is going to be; None
    if the system does not tell."""
    place = next((each for each in (path, *path.parents) if each.exists()), path)
    try:
        found = os.statvfs(place)
    except OSError:  # it may not be looked at; the write will tell
        return None
    if not found.f_blocks:
        return None
    blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail  # some are kept for root
    return blocks * found.f_frsize
