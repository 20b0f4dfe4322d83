"""Map characters to upper and lower case: one to one like the collation C.UTF-8, or only ASCII
letters like C.

PostgreSQL's pg_locale_builtin and unicode_case.c.
"""

from __future__ import annotations

import string
from functools import cache

#: The first code point of the planes in which no character has a case.
_FIRST_WITHOUT_CASE = 0x20000
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_ASCII_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def is_ascii_collation(collation: str | None) -> bool:
    """Return whether a collation only maps the letters of ASCII."""
    return collation in ("C", "POSIX")


def lower(text: str, *, ascii_only: bool = False) -> str:
    """Map each letter by itself to lower case: no dotted `i`, no final sigma."""
    if ascii_only or text.isascii():
        return text.translate(_ASCII_LOWER)
    return "".join(map(_lower, text))


def upper(text: str, *, ascii_only: bool = False) -> str:
    """Map each letter by itself to upper case; keep a letter that would become several letters."""
    if ascii_only or text.isascii():
        return text.translate(_ASCII_UPPER)
    return "".join(map(_upper, text))


def _lower(char: str) -> str:
    mapped = char.lower()
    return mapped if len(mapped) == 1 else mapped[0]


def _upper(char: str) -> str:
    for mapped in (char.upper(), char.title()):
        if len(mapped) == 1:
            return mapped
    return char


@cache
def translation_pairs(*, to_lower: bool, ascii_only: bool) -> tuple[str, str]:
    """Return all characters that a mapping changes, and their results in the same order."""
    function = lower if to_lower else upper
    codes = range(128) if ascii_only else range(_FIRST_WITHOUT_CASE)
    source = [
        char
        for char in map(chr, codes)
        if not "\ud800" <= char <= "\udfff" and function(char, ascii_only=ascii_only) != char
    ]
    return "".join(source), "".join(function(char, ascii_only=ascii_only) for char in source)
