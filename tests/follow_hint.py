"""Follow a HINT, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable

from fix_replication import Database

_ELSEWHERE = re.compile(
    r'In database "(?P<database>.+?)", use (?P<there>.+?)'
    r" Then, in the database of the subscription, use (?P<here>.+)",
    re.DOTALL,
)


_RENAMED = re.compile(
    r"If the publisher has renamed (?:a column|columns), use (?P<renamed>.+?)"
    r" otherwise, use (?P<added>.+)"
)


def follow_hint(
    hint: str | None, subscriber: Database, connected: Callable[[str], Database]
) -> None:
    """Run the statements of a HINT one after the other, as psql does.

    If the HINT asks whether the publisher has renamed a column, the answer is yes.

    Args:
        connected: returns the database with a name.
    """
    assert hint is not None, "there is no HINT"
    elsewhere = _ELSEWHERE.fullmatch(hint)
    if elsewhere is not None:
        _run(connected(elsewhere["database"]), elsewhere["there"])
        hint = elsewhere["here"]
    renamed = _RENAMED.fullmatch(hint)
    _run(subscriber, hint.removeprefix("Use ") if renamed is None else renamed["renamed"])


def _run(database: Database, statements: str) -> None:
    assert statements.endswith(";"), f"no statement: {statements}"
    for statement in filter(None, statements.split(";")):
        database.run(statement)
