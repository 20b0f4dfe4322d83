"""Locks that the system lets go of, however a process ends."""

from __future__ import annotations

import fcntl
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock of a file exclusively; not if there is no file."""
    try:
        with path.open() as file:
            # Shared: two that look at the same time must not take each other for its owner.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
