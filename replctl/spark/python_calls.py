"""Find calls of Python functions in SQL.  Few commands need the functions (python_functions.py)."""

from __future__ import annotations

import re

_NAME = re.compile(r"\b(replctl_(?:eval|numeric|in|out|partition_hash|row|stored)\w*)\(")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`", re.S)


def without_quoted(sql: str) -> str:
    """Return Spark SQL with all string literals and quoted names replaced by ''.  Users choose
    these, so they may look like anything.

    f('a(', `b(`)  ->  f('', '')
    """
    return _QUOTED.sub("''", sql)


def python_calls(sql: str) -> set[str]:
    """Return the names of the functions in replctl's SQL that Spark runs in Python."""
    # Most SQL has no such name at all, and the search in it is fast
    return set(_NAME.findall(without_quoted(sql))) if _NAME.search(sql) else set()


def uses_python(sql: str) -> bool:
    """Return whether SQL of replctl calls a function that runs in Python."""
    return bool(python_calls(sql))
