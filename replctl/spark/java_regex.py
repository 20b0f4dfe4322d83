"""Translate PostgreSQL's regular expressions to Java's syntax, to test for a match.

Character sets become ranges of code points.  If case does not matter, a letter becomes a set of two
letters.  The translation uses none of Java's own classes and flags.
"""

from __future__ import annotations

from functools import lru_cache

from replctl.adt.character_class import LAST_CODE, Ranges, complement, ranges
from replctl.adt.regex_lexer import Options
from replctl.adt.regex_syntax import (
    ANY,
    Alternatives,
    Branch,
    Characters,
    Constraint,
    Group,
    Item,
    Look,
    Repeat,
    parsed,
)
from replctl.errors import FeatureNotSupported, PostgresError

#: Each unbounded repetition multiplies the attempts of Java's engine by the length of the text.
#: Our automata in Python read the text only once.
_MOST_LONG_REPEATS, _SHORT = 3, 10
#: The maximum depth of groups, because the stacks of Spark's threads are small.
_MOST_NESTED = 50
_SPECIAL = frozenset("\\^$.|?*+()[]{}-&~#")


@lru_cache(500)
def java_regex(pattern: str, *, ignore_case: bool, ascii_only: bool) -> str:
    """Return a pattern that matches the same texts in Java.

    Raises:
        FeatureNotSupported: Java has no such pattern, or the regular expression is invalid.  In
            the second case PostgreSQL raises an error when it evaluates the expression.
    """
    try:
        expression = parsed(pattern, Options(ignore_case=ignore_case), ascii_only=ascii_only)
        return "(?s)" + _Writer(ascii_only).alternatives(expression.tree)
    except PostgresError as error:
        raise FeatureNotSupported(error.message) from error


class _Writer:
    def __init__(self, ascii_only: bool) -> None:
        self._ascii_only = ascii_only
        self._long_repeats = 0
        self._depth = 0

    def alternatives(self, tree: Alternatives) -> str:
        if self._depth > _MOST_NESTED:
            raise FeatureNotSupported("Java's compiler recurses for each group")
        self._depth += 1
        branches = [*map(self._branch, tree.branches)]
        self._depth -= 1
        return "|".join(branches)

    def _branch(self, branch: Branch) -> str:
        return "".join(map(self._item, branch))

    def _item(self, item: Item) -> str:
        match item:
            case Characters(codes):
                return "." if item == ANY else _set(codes)
            case Constraint(kind):
                return self._constraint(kind)
            case Look(inner, ahead, negative):
                if not ahead:
                    raise FeatureNotSupported("Java's look-behind needs a bounded length")
                return f"(?{'!' if negative else '='}{self.alternatives(inner)})"
            case Group(inner):
                return f"(?:{self.alternatives(inner)})"
            case Repeat():
                return self._repeat(item)
        raise FeatureNotSupported("a back reference means something else in Java")

    def _repeat(self, repeat: Repeat) -> str:
        if isinstance(repeat.item, Group):
            raise FeatureNotSupported("Java's engine recurses for a repeated group")
        self._long_repeats += repeat.most is None or repeat.most > _SHORT
        if self._long_repeats > _MOST_LONG_REPEATS:
            raise FeatureNotSupported("Java's engine tries all lengths of each repetition")
        atom = self._item(repeat.item)
        match repeat.least, repeat.most:
            case 0, None:
                return atom + "*"
            case 1, None:
                return atom + "+"
            case 0, 1:
                return atom + "?"
        most = "" if repeat.most is None else repeat.most
        bound = f"{repeat.least}" if repeat.least == most else f"{repeat.least},{most}"
        return f"{atom}{{{bound}}}"

    def _constraint(self, kind: str) -> str:
        match kind:
            case "A":
                return r"\A"
            case "Z":
                return r"\z"
            case "^":
                return r"(?<![^\n])"
            case "$":
                return r"(?![^\n])"
        word = _set(ranges("word", ascii_only=self._ascii_only))
        start, end = f"(?<!{word})(?={word})", f"(?<={word})(?!{word})"
        match kind:
            case "m":
                return start
            case "M":
                return end
            case "y":
                return f"(?:{start}|{end})"
        return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"


@lru_cache(200)
def _set(codes: Ranges) -> str:
    """Return a set of characters as a bracket expression, [...] or [^...]."""
    if not codes:
        return "(?!)"
    if len(codes) == 1 and codes[0][0] == codes[0][1]:
        char = chr(codes[0][0])
        return "\\" + char if char in _SPECIAL else char
    is_complemented = codes[0][0] == 0 and codes[-1][1] == LAST_CODE
    shown = complement(codes) if is_complemented else codes
    if not shown:
        return r"[\s\S]"
    return f"[{'^' * is_complemented}{''.join(_range(low, high) for low, high in shown)}]"


def _range(low: int, high: int) -> str:
    # A single surrogate is not a character.  Java would join it with its neighbour.
    pieces = [(low, high)]
    if low <= 0xDFFF and high >= 0xD800:
        pieces = [(low, 0xD7FF), (0xE000, high)]
    return "".join(
        _code(first) if first == last else f"{_code(first)}-{_code(last)}"
        for first, last in pieces
        if first <= last
    )


def _code(code: int) -> str:
    char = chr(code)
    if code < 128 and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 256 else char
