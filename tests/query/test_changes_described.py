"""replctl knows the columns of RETURNING before a statement runs, and refuses wrong ones before it
reads anything."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported
from replctl.execute import describe, execute
from replctl.session import Session


@pytest.fixture
def tables(session: Session) -> Session:
    """Return a session with the tables t, r and u."""
    list(execute(session, "CREATE TABLE t (id serial PRIMARY KEY, a numeric(5,2), UNIQUE (a))"))
    list(execute(session, "CREATE TABLE r (id int)"))
    list(execute(session, "CREATE TABLE u (id int); CREATE UNIQUE INDEX ON u (id) WHERE id > 0"))
    return session


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("INSERT INTO t (a) VALUES (1) RETURNING *", [("id", "integer"), ("a", "numeric(5,2)")]),
        (
            "UPDATE t x SET a = 2 FROM r WHERE r.id = x.id RETURNING x.a + 1",
            [("?column?", "numeric")],
        ),
        (
            "DELETE FROM t USING r RETURNING t.id AS gone, 'x'",
            [("gone", "integer"), ("?column?", "text")],
        ),
        (
            "INSERT INTO t AS x DEFAULT VALUES ON CONFLICT (id) DO UPDATE SET a = excluded.a + x.a"
            " RETURNING x.a",
            [("a", "numeric(5,2)")],
        ),
        ("DELETE FROM t", []),
    ],
)
def test_columns_are_described(
    tables: Session, statement: str, columns: list[tuple[str, str]]
) -> None:
    assert describe(tables, statement) == columns


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE t SET a = 1 FROM r RETURNING *", "columns of other tables in RETURNING"),
        ("DELETE FROM t USING r RETURNING r.id", "columns of other tables in RETURNING"),
        ("UPDATE t SET a = 1 FROM r RETURNING (SELECT r.id)", "columns of other tables in"),
        ("INSERT INTO t DEFAULT VALUES RETURNING nextval('t_id_seq')", "functions of sequences"),
        ("COPY (DELETE FROM t RETURNING id) TO STDOUT", "RETURNING in COPY is not supported"),
        ("INSERT INTO t DEFAULT VALUES ON CONFLICT DO NOTHING", "ON CONFLICT of several unique"),
        (
            "INSERT INTO u DEFAULT VALUES ON CONFLICT (id) WHERE id > 1 DO UPDATE SET id = 1",
            "ON CONFLICT with a condition that the partial index does not have",
        ),
        ("UPDATE t SET (id, a) = (SELECT 1, 2)", "a sub-SELECT as source for a multiple-column"),
    ],
)
def test_what_it_cannot_give_is_refused(tables: Session, statement: str, message: str) -> None:
    with pytest.raises(FeatureNotSupported, match=message):
        list(execute(tables, statement))
