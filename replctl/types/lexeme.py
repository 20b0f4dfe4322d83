"""Read and quote the words of a tsvector or tsquery (PostgreSQL's tsvector_parser.c)."""

from __future__ import annotations

from replctl.errors import SqlSyntaxError
from replctl.record import dataclass

MAX_WORD_LENGTH = 2047  # bytes, one more than allowed: MAXSTRLEN in ts_type.h

# Blanks of iswspace() in the locale C.UTF-8, which excludes no-break spaces.
BLANKS = (
    " \t\n\v\f\r\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)
_OPERATORS = "!&|()<"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word in a text, with a flag for quotes, and its end position in the text."""

    word: str
    is_quoted: bool
    end: int


def read_lexeme(text: str, start: int, is_query: bool) -> Lexeme | None:
    """Return the word at `start`, after blanks; None at the end of the text.

    Args:
        is_query: operators also end a word, as in a tsquery.

    Raises:
        SqlSyntaxError: a quote is not closed, a quoted word is empty, or the text ends with a
            backslash.
    """
    type_name = "tsquery" if is_query else "tsvector"
    position = start
    while text[position : position + 1] in tuple(BLANKS):
        position += 1
    if position >= len(text):
        return None
    if text[position] == "'":
        return _quoted(text, position + 1, type_name)
    delimiters = BLANKS + ":" + (_OPERATORS if is_query else "")
    chars: list[str] = []
    if text[position] == ":" and not is_query:  # at the beginning, it is part of the word
        chars.append(":")
        position += 1
    while position < len(text) and text[position] not in delimiters:
        char, position = _unescaped(text, position)
        chars.append(char)
    if not chars:
        raise syntax_error(text, type_name)
    return Lexeme("".join(chars), False, position)


def quote(word: str) -> str:
    r"""Quote a word: `it's` -> `'it''s'`."""
    doubled = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def syntax_error(text: str, type_name: str) -> SqlSyntaxError:
    """Return the error for the literal `text`."""
    return SqlSyntaxError(f'syntax error in {type_name}: "{text}"')


def _quoted(text: str, position: int, type_name: str) -> Lexeme:
    chars: list[str] = []
    while position < len(text):
        if text[position] == "'":
            position += 1
            if text[position : position + 1] != "'":
                break
            chars.append("'")
            position += 1
        else:
            char, position = _unescaped(text, position)
            chars.append(char)
    else:
        raise syntax_error(text, type_name)
    if not chars:
        raise syntax_error(text, type_name)
    return Lexeme("".join(chars), True, position)


def _unescaped(text: str, position: int) -> tuple[str, int]:
    if text[position] != "\\":
        return text[position], position + 1
    if position + 1 >= len(text):
        raise SqlSyntaxError(f'there is no escaped character: "{text}"')
    return text[position + 1], position + 2
