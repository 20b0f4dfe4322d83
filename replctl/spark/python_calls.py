"""Find calls of Python functions in SQL.  Few commands need the functions (python_functions.py)."""

from __future__ import annotations

import re

_NAME = re.compile(r"\b(replctl_(?:eval|numeric|in|out|partition_hash|row|stored)\w*)\(")


def python_calls(sql: str) -> set[str]:
    """Return the names of the functions in replctl's SQL that Spark runs in Python."""
    return set(_NAME.findall(sql))


def uses_python(sql: str) -> bool:
    """Return whether SQL of replctl calls a function that runs in Python."""
    return bool(python_calls(sql))
