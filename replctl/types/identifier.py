"""How names are folded and cut: PostgreSQL's scansup.c and pg_mbcliplen().

Only ASCII letters are folded: other scripts, where one letter may fold to several, stay as they
are.
"""

from __future__ import annotations

import string

MAX_BYTES = 63  # NAMEDATALEN - 1
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ascii_lower(word: str) -> str:
    """`AÉ` -> `aÉ`."""
    return word.lower() if word.isascii() else word.translate(_LOWER)


def clipped(name: str, length: int = MAX_BYTES) -> str:
    """The first `length` bytes of a name, without a part of a character at the end."""
    if len(name) * 4 <= length:
        return name
    return name.encode()[:length].decode(errors="ignore")


def stored_name(word: str) -> str:
    """A name without quotes as PostgreSQL stores it: folded and cut."""
    return clipped(ascii_lower(word))
