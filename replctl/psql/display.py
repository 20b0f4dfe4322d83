"""Format a value for a table: return its lines, with visible control characters, and their widths.

`a<TAB>b<CR>` becomes `a       b\\r` (10 columns); `日本` has 4 columns, a combining accent none.
Like psql, this module does not use the C library's wcwidth().  Its own rules come from Unicode's
categories and East Asian widths.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from unicodedata import category, east_asian_width

TAB_STOP = 8

_PLAIN = re.compile(r"[ -~]*")


class Line(NamedTuple):
    """The part of a value on one line of the output.

    `is_wrapped`: the line was too long and continues on the next line.  If false, the next line, if
    any, comes from a newline in the value.
    """

    text: str
    width: int
    is_wrapped: bool = False


def display_lines(value: str, width: int | None = None) -> list[Line]:
    """Return `value` as lines of at most `width`; only a single wide character may be wider."""
    if _PLAIN.fullmatch(value):
        lines = [Line(value, len(value))]
    else:
        lines = [_visible(line) for line in value.split("\n")]
    if width is None or all(line.width <= width for line in lines):
        return lines
    return [part for line in lines for part in _wrap(line, width)]


def display_width(value: str) -> int:
    """Return the width of the widest line of `value`."""
    if _PLAIN.fullmatch(value):
        return len(value)
    return max(_visible(line).width for line in value.split("\n"))


@cache
def character_width(character: str) -> int:
    """Return how many columns of a terminal a character needs; -1 for a control character."""
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return -1
    kind = category(character)
    if kind in ("Mn", "Me", "Cf"):
        return 0
    if kind == "Cn":  # unassigned, perhaps only in Python's older Unicode: wide in ranges of CJK
        return 2 if 0x20000 <= code <= 0x3FFFD else 1
    return 2 if east_asian_width(character) in "WF" else 1


def _visible(line: str) -> Line:
    parts: list[str] = []
    width = 0
    for character in line:
        code = ord(character)
        if character == "\t":
            part = " " * (TAB_STOP - width % TAB_STOP)
        elif character == "\r":
            part = "\\r"
        elif character_width(character) < 0:
            part = f"\\x{code:02X}" if code < 0x80 else f"\\u{code:04X}"
        else:
            parts.append(character)
            width += character_width(character)
            continue
        parts.append(part)
        width += len(part)
    return Line("".join(parts), width)


def _wrap(line: Line, width: int) -> list[Line]:
    parts: list[Line] = []
    start = part_width = 0
    for end, character in enumerate(line.text):
        step = character_width(character)
        if part_width + step > width and part_width > 0:
            parts.append(Line(line.text[start:end], part_width, is_wrapped=True))
            start, part_width = end, 0
        part_width += step
    return [*parts, Line(line.text[start:], part_width)]
