"""Fold and truncate names: PostgreSQL's scansup.c and pg_mbcliplen().

Only ASCII letters are folded to lower case, because a letter of another script may fold to several
letters.
"""

from __future__ import annotations

import string
from collections.abc import Callable

from replctl.errors import NameTooLong, Notice

MAX_BYTES = 63  # NAMEDATALEN - 1
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ascii_lower(word: str) -> str:
    """Return a word with ASCII letters in lower case: `AÉ` -> `aÉ`."""
    return word.lower() if word.isascii() else word.translate(_LOWER)


def clipped(name: str, length: int = MAX_BYTES) -> str:
    """Return at most `length` bytes of a name, cut between two characters."""
    if len(name) * 4 <= length:
        return name
    return name.encode()[:length].decode(errors="ignore")


def clipped_with_notice(name: str, on_notice: Callable[[Notice], None] | None) -> str:
    """Truncate a name like `clipped`, with a NOTICE (truncate_identifier)."""
    cut = clipped(name)
    if cut != name and on_notice is not None:
        message = f'identifier "{name}" will be truncated to "{cut}"'
        on_notice(Notice("NOTICE", message, NameTooLong.sqlstate))
    return cut


def stored_name(word: str) -> str:
    """Return the stored form of an unquoted name: folded to lower case and truncated."""
    return clipped(ascii_lower(word))
