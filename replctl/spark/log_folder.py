"""Delta tables that consist of a log alone, which names files of other tables: Spark reads these
files as one table, in the way that the log says."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from threading import Lock

from replctl.spark.scratch import make_folder

#: After so many seconds without use a table may go, where there are many.
_IDLE = 3600
_MANY = 200


def _checksum(log: str) -> str:
    """Return the version checksum of the only commit of a table (Delta's protocol, section "Version
    Checksum File"), by which small tables are known."""
    actions = [json.loads(line) for line in log.splitlines()]
    sizes = [action["add"]["size"] for action in actions if "add" in action]
    found = {"tableSizeBytes": sum(sizes), "numFiles": len(sizes)}
    found |= {"numMetadata": 1, "numProtocol": 1}
    for kind in ("metadata", "protocol"):
        name = "metaData" if kind == "metadata" else kind
        found[kind] = next(action[name] for action in actions if name in action)
    return json.dumps(found)


class LogFolder:
    """A scratch directory of this process with such tables.

    Args:
        parent: where to make it; None: in the system's directory for temporary files.
    """

    def __init__(self, parent: Path | None) -> None:
        self._parent = parent
        self._folder: Path | None = None
        self._placing = Lock()

    def place(self, log: str) -> str:
        """Write the only commit of a table, unless it is there; where the table is.

        The same commit has the same place, so that it is also the same table for Spark.
        """
        with self._placing:
            table = self._made() / hashlib.sha256(log.encode()).hexdigest()[:32]
            commit = table / "_delta_log" / f"{0:020d}.json"
            if commit.exists():
                os.utime(table)
            else:
                self._remove_idle()
                commit.parent.mkdir(parents=True)
                commit.with_suffix(".crc").write_text(_checksum(log), encoding="utf-8")
                commit.write_text(log, encoding="utf-8")
            return str(table)

    def path_of(self, text: str) -> str:
        """Write a file that is no table; where it is."""
        with self._placing:
            path = self._made() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.txt"
            path.write_text(text, encoding="utf-8")
            return str(path)

    def _made(self) -> Path:
        if self._folder is None:
            self._folder, _lock = make_folder(self._parent)
        return self._folder

    def _remove_idle(self) -> None:
        assert self._folder is not None
        tables = [path for path in self._folder.iterdir() if path.is_dir()]
        for table in tables if len(tables) > _MANY else ():
            if table.stat().st_mtime < time.time() - _IDLE:
                shutil.rmtree(table)

    def close(self) -> None:
        """Remove the directory."""
        with self._placing:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder.with_suffix(".lock").unlink(missing_ok=True)
                self._folder = None
