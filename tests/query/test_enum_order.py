"""ORDER BY sorts an output column by its enum's order, whatever other columns are named in SQL."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session

ROWS = "(VALUES (1, 'ok'::mood), (2, 'sad'), (3, 'happy')) v (a, b)"


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT b FROM {} ORDER BY b", ["sad", "ok", "happy"]),
        ("SELECT b FROM {} GROUP BY b ORDER BY b DESC", ["happy", "ok", "sad"]),
        ("SELECT DISTINCT b FROM {} ORDER BY b DESC", ["happy", "ok", "sad"]),
        ("SELECT max(b) FROM {} GROUP BY a ORDER BY 1", ["sad", "ok", "happy"]),
        ("SELECT b FROM {0} UNION SELECT b FROM {0} ORDER BY 1", ["sad", "ok", "happy"]),
    ],
)
def test_the_order_is_that_of_the_labels(session: Session, query: str, values: list[str]) -> None:
    answer_of(session, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    *rows, _tag = answer_of(session, query.format(ROWS))
    assert rows == [f"| {value}" for value in values]
