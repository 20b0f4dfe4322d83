"""bytea (PostgreSQL's varlena.c and encode.c)."""

from __future__ import annotations

import re

from replctl.errors import InvalidParameterValue, InvalidTextRepresentation
from replctl.types.text_form import text_form

_HEX = re.compile(r"(?:[ \n\t\r]*[0-9a-fA-F]{2})*[ \n\t\r]*")
_ESCAPE = re.compile(rb"\\(?:\\|([0-3][0-7]{2}))")


def byteain(text: str) -> bytes:
    r"""Parse bytes: `\x61 62`, `a\142\\` -> b"ab", b"ab\\".

    Raises:
        InvalidParameterValue: a hexadecimal digit is not valid (22023, as in PostgreSQL).
        InvalidTextRepresentation: a backslash does not begin an escape.
    """
    if text.startswith("\\x"):
        return _from_hex(text)
    if "\\" not in text:
        return text.encode()
    octets = text.encode()
    if b"\\" in _ESCAPE.sub(b"", octets):
        raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]) if match[1] else b"\\", octets)


def byteaout(value: bytes) -> str:
    r"""Print bytes: b"ab" -> `\x6162`."""
    return "\\x" + value.hex()


def _from_hex(text: str) -> bytes:
    end = _HEX.match(text, 2)
    assert end is not None  # the pattern also matches an empty text
    rest = text[end.end() :]
    if not rest:
        return bytes.fromhex(text[2:])
    if rest[0] in "0123456789abcdefABCDEF":
        if len(rest) == 1:
            raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
        rest = rest[1:]
    raise InvalidParameterValue(f'invalid hexadecimal digit: "{rest[0]}"')


FORMS = {"bytea": text_form(byteain, byteaout)}
