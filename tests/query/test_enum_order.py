"""ORDER BY sorts an output column by its enum's order, regardless of the names of columns in
SQL."""

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


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("enum_cmp('ok'::mood, 'sad')", "1"),
        ("enum_cmp('ok'::mood, 'ok')", "0"),
        ("enum_lt('happy'::mood, 'sad')", "f"),
        ("enum_ge('happy'::mood, 'sad')", "t"),
        ("enum_ne('happy'::mood, 'sad')", "t"),
        ("enum_smaller('happy'::mood, 'ok')", "ok"),
        ("enum_larger('happy'::mood, 'ok')", "happy"),
    ],
)
def test_functions_that_compare(session: Session, call: str, value: str) -> None:
    answer_of(session, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    assert answer_of(session, f"SELECT {call}") == (f"| {value}", "SELECT 1")


@pytest.mark.parametrize("name", ["hashenum", "hashenumextended"])
def test_the_hash_of_an_enum_is_refused(session: Session, name: str) -> None:
    """PostgreSQL hashes the OID of the value, which replctl does not store with the rows."""
    answer_of(session, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    seed = ", 1" if name.endswith("extended") else ""
    (error,) = answer_of(session, f"SELECT {name}('ok'::mood{seed})")
    assert error == f"ERROR 0A000: {name}() is not supported"
