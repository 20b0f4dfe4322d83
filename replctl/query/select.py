"""SELECT, VALUES and TABLE: by SQLite where only catalogs are read, else by Spark."""

from __future__ import annotations

from replctl.expr import object_identifier
from replctl.parser import ast
from replctl.query.analyze import QueryAnalyzer
from replctl.query.sqlite import is_answerable, run_query
from replctl.query.tree import Query, tables_of
from replctl.result import Result, ResultColumn
from replctl.session import Session
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
            from replctl.query.lake import spark_sql  # not for a query of the catalogs

            text = spark_sql(query, context)
    if rows is None:  # outside of the catalog's transaction: Spark may take long
        from replctl.spark import StagedColumn

        columns = [
            StagedColumn(f"c{i}", column.type, column.typmod)
            for i, column in enumerate(query.columns, start=1)
        ]
        rows = _shown(session, query, session.engine().fetch(text, columns))
    shown = tuple(ResultColumn(column.name, column.type) for column in query.columns)
    return Result(f"SELECT {len(rows)}", shown, rows)


def _shown(session: Session, query: Query, rows: list[list[str | None]]) -> list[list[str | None]]:
    """OIDs of objects as their names: regclass, regtype, ..."""
    types = [column.type.removeprefix("_") for column in query.columns]
    if not any(type_ in object_identifier.TYPES for type_ in types):
        return rows
    with session.read() as catalog:
        environment = session.environment(catalog)
        known = [environment.type(column.type) for column in query.columns]
        return [
            [
                None if value is None else environment.output(type_, value)
                for value, type_ in zip(row, known, strict=True)
            ]
            for row in rows
        ]


def _reads_only_catalogs(query: Query) -> bool:
    return all(isinstance(table.relation, SystemRelation) for table in tables_of(query))
