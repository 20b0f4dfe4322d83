"""SQL functions of users: errors in them, and places where users cannot call them."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.errors import ActiveSqlTransaction, FeatureNotSupported, PostgresError
from replctl.execute import execute
from replctl.functions.function_context import function_context
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import spark_sql
from replctl.query.query_rewrite import rewritten
from replctl.session import Session


def _run(session: Session, text: str) -> list[list[str | None]]:
    """Return the rows of the last statement."""
    rows: list[list[str | None]] = []
    for result in execute(session, text):
        rows = [list(row) for row in result.rows]
    return rows


def _error(session: Session, text: str) -> PostgresError:
    with pytest.raises(PostgresError) as caught:
        _run(session, text)
    return caught.value


def _function(session: Session, head: str, body: str) -> None:
    _run(session, f"CREATE FUNCTION {head} LANGUAGE sql AS $${body}$$")


def test_subscription_is_not_refreshed_by_a_function(session: Session) -> None:
    _run(
        session,
        "CREATE SUBSCRIPTION sub CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)",
    )
    _run(session, "ALTER SUBSCRIPTION sub ENABLE")
    _function(
        session,
        "func() RETURNS VOID",
        " ALTER SUBSCRIPTION sub SET PUBLICATION mypub WITH (refresh = true) ",
    )
    error = _error(session, "SELECT func()")
    assert isinstance(error, ActiveSqlTransaction)
    assert error.message == "ALTER SUBSCRIPTION with refresh cannot be executed from a function"
    assert error.context == 'SQL function "func" statement 1'
    error = _error(session, "BEGIN; SELECT func()")
    assert error.message == "ALTER SUBSCRIPTION with refresh cannot run inside a transaction block"
    _run(session, "ROLLBACK")
    assert _run(session, "SELECT subpublications FROM pg_subscription") == [["{p}"]]


def test_context_names_each_function(session: Session) -> None:
    _function(session, "divided(int) RETURNS int", "SELECT 1; SELECT 1 / $1 + (SELECT 0)")
    _function(session, "outermost() RETURNS int", "SELECT 1; SELECT divided(0)")
    error = _error(session, "SELECT outermost()")
    assert error.context == (
        'SQL function "divided" statement 2\nSQL function "outermost" statement 2'
    )
    assert error.position == -1
    assert session.block is None
    assert session.function_depth == 0


@pytest.mark.parametrize(
    ("body", "message", "detail"),
    [
        ("COMMIT", "COMMIT is not allowed in an SQL function", None),
        (
            "SELECT 'a'::text FROM pg_class",
            "return type mismatch in function declared to return integer",
            "Actual return type is text.",
        ),
        (
            "SELECT 1, 2",
            "return type mismatch in function declared to return integer",
            "Final statement must return exactly one column.",
        ),
        (
            "CREATE TABLE t ()",
            "return type mismatch in function declared to return integer",
            "Function's final statement must be SELECT or INSERT/UPDATE/DELETE/MERGE RETURNING.",
        ),
        (
            "",
            "return type mismatch in function declared to return integer",
            "Function's final statement must be SELECT or INSERT/UPDATE/DELETE/MERGE RETURNING.",
        ),
        ("CREATE TABLE t (); SELECT 1 FROM t", 'relation "t" does not exist', None),
        ("COPY pg_class TO STDOUT", "cannot COPY to/from client in an SQL function", None),
    ],
)
def test_body_is_looked_at_before_anything_is_done(
    session: Session, body: str, message: str, detail: str | None
) -> None:
    _function(session, "f() RETURNS int", body)
    error = _error(session, "SELECT f()")
    assert (error.message, error.detail) == (message, detail)
    assert error.context == 'SQL function "f" during startup'
    assert _run(session, "SELECT 1 FROM pg_class WHERE relname = 't'") == []


def test_fault_of_an_expression_is_found_where_it_is_called(session: Session) -> None:
    _function(session, "f() RETURNS int", "SELECT nothing")
    error = _error(session, "SELECT 1 FROM pg_class WHERE f() = 1")
    assert error.message == 'column "nothing" does not exist'
    assert error.context == 'SQL function "f" during inlining'


def test_parameters_are_unknown_to_utility_statements(session: Session) -> None:
    _function(session, "f(a int) RETURNS void", "CREATE VIEW v AS SELECT $1 AS b")
    assert _error(session, "SELECT f(1)").message == "there is no parameter $1"
    assert _error(session, "SELECT $1").message == "there is no parameter $1"


def test_recursion_ends(session: Session) -> None:
    _function(session, "f(int) RETURNS int", "SELECT f($1)")
    error = _error(session, "SELECT f(1)")
    assert (error.sqlstate, error.message) == ("54001", "stack depth limit exceeded")
    assert session.function_depth == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT several() FROM pg_class",
        "SELECT several() + 1",
        "SELECT 1 WHERE several() = 1",
        "SELECT several(), (SELECT count(*) FROM pg_class)",
        "SELECT CASE WHEN true THEN several() END",
        "SELECT twice(several())",
        "SELECT twice((clock_timestamp() < now())::int) FROM pg_class",
        "SELECT * FROM twice(several())",
        "SELECT a_set()",
        "SELECT in_plpgsql()",
        "CREATE MATERIALIZED VIEW mv AS SELECT several()",
    ],
)
def test_call_that_cannot_be_carried_out_is_refused(session: Session, query: str) -> None:
    _function(session, "several() RETURNS int", "CREATE TABLE made (); SELECT 1")
    _function(session, "twice(int) RETURNS int", "SELECT $1 + $1")
    _function(session, "a_set() RETURNS SETOF int", "SELECT 1")
    _run(session, "CREATE FUNCTION in_plpgsql() RETURNS int LANGUAGE plpgsql AS 'begin end'")
    error = _error(session, query)
    assert isinstance(error, FeatureNotSupported)
    assert "cannot be called here" in error.message
    assert _run(session, "SELECT 1 FROM pg_class WHERE relname IN ('made', 'mv')") == []


def test_security_definer_is_refused(session: Session) -> None:
    answer = answer_of(
        session,
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    )
    assert answer == ("ERROR 0A000: SECURITY DEFINER functions are not supported",)


def test_engine_gets_the_expression(session: Session) -> None:
    _run(session, "CREATE TABLE t (a int, b text)")
    _function(session, "is_even(n int) RETURNS boolean IMMUTABLE", "SELECT n % 2 = 0")
    with session.read() as catalog:
        context = function_context(session, catalog)

        def sql(text: str) -> str:
            statement = parse_statement(text)
            assert isinstance(statement, ast.SelectStmt)
            query = QueryAnalyzer(context.environment, session.transaction_start).query(statement)
            return spark_sql(rewritten(context, query), context).sql

        called = sql("SELECT b FROM t WHERE is_even(a) ORDER BY is_even(a + 1)")
        assert called == sql("SELECT b FROM t WHERE a % 2 = 0 ORDER BY (a + 1) % 2 = 0")
