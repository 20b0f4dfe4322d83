"""Read lines, split them into statements and backslash commands, and run these (mainloop.c)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO, assert_never

from replctl.psql.command import run_command
from replctl.psql.command_context import (
    CommandContext,
    CommandResult,
    CommandStatus,
    NewBuffer,
    Send,
    Watch,
)
from replctl.psql.conditional import ConditionStack
from replctl.psql.exit_code import ExitCode
from replctl.psql.messages import InputPlace
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.scan_slash import SlashScanner
from replctl.psql.send_query import Delivery, send_query
from replctl.psql.statement_scan import Statement, StatementScanner

#: Returns the next line without its newline; None at the end.  Its argument, the loop, has the
#: state for the prompt.
ReadLine = Callable[["MainLoop"], str | None]

#: Maximum delay in seconds of \watch.  Longer delays overflow the system's clock.
_LONGEST_SLEEP = 1e9


class _Stop(Exception):
    """Raised to leave the loop, for example by `\\q`."""


class MainLoop:
    """Runs one input from its first line to its last: a script, or commands that a user types.

    Attributes:
        context: the context for backslash commands.
    """

    def __init__(self, settings: PsqlSettings) -> None:
        self._settings = settings
        scanner = StatementScanner(settings.variables, settings.messages.complain)
        self.context = CommandContext(
            settings,
            scanner,
            ConditionStack(scanner),
            lambda name, is_relative: run_file(settings, name, is_relative) is ExitCode.SUCCESS,
        )
        self._eof_count = 0

    def run(self, read_line: ReadLine) -> ExitCode:
        """Run all lines from `read_line`, and return the exit code."""
        settings = self._settings
        is_interactive = settings.is_interactive
        code = ExitCode.SUCCESS
        try:
            while code is ExitCode.SUCCESS:
                try:
                    line = read_line(self)
                    if line is None:
                        if is_interactive and self._ignores_eof():
                            continue
                        break
                    self._eof_count = 0
                    succeeded = self._run_line(line)
                except KeyboardInterrupt:  # as in psql, it clears only the input
                    if not is_interactive:
                        raise
                    self._clear()
                    continue
                code = self._code_after(succeeded)
        except _Stop:  # of \q
            return ExitCode.SUCCESS
        if code is ExitCode.SUCCESS and not is_interactive:
            code = self._finish()
        return code

    def _finish(self) -> ExitCode:
        r"""Finish a script: run a last statement without a semicolon, and report an `\if` without
        `\endif`."""
        code = ExitCode.SUCCESS
        if self.context.scanner.buffer and self.context.conditions.is_active:
            code = self._code_after(self._send(self.context.scanner.take(), None))
        if code is ExitCode.SUCCESS and self.context.conditions.is_open:
            self._settings.messages.error("reached EOF without finding closing \\endif(s)")
            if self._settings.variables.is_on("ON_ERROR_STOP"):
                code = ExitCode.USER
        return code

    def _code_after(self, succeeded: bool) -> ExitCode:
        if self._settings.is_interactive:
            return ExitCode.SUCCESS
        if not succeeded and self._settings.variables.is_on("ON_ERROR_STOP"):
            return ExitCode.USER
        return ExitCode.BAD_CONNECTION if self._settings.session is None else ExitCode.SUCCESS

    def _run_line(self, line: str) -> bool:
        """Run the statements and commands that end in a line, and return whether all succeeded."""
        scanner, settings = self.context.scanner, self._settings
        if not line and scanner.prompt.value in "=-(":  # psql neither echoes nor counts this line
            return True
        if settings.is_interactive and not scanner.buffer and self._is_help_word(line):
            return True
        if settings.variables.choice("ECHO") == "all" and not settings.is_interactive:
            print(line, flush=True)
        succeeded = True
        for item in scanner.scan(line):
            succeeded = self._run_item(item)
            if self._stops_after(succeeded):
                break
        return succeeded

    def _stops_after(self, succeeded: bool) -> bool:
        if self._settings.session is None and not self._settings.is_interactive:
            return True
        return not succeeded and self._settings.variables.is_on("ON_ERROR_STOP")

    def _run_item(self, item: Statement | SlashScanner) -> bool:
        match item:
            case Statement(text):
                if self.context.conditions.is_active:
                    return self._send(text, None)
                if self._settings.is_interactive:
                    self._settings.messages.error(
                        "query ignored; use \\endif or Ctrl-C to exit current \\if block"
                    )
                return True
            case SlashScanner():
                return self._apply(run_command(self.context, item))
        assert_never(item)

    def _apply(self, result: CommandResult) -> bool:
        """Perform the action that a backslash command requests, and return whether it succeeded."""
        match result:
            case CommandStatus.DONE:
                return True
            case CommandStatus.ERROR:
                return False
            case CommandStatus.TERMINATE:
                raise _Stop
            case Send(delivery):
                return self._send(self._query_to_send(), delivery)
            case Watch():
                return self._watch(self._query_to_send(), result)
            case NewBuffer(text):
                self.context.scanner.take()
                results = [self._run_line(line) for line in text.rstrip("\n").split("\n")]
                return all(results)
        assert_never(result)

    def _query_to_send(self) -> str:
        return self.context.scanner.take() or self.context.previous_statement

    def _send(self, text: str, delivery: Delivery | None) -> bool:
        self.context.previous_statement = text
        return send_query(self._settings, text, delivery)

    def _watch(self, text: str, watch: Watch) -> bool:
        """Run a query repeatedly, and print each result under a title with the time (do_watch)."""
        done = 0
        options = self._settings.print_options
        try:
            while True:
                title = f"{time.strftime('%c')} (every {watch.interval:g}s)\n"
                if options.title is not None:
                    title = f"{options.title}\t{title}"
                delivery = Delivery(print_options=replace(options, title=title))
                if not send_query(self._settings, text, delivery):
                    return False
                rows = int(self._settings.variables.get("ROW_COUNT") or 0)
                done += 1
                if done == watch.count or rows < watch.min_rows:
                    return True
                time.sleep(min(watch.interval, _LONGEST_SLEEP))
        except KeyboardInterrupt:  # the usual end of \watch
            return True
        finally:
            print(flush=True)

    def _is_help_word(self, line: str) -> bool:
        """Handle a line with only `help`, `quit` or `exit`; return whether it was one."""
        match line.strip().rstrip(";").lower():
            case "help":
                from replctl.psql.help import SHORT_HELP

                print(SHORT_HELP, flush=True)
                return True
            case "quit" | "exit":
                raise _Stop
            case _:
                return False

    def _ignores_eof(self) -> bool:
        self._eof_count += 1
        if self._eof_count < self._settings.variables.integer("IGNOREEOF"):
            self._settings.say('Use "\\q" to leave replctl.')
            return True
        self._settings.say("\\q")
        return False

    def _clear(self) -> None:
        """Handle Ctrl-C at the prompt: clear the query buffer, or leave an `\\if`."""
        print()
        self.context.scanner.take()
        if self.context.conditions.is_open:
            self._settings.messages.error("\\if: escaped")
            self.context.conditions.close_innermost()


def run_file(settings: PsqlSettings, name: str, is_relative: bool = False) -> ExitCode:
    """Run a script: `-f NAME`, `\\i NAME`; `-` is stdin.

    Args:
        is_relative: a relative name is relative to the current script (`\\ir`).
    """
    if name == "-":
        return _run_stream(settings, sys.stdin, "<stdin>")
    place = settings.messages.place
    if is_relative and place is not None and not os.path.isabs(name):
        name = os.path.normpath(os.path.join(os.path.dirname(place.file), name))
    try:
        stream = open(name, encoding="utf-8", errors="surrogateescape", newline="\n")  # noqa: SIM115
    except OSError as error:  # as in psql, the caller may continue
        settings.messages.error(f"{name}: {error.strerror}")
        return ExitCode.FAILURE
    with stream:
        return _run_stream(settings, stream, name)


def run_stdin(settings: PsqlSettings) -> ExitCode:
    """Run stdin.  Errors have no file name and line number."""
    settings.messages.is_terse = True
    return MainLoop(settings).run(_LineReader(settings, sys.stdin, None))


def run_command_string(settings: PsqlSettings, text: str) -> ExitCode:
    """Run `-c TEXT`: plain SQL, or one backslash command."""
    settings.messages.is_terse = True
    if settings.variables.choice("ECHO") == "all":
        print(text.removeprefix("\\"), flush=True)
    if not text.startswith("\\"):
        return ExitCode.SUCCESS if send_query(settings, text) else ExitCode.FAILURE
    context = MainLoop(settings).context
    slash = next(iter(context.scanner.scan(text)))
    assert isinstance(slash, SlashScanner)
    result = run_command(context, slash)
    return ExitCode.FAILURE if result is CommandStatus.ERROR else ExitCode.SUCCESS


def _run_stream(settings: PsqlSettings, stream: TextIO, name: str) -> ExitCode:
    with _not_interactive(settings):
        outer, outer_data = settings.messages.place, settings.read_data_line
        settings.messages.place = InputPlace(name, 0)
        reader = _LineReader(settings, stream, name)
        settings.read_data_line = reader.data_line
        try:
            return MainLoop(settings).run(reader)
        finally:
            settings.messages.place, settings.read_data_line = outer, outer_data
            settings.messages.is_terse = True


@contextmanager
def _not_interactive(settings: PsqlSettings) -> Iterator[None]:
    was_interactive, settings.is_interactive = settings.is_interactive, False
    try:
        yield
    finally:
        settings.is_interactive = was_interactive


class _LineReader:
    """Reads the lines of a stream, without a byte order mark.

    Args:
        name: the stream's name in errors, or None.
    """

    def __init__(self, settings: PsqlSettings, stream: TextIO, name: str | None) -> None:
        self._settings = settings
        self._stream = stream
        self._name = name
        self._number = 0

    def __call__(self, loop: MainLoop) -> str | None:
        line = self.data_line()
        if line is None:
            return None
        line = line.removesuffix("\n")
        return line.removeprefix("\ufeff") if self._number == 1 else line

    def data_line(self) -> str | None:
        """Return the next line unchanged, for COPY."""
        line = self._stream.readline()
        if not line:
            return None
        self._number += 1
        if self._name is not None:
            self._settings.messages.place = InputPlace(self._name, self._number)
        return line
