"""Force files and their names to the disk, so that they survive a power failure (fd.c)."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

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


@contextmanager
def replaced_file(path: str) -> Iterator[TextIO]:
    """Open a text file, and let it take the place of the file at `path` at the end of the `with`
    block.  After an error or a crash, the former file stays.  The new one has its mode and owner.

    A link stays, and the file that it leads to is replaced.  What is no regular file (a device, a
    pipe) is written itself, because a file in its place would destroy it.

    Raises:
        IoError: the disk reports an error (58030).
        OSError: a file cannot be written.
    """
    try:
        former = os.stat(path)
    except FileNotFoundError:
        if not path:
            raise
        former = None
    target = Path(os.path.realpath(path))
    if former is not None and not (stat.S_ISREG(former.st_mode) and target.exists()):
        with open(path, "w", encoding="utf-8", newline="\n") as written:
            yield written
        return
    # A name that nobody knows: no other process writes this file, and no link leads it elsewhere
    unfinished = target.with_name(f"{target.name[:200]}.{secrets.token_hex(4)}.unfinished")
    try:
        with open(unfinished, "x", encoding="utf-8", newline="\n") as written:
            if former is not None:
                _give_mode(written.fileno(), former)
            yield written
        durable_rename(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _give_mode(descriptor: int, former: os.stat_result) -> None:
    """Let the same users read and write a file as the former one."""
    with suppress(PermissionError):  # only root gives files away
        os.fchown(descriptor, former.st_uid, former.st_gid)
    found = os.fstat(descriptor)
    is_kept = (found.st_uid, found.st_gid) == (former.st_uid, former.st_gid)
    os.fchmod(descriptor, former.st_mode & (0o777 if is_kept else 0o700))


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
