"""replctl refuses statements that need more than the texts of composite values, and changes
nothing."""

from __future__ import annotations

from functools import partial

import pytest
from golden_script import answer_of

from replctl.errors import FeatureNotSupported
from replctl.execute import execute
from replctl.session import Session

_SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE ct AS (a int, m mood);
CREATE TYPE outer_ct AS (c ct);
CREATE TYPE seen AS (a int);
CREATE TABLE t (id int, c ct, o outer_ct);
CREATE VIEW v AS SELECT (ROW(1)::seen).a;
CREATE TABLE d (o outer_ct DEFAULT '("(1,)")');
CREATE TYPE used AS (a int, b int, c int);
CREATE TABLE u (u used);
CREATE VIEW w AS SELECT (u).b FROM u;
"""
_COMPARED = "comparisons of type ct are not supported"
_ARRAYS = "arrays of type ct are not supported"
_LAYOUT = 'changing the attributes of type ct is not supported because column "t.o" uses it'


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT c FROM t ORDER BY c", _COMPARED),
        ("SELECT DISTINCT c FROM t", _COMPARED),
        ("SELECT DISTINCT ON (c) c FROM t", _COMPARED),
        ("SELECT count(*) FROM t GROUP BY c", _COMPARED),
        ("SELECT count(DISTINCT c) FROM t", _COMPARED),
        ("SELECT c FROM t UNION SELECT c FROM t", _COMPARED),
        ("SELECT c FROM t EXCEPT ALL SELECT c FROM t", _COMPARED),
        ("SELECT rank() OVER (PARTITION BY c) FROM t", _COMPARED),
        ("SELECT rank() OVER (ORDER BY c) FROM t", _COMPARED),
        ("SELECT c = c FROM t", _COMPARED),
        ("SELECT c < ROW(1, 'ok')::ct FROM t", _COMPARED),
        ("SELECT c IS DISTINCT FROM '(1,)'::ct FROM t", _COMPARED),
        ("SELECT nullif(c, '(1,)'::ct) FROM t", _COMPARED),
        ("SELECT c IN ('(1,)', '(2,)') FROM t", _COMPARED),
        ("SELECT c IN (SELECT c FROM t) FROM t", _COMPARED),
        ("SELECT (id, c) < (1, c) FROM t", _COMPARED),
        ("SELECT greatest(c, c) FROM t", _COMPARED),
        ("SELECT 1 FROM t JOIN t u USING (c)", _COMPARED),
        ("SELECT '(1,ok)'::ct = '(1,ok)'::ct", _COMPARED),
        ("SELECT row_to_json(c) FROM t", "calls of row_to_json() with type ct are not supported"),
        ("SELECT num_nulls(c) FROM t", "calls of num_nulls() with type ct are not supported"),
        ("SELECT to_json(c) FROM t", "calls of to_json() with type ct are not supported"),
        ("SELECT array_agg(c) FROM t", "calls of array_agg() with type ct are not supported"),
        ("SELECT ARRAY[c] FROM t", "arrays of type ct are not supported"),
        ("SELECT ('{\"(1,ok)\"}'::ct[])[1]", _ARRAYS),
        ("SELECT (('{\"(1,ok)\"}'::ct[])[1]).a", _ARRAYS),
        ("SELECT ('{\"(1,ok)\"}'::ct[])[1:1]", _ARRAYS),
        ("SELECT array_length('{\"(1,ok)\"}'::ct[], 1)", _ARRAYS),
        ("SELECT cardinality('{}'::ct[])", _ARRAYS),
        ("SELECT '{}'::ct[] || '{}'::ct[]", _ARRAYS),
        ("SELECT '{}'::ct[] = '{}'::ct[]", _ARRAYS),
        ("SELECT '{bad}'::text::ct[]", _ARRAYS),
        ("SELECT to_json('{}'::ct[])", _ARRAYS),
        ("SELECT max('{}'::ct[])", _ARRAYS),
        ("SELECT DISTINCT '{}'::ct[]", _ARRAYS),
        ("SELECT id::text::ct FROM t", "casts of other types to type ct are not supported"),
        ("SELECT c::varchar::outer_ct FROM t", "casts of other types to type outer_ct are not"),
        ("UPDATE t SET c.a = 1", "assignment to a field of a column is not supported"),
        ("INSERT INTO t (c.a) VALUES (1)", "assignment to a field of a column is not supported"),
        ("CREATE INDEX ON t (c)", "indexes and keys of type ct are not supported"),
        ("CREATE INDEX ON t USING hash (c)", "indexes and keys of type ct are not supported"),
        ("ALTER TABLE t ADD UNIQUE (c)", "indexes and keys of type ct are not supported"),
        ("CREATE TABLE x (c ct PRIMARY KEY)", "indexes and keys of type ct are not supported"),
        ("CREATE TABLE x (c ct) PARTITION BY LIST (c)", "partition keys of type ct are not"),
        ("CREATE TABLE x (c ct[])", "columns of type ct[] are not supported"),
        ("CREATE TABLE x (c t)", "columns of type t are not supported"),
        ("CREATE TYPE x AS (c t)", "columns of type t are not supported"),
        ("CREATE TYPE x AS (c regclass)", "attributes of type regclass are not supported"),
        ("ALTER TYPE ct ADD ATTRIBUTE b regtype[]", "attributes of type regtype[] are not"),
        ("SELECT c FROM t INTERSECT ALL SELECT c FROM t", _COMPARED),
        ("CREATE DOMAIN x AS ct[]", "domains over type ct[] are not supported"),
        ("CREATE DOMAIN x AS ct", "domains over type ct are not supported"),
        ("ALTER TYPE ct ADD ATTRIBUTE b int", "because an expression uses it"),
        ("ALTER TYPE ct DROP ATTRIBUTE m", "because an expression uses it"),
        ("ALTER TYPE used DROP ATTRIBUTE a", "because an expression uses it"),
        ("ALTER TYPE ct ALTER ATTRIBUTE a TYPE bigint", 'cannot alter type "ct" because column'),
        ("DROP TYPE mood CASCADE", _LAYOUT),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", 'column "t.c" has rows with it'),
        ("ALTER TYPE seen ADD ATTRIBUTE b int", "because an expression uses it"),
    ],
)
def test_is_refused_by_name(session: Session, statement: str, message: str) -> None:
    list(execute(session, _SETUP))
    with pytest.raises(FeatureNotSupported) as caught:
        list(execute(session, statement))
    assert message in caught.value.message
    (result,) = execute(session, "SELECT count(*) FROM pg_class WHERE relnamespace = 2200")
    assert result.rows == [["9"]]


def test_attributes_change_that_no_expression_uses(session: Session) -> None:
    list(execute(session, _SETUP))
    (result,) = execute(session, "ALTER TYPE used DROP ATTRIBUTE c, ADD ATTRIBUTE d int")
    assert result.tag == "ALTER TYPE"


def test_texts_of_rows_that_depend_on_settings_are_refused(session: Session) -> None:
    run = partial(answer_of, session)
    run("CREATE TYPE moment AS (at timestamptz)")
    run("CREATE TYPE whole AS (m moment, label text)")
    cast = 'SELECT \'("(""2024-01-01 00:00+00"")",x)\'::whole::text'
    shown = '| ("(""2024-01-01 00:00:00+00"")",x)'
    assert run(cast) == (shown, "SELECT 1")
    run("SET intervalstyle = 'iso_8601'")
    assert run(cast) == (shown, "SELECT 1")
    run("SET timezone = 'Europe/Berlin'")
    (refused,) = run(cast)
    assert refused.startswith("ERROR 0A000: cast of type whole to text is not supported with")
