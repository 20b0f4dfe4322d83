"""Temporary Delta tables that consist of only a log, which names files of other tables.  Spark
reads these files as one table.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from replctl.spark.scratch import make_folder

#: Seconds without use after which replctl may remove a table, if there are many.
_IDLE = 3600.0
_MANY = 200


def _checksum(log: str) -> str:
    """Return the version checksum for the only commit of a table (Delta's protocol, section
    "Version Checksum File").  `query_size` needs it to recognise small tables.
    """
    actions = [json.loads(line) for line in log.splitlines()]
    sizes = [action["add"]["size"] for action in actions if "add" in action]
    found = {"tableSizeBytes": sum(sizes), "numFiles": len(sizes)}
    found |= {"numMetadata": 1, "numProtocol": 1}
    for kind in ("metadata", "protocol"):
        name = "metaData" if kind == "metadata" else kind
        found[kind] = next(action[name] for action in actions if name in action)
    return json.dumps(found)


class LogFolder:
    """The scratch directory of this process for such tables.

    Args:
        parent: the directory in which to create the scratch directory; None: the system's directory
            for temporary files.
        clock: returns seconds of a monotonic clock, so that a table in use never looks idle.
    """

    def __init__(self, parent: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._parent, self._clock = parent, clock
        self._folder: Path | None = None
        self._used: dict[Path, float] = {}
        self._placing = Lock()  # two threads may need the same table

    def place(self, log: str) -> str:
        """Write the only commit of a table unless it exists, and return the table's location.

        The same commit always has the same location, so Spark recognises the table.
        """
        with self._placing:
            table = self._made() / hashlib.sha256(log.encode()).hexdigest()[:32]
            commit = table / "_delta_log" / f"{0:020d}.json"
            # The system may have cleaned up its directory for temporary files
            if table not in self._used or not commit.exists():
                self._remove_idle()
                # If the disk was full, the folder exists without its files
                commit.parent.mkdir(parents=True, exist_ok=True)
                commit.with_suffix(".crc").write_text(_checksum(log), encoding="utf-8")
                commit.write_text(log, encoding="utf-8")
            self._used[table] = self._clock()
            return str(table)

    def path_of(self, text: str) -> str:
        """Write a text to a file in the directory, and return its path."""
        with self._placing:
            path = self._made() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.txt"
            path.write_text(text, encoding="utf-8")
            return str(path)

    def _made(self) -> Path:
        if self._folder is None:
            self._folder, _lock = make_folder(self._parent)
        return self._folder

    def _remove_idle(self) -> None:
        if len(self._used) <= _MANY:
            return
        oldest = self._clock() - _IDLE
        for table in [table for table, at in self._used.items() if at < oldest]:
            shutil.rmtree(table, ignore_errors=True)
            del self._used[table]

    def close(self) -> None:
        """Remove the directory."""
        with self._placing:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder.with_suffix(".lock").unlink(missing_ok=True)
                self._folder = None
                self._used.clear()
