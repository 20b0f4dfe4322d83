"""The tokens of PostgreSQL's regular expressions: advanced (ARE), extended (ERE), basic (BRE) and
literal ones (PostgreSQL's regc_lex.c; documentation 9.7.3).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import Any, NamedTuple

from replctl.adt.character_class import members
from replctl.errors import InvalidRegularExpression
from replctl.record import dataclass

_CHARACTER_ESCAPES = {"a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASS_ESCAPES = {"d": "digit", "s": "space", "w": "word"}
_LARGEST_CODE = 0x7FFFFFFE  # CHR_MAX in regcustom.h


class Kind(Enum):
    """The kind of a token; the comments describe the token's value."""

    START = auto()  # before the first token
    END = auto()
    CHARACTER = auto()  # the code point
    SPECIAL = auto()  # . | ^ $ and in brackets ] -
    OPEN = auto()  # True: a capturing parenthesis
    CLOSE = auto()
    LOOK = auto()  # (ahead, negative)
    QUANTIFIER = auto()  # (least, most or None, is greedy)
    BRACKET = auto()  # True: complemented
    CLASS = auto()  # the name of a class (\w)
    NOT_CLASS = auto()  # \W
    CONSTRAINT = auto()  # \A \Z \m \M \y \Y, as that letter
    BACK_REFERENCE = auto()  # the number
    BOUND = auto()  # { before a bound
    DIGIT = auto()
    COMMA = auto()
    BOUND_END = auto()  # True: is greedy
    NAMED = auto()  # [. [= [: as . = :
    NAMED_END = auto()


class Token(NamedTuple):
    kind: Kind
    value: Any = None


class Context(Enum):
    """The lexer's context in an expression."""

    EXPRESSION = auto()
    BOUND = auto()
    BRACKET = auto()
    NAME = auto()  # after [. [= [:


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an expression.

    Attributes:
        syntax: advanced, extended, basic or literal.
        newline_stops: neither `.` nor a complemented bracket matches a newline.
        newline_anchors: `^` and `$` also match at newlines.
    """

    syntax: str = "advanced"
    ignore_case: bool = False
    expanded: bool = False
    newline_stops: bool = False
    newline_anchors: bool = False

    def with_letter(self, letter: str) -> Options | None:
        """Return the options after adding a letter of documentation table 9.24; None if it is
        invalid.
        """
        match letter:
            case "b" | "e" | "q":
                return replace(self, syntax={"b": "basic", "e": "extended", "q": "literal"}[letter])
            case "c" | "i":
                return replace(self, ignore_case=letter == "i")
            case "m" | "n" | "p" | "s" | "w":
                stops, anchors = letter in "mnp", letter in "mnw"
                return replace(self, newline_stops=stops, newline_anchors=anchors)
            case "t" | "x":
                return replace(self, expanded=letter == "x")
        return None

    def as_literal(self) -> Options:
        """Return the options for a literal, in which white space and newlines are not special."""
        return Options("literal", self.ignore_case)


def invalid(reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"invalid regular expression: {reason}")


def too_complex() -> InvalidRegularExpression:
    return invalid("regular expression is too complex")


class Lexer:
    """Returns tokens one at a time, and reads each token only after the previous one is consumed.

    Attributes:
        options: the given options, changed by the beginning of the expression.
        token: the current token.
        groups: the number of capturing parentheses so far; the parser counts them.
    """

    def __init__(self, pattern: str, options: Options, *, ascii_only: bool) -> None:
        self._pattern, self._i = pattern, 0
        self._ascii_only = ascii_only
        self._context = Context.EXPRESSION
        self.options = options
        self.groups = 0
        self.token = Token(Kind.START)
        if options.syntax != "literal":
            self._read_prefix()
        self.advance()

    def advance(self) -> Token:
        """Advance to the next token, and return the previous one."""
        left = self.token
        self.token = self._next()
        return left

    def name(self) -> str:
        """Return the name between [: and :], and advance to the token after it.

        `[[:alpha:]]` is alpha
        """
        sign = str(self.token.value)
        chars: list[str] = []
        while self._peek(2) != sign + "]":
            if self._i >= len(self._pattern):
                raise invalid("brackets [] not balanced")
            chars.append(self._take())
        self._i += 2
        self._context = Context.BRACKET
        self.token = Token(Kind.NAMED_END)
        self.advance()
        return "".join(chars)

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._i : self._i + length]

    def _take(self) -> str:
        char = self._pattern[self._i]
        self._i += 1
        return char

    def _takes(self, text: str) -> bool:
        """Skip `text` if it comes next; return whether it did."""
        found = self._pattern.startswith(text, self._i)
        self._i += len(text) * found
        return found

    def _read_prefix(self) -> None:
        if self._peek(3) == "***" and len(self._pattern) > 3:
            match self._pattern[3]:
                case "?":
                    raise invalid("invalid regexp (reg version 0.8)")
                case "=":
                    self.options = self.options.as_literal()
                case ":":
                    self.options = replace(self.options, syntax="advanced")
                case _:
                    raise invalid("quantifier operand invalid")
            self._i = 4
        if self.options.syntax == "advanced" and self._peek(2) == "(?" and self._is_letter(2):
            self._read_options()

    def _is_letter(self, offset: int) -> bool:
        letters = members("alpha", ascii_only=self._ascii_only)
        return self._peek(offset + 1)[offset:] in letters

    def _read_options(self) -> None:
        """Read options such as `(?ix)` at the beginning."""
        self._i += 2
        options = self.options
        while self._is_letter(0):
            changed = options.with_letter(self._take())
            if changed is None:
                raise invalid("invalid embedded option")
            options = changed
        if not self._takes(")"):
            raise invalid("invalid embedded option")
        self.options = options.as_literal() if options.syntax == "literal" else options

    def _next(self) -> Token:
        if self._context is Context.BRACKET:
            return self._in_bracket()
        self._skip_layout()
        while self._is_comment():
            end = self._pattern.find(")", self._i)
            self._i = len(self._pattern) if end < 0 else end + 1
            self._skip_layout()
        if self._i >= len(self._pattern):
            if self._context is Context.BOUND:
                raise invalid("braces {} not balanced")
            return Token(Kind.END)
        if self._context is Context.BOUND:
            return self._in_bound()
        match self.options.syntax:
            case "literal":
                return Token(Kind.CHARACTER, ord(self._take()))
            case "basic":
                return self._basic()
        return self._extended()

    def _is_comment(self) -> bool:
        is_advanced = self.options.syntax == "advanced"
        return is_advanced and self._context is Context.EXPRESSION and self._takes("(?#")

    def _skip_layout(self) -> None:
        """Skip white space and comments of an expanded expression."""
        if not self.options.expanded:
            return
        spaces = members("space", ascii_only=self._ascii_only)
        while self._i < len(self._pattern):
            if self._peek() == "#":
                end = self._pattern.find("\n", self._i)
                self._i = len(self._pattern) if end < 0 else end
            elif self._peek() in spaces:
                self._i += 1
            else:
                return

    def _in_bound(self) -> Token:
        char = self._take()
        if char in "0123456789":
            return Token(Kind.DIGIT, int(char))
        if char == ",":
            return Token(Kind.COMMA)
        is_basic = self.options.syntax == "basic"
        if char == "}" and not is_basic:
            self._context = Context.EXPRESSION
            return Token(Kind.BOUND_END, self._is_greedy())
        if char == "\\" and is_basic and self._takes("}"):
            self._context = Context.EXPRESSION
            return Token(Kind.BOUND_END, True)
        raise invalid("invalid repetition count(s)")

    def _is_greedy(self) -> bool:
        """Return whether the quantifier is greedy: no `?` follows it."""
        return not (self.options.syntax == "advanced" and self._takes("?"))

    def _extended(self) -> Token:
        char = self._take()
        match char:
            case "|" | "." | "^" | "$":
                return Token(Kind.SPECIAL, char)
            case "*":
                return Token(Kind.QUANTIFIER, (0, None, self._is_greedy()))
            case "+":
                return Token(Kind.QUANTIFIER, (1, None, self._is_greedy()))
            case "?":
                return Token(Kind.QUANTIFIER, (0, 1, self._is_greedy()))
            case "{":
                self._skip_layout()
                if not self._peek() or self._peek() not in "0123456789":
                    return Token(Kind.CHARACTER, ord(char))
                self._context = Context.BOUND
                return Token(Kind.BOUND)
            case "(":
                return self._parenthesis()
            case ")":
                return Token(Kind.CLOSE)
            case "[":
                return self._open_bracket()
            case "\\":
                if self._i >= len(self._pattern):
                    raise invalid("invalid escape \\ sequence")
                if self.options.syntax == "advanced":
                    return self._escape()
                return Token(Kind.CHARACTER, ord(self._take()))
        return Token(Kind.CHARACTER, ord(char))

    def _parenthesis(self) -> Token:
        if self.options.syntax != "advanced" or not self._takes("?"):
            return Token(Kind.OPEN, True)
        if self._takes(":"):
            return Token(Kind.OPEN, False)
        for sign, ahead in (("<", False), ("", True)):
            for test, negative in (("=", False), ("!", True)):
                if self._takes(sign + test):
                    return Token(Kind.LOOK, (ahead, negative))
        raise invalid("quantifier operand invalid")

    def _open_bracket(self) -> Token:
        for text, letter in (("[:<:]]", "m"), ("[:>:]]", "M")):
            if self._takes(text):
                return Token(Kind.CONSTRAINT, letter)
        self._context = Context.BRACKET
        return Token(Kind.BRACKET, self._takes("^"))

    def _basic(self) -> Token:
        char = self._take()
        previous = self.token
        is_first = previous.kind in (Kind.START, Kind.OPEN)
        match char:
            case "*":
                if not (is_first or previous == Token(Kind.SPECIAL, "^")):
                    return Token(Kind.QUANTIFIER, (0, None, True))
            case "[":
                return self._open_bracket()
            case ".":
                return Token(Kind.SPECIAL, char)
            case "^":
                if is_first:
                    return Token(Kind.SPECIAL, char)
            case "$":
                self._skip_layout()
                if self._peek(2) in ("", "\\)"):
                    return Token(Kind.SPECIAL, char)
            case "\\":
                return self._basic_escape()
        return Token(Kind.CHARACTER, ord(char))

    def _basic_escape(self) -> Token:
        if self._i >= len(self._pattern):
            raise invalid("invalid escape \\ sequence")
        char = self._take()
        match char:
            case "{":
                self._context = Context.BOUND
                return Token(Kind.BOUND)
            case "(":
                return Token(Kind.OPEN, True)
            case ")":
                return Token(Kind.CLOSE)
            case "<" | ">":
                return Token(Kind.CONSTRAINT, "m" if char == "<" else "M")
        if char in "123456789":
            return Token(Kind.BACK_REFERENCE, int(char))
        return Token(Kind.CHARACTER, ord(char))

    def _in_bracket(self) -> Token:
        if self._i >= len(self._pattern):
            raise invalid("brackets [] not balanced")
        char = self._take()
        is_first = self.token.kind is Kind.BRACKET
        match char:
            case "]" if not is_first:
                self._context = Context.EXPRESSION
                return Token(Kind.SPECIAL, char)
            case "\\" if self.options.syntax == "advanced":
                if self._i >= len(self._pattern):
                    raise invalid("invalid escape \\ sequence")
                token = self._escape()
                if token.kind not in (Kind.CHARACTER, Kind.CLASS, Kind.NOT_CLASS):
                    raise invalid("invalid escape \\ sequence")
                return token
            case "-" if not is_first and self._peek() != "]":
                return Token(Kind.SPECIAL, char)
            case "[":
                if self._i >= len(self._pattern):
                    raise invalid("brackets [] not balanced")
                if self._peek() in ".=:":
                    self._context = Context.NAME
                    return Token(Kind.NAMED, self._take())
        return Token(Kind.CHARACTER, ord(char))

    def _escape(self) -> Token:
        """Return the token after a backslash in an advanced expression."""
        char = self._take()
        if not (char.isascii() and char.isalnum()):
            return Token(Kind.CHARACTER, ord(char))
        if char in _CHARACTER_ESCAPES:
            return Token(Kind.CHARACTER, _CHARACTER_ESCAPES[char])
        if char.lower() in _CLASS_ESCAPES:
            kind = Kind.NOT_CLASS if char.isupper() else Kind.CLASS
            return Token(kind, _CLASS_ESCAPES[char.lower()])
        match char:
            case "A" | "Z" | "m" | "M" | "y" | "Y":
                return Token(Kind.CONSTRAINT, char)
            case "c":
                if self._i >= len(self._pattern):
                    raise invalid("invalid escape \\ sequence")
                return Token(Kind.CHARACTER, ord(self._take()) & 31)
            case "u" | "U" | "x":
                least, most = {"u": (4, 4), "U": (8, 8), "x": (1, 255)}[char]
                code = self._digits(16, least, most)
                if code > _LARGEST_CODE:
                    raise invalid("invalid escape \\ sequence")
                return Token(Kind.CHARACTER, code)
        if char.isdigit():
            return self._number(char)
        raise invalid("invalid escape \\ sequence")

    def _number(self, first: str) -> Token:
        """Return a back reference, or the character with an octal number."""
        start = self._i - 1
        self._i = start
        if first != "0":
            number = self._digits(10, 1, 255)
            if self._i == start + 1 or 0 < number <= self.groups:
                return Token(Kind.BACK_REFERENCE, number)
            self._i = start
        code = self._digits(8, 1, 3)
        if code > 0xFF:
            self._i -= 1
            code >>= 3
        return Token(Kind.CHARACTER, code)

    def _digits(self, base: int, least: int, most: int) -> int:
        allowed = "0123456789abcdefABCDEF"[: base if base <= 10 else None]
        start = self._i
        while self._i < len(self._pattern) and self._i - start < most and self._peek() in allowed:
            self._i += 1
        if self._i - start < least:
            raise invalid("invalid escape \\ sequence")
        return int(self._pattern[start : self._i], base) & 0xFFFFFFFF
