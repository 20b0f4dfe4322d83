"""Scratch directories for Spark's temporary files.  The files may contain rows, so only the owner
may read them.

A scratch directory has mode 0700.  The process that creates it holds a lock on a file next to it;
the JVM inherits the lock.  After the end of both, the next process that creates a directory in the
same place removes the old one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

from replctl.errors import FileAccessDenied, IoError
from replctl.record import dataclass

_PREFIX = "replctl-spark-"
#: The variable that overrides spark.local.dir if it is set.
_LOCAL_DIRS = "SPARK_LOCAL_DIRS"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch directories of one JVM.

    Attributes:
        folder: the directory for the JVM, its Python workers and Spark's warehouse.
        local: the directories for shuffles, spilled and cached rows; only `folder` unless the user
            has chosen others.
        locks: descriptors of the files whose locks mark the directories as used.
    """

    folder: Path
    local: tuple[Path, ...]
    locks: tuple[int, ...]

    def properties(self) -> dict[str, str]:
        """Return the Spark properties that name the directories."""
        return {
            "spark.local.dir": ",".join(map(str, self.local)),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }

    def environment(self) -> dict[str, str]:
        """Return the environment variables that name the directories to the JVM and its Python
        workers.
        """
        return {"TMPDIR": str(self.folder), _LOCAL_DIRS: ",".join(map(str, self.local))}


def make_scratch(parent: Path | None, chosen: str | None = None) -> Scratch:
    """Create scratch directories, and remove those of dead processes in the same places.

    Args:
        parent: the directory in which to create them; create it, too, if it is missing.  None: the
            system's directory for temporary files.
        chosen: the value of spark.local.dir, if the user has set it.

    Raises:
        FileAccessDenied, IoError: a directory for shuffles cannot be used.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    place.mkdir(mode=0o700, exist_ok=True)
    folder, lock = _make(place)
    roots = [name.strip() for name in (chosen or os.environ.get(_LOCAL_DIRS) or "").split(",")]
    if not any(roots):
        if "," not in str(place):  # a comma separates directories
            return Scratch(folder, (folder,), (lock,))
        roots = [tempfile.gettempdir()]
    made = [_make(_existing(Path(root))) for root in roots if root]
    local, locks = zip(*made, strict=True)
    return Scratch(folder, local, (lock, *locks))


def make_folder(parent: Path | None) -> tuple[Path, int]:
    """Create a scratch directory for this process in `parent`, like `make_scratch`.

    Returns:
        the directory, and the descriptor of its locked file.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    place.mkdir(mode=0o700, exist_ok=True)
    return _make(place)


def _existing(place: Path) -> Path:
    """Return a directory for shuffles that the user has chosen.  Create it if it is missing, as
    Spark does.

    Raises:
        FileAccessDenied, IoError: the directory cannot be used.
    """
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError as error:
        kind = FileAccessDenied if isinstance(error, PermissionError) else IoError
        raise kind(
            f'could not use directory "{place}" for temporary files of Spark: {error.strerror}',
            hint=f"Set {_LOCAL_DIRS} or spark.local.dir to a directory that this user can write.",
        ) from error


def _make(place: Path) -> tuple[Path, int]:
    """Create a directory, and lock a file next to it."""
    _remove_abandoned(place)
    while True:
        path = place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock_file = path.with_suffix(".lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        lock = os.open(lock_file, flags, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends: the directory is in use
        if lock_file.exists():  # another process may remove a new file as abandoned
            path.mkdir(mode=0o700)
            return path, lock
        os.close(lock)


def _remove_abandoned(place: Path) -> None:
    """Remove the scratch directories of this user whose processes have ended."""
    for lock_file in place.glob(f"{_PREFIX}*.lock"):
        try:
            status = lock_file.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
                continue
            lock = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # another process has removed the file, or it is not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # in use
        else:
            shutil.rmtree(lock_file.with_suffix(""), ignore_errors=True)
            lock_file.unlink(missing_ok=True)
        finally:
            os.close(lock)
