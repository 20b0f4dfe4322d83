"""Split text into tokens like PostgreSQL's scan.l and base_yylex (documentation, section 4.1).

The lexer has Lark's interface.  The string terminals of the grammar are its keywords and
punctuation.  This module recognises all other tokens: names, strings, numbers, operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from lark.common import LexerConf
from lark.lexer import Lexer, LexerState, PatternStr, TerminalDef, Token

from replctl.errors import PostgresError, SqlSyntaxError
from replctl.parser.lookahead import can_follow
from replctl.parser.quoted import quoted_name, quoted_string, unicode_quoted
from replctl.parser.syntax_error import unterminated
from replctl.types.builtin import KeywordCategory, keywords
from replctl.types.identifier import ascii_lower
from replctl.types.integer import decimal_int

#: The first character of a name: a letter, _ or any character beyond ASCII.  Later characters may
#: also be digits and $.  A negated class compiles fast.
_LETTER = r"[^\x00-@\[-^`{-\x7f]"
_IDENT = rf"{_LETTER}[^\x00-#%-/:-@\[-^`{{-\x7f]*"
_DIGITS = r"\d(?:_?\d)*"
_TOKEN = re.compile(
    rf"""
      (?P<quoted_unicode>[Uu]&(?=['"]))
    | (?P<quoted_special>[EeBbXxNn](?='))
    | (?P<word>{_IDENT})
    | (?P<dollar_quote>\$(?:{_LETTER}[^\x00-/:-@\[-^`{{-\x7f]*)?\$)
    | (?P<param>\$\d+)
    | (?P<number>0[xX](?:_?[0-9A-Fa-f])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
        |(?:{_DIGITS}(?:\.(?!\.)(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)
    | (?P<string>')
    | (?P<quoted_name>")
    | (?P<fixed>::|\.\.|:=|[.:])
    | (?P<operator>[~!@\#^&|`?+\-*/%<>=]+)
    """,
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"(?:[ \t\n\r\f\v]+|--[^\n\r]*)+|(?P<comment>/\*)")
_WORD_END = re.compile(r"\w*")
_JUNK = re.compile(rf"{_IDENT}|_")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SINGLE_CHAR_OPERATORS = "+-*/%^<>="
_NAMED_OPERATORS = {
    "<=": "LESS_EQUALS",
    ">=": "GREATER_EQUALS",
    "<>": "NOT_EQUALS",
    "!=": "NOT_EQUALS",
    "=>": "EQUALS_GREATER",
}
_FIXED = {
    "::": "TYPECAST",
    ":=": "COLON_EQUALS",
    "..": "DOT_DOT",
    ".": "DOT",
    ":": "COLON",
}
#: The types of an unreserved word that is a name.  The second cannot be a label without AS.
_NAMES = ("IDENT", "UNBARE_WORD")
#: Words that become a different token if certain words follow (base_yylex in parser.c).
_FOLLOWERS = {
    "format": ("FORMAT_LA", {"json"}),
    "not": ("NOT_LA", {"between", "in", "like", "ilike", "similar"}),
    "similar": ("SIMILAR_LA", {"to"}),  # only here: SIMILAR without TO occurs only in SUBSTRING
    "nulls": ("NULLS_LA", {"first", "last"}),
    "with": ("WITH_LA", {"time", "ordinality"}),
    "without": ("WITHOUT_LA", {"time"}),
}
_MAY_BE_SKIPPED = (" ", "\n", "\t", "\r", "\f", "\v", "-", "/")
_END = "$END"
_INT4_MAX = 0x7FFFFFFF
_MANY_DIGITS = 20  # more than an int8 has, so int() is not needed
_RADIX = {
    "x": "hexadecimal",
    "X": "hexadecimal",
    "o": "octal",
    "O": "octal",
    "b": "binary",
    "B": "binary",
}


class PostgresLexer(Lexer):
    """The lexer of the grammar; a token's value is its meaning, not its text.

    Names are not truncated, so that the caller can report the truncation.

    The parser's state decides whether a word is a keyword: it is one if the grammar accepts the
    keyword and the token after it.  If not, the word is a name or a label, as its category allows.
    """

    __future_interface__ = 2

    def __init__(self, terminals: LexerConf | Sequence[TerminalDef]) -> None:
        """Create a lexer for the grammar's terminals.

        Args:
            terminals: the terminals, or Lark's settings that contain them.
        """
        if isinstance(terminals, LexerConf):
            terminals = list(terminals.terminals)
        literal = [t for t in terminals if isinstance(t.pattern, PatternStr)]
        self._punctuation = {t.pattern.value: t.name for t in literal}
        self._single = {char: self._punctuation[char] for char in ",()[];"}
        in_grammar = {
            t.pattern.value.lower() for t in literal if t.pattern.value.isidentifier()
        } | set(_FOLLOWERS)
        self._words = {
            word: _token_types(word, category, is_bare_label, word in in_grammar)
            for word, (category, is_bare_label) in keywords().items()
        }

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        """Yield the tokens of the text, without an end token.

        Raises:
            SqlSyntaxError: a token is not terminated, or is not valid.
        """
        text = lexer_state.text.text
        states, stack = parser_state.parse_conf.parse_table.states, parser_state.state_stack
        position, end_of_text = 0, len(text)
        while True:
            if text.startswith(_MAY_BE_SKIPPED, position):
                position = _skip(text, position)
            if position >= end_of_text:
                return
            kinds, value, end = self._scan(text, position)
            if isinstance(kinds, str):
                kind = kinds
            else:
                accepted = states[stack[-1]]
                possible = [kind for kind in kinds if kind in accepted]
                if len(possible) > 1:
                    kind = self._choose(possible, parser_state, text, end)
                else:
                    kind = possible[0] if possible else kinds[0]
            yield Token(kind, value, position, None, None, None, None, end)
            position = end

    def _scan(self, text: str, start: int) -> tuple[str | tuple[str, ...], str, int]:
        """Return the type, value and end of the token at `start`; for a word, all its possible
        types.
        """
        punctuation = self._single.get(text[start])
        if punctuation is not None:
            return punctuation, text[start], start + 1
        match = _TOKEN.match(text, start)
        if match is None:
            raise SqlSyntaxError(f'syntax error at or near "{text[start]}"', position=start)
        value, end = match.group(), match.end()
        match match.lastgroup:
            case "word":
                return self._word(text, value, end)
            case "number":
                return _number(text, start, end)
            case "string":
                return quoted_string(text, start)
            case "operator":
                return self._operator(value, start)
            case "quoted_name":
                name, end = quoted_name(text, start, start)
                return "IDENT", name, end
            case "fixed":
                return _FIXED[value], value, end
            case "param":
                return _param(text, start, end)
            case "dollar_quote":
                close = text.find(value, end)
                if close < 0:
                    raise unterminated("dollar-quoted string", text, start)
                return "SCONST", text[end:close], close + len(value)
            case "quoted_unicode":
                return unicode_quoted(text, start)
            case _:
                if value in "Nn":  # N'...' is the word NCHAR and a string
                    return self._words["nchar"], "nchar", end
                return quoted_string(text, start)

    def _word(self, text: str, word: str, end: int) -> tuple[str | tuple[str, ...], str, int]:
        name = ascii_lower(word)
        types = self._words.get(name)
        if types is None:
            return "IDENT", name, end
        if name in _FOLLOWERS:
            other, followers = _FOLLOWERS[name]
            next_word = _TOKEN.match(text, _skip(text, end))
            if next_word is not None and next_word.group().lower() in followers:
                return (other, *types[1:]), name, end
            if name == "similar":
                return (types[0], other, *types[1:]), name, end
        return types, name, end

    def _choose(self, possible: Sequence[str], parser_state: Any, text: str, end: int) -> str:
        """Return the first of a word's types after which the parser can accept the next token.

        The tables of an LALR parser show only that a token may follow in some context.  Therefore
        this function lets the parser run ahead, on its states only.
        """
        try:
            start = _skip(text, end)
            following = self._scan(text, start)[0] if start < len(text) else _END
        except PostgresError:  # the lexer reports it at that token
            following = ()
        if isinstance(following, str):
            following = (following,)
        for kind in possible:
            if any(can_follow(parser_state, (kind, next_kind)) for next_kind in following):
                return kind
        # By default, bison reduces an unreserved word to a name.  Where only IDENT is a name, as in
        # the options of a role, the word is the keyword.
        is_name = all(can_follow(parser_state, (kind,)) for kind in _NAMES)
        for kind in sorted(possible, key=lambda kind: is_name and kind not in _NAMES):
            if can_follow(parser_state, (kind,)):
                return kind
        return possible[0]

    def _operator(self, value: str, start: int) -> tuple[str, str, int]:
        value = _trim_operator(value)
        end = start + len(value)
        if len(value) == 1 and value in _SINGLE_CHAR_OPERATORS:
            return self._punctuation[value], value, end
        return _NAMED_OPERATORS.get(value, "OP"), "<>" if value == "!=" else value, end


def _token_types(
    word: str, category: KeywordCategory, is_bare_label: bool, in_grammar: bool
) -> tuple[str, ...]:
    """Return the possible types of a word, with the keyword first (unreserved_keyword ... in
    gram.y).

    Except for unreserved words, a word that is not in the grammar also has its own type, because
    an unexpected token must be an error.
    """
    keyword = (word.upper(),)
    label = ("BARE_WORD",) if is_bare_label else ()
    match category:
        case KeywordCategory.UNRESERVED:
            names = _NAMES[:1] if is_bare_label else _NAMES[1:]
            return keyword + names if in_grammar else names
        case KeywordCategory.COL_NAME:
            return (*keyword, "COL_NAME_WORD", *label)
        case KeywordCategory.TYPE_FUNC_NAME:
            return (*keyword, "TYPE_FUNC_WORD", "WORD", *label)
        case KeywordCategory.RESERVED:
            return (*keyword, "WORD", *label)


def _skip(text: str, position: int) -> int:
    """Return the offset after white space and comments at `position`."""
    while match := _SPACE.match(text, position):
        position = match.end()
        if match.lastgroup == "comment":
            position = _end_of_comment(text, match.start("comment"))
    return position


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for match in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    raise unterminated("/* comment", text, start)


def _trim_operator(value: str) -> str:
    """Return the longest operator at the beginning of a run of operator characters.

    A comment ends it.  A + or - at the end belongs to it only after one of ~ ! @ # % ^ & | ` ?.
    """
    for opener in ("--", "/*"):
        value = value.split(opener, 1)[0]
    while len(value) > 1 and value[-1] in "+-" and not set(value[:-1]) & set("~!@#%^&|`?"):
        value = value[:-1]
    return value


def _param(text: str, start: int, end: int) -> tuple[str, str, int]:
    _check_junk("parameter", text, start, end)
    return "PARAM", text[start + 1 : end], end


def _number(text: str, start: int, end: int) -> tuple[str, str, int]:
    digits = text[start:end]
    if not digits.isdecimal():
        return _other_number(text, start, end)
    if end < len(text) and text[end] not in " ,)":
        if digits == "0" and text[end] in _RADIX and not text[end + 1 : end + 2].isalnum():
            raise SqlSyntaxError(
                f'invalid {_RADIX[text[end]]} integer at or near "{text[start : end + 1]}"',
                position=start,
            )
        _check_junk("numeric literal", text, start, end)
    number = int(digits) if len(digits) < _MANY_DIGITS else _INT4_MAX + 1
    return "ICONST" if number <= _INT4_MAX else "FCONST", digits.lstrip("0") or "0", end


def _other_number(text: str, start: int, end: int) -> tuple[str, str, int]:
    _check_junk("numeric literal", text, start, end)
    digits = text[start:end].replace("_", "")
    if digits[:2].lower() in ("0x", "0o", "0b"):
        if text[end : end + 1].isdigit():  # a digit outside of the radix
            junk = _WORD_END.match(text, end)
            raise SqlSyntaxError(
                "trailing junk after numeric literal at or near "
                f'"{text[start : junk.end() if junk else end]}"',
                position=start,
            )
        number = int(digits, 0)
        digits = f"{Decimal(number):f}"  # str() refuses thousands of digits
    elif digits.isdecimal():
        number = decimal_int(digits)
        digits = digits.lstrip("0") or "0"
    else:
        return "FCONST", digits, end
    return "ICONST" if number <= _INT4_MAX else "FCONST", digits, end


def _check_junk(what: str, text: str, start: int, end: int) -> None:
    junk = _JUNK.match(text, end)
    if junk is not None:
        raise SqlSyntaxError(
            f'trailing junk after {what} at or near "{text[start : junk.end()]}"', position=start
        )
