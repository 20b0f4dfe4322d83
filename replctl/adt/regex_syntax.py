"""Parse PostgreSQL's regular expressions to trees (PostgreSQL's regcomp.c and regc_locale.c)."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import TypeAlias

from replctl.adt import case_mapping
from replctl.adt.character_class import LAST_CODE, Ranges, complement, merged, ranges
from replctl.adt.regex_lexer import Kind, Lexer, Options, Token, invalid, too_complex
from replctl.record import dataclass

_MOST_REPEATS = 255  # DUPMAX in regex.h
#: The maximum depth of groups.  PostgreSQL's depends on the stack: it is about 9000.  A group takes
#: 7 calls at most, so this depth is below Python's limit (recursion_limit).
_MOST_NESTED = 2500
_NEWLINE = ((10, 10),)
_CLASSES = frozenset(
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper xdigit word".split()
)


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    codes: Ranges


@dataclass(frozen=True, slots=True)
class Constraint:
    """A test of a position: the letter of an escape (A Z m M y Y), or ^ or $ for ends of lines."""

    kind: str


@dataclass(frozen=True, slots=True)
class Look:
    """A lookahead or lookbehind."""

    inner: Alternatives
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Group:
    """An expression in parentheses.

    Attributes:
        number: the number of a capturing group; else None.
    """

    inner: Alternatives
    number: int | None


@dataclass(frozen=True, slots=True)
class BackReference:
    """A reference to the match of a group.

    Attributes:
        group: the referenced group.
    """

    group: Group


@dataclass(frozen=True, slots=True)
class Repeat:
    """A quantified atom.

    Attributes:
        most: the maximum; None without a limit.
        is_greedy: None if the quantifier has no preference.
    """

    item: Characters | Group | BackReference
    least: int
    most: int | None
    is_greedy: bool | None


Item: TypeAlias = Characters | Constraint | Look | Group | BackReference | Repeat
Branch: TypeAlias = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A whole expression.

    Attributes:
        groups: the number of capturing groups.
        ignore_case: compare back references without regard to case.
    """

    tree: Alternatives
    groups: int
    ignore_case: bool


ANY = Characters(((0, LAST_CODE),))


def parsed(pattern: str, options: Options, *, ascii_only: bool) -> Expression:
    """Return an expression's tree.

    Args:
        ascii_only: the collation maps only the letters of ASCII.

    Raises:
        InvalidRegularExpression: the pattern is not valid.
    """
    if options.syntax == "literal" and options != options.as_literal():
        raise invalid("invalid argument to regex function")
    try:
        return _Parser(pattern, options, ascii_only).parse()
    except RecursionError:
        raise too_complex() from None


class _Parser:
    """A recursive descent parser with one token of lookahead, so that the first error is
    PostgreSQL's.
    """

    def __init__(self, pattern: str, options: Options, ascii_only: bool) -> None:
        self._lexer = Lexer(pattern, options, ascii_only=ascii_only)
        self._options = self._lexer.options
        self._ascii_only = ascii_only
        self._closed: dict[int, Group] = {}
        self._look_depth = 0

    def parse(self) -> Expression:
        tree = self._alternatives(depth=0)
        return Expression(tree, self._lexer.groups, self._options.ignore_case)

    @property
    def _token(self) -> Token:
        return self._lexer.token

    def _sees(self, sign: str) -> bool:
        return self._token == (Kind.SPECIAL, sign)

    def _alternatives(self, depth: int) -> Alternatives:
        if depth > _MOST_NESTED:
            raise too_complex()
        branches = [self._branch(depth)]
        while self._sees("|"):
            self._lexer.advance()
            branches.append(self._branch(depth))
        if depth and self._token.kind is not Kind.CLOSE:
            raise invalid("parentheses () not balanced")
        return Alternatives(tuple(branches))

    def _branch(self, depth: int) -> Branch:
        items: list[Item] = []
        while not (
            self._sees("|")
            or self._token.kind is Kind.END
            or (depth and self._token.kind is Kind.CLOSE)
        ):
            items.append(self._item(depth))
        return tuple(items)

    def _item(self, depth: int) -> Item:
        kind, value = self._token
        match kind:
            case Kind.CONSTRAINT:
                self._lexer.advance()
                return Constraint(value)
            case Kind.SPECIAL if value in ("^", "$"):
                self._lexer.advance()
                at_lines = self._options.newline_anchors
                return Constraint(value if at_lines else "A" if value == "^" else "Z")
            case Kind.LOOK:
                return self._look(depth)
            case Kind.QUANTIFIER | Kind.BOUND:
                raise invalid("quantifier operand invalid")
        return self._repeated(self._atom(depth))

    def _look(self, depth: int) -> Look:
        ahead, negative = self._lexer.advance().value
        self._look_depth += 1
        inner = self._alternatives(depth + 1)
        self._look_depth -= 1
        self._lexer.advance()
        return Look(inner, ahead, negative)

    def _atom(self, depth: int) -> Characters | Group | BackReference:
        kind, value = self._token
        match kind:
            case Kind.OPEN:
                return self._group(depth, captures=value and not self._look_depth)
            case Kind.BRACKET:
                return self._bracket()
            case Kind.BACK_REFERENCE:
                group = self._closed.get(value) if not self._look_depth else None
                if group is None:
                    raise invalid("invalid backreference number")
                self._lexer.advance()
                return BackReference(group)
            case Kind.CLOSE if self._options.syntax != "extended":
                raise invalid("parentheses () not balanced")
        self._lexer.advance()
        match kind:
            case Kind.CLOSE:
                return self._character(ord(")"))
            case Kind.CLASS:
                return Characters(self._class(value))
            case Kind.NOT_CLASS:
                return Characters(complement(self._class(value)))
            case Kind.SPECIAL:
                return Characters(complement(_NEWLINE)) if self._options.newline_stops else ANY
        assert isinstance(value, int)
        return self._character(value)

    def _group(self, depth: int, *, captures: bool) -> Group:
        self._lexer.groups += captures
        number = self._lexer.groups if captures else None
        self._lexer.advance()
        group = Group(self._alternatives(depth + 1), number)
        self._lexer.advance()
        if number is not None:
            self._closed[number] = group
        return group

    def _repeated(self, atom: Characters | Group | BackReference) -> Item:
        match self._token.kind:
            case Kind.QUANTIFIER:
                least, most, is_greedy = self._lexer.advance().value
                return Repeat(atom, least, most, is_greedy)
            case Kind.BOUND:
                return self._bound(atom)
        return atom

    def _bound(self, atom: Characters | Group | BackReference) -> Repeat:
        self._lexer.advance()
        least = self._count()
        most: int | None = least
        has_choice = self._token.kind is Kind.COMMA
        if has_choice:
            self._lexer.advance()
            most = self._count() if self._token.kind is Kind.DIGIT else None
        if (most is not None and least > most) or self._token.kind is not Kind.BOUND_END:
            raise invalid("invalid repetition count(s)")
        is_greedy = self._lexer.advance().value
        return Repeat(atom, least, most, is_greedy if has_choice else None)

    def _count(self) -> int:
        number = 0
        while self._token.kind is Kind.DIGIT and number < _MOST_REPEATS:
            number = number * 10 + self._lexer.advance().value
        if self._token.kind is Kind.DIGIT or number > _MOST_REPEATS:
            raise invalid("invalid repetition count(s)")
        return number

    def _character(self, code: int) -> Characters:
        return Characters(self._one(code))

    def _one(self, code: int) -> Ranges:
        """Return a character as a range.  If case is ignored, return its lower and upper case, so
        that a titlecase letter does not match itself (allcases).
        """
        if code > LAST_CODE:
            return ()
        if not self._options.ignore_case:
            return ((code, code),)
        both = (case(chr(code), ascii_only=self._ascii_only) for case in _CASES)
        return merged((ord(char), ord(char)) for char in both)

    def _class(self, name: str) -> Ranges:
        if name not in _CLASSES:
            raise invalid("invalid character class")
        if self._options.ignore_case and name in ("upper", "lower"):
            name = "alpha"
        return ranges(name, ascii_only=self._ascii_only)

    def _bracket(self) -> Characters:
        is_complemented = self._lexer.advance().value
        items: list[tuple[int, int]] = []
        while not self._sees("]"):
            items += self._bracket_item()
        self._lexer.advance()
        if not is_complemented:
            return Characters(merged(items))
        if self._options.newline_stops:
            items += _NEWLINE
        return Characters(complement(merged(items)))

    def _bracket_item(self) -> Ranges:
        kind, value = self._token
        match kind:
            case Kind.CLASS:
                self._lexer.advance()
                return self._class(value)
            case Kind.NOT_CLASS:
                self._lexer.advance()
                return complement(self._class(value))
            case Kind.NAMED if value == ":":
                name = self._lexer.name()
                return self._class(name)
            case Kind.NAMED if value == "=":
                return self._one(self._element())
            case Kind.SPECIAL:
                raise invalid("invalid character range")
        is_plain = kind is Kind.CHARACTER
        low = self._end_of_range()
        if not self._sees("-"):
            return self._one(low) if is_plain else self._range(low, low)
        self._lexer.advance()
        high = self._end_of_range()
        if low > high:
            raise invalid("invalid character range")
        return self._range(low, high)

    def _end_of_range(self) -> int:
        kind, value = self._token
        match kind:
            case Kind.CHARACTER:
                self._lexer.advance()
                assert isinstance(value, int)
                return value
            case Kind.SPECIAL if value == "-":
                self._lexer.advance()
                return ord("-")
            case Kind.NAMED if value == ".":
                return self._element()
        raise invalid("invalid character range")

    def _element(self) -> int:
        """Return the character that a collating element names: `[.a.]`, `[.hyphen.]`"""
        name = self._lexer.name()
        if len(name) == 1:
            return ord(name)
        if name not in _ELEMENTS:
            raise invalid("invalid collating element")
        return _ELEMENTS[name]

    def _range(self, low: int, high: int) -> Ranges:
        items = [(low, min(high, LAST_CODE))] if low <= LAST_CODE else []
        if self._options.ignore_case:
            changes = _case_changes(self._ascii_only)
            start, stop = bisect_left(changes, (low, 0)), bisect_left(changes, (high + 1, 0))
            items += [(other, other) for _, other in changes[start:stop]]
        return merged(items)


_CASES = (case_mapping.lower, case_mapping.upper)


@cache
def _case_changes(ascii_only: bool) -> list[tuple[int, int]]:
    """Return pairs of a character and its other case."""
    pairs = (
        case_mapping.translation_pairs(to_lower=to_lower, ascii_only=ascii_only)
        for to_lower in (True, False)
    )
    return sorted(
        (ord(char), ord(other))
        for source, target in pairs
        for char, other in zip(source, target, strict=True)
    )


#: POSIX's names of characters.
_ELEMENTS = {
    name: code
    for names, first in (
        ("NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI", 0),
        ("DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC IS4 IS3 IS2 IS1", 16),
        ("FS GS RS US", 28),
        ("alert backspace tab newline vertical-tab form-feed carriage-return", 7),
        ("space exclamation-mark quotation-mark number-sign dollar-sign percent-sign", 32),
        ("ampersand apostrophe left-parenthesis right-parenthesis asterisk plus-sign", 38),
        ("comma hyphen period slash", 44),
        ("zero one two three four five six seven eight nine", 48),
        ("hyphen-minus full-stop solidus", 45),
        ("colon semicolon less-than-sign equals-sign greater-than-sign question-mark", 58),
        ("commercial-at", 64),
        ("left-square-bracket backslash right-square-bracket circumflex underscore", 91),
        ("reverse-solidus", 92),
        ("circumflex-accent low-line grave-accent", 94),
        ("left-brace vertical-line right-brace tilde DEL", 123),
        ("left-curly-bracket", 123),
        ("right-curly-bracket", 125),
    )
    for code, name in enumerate(names.split(), start=first)
}
