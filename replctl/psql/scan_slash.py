"""Read a backslash command from the input: its name and its arguments, with psql's quoting
(psqlscanslash.l).

In `\\echo 'it''s' :b "C" \\\\ SELECT 1;` the command is `echo`.  Its arguments are `it's`, the
value of b, and `"C"`.  The rest of the line is SQL.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from replctl.psql.interpolate import NAME, REFERENCE, Input, Interpolation, quote_shell
from replctl.psql.variables import PsqlError


class Argument(Enum):
    """The way in which an argument is parsed (slash_option_type in psqlscanslash.h)."""

    NORMAL = auto()  # double quotes are kept
    SQL_IDENTIFIER = (
        auto()
    )  # letters outside double quotes become lower case, the quotes are removed
    VERBATIM_IDENTIFIER = auto()  # only the quotes are removed: the arguments of \connect
    FILE_PIPE = auto()  # after a leading |, the argument is the rest of the line
    WHOLE_LINE = auto()  # the rest of the line, without any quoting


_SPACE = r"[ \t\n\r\f\v]"
_COMMAND = re.compile(rf"(?P<end> {_SPACE} | \\ ) | [^ \t\n\r\f\v\\]+", re.VERBOSE)
_ARGUMENT = re.compile(
    rf"""
      (?P<end> {_SPACE} | \\ )
    | (?P<quote> ')
    | (?P<backtick> `)
    | (?P<double_quote> ")
    | {REFERENCE}
    | (?P<text> : | [^ \t\n\r\f\v\\'`":]+)
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""
      (?P<text> [^'\\]+ | \\\Z)
    | (?P<double> '')
    | (?P<close> ')
    | \\ (?P<octal> [0-7]{1,3})
    | \\ x (?P<hexadecimal> [0-9A-Fa-f]{1,2})
    | \\ (?P<escaped> .)
    """,
    re.VERBOSE | re.DOTALL,
)
_BACKTICKED = re.compile(
    rf"(?P<close> `) | (?P<variable> : {NAME}) | (?P<literal> : ' {NAME} ') | : | [^`:]+",
    re.VERBOSE,
)
_DOUBLE_QUOTED = re.compile(r'(?P<close>")|[^"]+')
_REST = re.compile(r".+", re.DOTALL)
_C_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f"}
_DOWNCASE = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class SlashScanner:
    """Reads a backslash command: first the name, then the arguments one by one, as the command
    needs them.

    Attributes:
        command: the name, which ends at white space or another backslash.
        quote: the last quote character in the last argument: `'`, `"`, a backtick or `:` (for a
            variable); None if the argument had none.
    """

    def __init__(self, input_: Input, interpolation: Interpolation) -> None:
        self._input = input_
        self._interpolation = interpolation
        self.quote: str | None = None
        self.command = ""
        for token in input_.tokens(_COMMAND):
            if token.lastgroup == "end":
                input_.put_back(token)
                break
            self.command += token[0]

    def argument(
        self, kind: Argument = Argument.NORMAL, *, strip_semicolons: bool = False
    ) -> str | None:
        """Read the next argument; None if no argument is left, or if a quote is not closed.

        Args:
            strip_semicolons: remove unquoted semicolons from the end of the argument, for commands
                that users end like statements.
        """
        self.quote = None
        first = self._skip_space()
        if not first:
            return None
        if kind is Argument.WHOLE_LINE or (kind is Argument.FILE_PIPE and first == "|"):
            return "".join(token[0] for token in self._input.tokens(_REST))
        try:
            text = self._read(strip_semicolons)
        except PsqlError as error:  # as in psql, the command runs without the argument
            self._interpolation.complain("error", str(error))
            return None
        if kind is Argument.SQL_IDENTIFIER or kind is Argument.VERBATIM_IDENTIFIER:
            text = dequote(text, downcase=kind is Argument.SQL_IDENTIFIER)
        return text if text or self.quote else None

    def finish(self) -> None:
        """Finish the command, and skip a `\\\\` that ends it.

        Report unread arguments as they are written in the input.
        """
        was_active, self._interpolation.is_active = self._interpolation.is_active, False
        while (extra := self.argument()) is not None:
            if was_active:
                message = f'\\{self.command}: extra argument "{extra}" ignored'
                self._interpolation.complain("warning", message)
        self._interpolation.is_active = was_active
        source = self._input.current()
        if source is not None and source.text.startswith("\\\\", source.pos):
            source.pos += 2

    def abandon(self) -> None:
        """Skip a failed command with the rest of its line."""
        self.argument(Argument.WHOLE_LINE)

    def _skip_space(self) -> str:
        """Skip white space and return the next character; "" at the end of the line."""
        while (source := self._input.current()) is not None:
            if source.text[source.pos] not in " \t\n\r\f\v":
                return source.text[source.pos]
            source.pos += 1
        return ""

    def _read(self, strip_semicolons: bool) -> str:
        parts: list[str] = []
        unquoted = ""  # the unquoted end of the argument
        for token in self._input.tokens(_ARGUMENT):
            match token.lastgroup:
                case "end":
                    self._input.put_back(token)
                    break
                case "text":
                    unquoted += token[0]
                    continue
                case "is_set":
                    unquoted += self._interpolation.substitute("is_set", token[0])
                    continue
                case "quote":
                    part = self._quoted()
                case "backtick":
                    part = self._backticked()
                case "double_quote":
                    part = self._double_quoted()
                case reference:
                    assert reference is not None
                    part = self._interpolation.substitute(reference, token[0])
            self.quote = token[0][0]
            parts += unquoted, part
            unquoted = ""
        parts.append(unquoted.rstrip(";") if strip_semicolons else unquoted)
        return _as_c_string("".join(parts))

    def _quoted(self) -> str:
        parts: list[str] = []
        for token in self._input.tokens(_QUOTED):
            kind = token.lastgroup
            assert kind is not None
            text = token[kind]
            match kind:
                case "close":
                    return "".join(parts)
                case "double":
                    parts.append("'")
                case "octal":
                    parts.append(_byte(int(text, 8) & 0xFF))
                case "hexadecimal":
                    parts.append(_byte(int(text, 16)))
                case "escaped":
                    parts.append(_C_ESCAPES.get(text, text))
                case _:
                    parts.append(text)
        raise PsqlError("unterminated quoted string")

    def _double_quoted(self) -> str:
        text = '"'
        for token in self._input.tokens(_DOUBLE_QUOTED):
            text += token[0]
            if token.lastgroup == "close":
                return text
        raise PsqlError("unterminated quoted string")

    def _backticked(self) -> str:
        command = ""
        for token in self._input.tokens(_BACKTICKED):
            match token.lastgroup:
                case "close":
                    return self._execute(command) if self._interpolation.is_active else command
                case "variable":
                    command += self._interpolation.substitute("variable", token[0])
                case "literal":
                    command += self._shell_argument(token[0])
                case _:
                    command += token[0]
        raise PsqlError("unterminated quoted string")

    def _shell_argument(self, reference: str) -> str:
        value = self._interpolation.lookup(reference[2:-1])
        if value is None:
            return reference
        if "\n" in value or "\r" in value:
            message = "shell command argument contains a newline or carriage return"
            self._interpolation.complain("error", f'{message}: "{value}"')
            return reference
        return quote_shell(value)

    def _execute(self, command: str) -> str:
        import subprocess

        process = subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=False)
        # If a signal has ended the shell, its exit status is 128 + signal.
        exit_code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        self._interpolation.variables.record_shell_exit(exit_code)
        return process.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def dequote(text: str, *, downcase: bool) -> str:
    """Remove double quotes, and fold unquoted ASCII letters to lower case if `downcase`.

    `"Foo""s".Bar` -> `Foo"s.bar`
    """

    def replace(part: re.Match[str]) -> str:
        if part["quoted"] is not None:
            return part["quoted"].replace('""', '"')
        return part[0].translate(_DOWNCASE) if downcase else part[0]

    return re.sub(r'"(?P<quoted>(?:[^"]|"")*)"?|[^"]+', replace, text)


def _byte(value: int) -> str:
    return bytes([value]).decode("utf-8", "surrogateescape")


def _as_c_string(text: str) -> str:
    """Combine bytes from escapes to characters, and end the text at a NUL, as C does."""
    text = text.partition("\0")[0]
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
