"""Split a jsonpath into tokens (PostgreSQL's jsonpath_scan.l).

An error message shows the last match of the server's scanner.  After a name, this is the blank that
ended the name, or nothing.  `Token.near` is this text.
"""

from __future__ import annotations

import re
import sys
from functools import cache

from replctl.errors import InvalidTextRepresentation, SqlSyntaxError, UntranslatableCharacter
from replctl.record import dataclass

_KEYWORDS = """
    abs bigint boolean ceiling date datetime decimal double exists flag floor integer is keyvalue
    last lax like_regex number size starts strict string time time_tz timestamp timestamp_tz to type
    unknown with
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_CONSTANTS = frozenset({"true", "false", "null"})  # in lower case only

_SPECIAL = r"?%$.\[\]{}()|&!=<>@#,*:\-+/"
_OTHER = rf'[^{_SPECIAL}\\" \t\n\r\f]'
_OTHER_ASCII = rf'[^{_SPECIAL}\\" \t\n\r\f\x80-\U0010ffff]'
_DIGITS = r"[0-9](?:_?[0-9])*+"
_INTEGER = r"(?:0|[1-9](?:_?[0-9])*+)"
_DECIMAL = rf"(?:{_INTEGER}\.(?:{_DIGITS})?|\.{_DIGITS})"
_REAL = rf"(?:{_DECIMAL}|{_INTEGER})[Ee][-+]?{_DIGITS}"

#: The longest match counts, and the first one of equal length.  A longer name counts even if it
#: begins with a digit.
_NUMBERS = [
    ("numeric", _REAL),
    ("numeric", _DECIMAL),
    ("int", _INTEGER),
    ("int", r"0[xX][0-9A-Fa-f](?:_?[0-9A-Fa-f])*+"),
    ("int", r"0[oO][0-7](?:_?[0-7])*+"),
    ("int", r"0[bB][01](?:_?[01])*+"),
    ("invalid numeric literal", rf"(?:{_DECIMAL}|{_INTEGER})[Ee][-+]"),
    (
        "trailing junk after numeric literal",
        rf"(?:{_REAL}|{_DECIMAL}|{_INTEGER}){_OTHER_ASCII}",
    ),
]


@cache
def _numbers() -> list[tuple[str, re.Pattern[str]]]:
    # Not while modules are loaded: they take milliseconds, and few commands read a jsonpath
    return [(kind, re.compile(pattern)) for kind, pattern in _NUMBERS]


_BLANKS = re.compile(r"[ \t\n\r\f]+")
_OPERATOR = re.compile(rf"&&|\|\||\*\*|<=|==|!=|<>|>=|[{_SPECIAL}]")
_VARIABLE = re.compile(rf"\$({_OTHER}+)")
_NAME = re.compile(rf"{_OTHER}+")
_PLAIN = re.compile(r'[^\\"]+')
_UNICODE = re.compile(r"\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})")
_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a jsonpath.

    Args:
        kind: the text of an operator or keyword; for other tokens name, quoted, variable, int,
            numeric or end.
        value: the text of the token, with decoded escapes.
        near: the text that an error at this token shows; empty at the end of the path.
    """

    kind: str
    value: str
    near: str


class Scanner:
    """Scans a jsonpath, one token at a time, so that errors occur in the server's order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def next(self) -> Token:
        """Return the next token.

        Raises:
            SqlSyntaxError, InvalidTextRepresentation, UntranslatableCharacter: there is no valid
                token here.
        """
        self._skip_blanks_and_comments()
        text, start = self._text, self._position
        if start >= len(text):
            return Token("end", "", "")
        if text[start] == '"':
            return Token("quoted", self._quoted(), '"')
        if text.startswith('$"', start):
            self._position += 1
            return Token("variable", self._quoted(), '"')
        if match := _VARIABLE.match(text, start):
            self._position = match.end()
            return Token("variable", match[1], match[0])
        if number := self._number():
            return number
        if match := _OPERATOR.match(text, start):
            self._position = match.end()
            kind = "!=" if match[0] == "<>" else match[0]
            return Token(kind, match[0], match[0])
        return self._name()

    def _skip_blanks_and_comments(self) -> None:
        while True:
            if match := _BLANKS.match(self._text, self._position):
                self._position = match.end()
            elif self._text.startswith("/*", self._position):
                end = self._text.find("*/", self._position + 2)
                if end < 0:
                    raise error_at("unexpected end of comment", "")
                self._position = end + 2
            else:
                return

    def _number(self) -> Token | None:
        matches = [
            (kind, pattern.match(self._text, self._position)) for kind, pattern in _numbers()
        ]
        lengths = [match.end() if match else -1 for _, match in matches]
        longest = max(lengths)
        name = _NAME.match(self._text, self._position)
        if longest < 0 or (name is not None and name.end() > longest):
            return None
        kind, match = matches[lengths.index(longest)]
        assert match is not None  # one pattern matches up to the longest end
        if kind not in ("int", "numeric"):
            raise error_at(kind, match[0])
        self._position = match.end()
        return Token(kind, match[0], match[0])

    def _name(self) -> Token:
        chars: list[str] = []
        while True:
            if match := _NAME.match(self._text, self._position):
                chars.append(match[0])
                self._position = match.end()
            elif self._text.startswith("\\", self._position):
                chars.append(self._escape())
            elif self._text.startswith("/*", self._position):
                return self.next()  # the server ignores a name followed by a comment
            else:
                break
        blanks = _BLANKS.match(self._text, self._position)
        near = blanks[0] if blanks else ""
        name = "".join(chars)
        if name in _CONSTANTS or name.lower() in KEYWORDS:
            return Token(name.lower(), name, near)
        return Token("name", name, near)

    def _quoted(self) -> str:
        self._position += 1
        chars: list[str] = []
        while True:
            if match := _PLAIN.match(self._text, self._position):
                chars.append(match[0])
                self._position = match.end()
            elif self._text.startswith("\\", self._position):
                chars.append(self._escape())
            elif self._position >= len(self._text):
                raise error_at("unterminated quoted string", "")
            else:
                self._position += 1
                return "".join(chars)

    def _escape(self) -> str:
        text, start = self._text, self._position
        following = text[start + 1 : start + 2]
        if not following:
            raise error_at("unexpected end after backslash", "\\")
        if following == "u":
            return self._unicode()
        if following == "x":
            match = _HEX.match(text, start)
            if match is None:
                shown = re.match(r"\\x[0-9A-Fa-f]?", text[start:])
                raise error_at("invalid hexadecimal character sequence", shown[0] if shown else "")
            self._position = match.end()
            return _character(int(match[1], 16))
        self._position += 2
        return _ESCAPES.get(following, following)

    def _unicode(self) -> str:
        r"""Decode a sequence of escapes such as `\ud83d\ude00`, because two escapes may form one
        character.
        """
        start = self._position
        chars: list[str] = []
        high = 0
        while self._text.startswith("\\u", self._position):
            match = _UNICODE.match(self._text, self._position)
            if match is None:
                shown = re.match(
                    r"\\u(?:\{[0-9A-Fa-f]{0,6}|[0-9A-Fa-f]{0,3})", self._text[self._position :]
                )
                end = self._position + (shown.end() if shown else 0)
                raise error_at("invalid Unicode escape sequence", self._text[start:end])
            self._position = match.end()
            code = int(match[1] or match[2], 16)
            if 0xD800 <= code <= 0xDBFF:
                if high:
                    raise _surrogate_error("high surrogate must not follow")
                high = code
                continue
            if (0xDC00 <= code <= 0xDFFF) != bool(high):
                raise _surrogate_error("low surrogate must follow")
            if high:
                code = 0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)
                high = 0
            chars.append(_character(code))
        if high:
            raise _surrogate_error("low surrogate must follow")
        return "".join(chars)


def error_at(message: str, near: str) -> SqlSyntaxError:
    """Return the error about the scanner's last match; an empty one means the end of the text."""
    place = f'at or near "{near}"' if near else "at end"
    return SqlSyntaxError(f"{message} {place} of jsonpath input")


def _character(code: int) -> str:
    if code == 0:
        raise UntranslatableCharacter(
            "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text."
        )
    if code > sys.maxunicode:
        raise SqlSyntaxError("invalid Unicode code point")
    return chr(code)


def _surrogate_error(what: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation(
        "invalid input syntax for type jsonpath", detail=f"Unicode {what} a high surrogate."
    )
