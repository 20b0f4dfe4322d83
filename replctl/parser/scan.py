"""Text to tokens, as PostgreSQL's scan.l and base_yylex do it.

The lexer is Lark's: the grammar's string terminals are its keywords and punctuation, everything else
(names, strings, numbers, operators) is recognised here.  Section 4.1 of PostgreSQL's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any

from lark.common import LexerConf
from lark.lexer import Lexer, LexerState, PatternStr, Token

from replctl.errors import InvalidEscapeSequence, SqlSyntaxError
from replctl.types.builtin import keywords

MAX_IDENTIFIER_BYTES = 63  # NAMEDATALEN - 1

_IDENT = r"[A-Za-z_\u0080-\U0010ffff][A-Za-z_0-9$\u0080-\U0010ffff]*"
_DIGITS = r"\d(?:_?\d)*"
_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\n\r\f\v]+|--[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<quoted_unicode>[Uu]&(?=['"]))
    | (?P<quoted_special>[EeBbXxNn](?='))
    | (?P<word>{_IDENT})
    | (?P<dollar_quote>\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z_0-9\u0080-\U0010ffff]*)?\$)
    | (?P<param>\$\d+)
    | (?P<number>0[xX](?:_?[0-9A-Fa-f])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
        |(?:{_DIGITS}(?:\.(?!\.)(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)
    | (?P<string>')
    | (?P<quoted_name>")
    | (?P<fixed>::|\.\.|:=)
    | (?P<operator>[~!@\#^&|`?+\-*/%<>=]+)
    | (?P<single>[,()\[\].;:])
    """,
    re.VERBOSE,
)
_SINGLE_CHAR_OPERATORS = "+-*/%^<>="
_NAMED_OPERATORS = {
    "<=": "LESS_EQUALS",
    ">=": "GREATER_EQUALS",
    "<>": "NOT_EQUALS",
    "!=": "NOT_EQUALS",
    "=>": "EQUALS_GREATER",
}
_FIXED = {"::": "TYPECAST", ":=": "COLON_EQUALS", "..": "DOT_DOT"}
_CONTINUATION = re.compile(r"[ \t\r\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'")
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S
)
_SIMPLE_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NEXT_WORD = re.compile(r"(?:[ \t\n\r\f\v]+|--[^\n\r]*|/\*.*?\*/)*([A-Za-z_]+)", re.S)
#: What makes a word like `time` or `position` a construct at the start of an expression, not a column.
_CONSTRUCT_FOLLOWS = re.compile(
    r"\s*(?:\(|'|[EeBbXx]'|\$|[Uu]&'|(?:with|without|precision|varying|character|char)\b)", re.I
)
_FOLLOWERS = {
    "NOT": ("NOT_LA", {"BETWEEN", "IN", "LIKE", "ILIKE", "SIMILAR"}),
    "NULLS": ("NULLS_LA", {"FIRST", "LAST"}),
    "WITH": ("WITH_LA", {"TIME", "ORDINALITY"}),
    "WITHOUT": ("WITHOUT_LA", {"TIME"}),
}


class PostgresLexer(Lexer):
    """The lexer that the grammar is parsed with; a token's value is what it means, not its text.

    Whether a word is a keyword depends on the parser's state: where the grammar takes the keyword, it is
    one; elsewhere a word that PostgreSQL does not reserve is a name, and any word is a label.
    """

    __future_interface__ = 2

    def __init__(self, lexer_conf: LexerConf) -> None:
        literal = [t for t in lexer_conf.terminals if isinstance(t.pattern, PatternStr)]
        self._keywords = {
            t.pattern.value.lower(): t.name for t in literal if t.pattern.value.isidentifier()
        }
        self._punctuation = {t.pattern.value: t.name for t in literal}

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        """The tokens of the text, without its end.

        Raises:
            SqlSyntaxError: what begins a token does not end it, or is no token.
        """
        text = lexer_state.text.text
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _syntax_error_at(text, position, position + 1)
            kind = match.lastgroup
            start, end = match.span()
            value = match.group()
            if kind == "space":
                position = end
            elif kind == "comment":
                position = _end_of_comment(text, start)
            elif kind == "word":
                accepted = parser_state.parse_conf.parse_table.states[parser_state.position]
                name = fold_identifier(value)
                yield Token(self._word_type(name, text, end, accepted), name, start, end_pos=end)
                position = end
            elif kind == "single":
                yield Token(self._punctuation[value], value, start, end_pos=end)
                position = end
            elif kind == "operator":
                token = self._operator(value, start)
                yield token
                position = token.end_pos or end
            elif kind == "number":
                yield _number(text, start, end)
                position = end
            elif kind == "fixed":
                yield Token(_FIXED[value], value, start, end_pos=end)
                position = end
            elif kind == "param":
                yield Token("PARAM", value[1:], start, end_pos=end)
                position = end
            elif kind == "quoted_name":
                name, position = _quoted_name(text, start, start)
                yield Token("IDENT", truncate_identifier(name), start, end_pos=position)
            elif kind == "dollar_quote":
                close = text.find(value, end)
                if close < 0:
                    raise _unterminated("dollar-quoted string", text, start)
                position = close + len(value)
                yield Token("SCONST", text[end:close], start, end_pos=position)
            elif kind == "quoted_unicode":
                token, position = _unicode_quoted(text, start)
                yield token
            else:
                token, position = _string(text, start)
                yield token

    def _word_type(self, name: str, text: str, end: int, accepted: Container[str]) -> str:
        keyword = self._keywords.get(name)
        if keyword is None:
            return "IDENT"
        if keyword in _FOLLOWERS:
            lookahead, followers = _FOLLOWERS[keyword]
            next_word = _NEXT_WORD.match(text, end)
            if next_word is not None and next_word[1].upper() in followers:
                keyword = lookahead
        category = keywords()[name][0]
        if keyword in accepted:
            begins_expression = category == "C" and "IDENT" in accepted and "CASE" in accepted
            if not begins_expression or _CONSTRUCT_FOLLOWS.match(text, end):
                return keyword
            return "IDENT"
        if "WORD" in accepted:
            return "WORD"
        is_name = category in "UC" or (category == "T" and text.startswith("(", end))
        return "IDENT" if is_name and "IDENT" in accepted else keyword

    def _operator(self, value: str, start: int) -> Token:
        value = _trim_operator(value)
        if len(value) == 1 and value in _SINGLE_CHAR_OPERATORS:
            return Token(self._punctuation[value], value, start, end_pos=start + len(value))
        name = "<>" if value == "!=" else value
        return Token(_NAMED_OPERATORS.get(value, "OP"), name, start, end_pos=start + len(value))


def fold_identifier(word: str) -> str:
    """An unquoted name as PostgreSQL stores it: ASCII letters in lower case, at most 63 bytes."""
    return truncate_identifier(word.lower() if word.isascii() else _ascii_lower(word))


def truncate_identifier(name: str) -> str:
    """`name` cut to what the type name can hold, at a character's boundary."""
    encoded = name.encode("utf-8")
    if len(encoded) <= MAX_IDENTIFIER_BYTES:
        return name
    return encoded[:MAX_IDENTIFIER_BYTES].decode("utf-8", errors="ignore")


def _ascii_lower(word: str) -> str:
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in word)


def _trim_operator(value: str) -> str:
    """The longest operator at the start of a run of operator characters.

    A comment ends it; a trailing + or - belongs to it only if it has one of ~ ! @ # % ^ & | ` ?.
    """
    for opener in ("--", "/*"):
        value = value.split(opener, 1)[0]
    while len(value) > 1 and value[-1] in "+-" and not set(value[:-1]) & set("~!@#%^&|`?"):
        value = value[:-1]
    return value


def _end_of_comment(text: str, start: int) -> int:
    depth, position = 0, start
    for match in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        position = match.end()
        if depth == 0:
            return position
    raise _unterminated("/* comment", text, start)


def _number(text: str, start: int, end: int) -> Token:
    junk = re.compile(rf"{_IDENT}|_").match(text, end)
    if junk is not None:
        raise SqlSyntaxError(
            f'trailing junk after numeric literal at or near "{text[start : junk.end()]}"',
            position=start,
        )
    digits = text[start:end].replace("_", "")
    if digits[:2].lower() in ("0x", "0o", "0b"):
        number = int(digits, 0)
    elif digits.isdigit():
        number = int(digits)
    else:
        return Token("FCONST", digits, start, end_pos=end)
    kind = "ICONST" if number <= 0x7FFFFFFF else "FCONST"
    return Token(kind, str(number), start, end_pos=end)


def _string(text: str, start: int) -> tuple[Token, int]:
    """A string that begins at `start` with ' or with one of E, B, X, N and '."""
    prefix = "" if text[start] == "'" else text[start].lower()
    body, position = _string_body(text, start, start + len(prefix), with_escapes=prefix == "e")
    if prefix == "e":
        body = _unescape(body, start + 2)
    kind = {"b": "BCONST", "x": "XCONST"}.get(prefix, "SCONST")
    return Token(
        kind, prefix + body if prefix in ("b", "x") else body, start, end_pos=position
    ), position


def _string_body(text: str, start: int, quote: int, *, with_escapes: bool) -> tuple[str, int]:
    """The characters between quotes, doubled ones made single, and where the string ends.

    Strings that only white space with a line break separates are one string.
    """
    pattern = re.compile(r"'|\\." if with_escapes else r"'", re.S)
    parts, position = [], quote + 1
    while True:
        match = pattern.search(text, position)
        if match is None:
            unterminated = {"b": "bit string literal", "x": "hexadecimal string literal"}
            raise _unterminated(unterminated.get(text[start].lower(), "quoted string"), text, start)
        if match.group() != "'":
            parts.append(text[position : match.end()])
            position = match.end()
            continue
        parts.append(text[position : match.start()])
        position = match.end()
        if text.startswith("'", position):
            parts.append("'")
            position += 1
            continue
        continuation = _CONTINUATION.match(text, position)
        if continuation is None:
            return "".join(parts), position
        position = continuation.end()


def _unescape(body: str, offset: int) -> str:
    def replace(match: re.Match[str]) -> str:
        octal, hexadecimal, short, long, other = match.groups()
        if octal is not None:
            return chr(int(octal, 8) & 0xFF)
        if hexadecimal is not None:
            return chr(int(hexadecimal, 16))
        if other is not None:
            if other in "uU":
                raise InvalidEscapeSequence(
                    "invalid Unicode escape",
                    hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.",
                    position=offset + match.start(),
                )
            return _SIMPLE_ESCAPES.get(other, other)
        return _code_point(int(short or long, 16), offset + match.start())

    return _join_surrogates(_join_bytes(_ESCAPE.sub(replace, body), body))


def _join_bytes(value: str, body: str) -> str:
    """Bytes given one by one (\\303\\251) make the characters that they encode."""
    if not re.search(r"\\(?:[0-7]|x)", body) or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _code_point(value: int, position: int) -> str:
    if value == 0 or value > 0x10FFFF:
        raise SqlSyntaxError("invalid Unicode escape value", position=position)
    return chr(value)


def _join_surrogates(value: str) -> str:
    if not any("\ud800" <= char <= "\udfff" for char in value):
        return value
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError:
        raise SqlSyntaxError("invalid Unicode surrogate pair") from None


def _quoted_name(text: str, start: int, quote: int) -> tuple[str, int]:
    parts, position = [], quote + 1
    while True:
        close = text.find('"', position)
        if close < 0:
            raise _unterminated("quoted identifier", text, start)
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


def _unicode_quoted(text: str, start: int) -> tuple[Token, int]:
    """U&'..' or U&".." with an optional UESCAPE clause."""
    is_name = text[start + 2] == '"'
    if is_name:
        body, position = _quoted_name(text, start, start + 2)
    else:
        body, position = _string_body(text, start, start + 2, with_escapes=False)
    escape = "\\"
    clause = re.compile(r"\s*UESCAPE\s*'((?:[^']|'')*)'", re.I).match(text, position)
    if clause is not None:
        escape, position = clause[1], clause.end()
        if len(escape) != 1 or escape in "+'\" \t\n\r\f\v" or escape in "0123456789abcdefABCDEF":
            raise SqlSyntaxError(
                f'invalid Unicode escape character at or near "{clause[0].strip()}"',
                position=clause.start(1) - 1,
            )
    quoted = re.escape(escape)
    pattern = re.compile(rf"{quoted}(?:({quoted})|([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|)")

    def replace(match: re.Match[str]) -> str:
        doubled, short, long = match.groups()
        if doubled:
            return doubled
        if not (short or long):
            raise InvalidEscapeSequence(
                "invalid Unicode escape",
                hint="Unicode escapes must be \\XXXX or \\+XXXXXX.",
                position=start + 3 + match.start(),
            )
        return _code_point(int(short or long, 16), start + 3 + match.start())

    value = _join_surrogates(pattern.sub(replace, body))
    kind = "IDENT" if is_name else "SCONST"
    return Token(
        kind, truncate_identifier(value) if is_name else value, start, end_pos=position
    ), position


def _unterminated(what: str, text: str, start: int) -> SqlSyntaxError:
    return SqlSyntaxError(f'unterminated {what} at or near "{text[start:]}"', position=start)


def _syntax_error_at(text: str, start: int, end: int) -> SqlSyntaxError:
    return SqlSyntaxError(f'syntax error at or near "{text[start:end]}"', position=start)
