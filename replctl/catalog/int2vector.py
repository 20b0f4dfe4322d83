"""Convert column numbers from and to the text form of int2vector."""

from __future__ import annotations

from collections.abc import Iterable


def encode_attnums(attnums: Iterable[int]) -> str:
    """Return the text of an int2vector: (1, 3) -> `1 3`."""
    return " ".join(map(str, attnums))


def decode_attnums(text: str) -> tuple[int, ...]:
    """Parse an int2vector: `1 3` -> (1, 3)."""
    return tuple(map(int, text.split()))
