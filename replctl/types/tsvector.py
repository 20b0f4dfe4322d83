"""tsvector: a value is its canonical text (PostgreSQL's tsvector.c)."""

from __future__ import annotations

import re

from replctl.errors import ProgramLimitExceeded, SqlSyntaxError
from replctl.types.integer import decimal_int
from replctl.types.lexeme import BLANKS, MAX_WORD_LENGTH, quote, read_lexeme, syntax_error
from replctl.types.text_form import text_form

MAX_POSITION = 16383  # MAXENTRYPOS - 1 in ts_type.h
MAX_POSITIONS = 255  # MAXNUMPOS - 1: the number of positions of one word
MAX_LENGTH = (1 << 20) - 1  # MAXSTRPOS: the number of bytes of all words

_POSITION = re.compile(r"(\d+)[dD\d]*([a-cA-C*]?)\d*", re.ASCII)
_WEIGHTS = {"": 0, "C": 1, "B": 2, "A": 3, "*": 3}
_WEIGHT_LETTERS = ("", "C", "B", "A")

Positions = list[tuple[int, int]]  # position and weight


def tsvectorin(text: str) -> str:
    """Return the canonical text: `b a:2,1A a:2` -> `'a':1A,2 'b'`.

    Raises:
        SqlSyntaxError: `text` is not a list of words with positions.
        ProgramLimitExceeded: a word is too long.
    """
    words: dict[str, Positions] = {}
    position = length = 0
    while lexeme := read_lexeme(text, position, is_query=False):
        positions, position = _positions(text, lexeme.end)
        size = len(lexeme.word.encode())
        if size >= MAX_WORD_LENGTH:
            raise ProgramLimitExceeded(
                f"word is too long ({size} bytes, max {MAX_WORD_LENGTH - 1} bytes)"
            )
        if length > MAX_LENGTH:
            raise ProgramLimitExceeded(
                f"string is too long for tsvector ({length} bytes, max {MAX_LENGTH} bytes)"
            )
        length += size
        words.setdefault(lexeme.word, []).extend(positions)
    return " ".join(
        quote(word) + _positions_text(words[word]) for word in sorted(words, key=str.encode)
    )


def _positions(text: str, start: int) -> tuple[Positions, int]:
    """Return the positions at `start`, and their end: (`:1,2A`, 0) -> ([(1, 0), (2, 3)], 5)."""
    positions: Positions = []
    position = start
    while text[position : position + 1] == (":" if position == start else ","):
        match = _POSITION.match(text, position + 1)
        if match is None:
            raise syntax_error(text, "tsvector")
        number = _position(decimal_int(match[1]))
        if number == 0:
            raise SqlSyntaxError(f'wrong position info in tsvector: "{text}"')
        positions.append((number, _WEIGHTS[match[2].upper()]))
        position = match.end()
    if positions and text[position : position + 1] not in ("", *BLANKS):
        raise syntax_error(text, "tsvector")
    return positions, position


def _position(number: int) -> int:
    """Return the position that the server stores: it reads 32 bits, and keeps at most 14."""
    number = (min(number, 2**63 - 1) + 2**31) % 2**32 - 2**31
    return MAX_POSITION if number > MAX_POSITION else number & 0x3FFF


def _positions_text(positions: Positions) -> str:
    """Print the positions in order, each once and with its greatest weight."""
    weights: dict[int, int] = {}
    for position, weight in sorted(positions, key=lambda item: item[0]):
        if MAX_POSITION in weights and len(weights) > 1:
            break  # the server ignores everything after the last position
        weights[position] = max(weight, weights.get(position, 0))
    shown = [f"{position}{_WEIGHT_LETTERS[weight]}" for position, weight in weights.items()]
    return ":" + ",".join(shown[:MAX_POSITIONS]) if shown else ""


FORMS = {"tsvector": text_form(tsvectorin, str)}
