"""Limits the memory of some processes, as a container does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from patience import wait_until

#: Where control groups for memory are mounted, by version, and the name of their limit.
_GROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@contextmanager
def memory_group(limit: int) -> Iterator[list[str] | None]:
    """Yield the start of a command line that puts a command into a control group.  Yield None if
    this user or this system can create no group.

    Args:
        limit: bytes of memory.
    """
    for root, name in _GROUPS:
        group = root / f"replctl-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / name).exists():
                (group / name).write_text(str(limit))
                yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs")]
                return
        finally:
            wait_until(partial(_is_removed, group))  # a JVM may still be ending
    yield None


def _is_removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True
