"""Where Spark puts what it writes for a while: rows among it, so that only the owner may look.

A scratch directory is its owner's alone (mode 0700).  Whoever makes one holds a lock on a file next
to it as long as the process lives; so does the JVM, which inherits the lock.  What a killed process
has left is removed when another directory is made in the same place.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

from replctl.record import dataclass

_PREFIX = "replctl-spark-"
#: What Spark reads instead of spark.local.dir, if it is set.
_LOCAL_DIRS = "SPARK_LOCAL_DIRS"


@dataclass(frozen=True, slots=True)
class Scratch:
    """Scratch directories of one JVM.

    Attributes:
        folder: for the JVM, its Python workers and Spark's warehouse.
        local: for shuffles, spilled and cached rows; not `folder` where the user chose others.
        locks: descriptors of the files whose locks say that the directories are in use.
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
        """Return the variables by which the JVM and its Python workers use the directories."""
        return {"TMPDIR": str(self.folder), _LOCAL_DIRS: ",".join(map(str, self.local))}


def make_scratch(parent: Path | None, chosen: str | None = None) -> Scratch:
    """Make scratch directories, and remove those in the same places whose processes have died.

    Args:
        parent: where to make them; it is made if it is not there.  None: in the system's directory
            for temporary files.
        chosen: spark.local.dir, if the user has set it.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    place.mkdir(mode=0o700, exist_ok=True)
    folder, lock = _make(place)
    roots = [name.strip() for name in (chosen or os.environ.get(_LOCAL_DIRS) or "").split(",")]
    if not any(roots):
        if "," not in str(place):  # which separates directories
            return Scratch(folder, (folder,), (lock,))
        roots = [tempfile.gettempdir()]
    made = [_make(Path(root)) for root in roots if root]
    local, locks = zip(*made, strict=True)
    return Scratch(folder, local, (lock, *locks))


def make_folder(parent: Path | None) -> tuple[Path, int]:
    """Make a scratch directory for this process, in `parent` as `make_scratch`; the directory, and
    the descriptor of the file whose lock says that it is in use."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    place.mkdir(mode=0o700, exist_ok=True)
    return _make(place)


def _make(place: Path) -> tuple[Path, int]:
    """Make a directory, and lock the file next to it."""
    _remove_abandoned(place)
    while True:
        path = place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock_file = path.with_suffix(".lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        lock = os.open(lock_file, flags, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if lock_file.exists():  # another process has not taken it for abandoned in between
            path.mkdir(mode=0o700)
            return path, lock
        os.close(lock)


def _remove_abandoned(place: Path) -> None:
    """Remove the scratch directories of this user whose processes have died."""
    for lock_file in place.glob(f"{_PREFIX}*.lock"):
        try:
            status = lock_file.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
                continue
            lock = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # another process has just removed it, or it is no file of ours
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
