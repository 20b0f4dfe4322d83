"""Find the holders of file locks, which the operating system releases when a process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

#: The file in which Linux lists all locks.
_LOCKS = Path("/proc/locks")


def is_locked(path: Path) -> bool:
    """Return whether a process holds the exclusive lock of a file; False without such a file."""
    try:
        with path.open() as file:
            # Shared: two processes that check at the same time must not see each other as the
            # owner.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def holder(path: Path, locks: Path = _LOCKS) -> int | None:
    """Return the ID of the process that holds the lock of a file; None if the system does not
    report it.

    Args:
        locks: the system's list of all locks (man 5 proc_locks).
    """
    try:
        found = path.stat()
        lines = locks.read_text("ascii").splitlines()
    except OSError:
        return None
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in lines:
        fields = line.split()
        if (
            fields[1] == "FLOCK" and fields[5] == place
        ):  # waiting processes have an arrow before that
            pid = int(fields[4])
            return pid if pid > 0 else None  # otherwise it is in another container
    return None


def is_stopped(pid: int) -> bool:
    """Return whether a process is suspended, for example by SIGSTOP or a debugger; False if the
    system does not report it.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in ("T", "t")


def help_with(path: Path) -> tuple[str | None, str]:
    """Return a DETAIL that names the process with the lock of a file (None if unknown), and a HINT
    that says how to free the lock.
    """
    pid = holder(path)
    if pid is None:
        return None, f'End the program that has locked "{path}".'
    return (
        f'Process {pid} has locked "{path}".',
        f"If the process is suspended, resume it: kill -CONT {pid}. Or end it: kill -KILL {pid}.",
    )
