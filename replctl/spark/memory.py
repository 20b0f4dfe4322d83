"""Find the memory that this process may use, and a suitable heap size for a JVM."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEBIBYTE = 2**20
_LOG_SHARE = 8 * _MEBIBYTE
_LEAST_LOGS = 64
#: Matches a size in the notation of Java and Spark.
_SIZE = re.compile(r"(?P<number>\d+)(?P<unit>[kmgtp]?)b?")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
#: Bytes of the smallest heap with which Spark starts.
_LEAST_HEAP = 512 * _MEBIBYTE


def heap(wanted: int, limit: int | None) -> str:
    """Return a heap size for spark.driver.memory: the wanted size, but at most half of the limit.
    The JVM needs more memory than its heap, and other processes need memory, too.

    Args:
        wanted, limit: in bytes; None if the limit is unknown.
    """
    size = wanted if limit is None else max(min(wanted, limit // 2), _LEAST_HEAP)
    return f"{size // _MEBIBYTE}m"


def cached_logs(heap_size: str) -> int:
    """Return how many Delta logs a JVM should cache, so that they take less than half of its heap.
    A log of few entries takes 1 to 3 MB, including Spark's plan of the query that reads it.

    By default Delta caches 10,000 logs for an hour, which are too many: each round of `--watch` may
    create and read a temporary table (log_folder.py).

    Args:
        heap_size: the value of spark.driver.memory, such as 2g.  Java refuses an invalid value.
    """
    found = _SIZE.fullmatch(heap_size.strip().lower())
    size = int(found["number"]) << _SHIFTS[found["unit"]] if found else 0
    return max(size // _LOG_SHARE, _LEAST_LOGS)


def memory_limit(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int | None:
    """Return the bytes that this process may use: the memory of the machine, or the limit of the
    container if it is lower.  None if the system reports neither.

    Args:
        cgroups: the directory where control groups are mounted.
        own: the file that lists the control groups of this process (man 7 cgroups).
    """
    limits = _cgroup_limits(cgroups, own)
    with suppress(ValueError, OSError):  # not all systems have these names
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def _cgroup_limits(cgroups: Path, own: Path) -> list[int]:
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:  # systems other than Linux have no control groups
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
    """Return the memory limits of a control group and of its parent groups."""
    group = root / path.lstrip("/")
    limits = []
    for folder in (group, *group.parents):
        try:
            text = (folder / name).read_text("utf-8").strip()
        except OSError:  # the root has no limit; a container sees no parent groups
            text = "max"
        if text.isdecimal():
            limits.append(int(text))
        if folder == root:
            break
    return limits
