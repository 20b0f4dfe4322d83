"""Files and directories that their owner alone may use, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any

#: The modes that PostgreSQL takes for a data directory: the owner's, or read by the group, too.
_DIRECTORY_MODES = (0o700, 0o750)


def open_private(path: Path | str, flags: int, mode: str, encoding: str | None = None) -> IO[Any]:
    """Open a file, and make it if `flags` say so; its mode is 0600 afterwards.

    Args:
        flags: of os.open.
        mode, encoding: of the file object.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    make_private(descriptor)
    return os.fdopen(descriptor, mode, encoding=encoding)


def make_private(file: Path | str | int) -> None:
    """Give a file, or the one of a descriptor, the mode 0600, unless it is another user's, or no
    file but a device."""
    found = os.stat(file)
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if is_own and stat.S_IMODE(found.st_mode) != 0o600:
        os.chmod(file, 0o600)


def make_private_directory(path: Path) -> None:
    """Give a directory the mode 0700, unless it is another user's or the owner lets the group read
    it."""
    found = path.stat()
    if stat.S_IMODE(found.st_mode) not in _DIRECTORY_MODES and found.st_uid == os.geteuid():
        path.chmod(0o700)


def is_owner_s(found: os.stat_result) -> bool:
    """Return whether nobody but the user of this process can have written a file or directory."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
