"""CREATE TABLE AS (createas.c): a table with the columns of a query, and then its rows."""

from __future__ import annotations

from dataclasses import replace

from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.naming import check_tablespace
from replctl.commands.own_table import make_table
from replctl.commands.view import named_columns
from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.insert import insert
from replctl.session import Session


def create_table_as(session: Session, statement: ast.CreateTableAs) -> str:
    """Create a table from the result of a query in the open transaction, and return the command
    tag.

    Raises:
        SqlSyntaxError: there are more names than columns (42601).
        UndefinedObject, InvalidParameterValue: the table cannot be in the tablespace.
        PostgresError: see CREATE TABLE, or the query fails.
    """
    check_tablespace(statement.tablespace)
    if not carry_out(session, lambda ddl: _make(ddl, statement)) or not statement.with_data:
        return "CREATE TABLE AS"
    result = insert(session, ast.Insert(statement.relation, (), statement.query))
    return result.tag.replace("INSERT 0", "SELECT")


def _make(ddl: Ddl, statement: ast.CreateTableAs) -> bool:
    """Create the table without rows.  Return False if it exists and IF NOT EXISTS was given."""
    found = QueryAnalyzer(ddl.environment, ddl.now).query(statement.query).columns
    if len(statement.columns) > len(found):
        raise SqlSyntaxError("too many column names were specified")
    table = ast.CreateTable(
        replace(statement.relation, pos=-1),
        persistence=statement.persistence,
        if_not_exists=statement.if_not_exists,
        on_commit=statement.on_commit,
        options=statement.options,
    )
    return make_table(ddl, table, named_columns(ddl, found, statement.columns))
