"""Functions with regular expressions (PostgreSQL's regexp.c, and replace_text_regexp() of
varlena.c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from replctl.adt.regex_lexer import Options
from replctl.adt.regex_match import compiled
from replctl.errors import (
    InvalidEscapeSequence,
    InvalidParameterValue,
    InvalidUseOfEscapeCharacter,
)


def _options(flags: str) -> tuple[Options, bool]:
    """Return the options of flags, and whether g is among them."""
    options, is_global = Options(), False
    for flag in flags:
        changed = options.with_letter(flag)
        if flag == "g":
            is_global = True
        elif flag == "e":
            # The documentation says otherwise, but parse_re_flags() chooses a basic expression.
            options = replace(options, syntax="basic")
        elif changed is not None:
            options = changed
        else:
            raise InvalidParameterValue(f'invalid regular expression option: "{flag}"')
    return options, is_global


def _options_of_all(flags: str, function: str, hint: str | None = None) -> Options:
    """Return the options of flags; refuse g, which `function` does not support."""
    options, is_global = _options(flags)
    if is_global:
        raise InvalidParameterValue(f'{function}() does not support the "global" option', hint=hint)
    return options


def _matches(*, ignore_case: bool, negate: bool) -> Callable[..., bool]:
    options = Options(ignore_case=ignore_case)

    def matches(text: str, pattern: str, *, ascii_only: bool = False) -> bool:
        regex = compiled(pattern, options, ascii_only=ascii_only, captures=False)
        return regex.matches(text) is not negate

    return matches


def _like(text: str, pattern: str, flags: str = "", *, ascii_only: bool = False) -> bool:
    options = _options_of_all(flags, "regexp_like")
    return compiled(pattern, options, ascii_only=ascii_only, captures=False).matches(text)


def _substring(text: str, pattern: str, *, ascii_only: bool = False) -> str | None:
    """Implement substring(text from pattern): return the first group; without groups, the match."""
    regex = compiled(pattern, Options(), ascii_only=ascii_only, captures=True)
    spans = regex.search(text)
    return None if spans is None else _shown(text, spans[min(regex.groups, 1)])


def _shown(text: str, span: tuple[int, int] | None) -> str | None:
    return None if span is None else text[span[0] : span[1]]


@lru_cache(100)
def _replacement(template: str) -> tuple[str | int, ...]:
    """Return the parts of a replacement, in which numbers represent groups.

    `a\\1\\\\\\&` -> (`a`, 1, `\\`, 0)
    """
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
    return tuple(parts)


def _replaced(
    text: str,
    pattern: str,
    replacement: str,
    options: Options,
    start: int,
    number: int,
    ascii: bool,
) -> str:
    """Return the text with the number-th match from `start` replaced; 0 means all matches."""
    parts = _replacement(replacement)
    needs_groups = any(isinstance(part, int) for part in parts)
    regex = compiled(pattern, options, ascii_only=ascii, captures=needs_groups)
    result, last = [], 0
    for count, (begin, end, spans) in enumerate(regex.find_all(text, start - 1), start=1):
        if number in (0, count):
            result.append(text[last:begin])
            for part in parts:
                if isinstance(part, str):
                    result.append(part)
                elif part < len(spans):
                    result.append(_shown(text, spans[part]) or "")
            last = end
            if number:
                break
    return "".join([*result, text[last:]])


def _replace(
    text: str, pattern: str, replacement: str, flags: str = "", *, ascii_only: bool = False
) -> str:
    """Implement regexp_replace(text, pattern, replacement [, flags])."""
    if flags[:1] and flags[0] in "0123456789":
        raise InvalidParameterValue(
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth"
            " argument to integer explicitly.",
        )
    options, is_global = _options(flags)
    return _replaced(text, pattern, replacement, options, 1, 0 if is_global else 1, ascii_only)


def _replace_nth(
    text: str,
    pattern: str,
    replacement: str,
    start: int,
    number: int = 1,
    flags: str = "",
    *,
    ascii_only: bool = False,
) -> str:
    """Implement regexp_replace(text, pattern, replacement, start [, n [, flags]]); n = 0 replaces
    all.
    """
    _check(start, "start", start > 0)
    _check(number, "n", number >= 0)
    options, _ = _options(flags)
    return _replaced(text, pattern, replacement, options, start, number, ascii_only)


def _check(value: int, name: str, is_valid: bool) -> None:
    if not is_valid:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


def _count(
    text: str, pattern: str, start: int = 1, flags: str = "", *, ascii_only: bool = False
) -> int:
    _check(start, "start", start > 0)
    options = _options_of_all(flags, "regexp_count")
    regex = compiled(pattern, options, ascii_only=ascii_only, captures=False)
    return sum(1 for _match in regex.find_all(text, start - 1))


def _nth(
    text: str, pattern: str, options: Options, start: int, number: int, group: int, ascii_only: bool
) -> tuple[int, int] | None:
    """Return the span of the number-th match, or of one of its groups."""
    regex = compiled(pattern, options, ascii_only=ascii_only, captures=group > 0)
    for count, (_, _, spans) in enumerate(regex.find_all(text, start - 1), start=1):
        if count == number:
            # Without capturing groups, the match itself counts as the first group.
            if group == 1 and not regex.groups:
                return spans[0]
            return spans[group] if group < len(spans) else None
    return None


def _substr(
    text: str,
    pattern: str,
    start: int = 1,
    number: int = 1,
    flags: str = "",
    group: int = 0,
    *,
    ascii_only: bool = False,
) -> str | None:
    _check(start, "start", start > 0)
    _check(number, "n", number > 0)
    _check(group, "subexpr", group >= 0)
    options = _options_of_all(flags, "regexp_substr")
    return _shown(text, _nth(text, pattern, options, start, number, group, ascii_only))


def _instr(
    text: str,
    pattern: str,
    start: int = 1,
    number: int = 1,
    end_option: int = 0,
    flags: str = "",
    group: int = 0,
    *,
    ascii_only: bool = False,
) -> int:
    _check(start, "start", start > 0)
    _check(number, "n", number > 0)
    _check(end_option, "endoption", end_option in (0, 1))
    _check(group, "subexpr", group >= 0)
    options = _options_of_all(flags, "regexp_instr")
    span = _nth(text, pattern, options, start, number, group, ascii_only)
    return 0 if span is None else span[end_option] + 1


def _match(
    text: str, pattern: str, flags: str = "", *, ascii_only: bool = False
) -> list[str | None] | None:
    """Implement regexp_match: return the groups of the first match; without groups, the match."""
    options = _options_of_all(flags, "regexp_match", "Use the regexp_matches function instead.")
    spans = compiled(pattern, options, ascii_only=ascii_only, captures=True).search(text)
    return None if spans is None else [_shown(text, span) for span in spans[1:] or spans]


def _split(text: str, pattern: str, flags: str = "", *, ascii_only: bool = False) -> list[str]:
    """Implement regexp_split_to_array; empty matches at the ends or after a match do not split."""
    options = _options_of_all(flags, "regexp_split_to_array")
    regex = compiled(pattern, options, ascii_only=ascii_only, captures=False)
    parts, last, previous = [], 0, 0
    for begin, end, _ in regex.find_all(text):
        if begin < len(text) and end > previous:
            parts.append(text[last:begin])
            last = end
        previous = end
    return [*parts, text[last:]]


#: PostgreSQL's equivalents of characters in SQL's regular expressions, outside of brackets.
_SIMILAR = {"%": ".*", "_": ".", "(": "(?:", "\\": r"\\", ".": r"\.", "^": r"\^", "$": r"\$"}


def _separator(count: int) -> str:
    """Return the replacement for the count-th separator, an escaped double quote.

    substring() returns the part between the two separators.  The part before it is as short as
    possible.  The returned part is as long as possible.
    """
    if count > 1:
        raise InvalidUseOfEscapeCharacter(
            "SQL regular expression may not contain more than two escape-double-quote separators"
        )
    return ("){1,1}?(", "){1,1}(?:")[count]


def similar_escape(pattern: str, escape: str | None = "\\") -> str:
    """Convert SQL's regular expression to an advanced one (similar_escape_internal).

    `a%_|b` -> `^(?:a.*.|b)$`
    """
    if escape is not None and len(escape) > 1:
        raise InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    result, after_escape, depth, quotes = ["^(?:"], False, 0, 0
    position = 0  # in brackets: 1 after [, 2 after [^, more where a ] closes
    for char in pattern:
        if after_escape:
            if char == '"' and not depth:
                result.append(_separator(quotes))
                quotes += 1
            else:
                result.append("\\" + char)
                position = 3
            after_escape = False
        elif char == escape:
            after_escape = True
        elif depth:
            result.append("\\\\" if char == "\\" else char)
            if char == "]" and position > 2:
                depth -= 1
            elif char == "^":
                position += 1
            else:
                depth += char == "["
                position = 3
        else:
            result.append(_SIMILAR.get(char, char))
            depth = position = int(char == "[")
    return "".join(result) + ")$"


#: Functions that depend on the collation, by their names in pg_proc.prosrc.  They also take
#: `ascii_only`.
COLLATED: dict[str, Callable[..., Any]] = {
    **{
        f"{type_}{case}regex{test}": _matches(ignore_case=bool(case), negate=test == "ne")
        for type_ in ("text", "name")
        for case in ("", "ic")
        for test in ("eq", "ne")
    },
    "textregexsubstr": _substring,
    "textregexreplace_noopt": _replace,
    "textregexreplace": _replace,
    **dict.fromkeys(
        (
            "textregexreplace_extended",
            "textregexreplace_extended_no_flags",
            "textregexreplace_extended_no_n",
        ),
        _replace_nth,
    ),
    "regexp_like": _like,
    "regexp_like_no_flags": _like,
    **dict.fromkeys(("regexp_count", "regexp_count_no_flags", "regexp_count_no_start"), _count),
    "regexp_match": _match,
    "regexp_match_no_flags": _match,
    "regexp_split_to_array": _split,
    "regexp_split_to_array_no_flags": _split,
    **{
        f"{name}{suffix}": function
        for name, function in (("regexp_substr", _substr), ("regexp_instr", _instr))
        for suffix in ("", "_no_start", "_no_n", "_no_endoption", "_no_flags", "_no_subexpr")
    },
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "similar_to_escape_1": similar_escape,
    "similar_to_escape_2": similar_escape,
    "similar_escape": lambda pattern, escape: (
        None if pattern is None else similar_escape(pattern, "\\" if escape is None else escape)
    ),
}
