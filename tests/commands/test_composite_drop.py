"""Composite types are dropped together with the types of their attributes."""

from __future__ import annotations

from replctl.execute import execute
from replctl.session import Session


def test_types_are_dropped_together(session: Session) -> None:
    list(execute(session, "CREATE TYPE mood AS ENUM ('sad'); CREATE TYPE pair AS (m mood)"))
    (result,) = execute(session, "DROP TYPE pair, mood")
    assert result.tag == "DROP TYPE"
    (result,) = execute(session, "SELECT count(*) FROM pg_type WHERE typnamespace = 2200")
    assert result.rows == [["0"]]
