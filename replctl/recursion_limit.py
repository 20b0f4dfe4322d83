"""Set Python's recursion limit: statements, expressions and patterns may be nested deeply, and the
functions that read them are recursive.

The command and the Python of Spark have the same limit, so that Spark can compute each expression
that the command accepts.
"""

from __future__ import annotations

import sys

from replctl.errors import StatementTooComplex

_RECURSION_LIMIT = 20000


def raise_recursion_limit() -> None:
    """Raise the limit of this process, if it is lower."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))


def too_deep() -> StatementTooComplex:
    """Return the error for a statement or a value that exceeds the limit."""
    return StatementTooComplex("stack depth limit exceeded")
