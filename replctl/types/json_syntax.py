"""Check the syntax of JSON, and raise PostgreSQL's errors (jsonapi.c and jsonfuncs.c).

Python's module json then reads the values of valid texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from replctl.errors import InvalidTextRepresentation, UntranslatableCharacter

CONTEXT_LENGTH = 50  # bytes of the line in an error

_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBER_START = re.compile(r"-?(?:0|[1-9]\d*|)(?:\.\d*)?(?:[eE][+-]?\d*)?", re.ASCII)
_WORD = re.compile(r"[^\x00-/:-@\[-^`{-\x7f]+")  # letters, digits and _
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")


def check_json(
    text: str, decodes: bool, check_number: Callable[[str], object] | None = None
) -> None:
    """Check the syntax of JSON; `{"a": [1, true]}` is valid.

    Args:
        decodes: escapes must represent valid characters, as in jsonb.
        check_number: raises an error if a number cannot be stored.

    Raises:
        InvalidTextRepresentation: `text` is not JSON.
        UntranslatableCharacter: an escape represents the character 0.
    """
    _Checker(text, decodes, check_number).check()


class _Checker:
    def __init__(
        self, text: str, decodes: bool, check_number: Callable[[str], object] | None
    ) -> None:
        self._text = text
        self._decodes = decodes
        self._check_number = check_number
        self._start = self._end = 0  # positions of the token
        self._token = ""  # the first character of the token; empty at the end
        self._line = 1
        self._line_start = 0

    def check(self) -> None:
        open_brackets: list[str] = []
        self._advance()
        while True:
            self._begin_value(open_brackets)
            while open_brackets and self._ends_bracket(open_brackets):
                pass
            if not open_brackets:
                break
        if self._token:
            raise self._error(f'Expected end of input, but found "{self._found()}".')

    def _begin_value(self, open_brackets: list[str]) -> None:
        """Read a scalar or an empty object or array, and the brackets before it."""
        while True:
            opening = self._token
            if opening not in ("{", "["):
                if opening == "" or opening in "}],:":
                    raise self._expected("JSON value")
                scalar = self._found()
                self._advance()
                if self._check_number is not None and opening in "-0123456789":
                    self._check_number(scalar)
                return
            self._advance()
            if opening == "{":
                if self._token == "}":
                    self._advance()
                    return
                self._take_key('string or "}"')
            elif self._token == "]":
                self._advance()
                return
            open_brackets.append(opening)

    def _ends_bracket(self, open_brackets: list[str]) -> bool:
        """Read the token after a value, and return whether it ends the object or array."""
        bracket = open_brackets[-1]
        closing = "}" if bracket == "{" else "]"
        if self._token == closing:
            self._advance()
            open_brackets.pop()
            return True
        if self._token != ",":
            raise self._expected(f'"," or "{closing}"')
        self._advance()
        if bracket == "{":
            self._take_key("string")
        return False

    def _take_key(self, expected: str) -> None:
        if self._token != '"':
            raise self._expected(expected)
        self._advance()
        if self._token != ":":
            raise self._expected('":"')
        self._advance()

    def _advance(self) -> None:
        """Read the next token."""
        blanks = _BLANKS.match(self._text, self._end)
        assert blanks is not None  # the pattern also matches an empty text
        lines = blanks[0].count("\n")
        if lines:
            self._line += lines
            self._line_start = self._text.rindex("\n", blanks.start(), blanks.end()) + 1
        self._start = self._end = blanks.end()
        self._token = self._text[self._start : self._start + 1]
        if self._token == "":
            return
        if self._token in "{}[]:,":
            self._end += 1
        elif self._token == '"':
            self._take_string()
        elif self._token in "-0123456789":
            self._take_number()
        else:
            self._take_word()

    def _take_number(self) -> None:
        start = _NUMBER_START.match(self._text, self._start)
        assert start is not None  # the token begins with a digit or minus
        junk = _WORD.match(self._text, start.end())
        self._end = junk.end() if junk else start.end()
        if _NUMBER.fullmatch(self._found()) is None:
            raise self._invalid_token()

    def _take_word(self) -> None:
        word = _WORD.match(self._text, self._start)
        self._end = word.end() if word else self._start + 1
        if self._found() not in ("true", "false", "null"):
            raise self._invalid_token()

    def _take_string(self) -> None:
        high_surrogate = False
        position = self._start + 1
        while True:
            plain = _PLAIN.match(self._text, position)
            assert plain is not None  # the pattern also matches an empty text
            char = self._text[plain.end() : plain.end() + 1]
            if high_surrogate and (plain[0] or char not in ("\\", "")):
                self._end = position + 1
                raise self._lone_surrogate()
            position = plain.end()
            if char == "\\":
                position, code = self._take_escape(position + 1, high_surrogate)
                high_surrogate = self._follows(code, high_surrogate)
                continue
            self._end = position
            if char == "":
                raise self._invalid_token()
            if char != '"':
                raise self._error(f"Character with value 0x{ord(char):02x} must be escaped.")
            self._end = position + 1
            return

    def _take_escape(self, position: int, high_surrogate: bool) -> tuple[int, int]:
        """Return the end of the escape after a backslash, and its code; -1 if it is not `\\u`."""
        char = self._text[position : position + 1]
        self._end = position + len(char)
        if char == "":
            raise self._invalid_token()
        if char != "u":
            if high_surrogate:
                raise self._lone_surrogate()
            if char not in '"\\/bfnrt':
                self._start = position
                raise self._error(f'Escape sequence "\\{char}" is invalid.')
            return self._end, -1
        digits = _HEX.match(self._text, self._end)
        assert digits is not None  # the pattern also matches an empty text
        self._end = digits.end()
        if len(digits[0]) < 4:
            if self._end >= len(self._text):
                raise self._invalid_token()
            self._end += 1
            raise self._error('"\\u" must be followed by four hexadecimal digits.')
        return self._end, int(digits[0], 16)

    def _follows(self, code: int, high_surrogate: bool) -> bool:
        """Check an escape that follows another one; return whether it is the first half of a
        pair.
        """
        if not self._decodes:
            return False
        if code == 0 and not high_surrogate:
            raise UntranslatableCharacter(
                "unsupported Unicode escape sequence",
                detail="\\u0000 cannot be converted to text.",
                context=self._context(),
            )
        is_low = 0xDC00 <= code <= 0xDFFF
        if 0xD800 <= code <= 0xDBFF:
            if high_surrogate:
                raise self._error("Unicode high surrogate must not follow a high surrogate.")
            return True
        if is_low != high_surrogate:
            raise self._lone_surrogate()
        return False

    def _found(self) -> str:
        return self._text[self._start : self._end]

    def _expected(self, what: str) -> InvalidTextRepresentation:
        if not self._token:
            return self._error("The input string ended unexpectedly.")
        return self._error(f'Expected {what}, but found "{self._found()}".')

    def _invalid_token(self) -> InvalidTextRepresentation:
        return self._error(f'Token "{self._found()}" is invalid.')

    def _lone_surrogate(self) -> InvalidTextRepresentation:
        return self._error("Unicode low surrogate must follow a high surrogate.")

    def _error(self, detail: str) -> InvalidTextRepresentation:
        return InvalidTextRepresentation(
            "invalid input syntax for type json", detail=detail, context=self._context()
        )

    def _context(self) -> str:
        """Return the CONTEXT: `JSON data, line 1: ...the line up to the token...`."""
        line = self._text[self._line_start : self._end].encode()
        start = 0
        while len(line) - start >= CONTEXT_LENGTH:
            start += 1
            while start < len(line) and line[start] & 0xC0 == 0x80:  # inside a character
                start += 1
        start = 0 if start <= 3 else start
        before = "..." if start else ""
        continues = self._token and self._text[self._end : self._end + 1] not in ("", "\n", "\r")
        after = "..." if continues else ""
        return f"JSON data, line {self._line}: {before}{line[start:].decode()}{after}"
