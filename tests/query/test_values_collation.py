"""The collations of the columns of VALUES."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.expr import collate
from replctl.session import Session


def test_constants_are_visited_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    visited = []
    visit = collate._visit

    def counted(environment: object, node: object) -> object:
        visited.append(node)
        return visit(environment, node)  # type: ignore[arg-type]

    monkeypatch.setattr(collate, "_visit", counted)
    rows = ", ".join(f"({i}, '{i}', {i} + 1)" for i in range(100))
    query = f"SELECT count(*) FROM (VALUES {rows}) v"
    assert answer_of(session, query) == ("| 100", "SELECT 1")
    constants = 4 * 100
    assert len(visited) < constants + 100 + 20  # each constant and each sum once


@pytest.mark.parametrize(
    ("rows", "collation"),
    [
        ("('a'), ('b')", '"default"'),
        ("('a'), ('b' COLLATE \"C\")", '"C"'),
        ("('a' || 'b'), (NULL)", '"default"'),
        ("(1), (2)", "-"),
        ("(relname), ('b')", '"C"'),
    ],
)
def test_columns_have_the_collation_of_all_rows(
    session: Session, rows: str, collation: str
) -> None:
    source = f"pg_class, LATERAL (VALUES {rows}) v (c)"
    answer_of(session, f"CREATE VIEW w AS SELECT v.c FROM {source}")
    query = "SELECT attcollation::regcollation FROM pg_attribute WHERE attrelid = 'w'::regclass"
    assert answer_of(session, query) == (f"| {collation}", "SELECT 1")
