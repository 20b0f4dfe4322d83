"""Operators of users in expressions that engines compute only with built-in operators."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session

REFUSED = "are not supported with operators of users"


@pytest.mark.parametrize(
    "expression",
    ["3 = ANY (ARRAY[3])", "3 IN (3, 4)", "NULLIF(3, 3)", "3 IS DISTINCT FROM 4"],
)
def test_own_equality_is_refused(session: Session, expression: str) -> None:
    for statement in (
        "CREATE SCHEMA s",
        "CREATE FUNCTION s.f(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 < $2'",
        "CREATE OPERATOR s.= (leftarg = int, rightarg = int, function = s.f)",
        "SET search_path = s, pg_catalog",
    ):
        assert "ERROR" not in answer_of(session, statement)[0]
    assert answer_of(session, "SELECT 3 = 3") == ("| f", "SELECT 1")
    (error,) = answer_of(session, f"SELECT {expression}")
    assert error.startswith("ERROR 0A000")
    assert error.endswith(REFUSED)
