"""PostgreSQL's advanced regular expressions in the syntax that Python and Java share.

Sets of characters become ranges of code points, and letters that match in either case sets of two,
so that neither engine's own classes and flags come in.  PostgreSQL's regc_lex.c and regcomp.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from replctl.adt import case_mapping
from replctl.adt.character_class import ranges
from replctl.errors import FeatureNotSupported, InvalidRegularExpression

_LAST = 0x10FFFF
_MAX_REPEAT = 255  # DUPMAX in regex.h
_CHARACTER_ESCAPES = {"a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASS_ESCAPES = {"d": "digit", "s": "space", "w": "word"}
_SHARED_SPECIAL = set("\\^$.|?*+()[]{}-&~#")

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A translated expression.

    Attributes:
        text: what Python's re takes with DOTALL; for Java, `\\Z` has to be `\\z`.
        groups: how many groups capture.
        has_alternatives: it has a |, which PostgreSQL decides by length and others by order.
        greediness: of all quantifiers that have a choice; None if there are none.
        looks_ahead: it depends on what is behind the match, otherwise than by a `$` at its end.
        ends_at_end: its last part is `$`.
        repeats_group: a group has a quantifier, which makes Java's engine recurse.
    """

    text: str
    groups: int
    has_alternatives: bool
    greediness: Literal["greedy", "lazy", "mixed"] | None
    looks_ahead: bool
    ends_at_end: bool
    repeats_group: bool


def invalid(reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"invalid regular expression: {reason}")


@lru_cache(500)
def translate(pattern: str, *, ignore_case: bool = False, ascii_only: bool = False) -> Pattern:
    """An advanced regular expression.

    Raises:
        InvalidRegularExpression: it is none.
        FeatureNotSupported: it is, but has no translation.
    """
    if pattern.startswith("***="):
        return _Parser(pattern[4:], ignore_case, ascii_only).literal()
    if pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise invalid("quantifier operand invalid")
    if pattern.startswith("(?") and pattern[2:3].isalpha():
        options, _, pattern = pattern[2:].partition(")")
        for option in options:
            if option in "ic":
                ignore_case = option == "i"
            elif option == "q" and options == "q":
                return _Parser(pattern, ignore_case, ascii_only).literal()
            elif option not in "ste":
                if option not in "bmnpqwx":
                    raise invalid("invalid embedded option")
                raise FeatureNotSupported(f"regular expression option {option} is not supported")
    return _Parser(pattern, ignore_case, ascii_only).parse()


def word_ranges() -> Ranges:
    return _merged([*ranges("alnum"), (95, 95)])


class _Parser:
    """From left to right; the result is text that grows."""

    def __init__(self, pattern: str, ignore_case: bool, ascii_only: bool) -> None:
        self._pattern, self._i = pattern, 0
        self._ignore_case, self._ascii_only = ignore_case, ascii_only
        self._groups = 0
        self._depth = 0
        self._look_depth = 0
        self._has_alternatives = False
        self._kinds: set[str] = set()
        self._looks_ahead = False
        self._ends: list[int] = []
        self._repeats_group = False

    def literal(self) -> Pattern:
        text = "".join(self._character(ord(char)) for char in self._pattern)
        return Pattern(text, 0, False, None, False, False, False)

    def parse(self) -> Pattern:
        text = self._alternatives()
        if self._i < len(self._pattern):
            raise invalid("parentheses () not balanced")
        ends_at_end = self._ends == [len(self._pattern)] and not self._has_alternatives
        greediness = (
            None if not self._kinds else "mixed" if len(self._kinds) > 1 else self._kinds.pop()
        )
        return Pattern(
            text,
            self._groups,
            self._has_alternatives,
            greediness,  # type: ignore[arg-type]
            self._looks_ahead or bool(self._ends and not ends_at_end),
            ends_at_end,
            self._repeats_group,
        )

    def _alternatives(self) -> str:
        branches = [self._branch()]
        while self._peek() == "|":
            self._i += 1
            self._has_alternatives = True
            branches.append(self._branch())
        return "|".join(branches)

    def _branch(self) -> str:
        parts = []
        while self._i < len(self._pattern) and self._peek() not in "|)":
            parts.append(self._piece())
        if self._peek() == ")" and self._depth == 0:
            raise invalid("parentheses () not balanced")
        return "".join(parts)

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._i : self._i + length]

    def _piece(self) -> str:
        atom, can_repeat, is_group = self._atom()
        quantifier = self._quantifier()
        if not quantifier:
            return atom
        if not can_repeat:
            raise invalid("quantifier operand invalid")
        self._repeats_group |= is_group
        if self._quantifier():
            raise invalid("quantifier operand invalid")
        return atom + quantifier

    def _quantifier(self) -> str:
        char = self._peek()
        if char and char in "*+?":
            self._i += 1
            text, has_choice = char, True
        elif char == "{" and self._pattern[self._i + 1 : self._i + 2].isdigit():
            text, has_choice = self._bound()
        else:
            return ""
        if self._peek() == "?":
            self._i += 1
            if has_choice:
                self._kinds.add("lazy")
            return text + "?"
        if has_choice:
            self._kinds.add("greedy")
        return text

    def _bound(self) -> tuple[str, bool]:
        end = self._pattern.find("}", self._i)
        if end < 0:
            raise invalid("braces {} not balanced")
        low, comma, high = self._pattern[self._i + 1 : end].partition(",")
        if not low.isdigit() or (high and not high.isdigit()):
            raise invalid("invalid repetition count(s)")
        if int(low) > _MAX_REPEAT or (high and not int(low) <= int(high) <= _MAX_REPEAT):
            raise invalid("invalid repetition count(s)")
        self._i = end + 1
        return self._pattern[end - len(f"{low}{comma}{high}") - 1 : end + 1], bool(
            comma
        ) and low != high

    def _atom(self) -> tuple[str, bool, bool]:
        """An atom, whether a quantifier may follow, and whether it is a group."""
        char = self._peek()
        self._i += 1
        match char:
            case "(":
                return self._group()
            case "[":
                return self._bracket(), True, False
            case ".":
                return ".", True, False
            case "^":
                return r"\A", False, False
            case "$":
                self._ends.append(self._i)
                return r"\Z", False, False
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise invalid("quantifier operand invalid")
            case "{" if self._peek().isdigit():
                raise invalid("quantifier operand invalid")
        return self._character(ord(char)), True, False

    def _group(self) -> tuple[str, bool, bool]:
        opening, can_repeat = "(", True
        for start in ("?<=", "?<!", "?:", "?=", "?!"):
            if self._peek(len(start)) == start:
                self._i += len(start)
                opening, can_repeat = "(" + start, start == "?:"
                break
        else:
            if self._peek() == "?":
                raise invalid("quantifier operand invalid")
            if self._look_depth:
                opening = "(?:"  # groups inside constraints do not capture
            else:
                self._groups += 1
        if not can_repeat:
            self._looks_ahead = True
            self._look_depth += 1
            if opening in ("(?<=", "(?<!"):
                raise FeatureNotSupported("lookbehind in regular expressions is not supported")
        self._depth += 1
        inner = self._alternatives()
        if self._peek() != ")":
            raise invalid("parentheses () not balanced")
        self._i += 1
        self._depth -= 1
        self._look_depth -= not can_repeat
        return f"{opening}{inner})", can_repeat, True

    def _escape(self) -> tuple[str, bool, bool]:
        if self._i >= len(self._pattern):
            raise invalid("invalid escape \\ sequence")
        char = self._peek()
        if char.lower() in _CLASS_ESCAPES:
            self._i += 1
            members = _named(_CLASS_ESCAPES[char.lower()], self._ascii_only)
            return _set(_complement(members) if char.isupper() else members), True, False
        word = _set(_named("word", self._ascii_only))
        start, end = f"(?<!{word})(?={word})", f"(?<={word})(?!{word})"
        constraints = {"A": r"\A", "m": start, "M": end, "y": f"(?:{start}|{end})",
                       "Y": f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"}  # fmt: skip
        if char == "Z":
            self._i += 1
            self._ends.append(self._i)
            return r"\Z", False, False
        if char in constraints:
            self._i += 1
            self._looks_ahead |= char != "A"
            return constraints[char], False, False
        if char in "123456789":
            raise FeatureNotSupported("back references in regular expressions are not supported")
        return self._character(self._escaped_code()), True, False

    def _escaped_code(self) -> int:
        """The code point that an escape stands for."""
        char = self._peek()
        self._i += 1
        if char in _CHARACTER_ESCAPES:
            return _CHARACTER_ESCAPES[char]
        lengths = {"u": 4, "U": 8}
        if char in lengths or char == "x":
            digits = ""
            most = lengths.get(char, 255)
            while len(digits) < most and self._peek() and self._peek() in "0123456789abcdefABCDEF":
                digits += self._peek()
                self._i += 1
            if not digits or (char != "x" and len(digits) < most) or int(digits, 16) > _LAST:
                raise invalid("invalid escape \\ sequence")
            return int(digits, 16)
        if char == "0":
            digits = "0"
            while len(digits) < 3 and self._peek() and self._peek() in "01234567":
                digits += self._peek()
                self._i += 1
            return int(digits, 8)
        if char == "c" and self._peek():
            self._i += 1
            return ord(self._pattern[self._i - 1]) & 31
        if char.isascii() and char.isalnum():
            raise invalid("invalid escape \\ sequence")
        return ord(char)

    def _bracket(self) -> str:
        negated = self._peek() == "^"
        self._i += negated
        if self._peek(6) in ("[:<:]]", "[:>:]]") and not negated:
            raise FeatureNotSupported("[[:<:]] in regular expressions is not supported")
        items: list[tuple[int, int]] = []
        is_first = True
        while is_first or self._peek() != "]":
            if self._i >= len(self._pattern):
                raise invalid("brackets [] not balanced")
            items += self._bracket_item()
            is_first = False
        self._i += 1
        members = _merged(
            _both_cases(tuple(items), self._ascii_only) if self._ignore_case else items
        )
        return _set(_complement(members) if negated else members)

    def _bracket_item(self) -> list[tuple[int, int]]:
        if self._peek(2) in ("[.", "[="):
            raise FeatureNotSupported("collating elements in regular expressions are not supported")
        if self._peek(2) == "[:":
            end = self._pattern.find(":]", self._i)
            if end < 0:
                raise invalid("brackets [] not balanced")
            name = self._pattern[self._i + 2 : end]
            self._i = end + 2
            if self._ignore_case and name in ("upper", "lower"):
                name = "alpha"
            try:
                found = list(_named(name, self._ascii_only))
            except KeyError:
                raise invalid("invalid character class") from None
            return self._no_range(found)
        if self._peek() == "\\":
            escaped = self._pattern[self._i + 1 : self._i + 2]
            if escaped and escaped.lower() in _CLASS_ESCAPES:
                self._i += 2
                members = _named(_CLASS_ESCAPES[escaped.lower()], self._ascii_only)
                return self._no_range(list(_complement(members) if escaped.isupper() else members))
        low = self._bracket_character()
        if self._peek() != "-" or self._pattern[self._i + 1 : self._i + 2] in ("]", ""):
            return [(low, low)]
        self._i += 1
        if self._peek(2) in ("[:", "[.", "[="):
            raise invalid("invalid character range")
        high = self._bracket_character()
        if low > high:
            raise invalid("invalid character range")
        return [(low, high)]

    def _no_range(self, items: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if self._peek() == "-" and self._pattern[self._i + 1 : self._i + 2] != "]":
            raise invalid("invalid character range")
        return items

    def _bracket_character(self) -> int:
        char = self._peek()
        if not char:
            raise invalid("brackets [] not balanced")
        self._i += 1
        if char == "\\":
            if not self._peek():
                raise invalid("invalid escape \\ sequence")
            if self._peek() in "AmMyYZ123456789" or self._peek().lower() in _CLASS_ESCAPES:
                raise invalid("invalid escape \\ sequence")
            return self._escaped_code()
        return ord(char)

    def _character(self, code: int) -> str:
        if self._ignore_case:
            both = _both_cases(((code, code),), self._ascii_only)
            if len(both) > 1:
                return _set(_merged(list(both)))
        char = chr(code)
        return "\\" + char if char in _SHARED_SPECIAL else char


def _named(name: str, ascii_only: bool) -> Ranges:
    members = word_ranges() if name == "word" else ranges(name)
    if not ascii_only:
        return members
    return tuple((low, min(high, 127)) for low, high in members if low <= 127)


def _both_cases(items: Ranges, ascii_only: bool) -> Ranges:
    found = list(items)
    for low, high in items:
        if high - low > 5000:
            continue  # such a set is a class, which has both cases already
        for code in range(low, high + 1):
            for function in (case_mapping.lower, case_mapping.upper):
                other = ord(function(chr(code), ascii_only=ascii_only))
                if other != code:
                    found.append((other, other))
    return tuple(found)


def _merged(items: list[tuple[int, int]] | Ranges) -> Ranges:
    result: list[tuple[int, int]] = []
    for low, high in sorted(items):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def _complement(items: Ranges) -> Ranges:
    result, next_low = [], 0
    for low, high in _merged(items):
        if low > next_low:
            result.append((next_low, low - 1))
        next_low = high + 1
    if next_low <= _LAST:
        result.append((next_low, _LAST))
    return tuple(result)


@lru_cache(200)
def _set(items: Ranges) -> str:
    """Ranges as a bracket expression; few stay readable."""
    if not items:
        return r"(?!)"
    low_part = items[0][0] == 0 and items[-1][1] == _LAST
    shown, sign = (_complement(items), "^") if low_part else (items, "")
    if not shown:
        return r"[\s\S]"
    return f"[{sign}{''.join(_shown(low, high) for low, high in shown)}]"


def _shown(low: int, high: int) -> str:
    # A surrogate alone is no character; Java would join it with its neighbour.
    pieces = [(low, high)]
    if low <= 0xDFFF and high >= 0xD800:
        pieces = [(low, 0xD7FF), (0xE000, high)]
    return "".join(
        _one(first) if first == last else f"{_one(first)}-{_one(last)}"
        for first, last in pieces
        if first <= last
    )


def _one(code: int) -> str:
    char = chr(code)
    if code < 128 and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 256 else char
