"""Values of composite types: `(1,"a b",)`.  PostgreSQL's rowtypes.c."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from replctl.errors import InvalidTextRepresentation
from replctl.types.text_form import BLANKS

_QUOTED = re.compile(r'["\\(),\s]', re.ASCII)


def composite_in(text: str, readers: Sequence[Callable[[str | None], str | None]]) -> str:
    """Return the canonical text of a row: `( 1,"a b",)` becomes `(1,"a b",)`.

    Args:
        readers: the input function of each column's type. A domain's function may refuse None.

    Raises:
        InvalidTextRepresentation: `text` is not a row, or has the wrong number of columns.
    """
    position = len(text) - len(text.lstrip(BLANKS))
    if text[position : position + 1] != "(":
        raise _malformed(text, "Missing left parenthesis.")
    position += 1
    shown = []
    for i, read in enumerate(readers):
        if i:
            if text[position : position + 1] != ",":
                raise _malformed(text, "Too few columns.")
            position += 1
        field, position = _field(text, position)
        value = read(field)
        shown.append("" if value is None else _quoted(value))
    if text[position : position + 1] != ")":
        raise _malformed(text, "Too many columns.")
    if text[position + 1 :].strip(BLANKS):
        raise _malformed(text, "Junk after right parenthesis.")
    return f"({','.join(shown)})"


def _quoted(value: str) -> str:
    if value and not _QUOTED.search(value):
        return value
    doubled = value.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'


def _field(text: str, position: int) -> tuple[str | None, int]:
    """Return the field that begins at `position` (None if it is empty), and its end."""
    if text[position : position + 1] in (",", ")"):
        return None, position
    chars: list[str] = []
    in_quotes = False
    while True:
        char = text[position : position + 1]
        if not char:
            raise _malformed(text, "Unexpected end of input.")
        if not in_quotes and char in ",)":
            return "".join(chars), position
        position += 1
        if char == "\\":
            if position == len(text):
                raise _malformed(text, "Unexpected end of input.")
            chars.append(text[position])
            position += 1
        elif char == '"':
            if in_quotes and text[position : position + 1] == '"':
                chars.append('"')
                position += 1
            else:
                in_quotes = not in_quotes
        else:
            chars.append(char)


def _malformed(text: str, detail: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation(f'malformed record literal: "{text}"', detail=detail)
