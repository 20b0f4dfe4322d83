"""Make files and directories that only their owner may use, regardless of the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any

#: The modes that PostgreSQL accepts for a data directory: only the owner, or also readable by the
#: group.
_DIRECTORY_MODES = (0o700, 0o750)


#: The bits of a umask that concern other users.
_OF_OTHERS = 0o077


def keep_own_access() -> None:
    """Let this process, and those that it starts, use the files and directories that they create,
    whatever the umask is.  As the postmaster does, but the umask decides for other users.
    """
    os.umask(os.umask(_OF_OTHERS) & _OF_OTHERS)


def open_private(path: Path | str, flags: int, mode: str, encoding: str | None = None) -> IO[Any]:
    """Open a file, create it if `flags` say so, and set its mode to 0600.

    Args:
        flags: the flags for os.open.
        mode, encoding: the mode and the encoding of the file object.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    make_private(descriptor)
    return os.fdopen(descriptor, mode, encoding=encoding)


def make_private(file: Path | str | int) -> None:
    """Set the mode of a file, or of a descriptor's file, to 0600, unless it is a device or belongs
    to another user.
    """
    found = os.stat(file)
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if is_own and stat.S_IMODE(found.st_mode) != 0o600:
        os.chmod(file, 0o600)


def make_private_directory(path: Path) -> None:
    """Set the mode of a directory to 0700, unless it belongs to another user or is meant to be
    readable by the group.
    """
    found = path.stat()
    if stat.S_IMODE(found.st_mode) not in _DIRECTORY_MODES and found.st_uid == os.geteuid():
        path.chmod(0o700)


def is_of_this_user(found: os.stat_result) -> bool:
    """Return whether only the user of this process could have written a file or directory."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
