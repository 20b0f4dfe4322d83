"""Write results to stdout, a file, or another program (`\\o FILE`, `\\g |PROGRAM`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from replctl.psql.variables import PsqlError


@contextmanager
def writing(failure: str) -> Iterator[None]:
    """Convert errors of writing in the `with` block to PsqlError, except BrokenPipeError.

    Args:
        failure: the beginning of the error message.  The reason follows it.

    Raises:
        BrokenPipeError: the program that reads the output has exited.
        PsqlError: writing failed, for example because a disk is full.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_unwritten()
        raise PsqlError(f"{failure}: {error.strerror}") from error


def drop_unwritten() -> None:
    """Discard the buffer of stdout if it cannot be written.  The failure is already reported, and
    Python must not try to write it at exit.
    """
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads the rest, such as after `| head`
        place = sys.stdout.fileno()
        kept, nowhere = os.dup(place), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, place)
        sys.stdout.flush()
        os.dup2(kept, place)
        os.close(kept)
        os.close(nowhere)


class Output:
    """A writable target, stdout by default.

    Args:
        target: a file's name, or `|` and a shell command.

    Raises:
        PsqlError: the file cannot be written.
    """

    def __init__(self, target: str | None = None) -> None:
        self._target = target
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
        with writing(target):
            self._file = open(  # noqa: SIM115 - it stays open until close()
                target, "w", encoding="utf-8", errors="surrogateescape", newline="\n"
            )

    @property
    def is_stdout(self) -> bool:
        return self._file is None and self._process is None

    @property
    def stream(self) -> TextIO:
        """Return the stream to write to."""
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

        Raises:
            PsqlError: the rest cannot be written.
        """
        if self._file is not None:
            with writing(str(self._target)):
                self._file.close()
        if self._process is None:
            return None
        with suppress(BrokenPipeError):  # the program has read enough
            assert self._process.stdin is not None
            self._process.stdin.close()
        return self._process.wait()
