"""Read and write data of COPY for the client (handleCopyIn, handleCopyOut in psql's copy.c)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from replctl.psql.output import Output, writing
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.variables import PsqlError

_INSTRUCTIONS = (
    "Enter data to be copied followed by a newline.\n"
    "End with a backslash and a period on a line by itself, or an EOF signal."
)
_END_MARKERS = ("\\.\n", "\\.\r\n")


class CopyData:
    """The input and output of the COPY statements of one query string.

    Args:
        read_line: returns the next line of the data with its newline, None at the end.  By default
            the data comes from the input of the commands.
        output: receives the rows; None for `target` or, without a target, the output of results.
        target: a file, or `|` and a program.  It is opened for the first row.
        before_output: called before the first write.

    Attributes:
        has_failed: the output could not be opened.
    """

    def __init__(
        self,
        settings: PsqlSettings,
        read_line: Callable[[], str | None] | None,
        output: Output | None,
        target: str | None,
        before_output: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._read_line = read_line
        self._output = output
        self._target = target
        self._opened: Output | None = None
        self._before_output = before_output
        self._lines: Iterator[bytes] = iter(())
        self._has_written_results = False
        self.has_failed = False

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Provide the session's COPY statements with data while the `with` block runs.  Then skip
        the data that they have not read.
        """
        session = self._settings.session
        assert session is not None
        before = session.on_copy_in, session.on_copy_out
        session.on_copy_in, session.on_copy_out = self._open, self._write
        try:
            yield
        finally:
            session.on_copy_in, session.on_copy_out = before
            self._pass_over()
            exit_code = None if self._opened is None else self._opened.close()
            if exit_code is not None:
                self._settings.variables.record_shell_exit(exit_code)

    def _open(self) -> Iterator[bytes]:
        self._pass_over()
        if self._read_line is None and self._settings.is_interactive:
            self._settings.say(_INSTRUCTIONS)
        self._lines = self._sent()
        return self._lines

    def _pass_over(self) -> None:
        for _line in self._lines:
            pass

    def _sent(self) -> Iterator[bytes]:
        read_line = self._read_line or self._settings.read_data_line
        while (line := read_line()) is not None:
            yield line.encode("utf-8", "surrogateescape")
            if line in _END_MARKERS:
                return

    def _write(self, lines: Iterator[bytes]) -> None:
        self._before_output()
        if self._target is not None and self._opened is None:
            try:
                self._opened = Output(self._target)
            except PsqlError as error:  # as psql, read the rest without writing it
                self._settings.messages.error(str(error))
                self.has_failed = True
                return
        output = self._output or self._opened or self._settings.output
        stream: TextIO = output.stream
        with writing("could not write COPY data"):
            for line in lines:
                stream.write(line.decode("utf-8", "surrogateescape"))
            stream.flush()
        self._has_written_results = output is self._settings.output

    def takes_tag(self) -> bool:
        """Return whether to omit the tag of the last statement, because its rows went to the same
        output.
        """
        was_written, self._has_written_results = self._has_written_results, False
        return was_written
