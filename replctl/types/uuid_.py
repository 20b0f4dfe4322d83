"""uuid: a value is its canonical text (PostgreSQL's uuid.c)."""

from __future__ import annotations

import re

from replctl.errors import InvalidTextRepresentation
from replctl.types.text_form import text_form

_CANONICAL = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ACCEPTED = re.compile(r"(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}")


def uuid_in(text: str) -> str:
    """Return the canonical text.

    `{A0EEBC999C0B4EF8BB6D6BB9BD380A11}` -> `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.

    Raises:
        InvalidTextRepresentation: `text` is not a uuid.
    """
    if _CANONICAL.fullmatch(text):
        return text
    inner = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    if _ACCEPTED.fullmatch(inner) is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type uuid: "{text}"')
    digits = inner.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def uuid_bytes(value: str) -> bytes:
    """Return the 16 bytes of a uuid."""
    return bytes.fromhex(value.replace("-", ""))


FORMS = {"uuid": text_form(uuid_in, str)}
