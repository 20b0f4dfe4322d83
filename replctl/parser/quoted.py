"""Quoted tokens: strings in all forms, quoted names, Unicode escapes (documentation, 4.1.2).

Functions take the text and the offset of a token, and return the token's type, value and end.
"""

from __future__ import annotations

import re

from replctl.errors import InvalidEscapeSequence, SqlSyntaxError
from replctl.parser.syntax_error import unterminated
from replctl.types.character import invalid_bytes

_SPACE = r"[ \t\n\r\f\v]"
#: White space with a line break, and then a quote: these continue a string.
_CONTINUATION = re.compile(rf"[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:{_SPACE}|--[^\n\r]*[\n\r])*'")
_PLAIN_END = re.compile("'")
_ESCAPED_END = re.compile(r"'|\\.", re.S)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S
)
_SIMPLE_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_UESCAPE = re.compile(rf"(?:{_SPACE}|--[^\n\r]*[\n\r])*UESCAPE\b", re.I | re.A)
_SIMPLE_STRING = re.compile(rf"(?:{_SPACE}|--[^\n\r]*[\n\r])*('((?:[^']|'')*)')")
_UNTERMINATED = {"b": "bit string literal", "x": "hexadecimal string literal"}
_BYTE = 0xDC00  # surrogateescape adds this to a byte of an invalid character


def quoted_string(text: str, start: int) -> tuple[str, str, int]:
    """Return the type, value and end of the string at `start`, which begins with ', E', B' or
    X'.
    """
    prefix = "" if text[start] == "'" else text[start].lower()
    body, end = _string_body(
        text,
        start,
        start + len(prefix),
        with_escapes=prefix == "e",
        with_quotes=prefix in ("", "e"),
    )
    match prefix:
        case "e":
            return "SCONST", _unescape(body, start + 2, text, end) if "\\" in body else body, end
        case "b" | "x":
            return f"{prefix.upper()}CONST", prefix + body, end
        case _:
            return "SCONST", body, end


def quoted_name(text: str, start: int, quote: int) -> tuple[str, int]:
    """Return the quoted name whose first double quote is at `quote`, and its end."""
    parts, position = [], quote + 1
    while True:
        close = text.find('"', position)
        if close < 0:
            raise unterminated("quoted identifier", text, start)
        parts.append(text[position:close])
        position = close + 1
        if not text.startswith('"', position):
            break
        parts.append('"')
        position += 1
    name = "".join(parts)
    if not name:
        raise SqlSyntaxError(
            f'zero-length delimited identifier at or near "{text[start:position]}"', position=start
        )
    return name, position


def unicode_quoted(text: str, start: int) -> tuple[str, str, int]:
    """Return the type, value and end of U&'..' or U&".." with an optional UESCAPE clause."""
    is_name = text[start + 2] == '"'
    if is_name:
        body, end = quoted_name(text, start, start + 2)
    else:
        body, end = _string_body(text, start, start + 2, with_escapes=False)
    escape, end = _uescape(text, end)
    value = _unescape_unicode(body, escape, start + 3)
    return ("IDENT", value, end) if is_name else ("SCONST", value, end)


def _string_body(
    text: str, start: int, quote: int, *, with_escapes: bool, with_quotes: bool = True
) -> tuple[str, int]:
    """Return the characters between quotes, in which a doubled quote stands for one, and their end.

    Strings with only white space and a line break between them are one string.
    """
    pattern = _ESCAPED_END if with_escapes else _PLAIN_END
    parts, position = [], quote + 1
    while True:
        match = pattern.search(text, position)
        if match is None:
            what = _UNTERMINATED.get(text[start].lower(), "quoted string")
            raise unterminated(what, text, start)
        if match.group() != "'":
            parts.append(text[position : match.end()])
            position = match.end()
            continue
        parts.append(text[position : match.start()])
        position = match.end()
        if with_quotes and text.startswith("'", position):
            parts.append("'")
            position += 1
            continue
        continuation = _CONTINUATION.match(text, position)
        if continuation is None:
            return "".join(parts), position
        position = continuation.end()


def _unescape(body: str, offset: int, text: str, end: int) -> str:
    """Return the value of an E string.  Its escapes may be single bytes of a character."""
    parts, position, high = [], 0, 0
    for match in _ESCAPE.finditer(body):
        between = body[position : match.start()]
        octal, hexadecimal, short, long, other = match.groups()
        unit = int(short or long, 16) if short or long else -1
        is_low, is_wrong = 0xDC00 <= unit <= 0xDFFF, other in ("u", "U")
        if high and (between or not (is_low or is_wrong)):
            raise _surrogate_error(text, offset + position)
        parts.append(between)
        position = match.end()
        if octal or hexadecimal:
            byte = int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)
            parts.append(chr(byte) if 0 < byte < 0x80 else chr(_BYTE + byte))
        elif is_wrong:
            raise InvalidEscapeSequence(
                "invalid Unicode escape",
                hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.",
                position=offset + match.start(),
            )
        elif other:
            parts.append(_SIMPLE_ESCAPES.get(other, other))
        elif high:
            parts.append(_joined(high, unit))
            high = 0
        elif 0xD800 <= unit <= 0xDBFF:
            high = unit
        elif unit == 0 or unit > 0x10FFFF:
            message = f'invalid Unicode escape value at or near "{match.group()}"'
            raise SqlSyntaxError(message, position=offset + match.start())
        elif is_low:
            raise SqlSyntaxError(
                f'invalid Unicode surrogate pair at or near "{match.group()}"',
                position=offset + match.start(),
            )
        else:
            parts.append(chr(unit))
    if high:
        raise _surrogate_error(text, offset + position)
    parts.append(body[position:])
    return _join_bytes("".join(parts))


def _surrogate_error(text: str, position: int) -> SqlSyntaxError:
    near = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|.", re.S).match(text, position)
    return SqlSyntaxError(
        f'invalid Unicode surrogate pair at or near "{near.group() if near else ""}"',
        position=position,
    )


def _joined(high: int, low: int) -> str:
    return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))


def _join_bytes(value: str) -> str:
    """Combine single bytes (\\303\\251) into the characters that they encode."""
    if value.isascii():
        return value
    if "\udc00" in value:
        raise invalid_bytes(b"\0")
    data = value.encode("utf-8", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid_bytes(data[error.start :]) from None


def check_characters(text: str) -> None:
    """Check that a text consists of characters.  Invalid bytes in it are surrogates.

    Raises:
        CharacterNotInRepertoire: the text has the character 0, or bytes that are not UTF-8 (22021).
    """
    if "\0" in text:
        raise invalid_bytes(b"\0")
    if not text.isascii():
        _join_bytes(text)


def _uescape(text: str, end: int) -> tuple[str, int]:
    """Return the escape character of the UESCAPE clause after `end`, and the clause's end; a
    backslash and `end` if there is no clause (base_yylex in parser.c).
    """
    clause = _UESCAPE.match(text, end)
    if clause is None:
        return "\\", end
    string = _SIMPLE_STRING.match(text, clause.end())
    if string is None:
        rest = re.compile(rf"{_SPACE}*(\w+|\S|$)").match(text, clause.end())
        near = rest[1] if rest else ""
        raise SqlSyntaxError(
            "UESCAPE must be followed by a simple string literal "
            + (f'at or near "{near}"' if near else "at end of input"),
            position=rest.start(1) if rest else len(text),
        )
    escape = string[2].replace("''", "'")
    if len(escape) != 1 or escape in "+'\" \t\n\r\f\v" or escape in "0123456789abcdefABCDEF":
        raise SqlSyntaxError(
            f'invalid Unicode escape character at or near "{string[1]}"', position=string.start(1)
        )
    return escape, string.end()


def _unescape_unicode(body: str, escape: str, offset: int) -> str:
    """Return the value of a U& string or name with \\XXXX, \\+XXXXXX and \\\\ (str_udeescape in
    parser.c).
    """
    quoted = re.escape(escape)
    pattern = re.compile(rf"{quoted}(?:({quoted})|([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|)")
    parts, position, high = [], 0, 0
    for match in pattern.finditer(body):
        between = body[position : match.start()]
        doubled, short, long = match.groups()
        unit = int(short or long, 16) if short or long else -1
        at = offset + match.start()
        if high and between:
            raise SqlSyntaxError("invalid Unicode surrogate pair", position=offset + position)
        parts.append(between)
        position = match.end()
        if unit < 0 and not doubled:
            raise SqlSyntaxError(
                "invalid Unicode escape",
                hint="Unicode escapes must be \\XXXX or \\+XXXXXX.",
                position=at,
            )
        if unit == 0 or unit > 0x10FFFF:
            raise SqlSyntaxError("invalid Unicode escape value", position=at)
        if high and not 0xDC00 <= unit <= 0xDFFF:
            raise SqlSyntaxError("invalid Unicode surrogate pair", position=at)
        if doubled:
            parts.append(escape)
        elif high:
            parts.append(_joined(high, unit))
            high = 0
        elif 0xD800 <= unit <= 0xDBFF:
            high = unit
        elif 0xDC00 <= unit <= 0xDFFF:
            raise SqlSyntaxError("invalid Unicode surrogate pair", position=at)
        else:
            parts.append(chr(unit))
    if high:
        raise SqlSyntaxError("invalid Unicode surrogate pair", position=offset + position)
    parts.append(body[position:])
    return "".join(parts)
