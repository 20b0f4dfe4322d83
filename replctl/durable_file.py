"""Force files and their names to the disk, so that they survive a power failure (fd.c)."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from pathlib import Path

from replctl.errors import IoError

#: The errors of file systems that cannot force a directory to the disk.
_NO_DIRECTORIES = (errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP)
#: The errors of files and directories of other programs.
_OF_OTHERS = (errno.ENOENT, errno.EACCES, errno.EPERM)


def durable_rename(unfinished: Path, target: Path) -> None:
    """Give a complete file the name of another one.  After a crash the name has either the old or
    the new content.

    Raises:
        IoError: a file cannot be forced to the disk (58030).
        OSError: the file cannot be renamed.
    """
    sync_file(unfinished)
    os.replace(unfinished, target)
    sync_directory(target.parent)


def sync_file(path: Path | str) -> None:
    """Force a file to the disk, unless another program has removed it, or lets nobody read it.

    Raises:
        IoError: the disk reports an error (58030).
    """
    _sync("file", path, _OF_OTHERS)


def sync_directory(path: Path | str) -> None:
    """Force the names of a directory's files to the disk, if its file system can do that.

    Raises:
        IoError: the disk reports an error (58030).
    """
    _sync("directory", path, (*_NO_DIRECTORIES, *_OF_OTHERS))


def _sync(what: str, path: Path | str, ignored: Collection[int]) -> None:
    try:
        _fsync(path)
    except OSError as error:
        if error.errno not in ignored:
            raise IoError(f'could not fsync {what} "{path}": {error.strerror}') from error


def _fsync(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
