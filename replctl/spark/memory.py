"""How much memory this process may use, and a heap for a JVM that fits into it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEBIBYTE = 2**20
_LOG_SHARE = 4 * _MEBIBYTE
_LEAST_LOGS = 64
#: A size as Java and Spark write it.
_SIZE = re.compile(r"(?P<number>\d+)(?P<unit>[kmgtp]?)b?")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
#: With less Spark does not start.
_LEAST_HEAP = 512 * _MEBIBYTE


def heap(wanted: int, limit: int | None) -> str:
    """Return a heap's size for spark.driver.memory: what is wanted, but no more than half of what
    there is, as the JVM takes more than its heap, and others need memory, too.

    Args:
        wanted, limit: bytes; None: the limit is unknown.
    """
    size = wanted if limit is None else max(min(wanted, limit // 2), _LEAST_HEAP)
    return f"{size // _MEBIBYTE}m"


def cached_logs(heap_size: str) -> int:
    """Return how many Delta logs a JVM should keep in memory: with what Spark knows of the table, a
    log of few entries takes 1 to 2 MB, and all together get less than half of the heap.

    Delta keeps 10,000 of them for an hour, and each round of `--watch` may read a table that is
    made for it (log_folder.py).

    Args:
        heap_size: as in spark.driver.memory: 2g.  Java refuses what is no size.
    """
    found = _SIZE.fullmatch(heap_size.strip().lower())
    size = int(found["number"]) << _SHIFTS[found["unit"]] if found else 0
    return max(size // _LOG_SHARE, _LEAST_LOGS)


def memory_limit(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int | None:
    """Return the bytes that this process may use: those of the machine, or of its container if that
    has fewer; None if the system does not tell.

    Args:
        cgroups: where control groups are mounted.
        own: the file that names the groups of this process (man 7 cgroups).
    """
    limits = _cgroup_limits(cgroups, own)
    with suppress(ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def _cgroup_limits(cgroups: Path, own: Path) -> list[int]:
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _number, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            limits += _limits_along(cgroups, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_along(cgroups / "memory", path, "memory.limit_in_bytes")
    return limits


def _limits_along(root: Path, path: str, name: str) -> list[int]:
    """Return the limits of a group and of those that it is in."""
    group = root / path.lstrip("/")
    limits = []
    for folder in (group, *group.parents):
        try:
            text = (folder / name).read_text("utf-8").strip()
        except OSError:  # the root has none, and a container sees no other groups
            text = "max"
        if text.isdecimal():
            limits.append(int(text))
        if folder == root:
            break
    return limits
