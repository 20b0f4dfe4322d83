"""tsquery: a value is its canonical text (PostgreSQL's tsquery.c)."""

from __future__ import annotations

import re
from typing import TypeAlias

from replctl.errors import (
    InvalidParameterValue,
    ProgramLimitExceeded,
    SqlSyntaxError,
)
from replctl.record import dataclass
from replctl.types.integer import decimal_int
from replctl.types.lexeme import BLANKS, MAX_WORD_LENGTH, quote, read_lexeme, syntax_error
from replctl.types.text_form import text_form

MAX_DISTANCE = 16384  # MAXENTRYPOS in ts_type.h

_PRIORITIES = {"|": 1, "&": 2, "<": 3, "!": 4}
_PHRASE = re.compile(r"<(?:-|\d+)>(?=.)", re.ASCII | re.DOTALL)  # not at the end of the text
_DISTANCE = re.compile(r"<(\d+)", re.ASCII)
_MODIFIERS = re.compile(r":([a-dA-D*]*)")


@dataclass(frozen=True, slots=True)
class Operand:
    """A word in the form in which it is printed: `'word':*AB`."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: `left` is None for `!`; the phrase operator `<` has a distance."""

    operator: str
    left: Query | None
    right: Query
    distance: int = 0


Query: TypeAlias = "Operand | Operation"


def tsqueryin(text: str) -> str:
    """Return the canonical text: `(a&b:*a)|!c <-> d` -> `'a' & 'b':*A | !'c' <-> 'd'`.

    Raises:
        SqlSyntaxError: `text` is not a query.
        InvalidParameterValue: the distance of a phrase operator is out of range.
        ProgramLimitExceeded: a word is too long.
    """
    if not text.strip(BLANKS):
        return ""
    return _infix(_Parser(text).parse(), 0, False)


class _Parser:
    """Parses a query by operator precedence, from left to right, so that errors occur in the
    server's order.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0  # the number of open parentheses

    def parse(self) -> Query:
        """Return the whole query."""
        query = self._expression(0)
        if self._position < len(self._text):
            raise self._error()
        return query

    def _expression(self, least_priority: int) -> Query:
        left = self._operand()
        while operator := self._peek_operator():
            priority = _PRIORITIES[operator[0]]
            if priority <= least_priority:
                break
            self._position += len(operator)
            distance = decimal_int(operator[1:-1].replace("-", "1")) if operator[0] == "<" else 0
            right = self._expression(priority)
            left = Operation(operator[0], left, right, distance)
        return left

    def _operand(self) -> Query:
        char = self._next_char()
        if char == "!":
            self._position += 1
            return Operation("!", None, self._expression(_PRIORITIES["!"]))
        if char == "(":
            self._position += 1
            self._depth += 1
            query = self._expression(0)
            self._position += 1  # this is the right parenthesis: an operator would have been read
            self._depth -= 1
            return query
        if char == ":":
            raise self._error()
        lexeme = read_lexeme(self._text, self._position, is_query=True)
        if lexeme is None:
            raise SqlSyntaxError(f'no operand in tsquery: "{self._text}"')
        self._position = lexeme.end
        modifiers = self._modifiers()
        if len(lexeme.word.encode()) >= MAX_WORD_LENGTH:
            raise ProgramLimitExceeded(f'word is too long in tsquery: "{self._text}"')
        return Operand(quote(lexeme.word) + modifiers)

    def _modifiers(self) -> str:
        """Read modifiers, and return them sorted: `:b*A` becomes `:*AB`."""
        match = _MODIFIERS.match(self._text, self._position)
        if match is None:
            return ""
        self._position = match.end()
        shown = "".join(letter for letter in "*ABCD" if letter in match[1].upper())
        return f":{shown}" if shown else ""

    def _peek_operator(self) -> str:
        """Return the next operator; an empty text at the end and before a right parenthesis.

        Raises:
            SqlSyntaxError: something else follows.
            InvalidParameterValue: the distance of a phrase operator is out of range.
        """
        char = self._next_char()
        if char == ")" and self._depth:
            return ""
        if char == "" and not self._depth:
            return ""
        if char and char in "&|":
            return char
        distance = _DISTANCE.match(self._text, self._position)
        if distance is not None and decimal_int(distance[1]) > MAX_DISTANCE:
            raise InvalidParameterValue(
                "distance in phrase operator must be an integer value between zero and "
                f"{MAX_DISTANCE} inclusive"
            )
        match = _PHRASE.match(self._text, self._position)
        if match is None:
            raise self._error()
        return match[0]

    def _next_char(self) -> str:
        """Return the next character after blanks."""
        while self._text[self._position : self._position + 1] in tuple(BLANKS):
            self._position += 1
        return self._text[self._position : self._position + 1]

    def _error(self) -> SqlSyntaxError:
        return syntax_error(self._text, "tsquery")


def _infix(query: Query, outer_priority: int, is_right_of_phrase: bool) -> str:
    if isinstance(query, Operand):
        return query.text
    priority = _PRIORITIES[query.operator]
    if query.left is None:
        shown = "!" + _infix(query.right, priority, False)
    else:
        is_phrase = query.operator == "<"
        left = _infix(query.left, priority, False)
        right = _infix(query.right, priority, is_phrase)
        distance = "-" if query.distance == 1 else str(query.distance)
        shown = f"{left} {f'<{distance}>' if is_phrase else query.operator} {right}"
        if is_phrase and is_right_of_phrase:
            return f"( {shown} )"
    return f"( {shown} )" if priority < outer_priority else shown


FORMS = {"tsquery": text_form(tsqueryin, str)}
