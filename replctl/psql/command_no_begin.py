"""Find the statements before which psql sends no BEGIN (command_no_begin in psql's common.c)."""

from __future__ import annotations

import re

#: First words of statements that control transactions, or that cannot run in a transaction block.
_WITHOUT_BEGIN = tuple(
    tuple(words.split())
    for words in (
        "ABORT", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "PREPARE TRANSACTION", "VACUUM",
        "CREATE DATABASE", "CREATE TABLESPACE", "CREATE INDEX CONCURRENTLY",
        "CREATE UNIQUE INDEX CONCURRENTLY", "ALTER SYSTEM",
        "DROP DATABASE", "DROP SYSTEM", "DROP TABLESPACE", "DROP INDEX CONCURRENTLY",
        "REINDEX DATABASE", "REINDEX SYSTEM", "REINDEX TABLESPACE", "REINDEX INDEX CONCURRENTLY",
        "REINDEX TABLE CONCURRENTLY", "DISCARD ALL",
    )
)  # fmt: skip
_MOST_WORDS = max(map(len, _WITHOUT_BEGIN))
_SKIPPED_OR_WORD = re.compile(r"\s+|--[^\n]*|/\*|[a-z]+", re.IGNORECASE | re.ASCII)
_IN_COMMENT = re.compile(r"/\*|\*/|.", re.DOTALL)


def runs_without_begin(text: str) -> bool:
    """Return whether psql runs the statement `text` without BEGIN even if AUTOCOMMIT is off."""
    words = _first_words(text)
    if words == ["CLUSTER"]:  # CLUSTER of one table may run in a block
        return True
    return any(words[: len(first)] == list(first) for first in _WITHOUT_BEGIN)


def _first_words(text: str) -> list[str]:
    """Return the first words of a statement, in upper case.  Skip white space and comments, and end
    before anything else.
    """
    words: list[str] = []
    position = depth = 0
    while len(words) < _MOST_WORDS:
        found = (_IN_COMMENT if depth else _SKIPPED_OR_WORD).match(text, position)
        if found is None:
            break
        token, position = found[0], found.end()
        if token == "/*":
            depth += 1
        elif depth:
            depth -= token == "*/"
        elif token.isalpha():
            words.append(token.upper())
    return words
