"""The tables of docs/explanation/differences.md are true: each statement fails with the named
error, and the alternatives work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replctl.errors import InternalError, PostgresError
from replctl.execute import execute
from replctl.session import Session

_DOCUMENT = Path(__file__).parent.parent / "docs" / "explanation" / "differences.md"
_HEADER = "| statement | error | instead |"
_ROW = re.compile(r"\| `(.+?)` \| `(.+?)` \| (.+) \|")
_STATEMENT = re.compile(r"`([^`]+;)`")
_TABLES = """
CREATE TABLE t (id int PRIMARY KEY, a int, b text, n numeric, j jsonb, d date, ts timestamptz);
CREATE TABLE r (id int REFERENCES t);
CREATE TABLE u (id int PRIMARY KEY, a int UNIQUE);
CREATE TABLE o (id int) PARTITION BY LIST (id);
CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1);
CREATE UNIQUE INDEX ON o1 (id);
CREATE VIEW v AS SELECT id, a FROM t;
CREATE SEQUENCE s;
CREATE ROLE x;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN ints AS int[];
CREATE TYPE pair AS (a int, b text);
CREATE TABLE k (id int PRIMARY KEY, c pair);
CREATE TYPE span AS (a int, b int);
CREATE TABLE h (id int PRIMARY KEY, c span DEFAULT ROW(1, 2));
"""


def _rows() -> list[tuple[str, str, str]]:
    """Return the statement, the error and the alternative in each row of each table."""
    rows, is_inside = [], False
    for line in _DOCUMENT.read_text().splitlines():
        is_inside = line == _HEADER or (is_inside and line.startswith("|"))
        if is_inside and line != _HEADER and not line.startswith("|---"):
            found = _ROW.fullmatch(line)
            assert found, line
            rows.append((found[1], found[2], found[3]))
    return rows


def test_there_are_tables() -> None:
    assert len(_rows()) > 50


@pytest.mark.parametrize(("statement", "error", "instead"), _rows())
def test_a_row(session: Session, statement: str, error: str, instead: str) -> None:
    list(execute(session, _TABLES))
    with pytest.raises(PostgresError) as caught:
        list(execute(session, statement))
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", error)
    for other in _STATEMENT.findall(instead):
        try:
            list(execute(session, other))
        except InternalError as failure:  # it reads or writes rows
            assert failure.message == "this session has no Spark"  # noqa: PT017
