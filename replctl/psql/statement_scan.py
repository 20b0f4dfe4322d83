"""Find the end of statements, and the beginning of backslash commands.

With x = `'1'`, the text `SELECT :x; SELECT 2 \\gset a` becomes Statement("SELECT '1';"), and then a
SlashScanner with the command `gset` and the argument `a`.  At that point, "SELECT 2 " is in the
query buffer.

The scanner reads line by line.  Statements have the form in which psql 17 sends them: with the
semicolon and inner comments, and without white space and `--` comments before them.  Therefore
positions in the text give the right `LINE n`.  The tokens are those of psqlscan.l, but only tokens
that can hide a semicolon, a backslash or a colon are distinguished.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from replctl.psql.interpolate import NAME, REFERENCE, Input, Interpolation
from replctl.psql.scan_slash import SlashScanner
from replctl.psql.variables import Variables
from replctl.record import dataclass


class Prompt(Enum):
    """The construct that the next line continues; the value is the text of `%R` in a prompt."""

    READY = "="
    CONTINUE = "-"
    SINGLE_QUOTE = "'"
    DOUBLE_QUOTE = '"'
    DOLLAR_QUOTE = "$"
    COMMENT = "*"
    PAREN = "("


@dataclass(frozen=True, slots=True)
class Statement:
    """A complete statement to execute, or several statements that were joined by `\\;`."""

    text: str


class SavedBuffer(NamedTuple):
    """The length of the query buffer before an `\\if`; see `StatementScanner.restore`."""

    length: int
    paren_depth: int


class _State(Enum):
    SQL = auto()
    QUOTE = auto()
    ESCAPE_QUOTE = auto()
    AFTER_ESCAPE_QUOTE = auto()  # E'..' continues if white space with a newline precedes a quote
    DOUBLE_QUOTE = auto()
    DOLLAR_QUOTE = auto()
    COMMENT = auto()


class _Stop(Enum):
    SEMICOLON = auto()
    BACKSLASH = auto()
    END_OF_LINE = auto()


_PROMPTS = {
    _State.QUOTE: Prompt.SINGLE_QUOTE,
    _State.ESCAPE_QUOTE: Prompt.SINGLE_QUOTE,
    _State.DOUBLE_QUOTE: Prompt.DOUBLE_QUOTE,
    _State.DOLLAR_QUOTE: Prompt.DOLLAR_QUOTE,
    _State.COMMENT: Prompt.COMMENT,
}

#: Beginnings of statements whose body may be BEGIN ATOMIC ... END.
_ROUTINES = (
    ["create", "function"],
    ["create", "procedure"],
    ["create", "or", "replace", "function"],
    ["create", "or", "replace", "procedure"],
)

_START = r"[^\x00-@\[-^`{-\x7f]"  # a letter or _
_IDENTIFIER = rf"{_START}[^\x00-#%-/:-@\[-^`{{-\x7f]*"  # letters, digits, _ and $
_DIGITS = r"[0-9](?:_?[0-9])*"
_SQL = re.compile(
    rf"""
      (?P<blank> [ \t\n\r\f\v]+ | --[^\n\r]*)
    | (?P<comment> /\*)
    | (?P<escape_quote> [eE]')
    | (?P<quote> (?: [bBnNxX] | [uU]& )? ')
    | (?P<double_quote> (?: [uU]& )? ")
    | (?P<dollar_quote> \$ (?: {_START} (?:{NAME})? )? \$)
    | (?P<word> {_IDENTIFIER})
    | (?P<open> \()
    | (?P<close> \))
    | (?P<semicolon> ;)
    | (?P<forced> \\[;:])
    | (?P<backslash> \\)
    | {REFERENCE}
    | :: | :=
    | (?: {_DIGITS} (?: \.(?!\.) (?:{_DIGITS})? )? | \.{_DIGITS} )   # a number, with the name that
      (?: [eE][-+]?{_DIGITS} | [eE][-+] )? (?:{_IDENTIFIER})?        # is stuck to it
    | \$[0-9]+ (?:{_IDENTIFIER})?
    | (?: (?! -- | /\* ) [-~!@#^&|`?+*/%<>=] )+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"(?:[^'\\]+|\\.|'')*\\?", re.DOTALL)
_CONTINUATION = re.compile(r"(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]+|--[^\n\r]*[\n\r])*'")
_COMMENT_MARK = re.compile(r"/\*|\*/")


class StatementScanner:
    """Collects lines in a query buffer, and detects complete statements.

    The caller has removed newlines and a byte order mark from the lines, but no carriage returns.

    Args:
        variables: the variables, with the values of `:name` and SINGLELINE.
        complain: called with "error" or "warning" and a message if psql reports a problem and
            continues.
    """

    def __init__(self, variables: Variables, complain: Callable[[str, str], None]) -> None:
        self._interpolation = Interpolation(variables, complain)
        self._buffer: list[str] = []
        self._input = Input("")
        self._reset()

    def _reset(self) -> None:
        self._state = _State.SQL
        self._paren_depth = 0
        self._comment_depth = 0
        self._dollar_tag = ""
        self._opening: list[str] = []  # the first words of the statement
        self._begin_depth = 0

    @property
    def is_active(self) -> bool:
        """Return False in a branch of `\\if` that does not run.  The caller sets this.

        In such a branch, no variable is replaced, no backticks are executed, and statements stay in
        the buffer after they are yielded.
        """
        return self._interpolation.is_active

    @is_active.setter
    def is_active(self, is_active: bool) -> None:
        self._interpolation.is_active = is_active

    @property
    def buffer(self) -> str:
        """Return the content of the query buffer: the text of the incomplete statement."""
        return "".join(self._buffer)

    @property
    def prompt(self) -> Prompt:
        """Return the construct that the next line would continue."""
        if self._state in _PROMPTS:
            return _PROMPTS[self._state]
        if self._paren_depth > 0:
            return Prompt.PAREN
        return Prompt.CONTINUE if self._buffer else Prompt.READY

    def take(self) -> str:
        """Return the content of the query buffer, and empty the buffer for a new statement.

        Call this if a statement ends without a semicolon (`\\g`, the end of a file), and for `\\r`.
        """
        text = self.buffer
        self._buffer.clear()
        self._reset()
        return text

    def save(self) -> SavedBuffer:
        """Return the state of the query buffer at an `\\if`, for `restore`."""
        return SavedBuffer(len(self.buffer), self._paren_depth)

    def restore(self, saved: SavedBuffer) -> None:
        """Remove the text that a skipped branch of `\\if` has added to the query buffer."""
        text = self.buffer[: saved.length]
        self._buffer = [text] if text else []
        self._paren_depth = saved.paren_depth

    def scan(self, line: str) -> Iterator[Statement | SlashScanner]:
        """Read a line (without its newline), and yield completed statements and commands in order.

        The caller must process each item before it asks for the next one.  So a command can set
        variables that the rest of the line uses.  The caller reads the arguments of a backslash
        command from the item, and then calls `finish` or `abandon`.  The rest of the line is SQL
        again.
        """
        if not line and self._state not in _PROMPTS:
            return
        if self._buffer:
            self._buffer.append("\n")
        pieces_with_newline = len(self._buffer)
        self._input = Input(line)
        while (stop := self._advance()) is not _Stop.END_OF_LINE:
            if stop is _Stop.SEMICOLON:
                self._opening.clear()
                yield self._statement()
            else:
                # A line with only a backslash command does not change the buffer.
                if self._buffer and len(self._buffer) == pieces_with_newline:
                    self._buffer.pop()
                yield SlashScanner(self._input, self._interpolation)
            pieces_with_newline = -1
        is_whole = self._state not in _PROMPTS and not self._paren_depth and not self._begin_depth
        if self._buffer and is_whole and self._interpolation.variables.is_on("SINGLELINE"):
            yield self._statement()

    def _statement(self) -> Statement:
        statement = Statement(self.buffer)
        if self.is_active:
            self._buffer.clear()
        return statement

    def _advance(self) -> _Stop:
        while (source := self._input.current()) is not None:
            if self._state is _State.SQL:
                stop = self._scan_sql()
                if stop is not None:
                    return stop
            else:
                end = self._end_of_literal(source.text, source.pos)
                self._emit(source.text[source.pos : end])
                source.pos = end
        return _Stop.END_OF_LINE

    def _emit(self, text: str) -> None:
        if text:
            self._buffer.append(text)

    def _end_of_literal(self, text: str, pos: int) -> int:
        """Return the end of the quote or comment in `text`, after its end mark; the end of `text`
        if there is none.
        """
        match self._state:
            case _State.ESCAPE_QUOTE:
                escaped = _ESCAPED.match(text, pos)
                assert escaped is not None
                if escaped.end() == len(text):
                    return len(text)
                self._state = _State.AFTER_ESCAPE_QUOTE
                return escaped.end() + 1
            case _State.AFTER_ESCAPE_QUOTE:
                continued = _CONTINUATION.match(text, pos)
                self._state = _State.SQL if continued is None else _State.ESCAPE_QUOTE
                return pos if continued is None else continued.end()
            case _State.COMMENT:
                return self._end_of_comment(text, pos)
            case _State.DOLLAR_QUOTE:
                mark = self._dollar_tag
            case _State.DOUBLE_QUOTE:
                mark = '"'
            case _:
                mark = "'"
        # A doubled quote ends one literal and begins the next, which is equivalent here.
        start = text.find(mark, pos)
        if start < 0:
            return len(text)
        self._state = _State.SQL
        return start + len(mark)

    def _end_of_comment(self, text: str, pos: int) -> int:
        for mark in _COMMENT_MARK.finditer(text, pos):
            self._comment_depth += 1 if mark[0] == "/*" else -1
            if self._comment_depth == 0:
                self._state = _State.SQL
                return mark.end()
        return len(text)

    def _scan_sql(self) -> _Stop | None:
        """Read tokens until a statement ends, a backslash command begins or a literal begins."""
        for token in self._input.tokens(_SQL):
            text = token[0]
            match token.lastgroup:
                case "blank" if not self._buffer:
                    pass
                case "variable":
                    self._expand(text)
                case "literal" | "identifier" | "is_set" as reference:
                    self._emit(self._interpolation.substitute(reference, text))
                case "forced":
                    self._emit(text[1])
                    if text[1] == ";":
                        self._opening.clear()
                case "backslash":
                    return _Stop.BACKSLASH
                case kind:
                    self._emit(text)
                    if kind == "semicolon" and not self._paren_depth and not self._begin_depth:
                        return _Stop.SEMICOLON
                    self._note(kind, text)
                    if self._state is not _State.SQL:
                        return None
        return None

    def _note(self, kind: str | None, text: str) -> None:
        """Record a token that may decide whether a later semicolon ends the statement."""
        match kind:
            case "word":
                self._count_word(text.lower())
            case "open":
                self._paren_depth += 1
            case "close":
                self._paren_depth = max(self._paren_depth - 1, 0)
            case "comment" | "escape_quote" | "quote" | "double_quote" | "dollar_quote":
                self._state = _State[kind.upper()]
                self._dollar_tag = text
                self._comment_depth = 1

    def _count_word(self, word: str) -> None:
        """Count BEGIN and END of a routine's body: semicolons in it do not end the statement."""
        if len(self._opening) < 4:
            self._opening.append(word)
        if self._paren_depth or not any(self._opening[: len(r)] == r for r in _ROUTINES):
            return
        if word == "begin" or (word == "case" and self._begin_depth):
            self._begin_depth += 1
        elif word == "end" and self._begin_depth:
            self._begin_depth -= 1

    def _expand(self, reference: str) -> None:
        """Read the value of a variable next.  It may contain anything, even statements."""
        name = reference[1:]
        value = self._interpolation.lookup(name)
        if value is None:
            self._emit(reference)
        elif self._input.is_expanding(name):
            message = f'skipping recursive expansion of variable "{name}"'
            self._interpolation.complain("warning", message)
            self._emit(reference)
        else:
            self._input.expand(name, value)
