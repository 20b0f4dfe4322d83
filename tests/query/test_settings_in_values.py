"""Values whose text depends on a session's settings are refused, not stored in another form."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported
from replctl.execute import execute
from replctl.session import Session

TABLE = """
CREATE DOMAIN bytes AS bytea;
CREATE TABLE t (
    id int, b bytea, f float8, text text,
    byte text DEFAULT bytea '\\x01'::text, span text DEFAULT interval '1 day'::text
);
CREATE TABLE g (id int, b bytea, text text GENERATED ALWAYS AS (b::text) STORED);
SET bytea_output = escape;
SET intervalstyle = iso_8601;
SET extra_float_digits = 0;
"""


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("INSERT INTO t (text, byte, span) VALUES (bytea '\\x01'::text, '', '')", "bytea"),
        ("INSERT INTO t (text, byte, span) VALUES (0.3::float8::text, '', '')", "float8"),
        ("INSERT INTO t (text, byte, span) VALUES (('\\x00'::bytes)::text, '', '')", "bytea"),
        ("INSERT INTO t (text, span) VALUES ('', '')", "bytea"),
        ("INSERT INTO t (text, span) VALUES ('', ''), ('', '')", "bytea"),
        ("INSERT INTO t (text, span) SELECT '', ''", "bytea"),
        ("INSERT INTO t (text, byte) VALUES ('', '')", "interval"),
        ("INSERT INTO t (text, byte) SELECT '', ''", "interval"),
        ("COPY t (text, span) FROM stdin", "bytea"),
        ("COPY t (text, byte) FROM stdin", "interval"),
        ("INSERT INTO g (id) VALUES (1)", "bytea"),
    ],
)
def test_text_of_another_form(session: Session, statement: str, source: str) -> None:
    list(execute(session, TABLE))
    with pytest.raises(FeatureNotSupported, match=f"cast of type {source} to text"):
        list(execute(session, statement))


def test_usual_settings(session: Session) -> None:
    list(execute(session, TABLE))
    list(execute(session, "RESET ALL; INSERT INTO t (text, span) VALUES (bytea '\\x01'::text, '')"))
    (result,) = execute(session, "SELECT text, byte, span FROM t")
    assert [tuple(row) for row in result.rows] == [("\\x01", "\\x01", "")]
