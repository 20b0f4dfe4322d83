"""Read and print LSNs: 64-bit positions in a cluster's log, written as two hexadecimal numbers."""

from __future__ import annotations

import re

from replctl.errors import InvalidTextRepresentation

INVALID_LSN = 0

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_lsn(text: str) -> int:
    """Parse an LSN: `16/B374D848` -> 0x16B374D848.

    Raises:
        InvalidTextRepresentation: `text` is not an LSN (22P02, as pg_lsn_in).
    """
    match = _LSN.fullmatch(text.strip())
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type pg_lsn: "{text}"')
    return (int(match[1], 16) << 32) | int(match[2], 16)


def format_lsn(lsn: int) -> str:
    """Print an LSN: 0x16B374D848 -> `16/B374D848`."""
    lsn &= 0xFFFFFFFFFFFFFFFF  # SQLite keeps the upper half as negative numbers
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
