"""Translate a query to Spark SQL without Spark."""

from __future__ import annotations

from replctl.functions.function_context import function_context
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import spark_sql
from replctl.query.query_rewrite import rewritten
from replctl.session import Session


def spark_sql_of(session: Session, text: str) -> str:
    """Return the Spark SQL of a query over tables of a session's database."""
    with session.read() as catalog:
        context = function_context(session, catalog)
        statement = parse_statement(text)
        assert isinstance(statement, ast.SelectStmt)
        query = QueryAnalyzer(context.environment, session.transaction_start).query(statement)
        return spark_sql(rewritten(context, query), context).sql
