"""Text in SQL's notation: unistr() and parse_ident() (PostgreSQL's varlena.c, misc.c)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from replctl.adt import case_mapping
from replctl.errors import InvalidParameterValue, SqlSyntaxError

_ESCAPE = re.compile(
    r"\\(?:(\\)|u?([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|U([0-9a-fA-F]{8})|)|[^\\]+", re.DOTALL
)
_BLANKS = " \t\n\r\f\v"
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"', re.DOTALL)
_NAME = re.compile(r"[^\x00-@\[-^`{-\x7f][^\x00-#%-/:-@\[-^`{-\x7f]*")  # letters, digits, _ and $


def _unistr(text: str) -> str:
    r"""Decode escapes: `\0061\+000062` -> `ab`; two halves of a pair are one character."""
    result, high = [], 0
    for match in _ESCAPE.finditer(text):
        digits = match[2] or match[3] or match[4]
        if match[0] == "\\":
            raise SqlSyntaxError(
                "invalid Unicode escape",
                hint=r"Unicode escapes must be \XXXX, \+XXXXXX, \uXXXX, or \UXXXXXXXX.",
            )
        code = -1 if digits is None else _code_point(digits)
        is_low = 0xDC00 <= code <= 0xDFFF
        if is_low != bool(high):
            raise _bad_pair()
        if is_low:
            result.append(chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00))
            high = 0
        elif 0xD800 <= code <= 0xDBFF:
            high = code
        else:
            result.append(chr(code) if digits is not None else match[1] or match[0])
    if high:
        raise _bad_pair()
    return "".join(result)


def _code_point(digits: str) -> int:
    code = int(digits, 16)
    if not 0 < code <= 0x10FFFF:
        raise InvalidParameterValue(f"invalid Unicode code point: {code:04X}")
    return code


def _bad_pair() -> SqlSyntaxError:
    return SqlSyntaxError("invalid Unicode surrogate pair")


def _parse_ident(text: str, strict: bool = True) -> list[str]:
    """Split a name: (`a."B c"`, True) -> [a, `B c`].  `strict` refuses text after the name."""
    names: list[str] = []
    i = _skip(text, 0)
    while True:
        match = _NAME.match(text, i)
        if match is not None:
            names.append(case_mapping.lower(match[0], ascii_only=True))
        elif text[i : i + 1] == '"':
            match = _QUOTED.match(text, i)
            names.append(_quoted(text, match))
        if match is None:
            raise _invalid(text, _what_is_missing(text, i, after_dot=bool(names)))
        i = _skip(text, match.end())
        if text[i : i + 1] != ".":
            break
        i = _skip(text, i + 1)
    if i < len(text) and strict:
        raise _invalid(text)
    return names


def _skip(text: str, i: int) -> int:
    while i < len(text) and text[i] in _BLANKS:
        i += 1
    return i


def _quoted(text: str, match: re.Match[str] | None) -> str:
    if match is None:
        raise _invalid(text, "String has unclosed double quotes.")
    if not match[1]:
        raise _invalid(text, "Quoted identifier must not be empty.")
    return match[1].replace('""', '"')


def _what_is_missing(text: str, i: int, *, after_dot: bool) -> str | None:
    if text[i : i + 1] == ".":
        return 'No valid identifier before ".".'
    return 'No valid identifier after ".".' if after_dot else None


def _invalid(text: str, detail: str | None = None) -> InvalidParameterValue:
    return InvalidParameterValue(f'string is not a valid identifier: "{text}"', detail=detail)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {"unistr": _unistr, "parse_ident": _parse_ident}
