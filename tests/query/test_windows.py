"""Windows and aggregates in the SQL of both engines."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.execute import execute
from replctl.functions.function_context import function_context
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import spark_sql
from replctl.query.query_rewrite import rewritten
from replctl.session import Session

_TABLE = "CREATE TABLE t (i int, b int8, m numeric(10,2), n numeric, f float4, d date)"


def _spark_sql(session: Session, text: str) -> str:
    """Return the Spark SQL of a query of the table t."""
    with session.read() as catalog:
        context = function_context(session, catalog)
        statement = parse_statement(text)
        assert isinstance(statement, ast.SelectStmt)
        query = QueryAnalyzer(context.environment, session.transaction_start).query(statement)
        return spark_sql(rewritten(context, query), context)


def test_sqlite_adds_offsets_of_ranges_to_numbers_only(session: Session) -> None:
    frame = "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW"
    query = f"SELECT count(*) OVER (ORDER BY m {frame}) FROM (VALUES ({{}}), (3)) v (m)"
    assert answer_of(session, query.format("1")) == ("| 1", "| 2", "SELECT 2")
    assert answer_of(session, query.format("1.5::float8")) == ("| 1", "| 2", "SELECT 2")
    error = "RANGE with an offset for type numeric is not supported in a query of catalogs"
    assert answer_of(session, query.format("1.10")) == (f"ERROR 0A000: {error}",)


@pytest.mark.parametrize(
    ("column", "offset", "key"),
    [
        ("i", "2", "DECIMAL(20,0)"),
        ("b", "2", "DECIMAL(20,0)"),
        ("m", "2", "DECIMAL(38,2)"),
        ("m", "'0.005'", "DECIMAL(38,3)"),
        ("f", "'0.5'", "DOUBLE"),
    ],
)
def test_spark_orders_ranges_by_sums_without_overflow(
    session: Session, column: str, offset: str, key: str
) -> None:
    list(execute(session, _TABLE))
    window = f"ORDER BY {column} RANGE BETWEEN {offset} PRECEDING AND CURRENT ROW"
    sql = _spark_sql(session, f"SELECT count(*) OVER ({window}) FROM t")
    number = "ibmnf".index(column) + 1
    assert f"(ORDER BY CAST(r1.c{number} AS {key}) ASC NULLS LAST RANGE BETWEEN" in sql


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("n", "type numeric is not supported over tables"),
        ("m::numeric(38,2)", "values of more than 37 digits is not supported"),
    ],
)
def test_spark_refuses_ranges_of_other_types(session: Session, key: str, error: str) -> None:
    list(execute(session, _TABLE))
    answer = answer_of(session, f"SELECT count(*) OVER (ORDER BY {key} RANGE 1 PRECEDING) FROM t")
    assert answer == (f"ERROR 0A000: RANGE with an offset for {error}",)


@pytest.mark.parametrize(
    "call",
    [
        *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(2)"),
        *("lag(r1.c1)", "lead(r1.c1)", "nth_value(r1.c1, 2)"),
    ],
)
def test_spark_gets_an_order_where_it_requires_one(session: Session, call: str) -> None:
    list(execute(session, _TABLE))
    shown = call.replace("r1.c1", "i")
    for window, written in (("", ""), ("PARTITION BY b", "PARTITION BY r1.c2 ")):
        sql = _spark_sql(session, f"SELECT {shown} OVER ({window}) FROM t")
        assert f"{call} OVER ({written}ORDER BY NULL)" in sql
    sql = _spark_sql(session, f"SELECT {shown} OVER (ROWS CURRENT ROW) FROM t")
    assert f"{call} OVER (ORDER BY NULL ROWS CURRENT ROW)" in sql


def test_aggregates_of_windows_need_no_order(session: Session) -> None:
    list(execute(session, _TABLE))
    sql = _spark_sql(session, "SELECT count(*) OVER (), first_value(i) OVER () FROM t")
    assert "count(*) OVER ()" in sql
    assert "first_value(r1.c1) OVER ()" in sql


@pytest.mark.parametrize(
    ("call", "sql"),
    [
        ("lag(i, NULL, 7)", "CAST(NULL AS INT)"),
        ("lead(b, NULL)", "CAST(NULL AS BIGINT)"),
        ("ntile(NULL)", "CAST(NULL AS INT)"),
        ("nth_value(b, NULL)", "CAST(NULL AS BIGINT)"),
        ("ntile(0)", "CAST(raise_error('replctl:22014|"),
        ("nth_value(b, -1)", "CAST(raise_error('replctl:22016|"),
        ("lag(b, -1)", "lag(r1.c2, -1) OVER"),
        ("lead(b, 2147483647)", "lead(r1.c2, 2147483647) OVER"),
    ],
)
def test_spark_gets_counts_that_it_can_use(session: Session, call: str, sql: str) -> None:
    list(execute(session, _TABLE))
    found = _spark_sql(session, f"SELECT {call} OVER (ORDER BY i) FROM t")
    assert found.startswith(f"SELECT {sql}")


@pytest.mark.parametrize("call", ["lag(i, i)", "lead(i, i)", "ntile(i)", "nth_value(i, i)"])
def test_spark_gets_no_counts_of_columns(session: Session, call: str) -> None:
    list(execute(session, _TABLE))
    name = call.partition("(")[0]
    error = f"{name} with an argument that is not a constant is not supported over tables"
    answer = answer_of(session, f"SELECT {call} OVER (ORDER BY i) FROM t")
    assert answer == (f"ERROR 0A000: {error}",)


@pytest.mark.parametrize(
    ("clauses", "sql"),
    [
        ("LIMIT 3", " LIMIT CAST(least(CAST(3 AS BIGINT), 2147483647 - 0) AS INT)"),
        ("OFFSET 3", " OFFSET CAST(least(coalesce(CAST(3 AS BIGINT), 0), 2147483647) AS INT)"),
        (
            "LIMIT 3000000000 OFFSET 2",
            " LIMIT CAST(least(CAST(3000000000 AS BIGINT),"
            " 2147483647 - least(coalesce(CAST(2 AS BIGINT), 0), 2147483647)) AS INT)"
            " OFFSET CAST(least(coalesce(CAST(2 AS BIGINT), 0), 2147483647) AS INT)",
        ),
    ],
)
def test_spark_gets_a_limit_that_it_can_count_to(session: Session, clauses: str, sql: str) -> None:
    list(execute(session, _TABLE))
    assert sql in _spark_sql(session, f"SELECT i FROM t {clauses}")


@pytest.mark.parametrize(
    "frame",
    ["GROUPS 1 PRECEDING", "ROWS 1 PRECEDING EXCLUDE CURRENT ROW", "RANGE 1 PRECEDING EXCLUDE TIES"],
)
def test_frames_that_spark_lacks_are_refused(session: Session, frame: str) -> None:
    list(execute(session, _TABLE))
    word = "GROUPS" if frame.startswith("GROUPS") else "EXCLUDE"
    answer = answer_of(session, f"SELECT count(*) OVER (ORDER BY i {frame}) FROM t")
    assert answer == (f"ERROR 0A000: {word} in a window over tables is not supported",)
