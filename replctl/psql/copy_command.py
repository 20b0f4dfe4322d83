r"""`\copy`: COPY with a file of the client (psql's copy.c)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from replctl.psql.command_context import CommandContext, CommandResult, CommandStatus
from replctl.psql.output import Output
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.send_query import Delivery, send_query
from replctl.psql.variables import PsqlError
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class _Copy:
    """The parsed arguments.

    Attributes:
        before, after: the text of COPY before FROM or TO, and after the file.
        file: the name of the file, or a shell command; None for stdin and stdout.
        is_own: pstdin or pstdout was given.  They mean psql's own stdin or stdout, not the script's
            input or the target of `\\o`.
    """

    before: str
    after: str
    is_from: bool
    file: str | None
    is_program: bool = False
    is_own: bool = False

    @property
    def statement(self) -> str:
        place = " FROM STDIN " if self.is_from else " TO STDOUT "
        return f"COPY {self.before}{place}{self.after}"


def copy(context: CommandContext, slash: SlashScanner) -> CommandResult:
    r"""Run `\copy { TABLE [(COLUMNS)] | (QUERY) } { FROM | TO } { 'FILE' | PROGRAM 'COMMAND' |
    stdin | stdout | pstdin | pstdout } [OPTIONS]`."""
    arguments = slash.argument(Argument.WHOLE_LINE)
    if not arguments:
        raise PsqlError("\\copy: arguments required")
    said = _parsed(arguments)
    run = _copy_from if said.is_from else _copy_to
    return CommandStatus.DONE if run(context.settings, said) else CommandStatus.ERROR


# ---------------------------------------------------------------------------------------------
# Arguments


class _Tokens:
    """Splits the arguments into words (strtokx in stringutils.c)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def next(self, delimiters: str, quotes: str, *, escapes: bool = False) -> str:
        """Return the next word; a delimiter or a quoted string is a word by itself.

        Args:
            escapes: recognise E'...', a string with backslash escapes.

        Raises:
            PsqlError: no word is left.
        """
        pattern = re.compile(rf"\s*({_word(delimiters, quotes, escapes=escapes)})", re.DOTALL)
        found = pattern.match(self._text, self._place)
        if found is None:
            raise PsqlError("\\copy: parse error at end of line")
        self._place = found.end()
        return found[1]

    def rest(self) -> str:
        """Return the rest of the arguments, without the blank after the last word."""
        text = self._text[self._place :]
        return text[1:] if text[:1].isspace() else text


def _word(delimiters: str, quotes: str, *, escapes: bool) -> str:
    quoted = [rf"{quote}(?:[^{quote}]|{quote}{quote})*(?:{quote}|\Z)" for quote in quotes]
    if escapes:
        quoted.insert(0, r"[eE]'(?:[^'\\]|''|\\.)*(?:'|\Z)")
    single = f"[{re.escape(delimiters)}]"
    return "|".join([*quoted, single, rf"[^\s{re.escape(delimiters + quotes)}]+"])


def _parsed(text: str) -> _Copy:
    """Split the arguments (parse_slash_copy).

    Raises:
        PsqlError: the arguments do not have the syntax of COPY.
    """
    tokens = _Tokens(text)
    before = ""

    def next_name() -> str:
        return tokens.next(".,()", '"')

    token = next_name()
    if token.lower() == "binary":
        before += token
        token = next_name()
    if token == "(":
        depth = 1
        while depth:
            before += f" {token}"
            token = tokens.next("()", "\"'", escapes=True)
            depth += (token == "(") - (token == ")")
    before += f" {token}"
    token = next_name()
    if token == ".":
        before += token + next_name()
        token = next_name()
    if token == "(":
        while token != ")":
            before += f" {token}"
            token = tokens.next("()", '"')
        before += f" {token}"
        token = next_name()
    if token.lower() not in ("from", "to"):
        raise _parse_error(token)
    is_from = token.lower() == "from"
    token = tokens.next(";", "'")
    match token.lower():
        case "program":
            token = tokens.next(";", "'")
            if len(token) < 2 or not (token.startswith("'") and token.endswith("'")):
                raise _parse_error(token)
            return _Copy(before, tokens.rest(), is_from, _unquoted(token), is_program=True)
        case "stdin" | "stdout":
            return _Copy(before, tokens.rest(), is_from, None)
        case "pstdin" | "pstdout":
            return _Copy(before, tokens.rest(), is_from, None, is_own=True)
    file = os.path.expanduser(_unquoted(token))
    return _Copy(before, tokens.rest(), is_from, file)


def _parse_error(token: str) -> PsqlError:
    return PsqlError(f'\\copy: parse error at "{token}"')


def _unquoted(token: str) -> str:
    if not token.startswith("'"):
        return token
    inner = token[1:-1] if len(token) > 1 and token.endswith("'") else token[1:]
    return inner.replace("''", "'")


# ---------------------------------------------------------------------------------------------
# Files


def _copy_from(settings: PsqlSettings, said: _Copy) -> bool:
    if said.file is None:
        read_line = None
        if said.is_own:
            read_line = lambda: sys.stdin.readline() or None  # noqa: E731
        return send_query(settings, said.statement, Delivery(copy_input=read_line))
    with _opened(settings, said) as file:
        return send_query(
            settings, said.statement, Delivery(copy_input=lambda: file.readline() or None)
        )


@contextmanager
def _opened(settings: PsqlSettings, said: _Copy) -> Iterator[IO[str]]:
    assert said.file is not None
    if said.is_program:
        sys.stdout.flush()
        with subprocess.Popen(
            said.file, shell=True, stdout=subprocess.PIPE, encoding="utf-8",
            errors="surrogateescape",
        ) as process:  # fmt: skip
            assert process.stdout is not None
            yield process.stdout
            process.stdout.close()
            _check_exit(settings, said.file, process.wait())
        return
    try:
        file = open(  # noqa: SIM115 - closed below
            said.file, encoding="utf-8", errors="surrogateescape", newline="\n"
        )
    except IsADirectoryError:
        raise PsqlError(f"{said.file}: cannot copy from/to a directory") from None
    except OSError as error:
        raise PsqlError(f"{said.file}: {error.strerror}") from error
    with file:
        yield file


def _copy_to(settings: PsqlSettings, said: _Copy) -> bool:
    if said.file is None:
        output = Output() if said.is_own and not settings.output.is_stdout else None
        return send_query(settings, said.statement, Delivery(copy_output=output))
    output = Output(f"|{said.file}" if said.is_program else said.file)
    try:
        return send_query(settings, said.statement, Delivery(copy_output=output))
    finally:
        exit_code = output.close()
        if exit_code is not None:
            _check_exit(settings, said.file, exit_code)


def _check_exit(settings: PsqlSettings, command: str, exit_code: int) -> None:
    settings.variables.record_shell_exit(exit_code if exit_code >= 0 else 128 - exit_code)
    if exit_code > 0:
        reason = f"child process exited with exit code {exit_code}"
        if exit_code == 127:
            reason = "command not found"
        raise PsqlError(f"{command}: {reason}")
    if exit_code < 0:
        raise PsqlError(f"{command}: child process was terminated by signal {-exit_code}")
