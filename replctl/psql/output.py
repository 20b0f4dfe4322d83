"""Write results to stdout, a file, or another program (`\\o FILE`, `\\g |PROGRAM`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from replctl.psql.variables import PsqlError
from replctl.standard_streams import drop_unwritten, outlasting


@contextmanager
def writing(failure: str) -> Iterator[None]:
    """Convert errors of writing in the `with` block to PsqlError, except BrokenPipeError.

    Args:
        failure: the beginning of the error message.  The reason follows it.

    Raises:
        BrokenPipeError: the reader of stdout has exited.
        PsqlError: writing failed, for example because a disk is full.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_unwritten(sys.stdout)
        raise PsqlError(f"{failure}: {error.strerror}") from error


class Output:
    """A writable target, stdout by default.

    Args:
        target: a file's name, or `|` and a shell command.

    Raises:
        PsqlError: the file cannot be written.
    """

    def __init__(self, target: str | None = None) -> None:
        self._target = target
        self._process: subprocess.Popen[bytes] | None = None
        self._file: TextIO | None = None
        if target is None:
            return
        if target.startswith("|"):
            sys.stdout.flush()
            read_end, write_end = os.pipe()
            self._process = subprocess.Popen(target[1:], shell=True, stdin=read_end)
            os.close(read_end)
            self._file = outlasting(write_end)  # psql ignores SIGPIPE while a program gets results
            return
        with writing(target):
            self._file = open(  # noqa: SIM115 - it stays open until close()
                target, "w", encoding="utf-8", errors="surrogateescape", newline="\n"
            )

    @property
    def is_stdout(self) -> bool:
        return self._file is None

    @property
    def stream(self) -> TextIO:
        """Return the stream to write to."""
        return sys.stdout if self._file is None else self._file

    def close(self) -> int | None:
        """Finish writing, and wait for the program.

        Returns:
            The exit code of the program; None if there is none.

        Raises:
            PsqlError: the rest cannot be written.
        """
        if self._file is not None:
            with writing(str(self._target)):
                self._file.close()
        return None if self._process is None else self._process.wait()
