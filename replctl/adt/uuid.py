"""uuid as canonical text (PostgreSQL's uuid.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_EPOCH = 12219292800 * 10_000_000  # from 1582-10-15, the epoch of version 1, in 100 ns


def _is_rfc(text: str) -> bool:
    """Return whether a UUID has the variant of RFC 9562."""
    return text[19] in "89ab"


def _version(text: str) -> int | None:
    return int(text[14], 16) if _is_rfc(text) else None


def _timestamp(text: str) -> int | None:
    """Return the time in a UUID of version 1; None for other versions."""
    if _version(text) != 1:
        return None
    ticks = int(text[15:18] + text[9:13] + text[:8], 16)
    return (ticks - _EPOCH) // 10


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "uuid_extract_version": _version,
    "uuid_extract_timestamp": _timestamp,
}
