"""Choose where the tests write: in memory, if there is room.

The tests commit and force files to the disk hundreds of thousands of times.  A disk would make them
wait, although no test survives a power failure.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: Bytes that must be free.  A whole run needs less than 2 GiB.
_ROOM = 8 << 30


def scratch_root() -> str | None:
    """Return the directory for temporary directories of the tests; None for the system's."""
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ROOM and _available_memory() >= _ROOM
    except OSError:
        return None
    return str(_MEMORY) if has_room else None


def _available_memory() -> int:
    """Return the bytes of memory that programs can still get (proc(5), /proc/meminfo)."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0
