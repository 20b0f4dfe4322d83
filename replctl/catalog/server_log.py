"""Write a cluster's log: one line of JSON for each event, with the keys of PostgreSQL's jsonlog
(elog.c, jsonlog.c).

Several processes write the log.  Each line is a separate write, and a process rotates the files
under a lock.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import cast

from replctl.errors import Notice, PostgresError
from replctl.passwords import without_passwords
from replctl.private_file import open_private
from replctl.standard_streams import write_stderr

_FILE_SIZE = 10 * 1024 * 1024  # log_rotation_size
_OLD_FILES = 5
#: Seconds to wait for another writer.  The limit exists because a suspended process must not block
#: others.
_PATIENCE = 5.0


class ServerLog:
    """Writes to a log file that other processes also write.

    Args:
        lock: a context manager that excludes other writers.  Its argument is the number of seconds
            to wait.
    """

    def __init__(self, path: Path, lock: Callable[[float], AbstractContextManager[None]]) -> None:
        self._path = path
        self._handler: _Handler | None = None
        self._lock = lock
        self._has_reported = False

    def report(self, message: str, *, backend_type: str, severity: str = "LOG") -> None:
        """Log an event that is not an error.

        Args:
            backend_type: the type of this process in pg_stat_activity.
        """
        self._write({"error_severity": severity, "message": message, "backend_type": backend_type})

    def report_error(self, error: PostgresError | Notice, *, backend_type: str) -> None:
        """Log an error or a notice that PostgreSQL would report, with all its fields."""
        self._write(
            {
                "error_severity": error.severity,
                "state_code": error.sqlstate,
                "message": error.message,
                "detail": error.detail,
                "hint": error.hint,
                "context": error.context,
                "backend_type": backend_type,
            }
        )

    def report_fault(self, error: Exception) -> None:
        """Log an unexpected error with its traceback."""
        self._write(
            {
                "error_severity": "ERROR",
                "state_code": PostgresError.sqlstate,
                "message": f"unforeseen error: {type(error).__name__}: {error}",
                "backtrace": "".join(traceback.format_exception(error)),
                "backend_type": "client backend",
            }
        )

    def _write(self, fields: dict[str, str | None]) -> None:
        known = {
            key: value if key == "backend_type" else without_passwords(value)
            for key, value in fields.items()
            if value
        }
        severity = logging.ERROR if fields["error_severity"] in ("ERROR", "FATAL") else logging.INFO
        record = logging.LogRecord("replctl", severity, "", 0, "", (), None)
        now = datetime.fromtimestamp(record.created, UTC)
        stamp = f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} UTC"
        record.msg = json.dumps(
            {"timestamp": stamp, "pid": os.getpid(), **known}, ensure_ascii=False
        )
        try:
            if self._handler is None:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                self._handler = _Handler(self._path)
            # Two processes must not rotate the file at once.  After a failure, do not wait again.
            with self._lock(0.0 if self._has_reported else _PATIENCE):
                self._handler.handle(record)
        except (OSError, PostgresError) as error:  # the command goes on without the line
            self._report(error)

    def _report(self, error: OSError | PostgresError) -> None:
        """Report once, on stderr, that the file cannot be written.  A running command must not fail
        because of it.
        """
        if not self._has_reported:
            reason = error.strerror if isinstance(error, OSError) else error.message
            self._has_reported = True
            write_stderr(f'replctl: could not write log file "{self._path}": {reason}')


class _Handler(RotatingFileHandler):
    """Opens the file again for each line, because another process may have rotated it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=_FILE_SIZE, backupCount=_OLD_FILES, encoding="utf-8", delay=True
        )

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return cast(TextIOWrapper, open_private(self.baseFilename, flags, "a", self.encoding))

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the current error again, instead of printing it."""
        raise

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        if self.stream is not None:
            self.stream.close()
            self.stream = None
