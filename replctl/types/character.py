"""text, varchar, bpchar, name, "char", and types that are stored like text (PostgreSQL's varlena.c,
varchar.c, name.c and char.c).
"""

from __future__ import annotations

import re

from replctl.errors import CharacterNotInRepertoire, StringDataRightTruncation
from replctl.types.identifier import clipped
from replctl.types.text_form import text_form

TYPMOD_HEADER = 4  # VARHDRSZ: the modifier of varchar(n) and char(n) is n + 4


def text_in(text: str) -> str:
    """Return the unchanged text."""
    return text


def name_in(text: str) -> str:
    """Return at most 63 bytes of the text, cut between two characters."""
    return clipped(text)


def char_in(text: str) -> str:
    r"""Return the first byte of a text as a "char": a character, `\ooo` beyond ASCII, or an empty
    text for the byte 0."""
    if re.fullmatch(r"\\[0-7]{3}", text):
        byte = int(text[1:], 8) & 0xFF
    else:
        byte = text.encode()[0] if text else 0
    return char_of_byte(byte)


def char_byte(value: str) -> int:
    r"""Return the byte of a "char": `a`, `\200` -> 97, 128."""
    if len(value) == 4:
        return int(value[1:], 8)
    return ord(value) if value else 0


def char_of_byte(byte: int) -> str:
    """Return the "char" of a byte."""
    if byte >= 0x80:
        return f"\\{byte:03o}"
    return chr(byte) if byte else ""


def invalid_bytes(data: bytes, encoding: str = "UTF8") -> CharacterNotInRepertoire:
    """Return the error for bytes that begin with an invalid character (report_invalid_encoding)."""
    first = data[0]
    length = 1
    if encoding == "UTF8" and first >= 0xC0:
        length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1
    shown = " ".join(f"0x{byte:02x}" for byte in data[:length])
    return CharacterNotInRepertoire(f'invalid byte sequence for encoding "{encoding}": {shown}')


def byte_difference(a: bytes, b: bytes) -> int:
    """Return the difference of the first bytes in which two texts differ; 0 if one text begins with
    the other (memcmp).
    """
    return next((x - y for x, y in zip(a, b, strict=False) if x != y), 0)


def varchar(value: str, typmod: int, explicit: bool) -> str:
    """Cast to a maximum length: (`abc  `, 7) -> `abc`; implicit casts only cut blanks.

    Raises:
        StringDataRightTruncation: an implicit cast would cut other characters.
    """
    length = typmod - TYPMOD_HEADER
    if len(value) <= length:
        return value
    if not explicit and value[length:].strip(" "):
        raise StringDataRightTruncation(f"value too long for type character varying({length})")
    return value[:length]


def bpchar(value: str, typmod: int, explicit: bool) -> str:
    """Cast to a length: (`ab`, 7) -> `ab `; longer texts are cut as by varchar.

    Raises:
        StringDataRightTruncation: an implicit cast would cut other characters.
    """
    length = typmod - TYPMOD_HEADER
    if len(value) <= length:
        return value.ljust(length)
    if not explicit and value[length:].strip(" "):
        raise StringDataRightTruncation(f"value too long for type character({length})")
    return value[:length]


_TEXT = text_form(text_in, text_in)

FORMS = {
    "text": _TEXT,
    "unknown": _TEXT,
    "cstring": _TEXT,
    "refcursor": _TEXT,
    "varchar": text_form(text_in, text_in, varchar),
    "bpchar": text_form(text_in, text_in, bpchar),
    "name": text_form(name_in, text_in),
    "char": text_form(char_in, text_in),
}
