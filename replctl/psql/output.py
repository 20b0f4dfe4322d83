"""Where results go: stdout, a file, or another program (`\\o FILE`, `\\g |PROGRAM`)."""

from __future__ import annotations

import subprocess
import sys
from typing import TextIO

from replctl.psql.variables import PsqlError


class Output:
    """A place to write to, stdout unless a target is given.

    Args:
        target: a file's name, or `|` and a shell command.

    Raises:
        PsqlError: the file cannot be written.
    """

    def __init__(self, target: str | None = None) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._file: TextIO | None = None
        if target is None:
            return
        if target.startswith("|"):
            sys.stdout.flush()
            self._process = subprocess.Popen(
                target[1:], shell=True, stdin=subprocess.PIPE, encoding="utf-8",
                errors="surrogateescape",
            )  # fmt: skip
            return
        try:
            self._file = open(  # noqa: SIM115 - it stays open until close()
                target, "w", encoding="utf-8", errors="surrogateescape", newline="\n"
            )
        except OSError as error:
            raise PsqlError(f"{target}: {error.strerror}") from error

    @property
    def is_stdout(self) -> bool:
        return self._file is None and self._process is None

    @property
    def stream(self) -> TextIO:
        """What to write to."""
        if self._file is not None:
            return self._file
        if self._process is not None:
            assert self._process.stdin is not None
            return self._process.stdin  # type: ignore[return-value]
        return sys.stdout

    def close(self) -> int | None:
        """Finish writing, and wait for the program.

        Returns:
            The exit code of the program; None if there is none.
        """
        if self._file is not None:
            self._file.close()
        if self._process is None:
            return None
        try:
            assert self._process.stdin is not None
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has read enough
        return self._process.wait()
