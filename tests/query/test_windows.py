"""Windows and aggregates in the SQL of both engines."""

from __future__ import annotations

import pytest
from golden_script import answer_of
from query_in_spark_sql import spark_sql_of

from replctl.execute import execute
from replctl.session import Session

_TABLE = "CREATE TABLE t (i int, b int8, m numeric(10,2), n numeric, f float4, d date)"


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
    sql = spark_sql_of(session, f"SELECT count(*) OVER ({window}) FROM t")
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
        sql = spark_sql_of(session, f"SELECT {shown} OVER ({window}) FROM t")
        assert f"{call} OVER ({written}ORDER BY NULL)" in sql
    sql = spark_sql_of(session, f"SELECT {shown} OVER (ROWS CURRENT ROW) FROM t")
    frame = " ROWS CURRENT ROW" if call.startswith("nth_value") else ""
    assert f"{call} OVER (ORDER BY NULL{frame})" in sql


@pytest.mark.parametrize("call", ["row_number()", "rank()", "ntile(2)", "lag(i)", "lead(i)"])
def test_frames_of_functions_that_ignore_them_are_left_out(session: Session, call: str) -> None:
    list(execute(session, _TABLE))
    for frame in ("ROWS 1 PRECEDING", "GROUPS 1 PRECEDING", "RANGE CURRENT ROW EXCLUDE TIES"):
        sql = spark_sql_of(session, f"SELECT {call} OVER (ORDER BY i {frame}) FROM t")
        assert "OVER (ORDER BY r1.c1 ASC NULLS LAST)" in sql


@pytest.mark.parametrize("call", ["sum(i)", "count(*)", "first_value(i)", "last_value(i)"])
def test_spark_gets_an_order_for_range(session: Session, call: str) -> None:
    list(execute(session, _TABLE))
    frame = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    sql = spark_sql_of(session, f"SELECT {call} OVER (PARTITION BY b {frame}) FROM t")
    assert f" OVER (PARTITION BY r1.c2 ORDER BY NULL {frame})" in sql


def test_spark_gets_numbers_of_rows_that_it_can_count_to(session: Session) -> None:
    list(execute(session, _TABLE))
    for frame in ("'3000000000' PRECEDING", "BETWEEN 2 PRECEDING AND '3000000000' FOLLOWING"):
        sql = spark_sql_of(session, f"SELECT count(*) OVER (ROWS {frame}) FROM t")
        written = frame.replace("'3000000000'", "2147483647")
        assert f"count(*) OVER (ROWS {written})" in sql
    window = "ORDER BY b RANGE '3000000000' PRECEDING"
    sql = spark_sql_of(session, f"SELECT count(*) OVER ({window}) FROM t")
    assert " ASC NULLS LAST RANGE 3000000000 PRECEDING)" in sql


@pytest.mark.parametrize(
    ("offset", "error"),
    [
        ("NaN", "22013: invalid preceding or following size in window function"),
        ("Infinity", "0A000: RANGE with an infinite offset is not supported"),
    ],
)
def test_offsets_that_are_no_numbers_are_refused(session: Session, offset: str, error: str) -> None:
    list(execute(session, _TABLE))
    window = f"ORDER BY i::float8 RANGE '{offset}' PRECEDING"
    for source in ("t", "(VALUES (1)) v (i)"):
        answer = answer_of(session, f"SELECT sum(i) OVER ({window}) FROM {source}")
        assert answer == (f"ERROR {error}",)


def test_sum_of_doubles_formats_only_zeros_as_text(session: Session) -> None:
    list(execute(session, _TABLE))
    sql = spark_sql_of(session, "SELECT sum(f::float8) OVER (ORDER BY i) FROM t")
    item = "CAST((CAST(r1.c5 AS DOUBLE)) AS DOUBLE)"
    assert f"bool_and({item} = 0D AND CAST({item} AS STRING) = '-0.0') OVER (" in sql
    assert sql.count("AS STRING) =") == 1


def test_aggregates_of_windows_need_no_order(session: Session) -> None:
    list(execute(session, _TABLE))
    sql = spark_sql_of(session, "SELECT count(*) OVER (), first_value(i) OVER () FROM t")
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
    found = spark_sql_of(session, f"SELECT {call} OVER (ORDER BY i) FROM t")
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
    assert sql in spark_sql_of(session, f"SELECT i FROM t {clauses}")


@pytest.mark.parametrize(
    "frame",
    [
        "GROUPS 1 PRECEDING",
        "ROWS 1 PRECEDING EXCLUDE CURRENT ROW",
        "ROWS 1 PRECEDING EXCLUDE TIES",
    ],
)
def test_frames_that_spark_lacks_are_refused(session: Session, frame: str) -> None:
    list(execute(session, _TABLE))
    word = "GROUPS" if frame.startswith("GROUPS") else "EXCLUDE"
    answer = answer_of(session, f"SELECT count(*) OVER (ORDER BY i {frame}) FROM t")
    assert answer == (f"ERROR 0A000: {word} in a window over tables is not supported",)


#: Queries, with PostgreSQL's rows.
_IN_SPARK = {
    "SELECT count(*) OVER (ORDER BY m RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t"
    " ORDER BY i": ("3", "3", "1", "1", "3", "1"),
    "SELECT count(*) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 9 FOLLOWING) FROM t"
    " ORDER BY i": ("2", "2", "1", "3", "2", "1"),
    "SELECT max(n) FROM (SELECT row_number() OVER () + rank() OVER () + dense_rank() OVER ()"
    " + ntile(9) OVER () AS n FROM t) q": ("14",),
    "SELECT DISTINCT cume_dist() OVER () + percent_rank() OVER () FROM t": ("1",),
    "SELECT lag(i, NULL, 7) OVER () FROM t WHERE i < 2": ("NULL",),
    "SELECT rank() OVER w + sum(i) OVER w + lag(i, 1, 0) OVER w FROM t"
    " WINDOW w AS (ORDER BY i ROWS 1 PRECEDING) ORDER BY i": ("2", "6", "10", "14", "18", "22"),
    "SELECT sum(i) OVER (PARTITION BY i % 2 RANGE UNBOUNDED PRECEDING) FROM t ORDER BY i": (
        *("9", "12", "9", "12", "9", "12"),
    ),
    "SELECT count(*) OVER (ORDER BY i ROWS '3000000000' PRECEDING) FROM t WHERE i < 3": ("1", "2"),
    "SELECT ntile(0) OVER () FROM t WHERE i > 9": (),
    "SELECT 1 FROM t HAVING count(*) > 0": ("1",),
    "SELECT DISTINCT ON (1) 1 FROM t HAVING count(*) > 0": ("1",),
    "SELECT i FROM t ORDER BY i LIMIT 3000000000 OFFSET 5": ("6",),
    "SELECT i FROM t LIMIT NULL OFFSET 3000000000": (),
    "SELECT sum(f) FROM t": ("-0",),
    "SELECT sum(f::float8) FROM t": ("-0",),
    "SELECT avg(f::float8) FROM t": ("0",),
    "SELECT sum(f::float8 * i - i) FROM t WHERE i < 3": ("-3",),
}
_ERRORS = {
    "SELECT ntile(0) OVER () FROM t": "22014: argument of ntile must be greater than zero",
    "SELECT nth_value(i, 0) OVER () FROM t": (
        "22016: argument of nth_value must be greater than zero"
    ),
    "SELECT (SELECT i FROM t)": (
        "21000: more than one row returned by a subquery used as an expression"
    ),
}


@pytest.mark.spark
def test_answers_of_spark_are_those_of_small_tables(spark_session: Session) -> None:
    list(execute(spark_session, _TABLE))
    numbers = ("9223372036854775807", "9223372036854775806", "-9223372036854775808", *"579")
    amounts = ("1.10", "1.10", "-2.50", "NULL", "3.00", "0.00")
    rows = (
        f"({i}, {b}, {m}, 1, '-0')"
        for i, (b, m) in enumerate(zip(numbers, amounts, strict=True), start=1)
    )
    list(execute(spark_session, f"INSERT INTO t VALUES {', '.join(rows)}"))
    for setting in ("SET replctl.small_table_rows = 0", "RESET replctl.small_table_rows"):
        list(execute(spark_session, setting))
        for query, values in _IN_SPARK.items():
            expected = (*(f"| {value}" for value in values), f"SELECT {len(values)}")
            assert answer_of(spark_session, query) == expected, query
        for query, error in _ERRORS.items():
            assert answer_of(spark_session, query) == (f"ERROR {error}",), query
