"""Split a file into lines and fields (copyfromparse.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from replctl.errors import BadCopyFileFormat
from replctl.query.copy_options import CopyFormat
from replctl.types.character import invalid_bytes
from replctl.types.encoding import codec

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)?", re.DOTALL)
_LINE_ENDS = {"\n": "newline", "\r": "carriage return"}


class Default:
    """The value of a field that contains the marker for its column's default."""


DEFAULT: Final = Default()
Field: TypeAlias = str | Default | None


class LineReader:
    """Iterates over the lines of a file; a line of CSV may contain newlines.

    Args:
        data: the pieces of the file, each up to a newline.

    Attributes:
        number: the number of the current line, from 1, for messages.
    """

    def __init__(self, data: Iterable[bytes], format_: CopyFormat) -> None:
        self._data = iter(data)
        self._codec = codec(format_.encoding)
        self._encoding = format_.encoding
        self._is_csv = format_.is_csv
        self._quote = format_.quote
        # A doubled quote needs no special case: the first one ends the quoted text, the second
        # one starts it again.
        self._escape = format_.escape if format_.escape != format_.quote else None
        special = "\r\n\\" + (format_.quote + format_.escape if format_.is_csv else "")
        self._special = re.compile(f"[{re.escape(special)}]")
        self._is_plain = re.compile(f"[^{re.escape(special)}]*\n").fullmatch
        self._eol: str | None = None
        self._rest = ""  # the rest of the read data after the line
        self._is_done = False
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while not self._is_done:
            self.number += 1
            line = self._line()
            if self._is_done and not line:
                return
            yield line

    def header(self) -> str:
        """Return the first line. It may be the only one, and may lack a newline at its end."""
        self.number += 1
        return self._line()

    def _line(self) -> str:
        """Return the next line without its end.

        Raises:
            BadCopyFileFormat: the line ends differently from the preceding ones.
            CharacterNotInRepertoire: the line is not valid in the file's encoding.
        """
        text, self._rest = self._rest or self._next(), ""
        if self._eol in (None, "\n") and self._is_plain(text):
            self._eol = "\n"
            return text[:-1]
        return self._careful_line(text)

    def _careful_line(self, text: str) -> str:
        """Return a line like `_line`, but check each special character (CopyReadLineText)."""
        place, is_quoted, was_escape = 0, False, False
        while True:
            found = self._special.search(text, place)
            if found is None:
                more = self._next()
                if not more:
                    self._is_done = True
                    return text
                place, was_escape = len(text), False
                text += more
                continue
            was_escape = was_escape and found.start() == place
            char, place = found[0], found.end()
            if self._is_csv:
                if is_quoted and char == self._escape:
                    was_escape = not was_escape
                if char == self._quote and not was_escape:
                    is_quoted = not is_quoted
                if char != self._escape:
                    was_escape = False
                if is_quoted and char == ("\n" if self._eol == "\n" else "\r"):
                    self.number += 1
                if is_quoted:
                    continue
            if char in "\r\n":
                end = self._end_of_line(text, char, place)
                self._rest = text[place - 1 + len(end) :]
                return text[: place - 1]
            if char != "\\" or (self._is_csv and place > 1):
                continue
            while len(text) == place and (more := self._next()):
                text += more
            if text[place : place + 1] == "." and self._is_end_marker(text, place + 1):
                self._is_done = True
                return text[: place - 1]
            if not self._is_csv and place < len(text):
                place += 1  # a character after a backslash has no special meaning

    def _end_of_line(self, text: str, char: str, place: int) -> str:
        """Return the newline sequence of a line, which must be the same for all lines."""
        end = char
        if char == "\r" and self._eol in (None, "\r\n") and text[place : place + 1] == "\n":
            end = "\r\n"
        if self._eol not in (None, end):
            what = _LINE_ENDS[char]
            if self._is_csv:
                raise BadCopyFileFormat(
                    f"unquoted {what} found in data",
                    hint=f"Use quoted CSV field to represent {what}.",
                )
            letter = "\\n" if char == "\n" else "\\r"
            raise BadCopyFileFormat(
                f"literal {what} found in data", hint=f'Use "{letter}" to represent {what}.'
            )
        self._eol = end
        return end

    def _is_end_marker(self, text: str, place: int) -> bool:
        r"""Return whether the `\.` before `place` ends the data. In CSV it must be alone on its
        line. In text format, a `\.` that does not end the data is an error.
        """
        end = text[place : place + 2] if self._eol == "\r\n" else text[place : place + 1]
        if self._eol == "\r\n" and end != "\r\n":
            if end[:1] == "\n" and not self._is_csv:
                raise _wrong_end_marker()
        elif end in ("\n", "\r", "\r\n"):
            if end != (self._eol or end):
                raise _wrong_end_marker()
            return True
        if self._is_csv:
            return False
        raise BadCopyFileFormat("end-of-copy marker corrupt")

    def _next(self) -> str:
        """Return the next piece of the file as text; an empty text at the end."""
        piece = next(self._data, b"")
        try:
            text = piece.decode(self._codec)
        except UnicodeDecodeError as error:
            following = next(self._data, b"")
            raise invalid_bytes(piece[error.start :] + following, self._encoding) from None
        if "\0" in text:
            raise invalid_bytes(b"\0", self._encoding)
        return text


def _wrong_end_marker() -> BadCopyFileFormat:
    return BadCopyFileFormat("end-of-copy marker does not match previous newline style")


class FieldReader:
    """Splits a line into its fields."""

    def __init__(self, format_: CopyFormat) -> None:
        self._format = format_
        delimiter = re.escape(format_.delimiter)
        self._special = re.compile(rf"\\.?|{delimiter}", re.DOTALL)
        self._unquoted_end = re.compile(f"[{delimiter}{re.escape(format_.quote)}]")
        self._quoted_special = re.compile(f"[{re.escape(format_.quote + format_.escape)}]")

    def fields(self, line: str) -> list[Field]:
        """Return the fields of a line: None for NULL.

        Raises:
            BadCopyFileFormat: a quoted field does not end.
            CharacterNotInRepertoire: escaped bytes are not a valid character.
        """
        format_ = self._format
        if format_.is_csv:
            if format_.quote in line:
                return self._csv_fields(line)
            return [self._plain(text) for text in line.split(format_.delimiter)]
        if "\\" not in line:
            return [self._plain(text) for text in line.split(format_.delimiter)]
        start, raw = 0, []
        for found in self._special.finditer(line):
            if found[0] == format_.delimiter:
                raw.append(line[start : found.start()])
                start = found.end()
        raw.append(line[start:])
        return [self._text_field(text) for text in raw]

    def _plain(self, text: str) -> Field:
        if text == self._format.null:
            return None
        return DEFAULT if text == self._format.default else text

    def _text_field(self, text: str) -> Field:
        field = self._plain(text)
        return _unescaped(field) if isinstance(field, str) and "\\" in field else field

    def _csv_fields(self, line: str) -> list[Field]:
        """Split a line of CSV; quotes may begin anywhere in a field (CopyReadAttributesCSV)."""
        fields: list[Field] = []
        place = 0
        while True:
            start, parts, was_quoted = place, [], False
            while True:
                found = self._unquoted_end.search(line, place)
                end = len(line) if found is None else found.start()
                parts.append(line[place:end])
                if found is None or found[0] == self._format.delimiter:
                    break
                text, place = self._quoted(line, found.end())
                parts.append(text)
                was_quoted = True
            raw = line[start:end]
            if raw == self._format.null and not was_quoted:
                fields.append(None)
            elif raw == self._format.default:
                fields.append(DEFAULT)
            else:
                fields.append("".join(parts))
            if found is None:
                return fields
            place = found.end()

    def _quoted(self, line: str, place: int) -> tuple[str, int]:
        """Return the quoted text at `place`, and the position after the closing quote."""
        quote, escape = self._format.quote, self._format.escape
        parts = []
        while (found := self._quoted_special.search(line, place)) is not None:
            parts.append(line[place : found.start()])
            following = line[found.end() : found.end() + 1]
            if found[0] == escape and following and following in (quote, escape):
                parts.append(following)
                place = found.end() + 1
            elif found[0] == quote:
                return "".join(parts), found.end()
            else:
                parts.append(found[0])
                place = found.end()
        raise BadCopyFileFormat("unterminated CSV quoted field")


def _unescaped(text: str) -> str:
    r"""Replace escapes such as `a\tb`; escaped bytes (`\303\244`) must form valid characters."""
    result = _ESCAPE.sub(_character, text)
    if "\0" not in result and not any("\udc80" <= char <= "\udcff" for char in result):
        return result
    data = result.encode("utf-8", "surrogateescape")
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        raise invalid_bytes(data[error.start :], "UTF8") from None
    if "\0" in decoded:
        raise invalid_bytes(b"\0", "UTF8")
    return decoded


def _character(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return ""
    if escaped[0] in "01234567":
        number = int(escaped, 8) & 0xFF
    elif len(escaped) > 1:
        number = int(escaped[1:], 16)
    else:
        return _LETTERS.get(escaped, escaped)
    return chr(number) if number < 0x80 else chr(0xDC00 + number)
