"""Replace `:name`, `:'name'`, `:"name"` and `:{?name}` by the value of a variable.

With x = `it's`, `:x` becomes `it's`, `:'x'` becomes `'it''s'`, `:"x"` becomes `"it's"`, and `:{?x}`
becomes `TRUE`.  In a statement, the scanner then reads the value of `:x` like typed text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from replctl.psql.variables import Variables

#: Letters, digits and _. Characters beyond ASCII always count as letters, as their bytes do in
#: PostgreSQL.  The classes are negated, because `re` compiles large classes slowly.
NAME = r"[^\x00-/:-@\[-^`{-\x7f]+"

#: A part of the scanners' patterns: a reference to a variable.  Each form is a named group.
REFERENCE = rf"""
      (?P<variable> : {NAME})
    | (?P<literal> : ' {NAME} ')
    | (?P<identifier> : " {NAME} ")
    | (?P<is_set> : \{{ \? {NAME} \}})
"""


class Interpolation:
    """Replaces references to variables, and reports problems.

    Args:
        complain: called with "error" or "warning" and a message if psql reports a problem and
            continues.

    Attributes:
        is_active: False in a branch of `\\if` that does not run.  There, no variable is replaced,
            and backticks are not executed.
    """

    def __init__(self, variables: Variables, complain: Callable[[str, str], None]) -> None:
        self.variables = variables
        self.complain = complain
        self.is_active = True

    def lookup(self, name: str) -> str | None:
        """Return the value of a variable; None if it is not set, or if substitution is inactive."""
        return self.variables.get(name) if self.is_active else None

    def substitute(self, kind: str, reference: str) -> str:
        """Return the replacement of a reference, which is one of the forms in `REFERENCE`.  If
        there is no such variable, return the reference itself.
        """
        if kind == "is_set":
            return "FALSE" if self.lookup(reference[3:-1]) is None else "TRUE"
        value = self.lookup(reference[1:] if kind == "variable" else reference[2:-1])
        if value is None:
            return reference
        if kind == "literal":
            return quote_literal(value)
        return quote_identifier(value) if kind == "identifier" else value


class _Source:
    def __init__(self, text: str, variable: str | None = None) -> None:
        self.text = text
        self.variable = variable
        self.pos = 0


class Input:
    """A line, and a stack of values of variables, which are read in place of their names.

    No token extends from one of these texts into another.
    """

    def __init__(self, line: str) -> None:
        self._sources = [_Source(line)]

    def current(self) -> _Source | None:
        """Return the text to read next with its position; None at the end of the line."""
        while self._sources[-1].pos == len(self._sources[-1].text):
            if len(self._sources) == 1:
                return None
            self._sources.pop()
        return self._sources[-1]

    def tokens(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Yield matches of `pattern` up to the end of the line.  The pattern must match at any
        position.
        """
        while (source := self.current()) is not None:
            token = pattern.match(source.text, source.pos)
            assert token is not None, source.text[source.pos :]
            source.pos = token.end()
            yield token

    def put_back(self, token: re.Match[str]) -> None:
        """Read the token again, with another pattern."""
        self._sources[-1].pos = token.start()

    def is_expanding(self, variable: str) -> bool:
        """Return whether the text being read belongs, at any depth, to the value of `variable`."""
        return any(source.variable == variable for source in self._sources)

    def expand(self, variable: str, value: str) -> None:
        """Read `value` next, then continue at the current position."""
        self._sources.append(_Source(value, variable))


def quote_literal(text: str) -> str:
    """Quote a string: `it's` -> `'it''s'`; a string with a backslash becomes ` E'a\\\\b'`, with a
    blank that separates it from the text before it (libpq)."""
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f" E{quoted}" if "\\" in text else quoted


def quote_identifier(name: str) -> str:
    """Quote an identifier, even if it needs no quotes: `a"b` -> `"a""b"`."""
    return '"' + name.replace('"', '""') + '"'


def quote_shell(text: str) -> str:
    """Quote a text for a shell: `it's` -> `'it'"'"'s'`; a text without special characters is
    unchanged.
    """
    if re.fullmatch(r"[-A-Za-z0-9_./:]+", text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
