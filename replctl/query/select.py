"""SELECT, VALUES and TABLE: by SQLite where only catalogs are read, else by Spark."""

from __future__ import annotations

from replctl.parser import ast
from replctl.query.analyze import QueryAnalyzer
from replctl.query.lake import spark_sql
from replctl.query.sqlite import is_answerable, run_query
from replctl.query.tree import Query, tables_of
from replctl.result import Result, ResultColumn
from replctl.session import Session
from replctl.spark import StagedColumn
from replctl.types.builtin import SystemRelation


def select(session: Session, statement: ast.SelectStmt) -> Result:
    """Run a query.

    Raises:
        PostgresError: what is wrong with it, at analysis or for a row.
    """
    with session.read() as catalog:
        context = session.function_context(catalog)
        analyzer = QueryAnalyzer(context.environment, session.transaction_start)
        query = analyzer.query(statement)
        rows = None
        if _reads_only_catalogs(query) and is_answerable(query, context.environment):
            rows = run_query(query, context)
        else:
            text = spark_sql(query, context)
    if rows is None:  # outside of the catalog's transaction: Spark may take long
        columns = [
            StagedColumn(f"c{i}", column.type, column.typmod)
            for i, column in enumerate(query.columns, start=1)
        ]
        rows = session.engine().fetch(text, columns)
    shown = tuple(ResultColumn(column.name, column.type) for column in query.columns)
    return Result(f"SELECT {len(rows)}", shown, rows)


def _reads_only_catalogs(query: Query) -> bool:
    return all(isinstance(table.relation, SystemRelation) for table in tables_of(query))
