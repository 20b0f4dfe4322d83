"""Functions of regular expressions, on Python's re.  PostgreSQL's regexp.c.

PostgreSQL takes the longest match (or the shortest), Python the first that it finds: what depends
on where a match ends is done only for expressions where that can be put right, and refused for
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from replctl.adt import regex_syntax
from replctl.errors import (
    FeatureNotSupported,
    InvalidEscapeCharacter,
    InvalidParameterValue,
    InvalidUseOfEscapeCharacter,
)

Matcher = Callable[..., Any]


def _compiled(pattern: str, ignore_case: bool, ascii_only: bool) -> re.Pattern[str]:
    found = regex_syntax.translate(pattern, ignore_case=ignore_case, ascii_only=ascii_only)
    return re.compile(found.text, re.DOTALL)


class _Finder:
    """Finds matches with the ends that PostgreSQL gives them."""

    def __init__(self, pattern: str, ignore_case: bool, ascii_only: bool) -> None:
        found = regex_syntax.translate(pattern, ignore_case=ignore_case, ascii_only=ascii_only)
        if found.has_alternatives or found.greediness == "mixed" or found.looks_ahead:
            raise FeatureNotSupported(
                "a regular expression with alternatives, constraints, or both greedy and non-greedy"
                " quantifiers is supported only where it is matched as a whole"
            )
        self.groups = found.groups
        self._regex = re.compile(found.text, re.DOTALL)
        self._is_fixed = found.greediness is None or found.ends_at_end
        self._is_greedy = found.greediness == "greedy"

    def search(self, text: str, start: int) -> re.Match[str] | None:
        first = self._regex.search(text, start)
        if first is None or self._is_fixed:
            return first
        ends = (
            range(len(text), first.end(), -1)
            if self._is_greedy
            else range(first.start(), first.end())
        )
        for end in ends:
            better = self._regex.fullmatch(text, first.start(), end)
            if better is not None:
                return better
        return first

    def all(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """One after the other; behind an empty match the search goes on one character further."""
        position = start
        while position <= len(text):
            match = self.search(text, position)
            if match is None:
                return
            yield match
            position = match.end() + (match.end() == match.start())


def _flags(flags: str, *, can_be_global: bool) -> tuple[bool, bool]:
    """Whether case is ignored, and whether g was given."""
    ignore_case = is_global = False
    for flag in flags:
        if flag in "ic":
            ignore_case = flag == "i"
        elif flag == "g" and can_be_global:
            is_global = True
        elif flag in "st":
            pass
        elif flag in "bemnpqwx":
            raise FeatureNotSupported(f"regular expression option {flag} is not supported")
        elif flag == "g":
            raise InvalidParameterValue('this function does not support the "global" option')
        else:
            raise InvalidParameterValue(f'invalid regular expression option: "{flag}"')
    return ignore_case, is_global


def _matches(*, ignore_case: bool, negate: bool) -> Callable[..., Matcher]:
    def prepare(pattern: str, *, ascii_only: bool) -> Matcher:
        regex = _compiled(pattern, ignore_case, ascii_only)
        return lambda text: (regex.search(text) is None) is negate

    return prepare


def _like(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    ignore_case, _ = _flags(flags, can_be_global=False)
    regex = _compiled(pattern, ignore_case, ascii_only)
    return lambda text: regex.search(text) is not None


def _substring(pattern: str, *, ascii_only: bool) -> Matcher:
    """substring(text from pattern): the first group, or all if there is none."""
    finder = _Finder(pattern, False, ascii_only)

    def apply(text: str) -> str | None:
        match = finder.search(text, 0)
        return None if match is None else match[1 if finder.groups else 0]

    return apply


def _replacement(template: str) -> Callable[[re.Match[str]], str]:
    """The value of a replacement: \\1 to \\9, \\&, and a backslash that stands for itself."""
    parts: list[str | int] = []
    i = 0
    while i < len(template):
        char, following = template[i], template[i + 1 : i + 2]
        if char == "\\" and following and following in "123456789&\\":
            parts.append("\\" if following == "\\" else 0 if following == "&" else int(following))
            i += 2
        else:
            parts.append(char)
            i += 1

    def build(match: re.Match[str]) -> str:
        groups = match.re.groups
        shown = (
            part if isinstance(part, str) else (match[part] or "") if part <= groups else ""
            for part in parts
        )
        return "".join(shown)

    return build


def _replace(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    """regexp_replace(text, pattern, replacement [, flags])"""
    if flags[:1].isdigit():
        raise InvalidParameterValue(
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth"
            " argument to integer explicitly.",
        )
    ignore_case, is_global = _flags(flags, can_be_global=True)
    replace = _replace_nth(pattern, flags.replace("g", ""), ascii_only=ascii_only)
    del ignore_case
    return lambda text, replacement: replace(text, replacement, 1, 0 if is_global else 1)


def _replace_nth(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    """regexp_replace(text, pattern, replacement, start, n [, flags]): n = 0 replaces all."""
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str, replacement: str, start: int, number: int = 1) -> str:
        _check_positive(start, "start")
        if number < 0:
            raise InvalidParameterValue(f'invalid value for parameter "n": {number}')
        build = _replacement(replacement)
        result, last = [], 0
        for count, match in enumerate(finder.all(text, start - 1), start=1):
            if number in (0, count):
                result += [text[last : match.start()], build(match)]
                last = match.end()
                if number:
                    break
        return "".join([*result, text[last:]])

    return apply


def _check_positive(value: int, name: str) -> None:
    if value <= 0:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


def _count(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str, start: int = 1) -> int:
        _check_positive(start, "start")
        return sum(1 for _match in finder.all(text, start - 1))

    return apply


def _nth(finder: _Finder, text: str, start: int, number: int) -> re.Match[str] | None:
    _check_positive(start, "start")
    _check_positive(number, "n")
    for count, match in enumerate(finder.all(text, start - 1), start=1):
        if count == number:
            return match
    return None


def _substr(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str, start: int = 1, number: int = 1, group: int = 0) -> str | None:
        match = _nth(finder, text, start, number)
        if group < 0:
            raise InvalidParameterValue(f'invalid value for parameter "subexpr": {group}')
        return None if match is None or group > finder.groups else match[group]

    return apply


def _instr(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str, start: int = 1, number: int = 1, option: int = 0, group: int = 0) -> int:
        match = _nth(finder, text, start, number)
        if option not in (0, 1):
            raise InvalidParameterValue(f'invalid value for parameter "endoption": {option}')
        if group < 0:
            raise InvalidParameterValue(f'invalid value for parameter "subexpr": {group}')
        if match is None or group > finder.groups or match.start(group) < 0:
            return 0
        return (match.end(group) if option else match.start(group)) + 1

    return apply


def _match(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    if "g" in flags:
        raise InvalidParameterValue(
            'regexp_match() does not support the "global" option',
            hint="Use the regexp_matches function instead.",
        )
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str) -> list[str | None] | None:
        match = finder.search(text, 0)
        if match is None:
            return None
        return list(match.groups()) if finder.groups else [match[0]]

    return apply


def _split(pattern: str, flags: str = "", *, ascii_only: bool) -> Matcher:
    ignore_case, _ = _flags(flags, can_be_global=False)
    finder = _Finder(pattern, ignore_case, ascii_only)

    def apply(text: str) -> list[str]:
        parts, last = [], 0
        for match in finder.all(text):
            # An empty match at either end splits nothing off.
            if match.end() == match.start() and match.start() in (0, len(text)):
                continue
            parts.append(text[last : match.start()])
            last = match.end()
        return [*parts, text[last:]]

    return apply


def similar_escape(pattern: str, escape: str | None = "\\") -> str:
    """SQL's regular expression as an advanced one (similar_escape_internal).

    `a%_|b` -> `^(?:a.*.|b)$`
    """
    if escape is not None and len(escape) > 1:
        raise InvalidEscapeCharacter(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    result, after_escape, in_brackets, quotes = ["^(?:"], False, False, 0
    class_start = 0
    for i, char in enumerate(pattern):
        if after_escape:
            if char == '"' and not in_brackets:
                if quotes == 0:
                    result.append("){1,1}?(")
                elif quotes == 1:
                    result.append("){1,1}(?:")
                else:
                    raise InvalidUseOfEscapeCharacter(
                        "SQL regular expression may not contain more than two escape-double-quote separators"  # noqa: E501
                    )
                quotes += 1
            else:
                result.append("\\" + char)
            after_escape = False
        elif escape and char == escape:
            after_escape = True
        elif in_brackets:
            if char == "\\":
                result.append("\\")
            result.append(char)
            if char == "]" and i > class_start + (pattern[class_start] == "^"):
                in_brackets = False
        elif char == "[":
            result.append(char)
            in_brackets, class_start = True, i + 1
        elif char == "%":
            result.append(".*")
        elif char == "_":
            result.append(".")
        elif char == "(":
            result.append("(?:")
        elif char in "\\.^$":
            result.append("\\" + char)
        else:
            result.append(char)
    return "".join(result) + ")$"


#: prosrc -> (places of the arguments that have to be constants, preparation with them); the
#: prepared function takes the other arguments.
PREPARED: dict[str, tuple[tuple[int, ...], Callable[..., Matcher]]] = {
    **dict.fromkeys(
        ("textregexeq", "nameregexeq"), ((1,), _matches(ignore_case=False, negate=False))
    ),
    **dict.fromkeys(
        ("textregexne", "nameregexne"), ((1,), _matches(ignore_case=False, negate=True))
    ),
    **dict.fromkeys(
        ("texticregexeq", "nameicregexeq"), ((1,), _matches(ignore_case=True, negate=False))
    ),
    **dict.fromkeys(
        ("texticregexne", "nameicregexne"), ((1,), _matches(ignore_case=True, negate=True))
    ),
    "textregexsubstr": ((1,), _substring),
    "textregexreplace_noopt": ((1,), _replace),
    "textregexreplace": ((1, 3), _replace),
    "textregexreplace_extended": ((1, 5), _replace_nth),
    "textregexreplace_extended_no_flags": ((1,), _replace_nth),
    "textregexreplace_extended_no_n": ((1,), _replace_nth),
    "regexp_like": ((1, 2), _like),
    "regexp_like_no_flags": ((1,), _like),
    "regexp_count": ((1, 3), _count),
    "regexp_count_no_flags": ((1,), _count),
    "regexp_count_no_start": ((1,), _count),
    "regexp_substr": ((1, 4), _substr),
    "regexp_substr_no_start": ((1,), _substr),
    "regexp_substr_no_n": ((1,), _substr),
    "regexp_substr_no_flags": ((1,), _substr),
    "regexp_substr_no_subexpr": ((1, 4), _substr),
    "regexp_instr": ((1, 5), _instr),
    "regexp_instr_no_start": ((1,), _instr),
    "regexp_instr_no_n": ((1,), _instr),
    "regexp_instr_no_endoption": ((1,), _instr),
    "regexp_instr_no_flags": ((1,), _instr),
    "regexp_instr_no_subexpr": ((1, 5), _instr),
    "regexp_match": ((1, 2), _match),
    "regexp_match_no_flags": ((1,), _match),
    "regexp_split_to_array": ((1, 2), _split),
    "regexp_split_to_array_no_flags": ((1,), _split),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "similar_to_escape_1": similar_escape,
    "similar_to_escape_2": similar_escape,
    "similar_escape": lambda pattern, escape: (
        None if pattern is None else similar_escape(pattern, "\\" if escape is None else escape)
    ),
}
