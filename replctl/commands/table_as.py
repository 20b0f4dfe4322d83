"""CREATE TABLE AS (createas.c): a table with the columns of a query, and then its rows."""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_class import Column
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.table import make_table
from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.lake import block
from replctl.parser import ast
from replctl.query.analyze import QueryAnalyzer
from replctl.query.insert import insert
from replctl.query.tree import OutputColumn
from replctl.session import Session

_TAG = "CREATE TABLE AS"


def create_table_as(session: Session, statement: ast.CreateTableAs) -> str:
    """Make a table of what a query returns, in one transaction; its tag.

    Raises:
        SqlSyntaxError: there are more names than columns (42601).
        FeatureNotSupported: it makes a materialized view, or a temporary table.
        PostgresError: as CREATE TABLE and the query.
    """
    _refuse(statement)
    is_alone = session.block is None
    if is_alone:
        block.begin(session, is_implicit=True)
    try:
        tag = _create(session, statement)
    except BaseException:
        if is_alone and session.block is not None:
            block.rollback(session)
        raise
    if is_alone:
        block.commit(session)
    return tag


def _refuse(statement: ast.CreateTableAs) -> None:
    if statement.is_materialized_view:
        raise FeatureNotSupported("CREATE MATERIALIZED VIEW is not supported")
    if statement.persistence == "temporary" or statement.on_commit is not None:
        raise FeatureNotSupported("temporary tables are not supported")
    if statement.options:
        raise FeatureNotSupported("storage parameters of tables are not supported")
    if statement.tablespace is not None:
        raise FeatureNotSupported("tablespaces are not supported")


def _create(session: Session, statement: ast.CreateTableAs) -> str:
    if not carry_out(session, lambda ddl: _make(ddl, statement)) or not statement.with_data:
        return _TAG
    result = insert(session, ast.Insert(statement.relation, (), statement.query))
    return result.tag.replace("INSERT 0", "SELECT")


def _make(ddl: Ddl, statement: ast.CreateTableAs) -> bool:
    """Make the table; False if it is there, and IF NOT EXISTS says to leave it."""
    found = QueryAnalyzer(ddl.environment, ddl.now).query(statement.query).columns
    if len(statement.columns) > len(found):
        raise SqlSyntaxError("too many column names were specified")
    names = [*statement.columns, *(column.name for column in found[len(statement.columns) :])]
    table = ast.CreateTable(
        replace(statement.relation, pos=-1),
        persistence=statement.persistence,
        if_not_exists=statement.if_not_exists,
    )
    columns = [_column(name, column) for name, column in zip(names, found, strict=True)]
    return make_table(ddl, table, columns)


def _column(name: str, column: OutputColumn) -> Column:
    return Column(0, name, column.type, column.typmod, column.collation)
