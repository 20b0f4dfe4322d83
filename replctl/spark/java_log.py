"""Limit the size of the file to which a JVM writes.

Spark writes an error with a stack trace for each failed task.  A subscription that fails again and
again would fill the disk.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from pathlib import Path
from threading import Thread
from typing import IO

from replctl.private_file import open_private

_FILE_SIZE = 10 * 1024 * 1024  # bytes
_INTERVAL = 10.0  # seconds between two checks


def open_for_append(log: IO[bytes]) -> None:
    """Let all writers of an open file append to it, including a JVM that inherits it.  So the file
    can be truncated while the JVM writes.
    """
    flags = fcntl.fcntl(log, fcntl.F_GETFL)
    fcntl.fcntl(log, fcntl.F_SETFL, flags | os.O_APPEND)


def limit_size(process: subprocess.Popen[bytes], log: IO[bytes], path: Path | None) -> None:
    """Keep the file to which a JVM writes small until the JVM ends, in a thread.

    Args:
        path: the file's name.  Its newest lines then move to a file with the suffix `.1`.  None: it
            has no name, and they are removed.
    """
    descriptor = os.dup(log.fileno())

    def check() -> None:
        while process.poll() is None:
            shorten(descriptor, path)
            time.sleep(_INTERVAL)
        os.close(descriptor)

    Thread(target=check, daemon=True, name="replctl-java-log").start()


def shorten(descriptor: int, path: Path | None) -> None:
    """Truncate a file that is too large, as logrotate's copytruncate: the writer keeps it open."""
    size = os.fstat(descriptor).st_size
    if size <= _FILE_SIZE:
        return
    failure = None
    try:
        if path is not None:
            newest = os.pread(descriptor, _FILE_SIZE, size - _FILE_SIZE)
            old = path.with_name(f"{path.name}.1")
            with open_private(old, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "wb") as file:
                file.write(newest)
    except OSError as error:  # a full disk needs the space even more
        failure = error.strerror
    os.ftruncate(descriptor, 0)
    if failure is not None:
        os.write(descriptor, f"replctl could not keep older messages: {failure}\n".encode())
