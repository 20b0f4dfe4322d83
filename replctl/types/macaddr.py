"""macaddr and macaddr8: a value is its canonical text (PostgreSQL's mac.c and mac8.c)."""

from __future__ import annotations

import re

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.text_form import text_form

# Numbers as sscanf() reads them with %x (any length) and %2x (at most two characters).
_ANY = r"\s*+([+-]?+(?:0[xX][0-9a-fA-F]*+|[0-9a-fA-F]++))"
_TWO = r"\s*+(0[xX]|[+-][0-9a-fA-F]|[0-9a-fA-F]{1,2}+)"

#: The notations, in the order in which the server tries them.
_NOTATIONS = [
    re.compile(pattern + r"\s*", re.ASCII)
    for pattern in (
        ":".join([_ANY] * 6),
        "-".join([_ANY] * 6),
        f"{_TWO * 3}:{_TWO * 3}",
        f"{_TWO * 3}-{_TWO * 3}",
        rf"{_TWO * 2}\.{_TWO * 2}\.{_TWO * 2}",
        f"{_TWO * 2}-{_TWO * 2}-{_TWO * 2}",
        _TWO * 6,
    )
]
# The server ignores a single character after the last pair.
_MACADDR8 = re.compile(r"\s*((?:[0-9a-fA-F]{2}[:.-]?)+)(?:\s*|[\x00-\x7f])", re.ASCII)


def macaddr_in(text: str) -> str:
    """Parse an address: `08-00-2B-1-2-3`, `08002b010203` -> `08:00:2b:01:02:03`.

    Raises:
        InvalidTextRepresentation: `text` has none of the supported notations.
        NumericValueOutOfRange: an octet is larger than ff.
    """
    match = next(filter(None, (notation.fullmatch(text) for notation in _NOTATIONS)), None)
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type macaddr: "{text}"')
    octets = [int(octet if octet[-1] not in "xX" else "0", 16) for octet in match.groups()]
    if not all(0 <= octet <= 255 for octet in octets):
        raise NumericValueOutOfRange(f'invalid octet value in "macaddr" value: "{text}"')
    return _colons(octets)


def macaddr8_in(text: str) -> str:
    """Parse an address, and extend an address of six bytes to eight.

    `08002b:0102030405`, `08002b010203` -> `08:00:2b:01:02:03:04:05`, `08:00:2b:ff:fe:01:02:03`.

    Raises:
        InvalidTextRepresentation: `text` does not have six or eight pairs of digits, or uses
            different delimiters (`:`, `-`, `.` or none).
    """
    match = _MACADDR8.fullmatch(text)
    digits = re.sub("[:.-]", "", match[1]) if match else ""
    separators = set(re.findall("[:.-]", match[1])) if match else set()
    if len(separators) > 1 or len(digits) not in (12, 16):
        raise InvalidTextRepresentation(f'invalid input syntax for type macaddr8: "{text}"')
    octets = list(bytes.fromhex(digits))
    if len(octets) == 6:
        octets[3:3] = [0xFF, 0xFE]
    return _colons(octets)


def _colons(octets: list[int]) -> str:
    return ":".join(f"{octet:02x}" for octet in octets)


FORMS = {"macaddr": text_form(macaddr_in, str), "macaddr8": text_form(macaddr8_in, str)}
