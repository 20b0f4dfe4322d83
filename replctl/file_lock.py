"""Lock files, and find the holders of locks.  The operating system releases a lock when its process
ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: The file in which Linux lists all locks.
_LOCKS = Path("/proc/locks")
#: Seconds between two attempts to lock a file.
_INTERVAL = 0.05
#: The errors of flock for a file that another process has locked; some file systems report EACCES.
_LOCKED = (errno.EACCES, errno.EAGAIN)


class LockTimeout(Exception):
    """Another process did not release the lock of a file in time."""


@contextmanager
def locked(path: Path, timeout: float, *, mode: int = 0o600) -> Iterator[None]:
    """Hold the exclusive lock of a file during the `with` block.  Create the file if it is missing.

    Args:
        timeout: seconds to wait for another holder; 0 for one attempt.
        mode: the access mode of a new file.

    Raises:
        LockTimeout: another process did not release the lock in time.
        OSError: the file cannot be opened or locked.
    """
    # Only once: if somebody removes the directory during the wait, a lock in a new directory would
    # not exclude the processes that hold the old one
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    while (descriptor := _lock(path, mode)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise LockTimeout(str(path))
        time.sleep(min(_INTERVAL, left))
    try:
        yield
    finally:
        # A child process made by fork shares the lock, so closing the file is not enough
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _lock(path: Path, mode: int) -> int | None:
    """Lock a file now, and return its descriptor; None if another process has locked the file, or
    has removed it meanwhile.
    """
    # Another user may have planted a symbolic link in a shared directory
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
    is_kept = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # If the file was removed, others lock a new file with this name
        is_kept = os.fstat(descriptor).st_nlink > 0
    except OSError as error:  # another process has it: the caller retries
        if error.errno not in _LOCKED:
            raise
    finally:
        if not is_kept:
            os.close(descriptor)
    return descriptor if is_kept else None


def is_locked(path: Path) -> bool:
    """Return whether a process holds the exclusive lock of a file; False without the file.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        with path.open() as file:
            # Shared: two processes that check at the same time must not see each other as the
            # owner.
            return not _can_share(file)
    except FileNotFoundError:  # a holder would keep the file
        return False


def may_be_locked(path: Path) -> bool:
    """Return the result of `is_locked`; True if another user's file may not be opened."""
    try:
        return is_locked(path)
    except PermissionError:  # a process of root may hold it
        return True


def _can_share(file: IO[str]) -> bool:
    """Take the shared lock of a file, and return whether this was possible."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # its holder still runs
        if error.errno not in _LOCKED:
            raise
        return False
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
    except OSError:  # not Linux, or the file was removed
        return None
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in lines:
        fields = line.split()
        # Lines of waiting processes have an arrow as fields[1]
        if fields[1] == "FLOCK" and fields[5] == place:
            pid = int(fields[4])
            return pid if pid > 0 else None  # otherwise it is in another container
    return None


def is_stopped(pid: int) -> bool:
    """Return whether a process is suspended, for example by SIGSTOP or a debugger; False if the
    system does not report it.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:  # the process has ended, or this is not Linux
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
