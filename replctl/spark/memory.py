"""How much memory this process may use, and a heap for a JVM that fits into it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEBIBYTE = 2**20
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
