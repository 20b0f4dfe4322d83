"""Format Spark SQL so that a person can compare it, with one clause on each line and indented
subqueries.

Only the white space between tokens changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WIDTH = 100
_INDENT = "  "
_QUOTED = r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`"
_CLAUSES = (
    r"SELECT\b|WITH\b|FROM\b|WHERE\b|GROUP BY\b|HAVING\b|ORDER BY\b|LIMIT\b|UNION ALL\b"
    r"|EXCEPT ALL\b|LATERAL VIEW\b|(?:LEFT |LEFT SEMI |LEFT ANTI |FULL |INNER )?JOIN\b|USING\b"
    r"|WHEN (?:NOT )?MATCHED\b|MERGE INTO\b"
)
_TOKEN = re.compile(rf"{_QUOTED}|[()]|\b(?:{_CLAUSES})|[^\s'`()]+|\s+")
_STARTS_QUERY = re.compile(r"\(\s*(?:SELECT|WITH)\b")
_CLAUSE = re.compile(_CLAUSES)
_COMMA = re.compile(rf"{_QUOTED}|[()]|, ")
_BRANCH = re.compile(rf"{_QUOTED}|[()]|\s(?=(?:WHEN|ELSE)\b)")
_CONDITION = re.compile(rf"{_QUOTED}|[()]|\s(?=(?:AND|OR|ON)\b)")


def lines(sql: str) -> list[str]:
    """Return the lines of a query or a statement."""
    return [line for depth, text in _clauses(sql) for line in _wrapped(depth, text)]


def _clauses(sql: str) -> Iterator[tuple[int, str]]:
    """Yield each clause with the number of queries that contain it."""
    is_query: list[bool] = []  # for each open parenthesis
    clause = ""
    for token in _TOKEN.finditer(sql):
        text = token.group()
        within = all(is_query[-1:])
        if text == "(":
            is_query.append(_STARTS_QUERY.match(sql, token.start()) is not None)
            clause += text
            if is_query[-1]:
                yield sum(is_query) - 1, clause.strip()
                clause = ""
        elif text == ")":
            if is_query.pop():
                yield sum(is_query) + 1, clause.strip()
                clause = ""
            clause += text
        elif within and _CLAUSE.fullmatch(text) and clause.strip():
            yield sum(is_query), clause.strip()
            clause = text
        elif within and "\n" in text and text.isspace() and clause.strip():
            yield sum(is_query), clause.strip()
            clause = ""
        else:
            clause += text
    yield 0, clause.strip()


def _wrapped(depth: int, clause: str) -> Iterator[str]:
    """Yield the lines of a clause.  A long clause has its items on several lines, and a long item
    its branches or conditions."""
    indent = _INDENT * depth
    line = ""
    for item in _split(clause, _COMMA):
        if line and len(f"{indent}{line} {item}") > _WIDTH:
            yield from _branches(indent, line)
            indent, line = _INDENT * (depth + 1), ""
        line = f"{line} {item}".strip()
    if line:
        yield from _branches(indent, line)


def _branches(indent: str, line: str) -> Iterator[str]:
    if len(indent + line) <= _WIDTH:
        yield indent + line
        return
    first, *others = _split(line, _BRANCH if line.startswith("CASE") else _CONDITION)
    yield indent + first
    for other in others:
        yield indent + _INDENT + other


def _split(text: str, separator: re.Pattern[str]) -> Iterator[str]:
    """Yield the parts of a text, split where no parenthesis is open."""
    start, level = 0, 0
    for token in separator.finditer(text):
        level += {"(": 1, ")": -1}.get(token.group(), 0)
        if token.group() not in ("(", ")") and token.group()[0] not in "'`" and level <= 0:
            yield text[start : token.end()].strip()
            start = token.end()
    yield text[start:].strip()
