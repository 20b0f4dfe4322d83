"""Build expressions by the operator precedence of gram.y; the LALR grammar defines only the
sequence of operands and operators.

Like PostgreSQL's parser, compare the precedence of an operator that has its operands with that of
the next operator.  Rules for each level of precedence could not express some cases:

    a IS NULL = b    is (a IS NULL) = b
    a = NOT b = c    is a = (NOT (b = c))
    a < b < c        is an error at the second <
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from typing import Literal, NamedTuple, cast

from lark import Token

from replctl.parser import ast
from replctl.parser.syntax_error import MisplacedToken


class Level(IntEnum):
    """The precedence of an operator, from the weakest (table 4.2 of the documentation)."""

    OR = 1
    AND = 2
    NOT = 3
    IS = 4
    COMPARISON = 5
    PATTERN = 6  # BETWEEN IN LIKE ILIKE SIMILAR
    OTHER = 7  # any other operator
    ADDITIVE = 8
    MULTIPLICATIVE = 9
    POWER = 10
    AT = 11
    COLLATE = 12
    SIGN = 13
    CAST = 14


#: Levels at which two operators in a row are an error (%nonassoc in gram.y).
_NOT_ASSOCIATIVE = {Level.IS, Level.COMPARISON, Level.PATTERN}
_NOT_ASSOCIATIVE_TOKENS = {
    **dict.fromkeys(("IS", "ISNULL", "NOTNULL"), Level.IS),
    **dict.fromkeys(
        ("LESS", "GREATER", "EQUAL", "LESS_EQUALS", "GREATER_EQUALS", "NOT_EQUALS"),
        Level.COMPARISON,
    ),
    **dict.fromkeys(("BETWEEN", "IN", "LIKE", "ILIKE", "SIMILAR_LA", "NOT_LA"), Level.PATTERN),
}
_JUNCTIONS: dict[Level, Literal["and", "or"]] = {Level.AND: "and", Level.OR: "or"}


class Prefix(NamedTuple):
    level: Level
    build: Callable[[ast.RawExpr], ast.RawExpr]


class Infix(NamedTuple):
    """An infix operator; `token` is its first token, at which errors point."""

    token: Token
    level: Level
    build: Callable[[ast.RawExpr, ast.RawExpr], ast.RawExpr]


class Postfix(NamedTuple):
    token: Token
    level: Level
    build: Callable[[ast.RawExpr], ast.RawExpr]


class Pattern(NamedTuple):
    """LIKE or a similar operator: an infix operator with an optional ESCAPE."""

    token: Token
    build: Callable[[ast.RawExpr, ast.RawExpr, ast.RawExpr | None], ast.RawExpr]


class Escape(NamedTuple):
    token: Token


class Junction(NamedTuple):
    """AND or OR, with any number of operands."""

    token: Token
    level: Level


Operator = Prefix | Infix | Postfix | Pattern | Escape | Junction


def operation(items: Iterable[ast.RawExpr | Operator]) -> ast.RawExpr:
    """Return the expression for operands and operators in the order of the text.

    Raises:
        MisplacedToken: an operator that is not associative follows one of its level, or ESCAPE
            follows no LIKE.
    """
    stack = _shifted(items)
    while stack.operators:
        stack.reduce_one()
    return stack.operands[0]


def check(items: Iterable[ast.RawExpr | Operator], following: object) -> None:
    """Raise the error that `operation` would raise for an expression that begins like this, if any.

    Args:
        following: the next token or operator, if there is one.
    """
    stack = _shifted(items)
    token = following if isinstance(following, Token) else getattr(following, "token", None)
    level = _NOT_ASSOCIATIVE_TOKENS.get(token.type) if token is not None else None
    if token is not None and level is not None:
        stack.reduce(token, level)


def _shifted(items: Iterable[ast.RawExpr | Operator]) -> _Stack:
    stack = _Stack()
    for item in items:
        match item:
            case Prefix():
                stack.operators.append(item)
            case Infix() | Junction():
                stack.reduce(item.token, item.level)
                stack.operators.append(item)
            case Pattern():
                stack.reduce(item.token, Level.PATTERN)
                stack.operators.append(item)
            case Postfix():
                stack.reduce(item.token, item.level)
                stack.operands.append(item.build(stack.operands.pop()))
            case Escape():
                stack.escape(item.token)
            case _:
                stack.operands.append(item)
    return stack


class _Escaped(NamedTuple):
    """A pattern followed by ESCAPE; the pattern is kept until the escape is complete."""

    operator: Pattern
    pattern: ast.RawExpr


class _Stack:
    """Operators that wait for their right operand, and the operands so far."""

    def __init__(self) -> None:
        self.operands: list[ast.RawExpr] = []
        self.operators: list[Prefix | Infix | Pattern | Junction | _Escaped] = []

    def reduce(self, token: Token, level: Level) -> None:
        """Complete the operators that bind more strongly than the operator of `level` at `token`.

        Raises:
            MisplacedToken: the operator is not associative, and follows one of its level.
        """
        while self.operators:
            last = _level(self.operators[-1])
            if last < level or (last == level and level <= Level.AND):
                return
            if last == level and level in _NOT_ASSOCIATIVE:
                raise MisplacedToken(token)
            self.reduce_one()

    def escape(self, token: Token) -> None:
        """Attach ESCAPE to the innermost pattern; first complete the operators after that."""
        while self.operators and not isinstance(self.operators[-1], Pattern):
            self.reduce_one()
        if not self.operators:
            raise MisplacedToken(token)
        operator = self.operators.pop()
        assert isinstance(operator, Pattern)
        self.operators.append(_Escaped(operator, self.operands.pop()))

    def reduce_one(self) -> None:
        operator = self.operators.pop()
        right = self.operands.pop()
        match operator:
            case Prefix():
                self.operands.append(operator.build(right))
            case Infix():
                self.operands.append(operator.build(self.operands.pop(), right))
            case Pattern():
                self.operands.append(operator.build(self.operands.pop(), right, None))
            case _Escaped():
                pattern = operator.operator
                self.operands.append(pattern.build(self.operands.pop(), operator.pattern, right))
            case Junction():
                self._join(operator, right)

    def _join(self, last: Junction, right: ast.RawExpr) -> None:
        """Join operands: `a AND b AND c` becomes one node, `a AND (b AND c)` two (makeAndExpr in
        gram.y).
        """
        first, args = last, [right]
        while self.operators and _level(self.operators[-1]) == last.level:
            first = cast(Junction, self.operators.pop())
            args.append(self.operands.pop())
        left, name = self.operands.pop(), _JUNCTIONS[last.level]
        args.reverse()
        if isinstance(left, ast.BoolExpr) and left.op == name:
            self.operands.append(replace(left, args=(*left.args, *args)))
        else:
            self.operands.append(
                ast.BoolExpr(name, (left, *args), pos=cast(int, first.token.start_pos))
            )


def _level(operator: Prefix | Infix | Pattern | Junction | _Escaped) -> Level:
    if isinstance(operator, Pattern | _Escaped):
        return Level.PATTERN
    return operator.level
