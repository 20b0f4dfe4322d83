"""IN with a subquery: as a value it can be NULL, which Spark's own IN cannot."""

from __future__ import annotations

import pytest
from golden_script import answer_of
from query_in_spark_sql import spark_sql_of

from replctl.session import Session

_ROWS = "(SELECT x FROM v)"


@pytest.fixture
def tables(session: Session) -> Session:
    answer_of(session, "CREATE TABLE w (id int, x int)")
    answer_of(session, "CREATE TABLE v (id int, x int)")
    return session


@pytest.mark.parametrize(
    "condition",
    [
        f"x IN {_ROWS}",
        f"x NOT IN {_ROWS}",
        f"x NOT IN {_ROWS} AND id > 1",
        f"x IN {_ROWS} OR id > 1",
    ],
)
def test_conditions_keep_the_in_of_spark(tables: Session, condition: str) -> None:
    assert "EXISTS" not in spark_sql_of(tables, f"SELECT id FROM w WHERE {condition}")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT x IN {_ROWS} FROM w",
        f"SELECT coalesce(x NOT IN {_ROWS}, true) FROM w",
        f"SELECT 1 FROM w WHERE NOT (x IN {_ROWS} AND id > 0)",
        f"SELECT 1 FROM w WHERE x NOT IN {_ROWS} OR id = 1",
        f"SELECT 1 FROM w WHERE (x IN {_ROWS}) IS NULL",
        f"SELECT 1 FROM w WHERE x <> ALL {_ROWS} IS NOT FALSE",
        f"SELECT 1 FROM w JOIN v ON w.x NOT IN {_ROWS}",
        f"SELECT count(x IN {_ROWS}) FROM w",
        f"SELECT id FROM w ORDER BY x IN {_ROWS}",
    ],
)
def test_a_value_is_null_where_postgresql_finds_null(tables: Session, query: str) -> None:
    text = spark_sql_of(tables, query)
    assert "NOT IN" not in text
    assert "THEN NULL ELSE" in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "(random() * 9)::int IN (SELECT x FROM v)",
            "IN (SELECT ...) with volatile functions inside an expression is not supported",
        ),
        (
            "x IN (SELECT x + (random() * 9)::int FROM v)",
            "IN (SELECT ...) with volatile functions inside an expression is not supported",
        ),
        ("(id, x) IN (SELECT id, x FROM v)", "this kind of subquery is not supported"),
        ("x > ANY (SELECT x FROM v)", "this kind of subquery is not supported"),
        ("x < ALL (SELECT x FROM v)", "this kind of subquery is not supported"),
    ],
)
def test_the_rest_is_refused_while_the_tables_are_small(
    tables: Session, value: str, message: str
) -> None:
    assert answer_of(tables, f"SELECT {value} FROM w") == (f"ERROR 0A000: {message}",)


@pytest.mark.parametrize(
    "value",
    [
        "(x / id > (SELECT max(x) FROM v)) IS NULL",
        "nullif(x IN (SELECT x FROM v), id = 2)",
    ],
)
def test_python_computes_what_repeats_a_subquery(tables: Session, value: str) -> None:
    """Spark refuses subqueries next to or in a lambda."""
    text = spark_sql_of(tables, f"SELECT {value} FROM w")
    assert "transform(" not in text
    assert "replctl_" in text


def test_text_that_looks_like_a_subquery_is_none(tables: Session) -> None:
    value = "nullif(repeat(x::text || '(SELECT \\', id), x::text || id::text || ' (WITH ')"
    assert "(WITH" in spark_sql_of(tables, f"SELECT ({value}) IS NULL FROM w")


@pytest.mark.parametrize(
    "condition",
    [
        f"(x IN {_ROWS} OR random() < 0.5) IS NOT FALSE",
        f"(EXISTS {_ROWS} AND random() < 0.5) IS NOT TRUE",
        "random()::numeric > (SELECT max(x) FROM v WHERE v.id = w.id)",
    ],
)
def test_python_gets_no_subquery_next_to_a_volatile_function(
    tables: Session, condition: str
) -> None:
    error = "volatile functions next to aggregates or subqueries are not supported"
    answer = answer_of(tables, f"SELECT id FROM w WHERE {condition}")
    assert answer == (f"ERROR 0A000: {error}",)
    assert "rand()" in spark_sql_of(
        tables, f"SELECT id FROM w WHERE x IN {_ROWS} OR random() < 0.5"
    )
