"""EXPLAIN shows whether SQLite or Spark runs a query, and which expressions run in Python."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported
from replctl.execute import describe, execute
from replctl.session import Session


def _plan(session: Session, statement: str) -> list[str]:
    (result,) = execute(session, statement)
    assert result.tag == "EXPLAIN"
    assert result.columns is not None
    assert [(column.name, column.type) for column in result.columns] == [("QUERY PLAN", "text")]
    return [row[0] or "" for row in result.rows]


@pytest.mark.parametrize(
    ("query", "catalogs"),
    [
        (
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON true",
            ["pg_class", "pg_namespace"],
        ),
        ("VALUES (1), (2)", []),
        ("SELECT (SELECT count(*) FROM pg_type)", ["pg_type"]),
    ],
)
def test_a_query_of_catalogs_names_them(session: Session, query: str, catalogs: list[str]) -> None:
    first, *rest = _plan(session, f"EXPLAIN {query}")
    assert first == "Catalog Query (SQLite, without Spark)"
    assert rest == [f"  ->  Catalog {name}" for name in catalogs]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN with ANALYZE is not supported"),
        ("EXPLAIN (BUFFERS) SELECT 1", "EXPLAIN with BUFFERS is not supported"),
        ("EXPLAIN (FORMAT json) SELECT 1", "EXPLAIN with FORMAT JSON is not supported"),
        ("EXPLAIN DELETE FROM pg_class", "EXPLAIN DELETE is not supported"),
    ],
)
def test_more_than_the_plan_is_refused(session: Session, statement: str, message: str) -> None:
    with pytest.raises(FeatureNotSupported, match=message):
        list(execute(session, statement))


def test_it_is_described(session: Session) -> None:
    assert describe(session, "EXPLAIN SELECT 1") == [("QUERY PLAN", "text")]


@pytest.mark.spark
def test_expressions_in_python_are_named(spark_session: Session) -> None:
    tables = "CREATE TABLE t (a int PRIMARY KEY, n numeric, j jsonb); INSERT INTO t VALUES (1, 2)"
    list(execute(spark_session, tables))
    query = (
        "EXPLAIN SELECT x.a, n / 3 FROM t x WHERE a > 5 AND (j @> '{}' OR a = 2)"
        " AND EXISTS (SELECT FROM t WHERE t.a = x.a AND t.j ->> 'b' = 'c')"
    )
    lines = _plan(spark_session, query)
    assert lines[0] == "== Physical Plan =="
    start = lines.index("Evaluated in Python:")
    *in_python, empty, last = lines[start + 1 :]
    assert (empty, last) == (
        "",
        "Small tables: SQLite runs the query, without Spark (replctl.small_table_rows).",
    )
    assert sorted(line.strip() for line in in_python) == [
        "(t.j ->> 'b'::text) = 'c'::text",
        "x.j @> '{}'::jsonb",
        "x.n / 3::numeric",
    ]
    plain = _plan(spark_session, "EXPLAIN (VERBOSE, COSTS off) SELECT a + 1 FROM t WHERE a > 5")
    assert "Evaluated in Python:" not in plain
    assert any("Scan parquet" in line for line in plain)
