"""A statement with RETURNING that fails writes nothing."""

from __future__ import annotations

from unittest.mock import MagicMock

from golden_script import answer_of

from replctl.session import Session


def test_an_output_that_cannot_be_printed_stops_the_statement(session: Session) -> None:
    answer_of(session, "CREATE TABLE t (id int)")
    answer_of(session, "SET extra_float_digits = 0")
    engine = MagicMock()
    engine.fetch.return_value = [["(1,2)"]]
    session.engine = lambda: engine
    assert answer_of(session, "INSERT INTO t VALUES (1) RETURNING '(1,2)'::point") == (
        "ERROR 0A000: type point is not supported with this extra_float_digits",
    )
    assert answer_of(session, "SELECT * FROM t") == ("SELECT 0",)
