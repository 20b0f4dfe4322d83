"""Refuse a write if the disk is full.

Spark does not remove the files of a failed write, and replctl removes them only if no other program
can have written them.  On a full disk, each new attempt would add more files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from replctl.catalog.pg_class import Relation
from replctl.errors import DiskFull
from replctl.lake.table_folder import TableFolder

#: Approximate size of the smallest write in bytes: a data file, a log file, and their checksums.
_LEAST = 32 << 10


def check_space(relations: Iterable[Relation]) -> None:
    """Check that the disks of tables have room for a small write.  Do not check storage that is not
    a disk of this machine.

    Raises:
        DiskFull: a disk is full (53100).
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
    """Return the number of bytes that this user can still write at a path, which need not exist;
    None if the system does not report it.
    """
    place = next((each for each in (path, *path.parents) if each.exists()), path)
    try:
        found = os.statvfs(place)
    except OSError:  # no permission to look; the write will report it
        return None
    if not found.f_blocks:
        return None
    blocks = (
        found.f_bfree if os.geteuid() == 0 else found.f_bavail
    )  # some blocks are reserved for root
    return blocks * found.f_frsize
