"""Follow the HINT of an error, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable

from fix_replication import Database

from replctl.errors import PostgresError

_ELSEWHERE = re.compile(
    r'In database "(?P<database>.+?)", use (?P<there>.+?)'
    r" Then, in the database of the subscription, use (?P<here>.+)",
    re.DOTALL,
)


def follow_hint(
    error: PostgresError, subscriber: Database, connected: Callable[[str], Database]
) -> None:
    """Run the statements of a HINT.

    Args:
        connected: gives a database by its name.
    """
    hint = error.hint
    assert hint is not None, f"no HINT: {error.message}"
    elsewhere = _ELSEWHERE.fullmatch(hint)
    if elsewhere is not None:
        connected(elsewhere["database"]).run(elsewhere["there"])
        hint = elsewhere["here"]
    assert hint.endswith(";"), f"no statement: {hint}"
    subscriber.run(hint.removeprefix("Use "))
