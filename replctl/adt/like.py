"""LIKE and ILIKE (PostgreSQL's like.c and like_match.c)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from replctl.adt import case_mapping
from replctl.errors import InvalidEscapeSequence

_ANY, _ONE, _END = "%", "_", "\\"  # tokens; a literal character is a token of two characters


def is_like(text: str, pattern: str) -> bool:
    """Return whether a pattern matches the whole `text`.

    Raises:
        InvalidEscapeSequence: matching reached an escape character at the end of the pattern.
    """
    compiled = _compiled(pattern)
    if compiled is not None:
        return compiled.fullmatch(text) is not None
    return _matches(text, 0, _tokens(pattern), 0) is True


def like_escape(pattern: str, escape: str) -> str:
    """Rewrite a pattern with the escape character `escape` as one with the backslash."""
    if not escape:
        return pattern.replace("\\", "\\\\")
    if len(escape) > 1:
        raise InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    if escape == "\\":
        return pattern
    result, after_escape = [], False
    for char in pattern:
        if char == escape and not after_escape:
            result.append("\\")
            after_escape = True
            continue
        if char == "\\" and not after_escape:
            result.append("\\")
        result.append(char)
        after_escape = False
    return "".join(result)


def without_needless_escapes(pattern: str) -> str | None:
    """Return a pattern with backslashes only before `%`, `_` and backslashes; None if the pattern
    ends with an escaping backslash.
    """
    tokens = _tokens(pattern)
    if tokens and tokens[-1] == _END:
        return None
    return "".join(
        token if len(token) == 1 else ("\\" + token[1] if token[1] in "%_\\" else token[1])
        for token in tokens
    )


@lru_cache(1000)
def _tokens(pattern: str) -> tuple[str, ...]:
    """Split a pattern: `a\\%_` -> ("=a", "=%", "_")"""
    tokens, i = [], 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\" and i + 1 < len(pattern):
            i += 1
            tokens.append("=" + pattern[i])
        elif char in "%_\\":
            tokens.append(char)
        else:
            tokens.append("=" + char)
        i += 1
    return tuple(tokens)


@lru_cache(1000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    tokens = _tokens(pattern)
    if _END in tokens:
        return None
    parts = [""]
    for token in tokens:
        if token == _ANY:
            parts.append("")
        else:
            parts[-1] += "." if token == _ONE else re.escape(token[1])
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    # The text between two % may match at its first occurrence, without backtracking.
    first, *middle, last = parts
    between = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{between}.*{last}", re.DOTALL)


def _matches(text: str, i: int, tokens: tuple[str, ...], j: int) -> bool | None:
    """Match like MatchText.  None means that the text ended too early, so no later start can
    match either.
    """
    while i < len(text) and j < len(tokens):
        token = tokens[j]
        if token == _END:
            raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
        if token == _ANY:
            j += 1
            while j < len(tokens) and tokens[j] in (_ANY, _ONE):
                if tokens[j] == _ONE:
                    if i >= len(text):
                        return None
                    i += 1
                j += 1
            if j >= len(tokens):
                return True
            if tokens[j] == _END:
                raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
            while i < len(text):
                if text[i] == tokens[j][1:]:
                    matched = _matches(text, i, tokens, j)
                    if matched is not False:
                        return matched
                i += 1
            return None
        if token != _ONE and text[i] != token[1]:
            return False
        i, j = i + 1, j + 1
    if i < len(text):
        return False
    return True if all(token == _ANY for token in tokens[j:]) else None


def _ilike(text: str, pattern: str, *, ascii_only: bool = False) -> bool:
    return is_like(
        case_mapping.lower(text, ascii_only=ascii_only),
        case_mapping.lower(pattern, ascii_only=ascii_only),
    )


def _not_ilike(text: str, pattern: str, *, ascii_only: bool = False) -> bool:
    return not _ilike(text, pattern, ascii_only=ascii_only)


def _bytea_like(value: bytes, pattern: bytes) -> bool:
    return is_like(value.decode("latin-1"), pattern.decode("latin-1"))


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("textlike", "namelike"), is_like),
    **dict.fromkeys(("textnlike", "namenlike"), lambda text, pattern: not is_like(text, pattern)),
    "bytealike": _bytea_like,
    "byteanlike": lambda value, pattern: not _bytea_like(value, pattern),
    "like_escape": like_escape,
    "like_escape_bytea": lambda pattern, escape: like_escape(
        pattern.decode("latin-1"), escape.decode("latin-1")
    ).encode("latin-1"),
}

#: Functions that depend on the collation, by their names in pg_proc.prosrc.  They also take
#: `ascii_only`.
COLLATED: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("texticlike", "nameiclike"), _ilike),
    **dict.fromkeys(("texticnlike", "nameicnlike"), _not_ilike),
}
