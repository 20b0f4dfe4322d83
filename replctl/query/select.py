"""SELECT, VALUES and TABLE: run them in SQLite if they read only catalogs and small tables, else in
Spark.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.errors import FeatureNotSupported
from replctl.expr import object_identifier
from replctl.expr.composite_text import is_composite
from replctl.expr.value_text import output_value
from replctl.functions.function_context import FunctionContext, function_context
from replctl.memory_limit import SETTING as MEMORY
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.inline_function import check_no_calls
from replctl.query.logical_slot import changes, slot_calls
from replctl.query.permission import check_query
from replctl.query.query_rewrite import rewritten
from replctl.query.session_calls import DividedQuery, divided
from replctl.query.small_tables import small_tables
from replctl.query.sql_function import (
    NULL,
    Finish,
    StatementRunner,
    carry_out,
    function_calls,
    with_results,
)
from replctl.query.sqlite import SmallTables, is_answerable, run_query
from replctl.query.sqlite_value import canonical_form
from replctl.query.tree import Query, tables_of
from replctl.record import dataclass
from replctl.result import Result, ResultColumn
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark import SparkQuery


def select(
    session: Session,
    statement: ast.SelectStmt,
    runner: StatementRunner | None = None,
    finish: Finish = lambda analyzer, query: query,
) -> Result:
    """Run a query.

    Args:
        runner: runs the statements of functions; without it they are refused.
        finish: changes the query after its analysis.

    Raises:
        PostgresError: the query is wrong, or fails for a row.
    """
    with session.read() as catalog:
        context = function_context(session, catalog)
        analyzer = QueryAnalyzer(context.environment, session.transaction_start)
        query = finish(analyzer, analyzer.query(statement))
        check_query(context.environment, query)
        types = [c.type if is_composite(context.environment, c.type) else "" for c in query.columns]
        query = rewritten(context, query, keeps_calls=True)
        reads_slots = _reads_slots(query)
        made = [] if runner is None else function_calls(query, context)
        check_no_calls(context.environment, with_results(query, {c.output: NULL for c in made}))
        calls = [] if made else slot_calls(query, context)
        is_evaluated = bool(made or calls or reads_slots)
        answer = None if is_evaluated else _answer(query, context)
    if reads_slots and not made and not calls:
        from replctl.lake.retention import update_slots

        update_slots(session)
        with session.read() as catalog:
            answer = _answer(query, function_context(session, catalog))
    if runner is not None and made:
        query = with_results(query, {c.output: carry_out(session, c, runner) for c in made})
        with session.read() as catalog:
            context = function_context(session, catalog)
            calls = slot_calls(query, context)
            answer = None if calls else _answer(query, context)
    if calls:
        evaluated = {call.expr: changes(session, call) for call in calls}
        with session.read() as catalog:
            context = function_context(session, catalog)
            answer = _answer(query, replace(context, evaluated=evaluated))
    assert answer is not None
    rows = _fetched(session, query, answer) if isinstance(answer, _SparkPart) else answer
    pairs = zip(query.columns, types, strict=True)
    shown = tuple(ResultColumn(column.name, row or column.type) for column, row in pairs)
    return Result(f"SELECT {len(rows)}", shown, rows)


@dataclass(frozen=True, slots=True)
class _SparkPart:
    """The part of a query that Spark runs, the rest of the query, if any, and the OIDs of the
    tables that it reads.
    """

    query: SparkQuery
    divided: DividedQuery | None
    read_tables: tuple[int, ...]


def _answer(query: Query, context: FunctionContext) -> list[list[str | None]] | _SparkPart:
    """Return the rows of a query of catalogs and small tables; else the query's SQL for Spark."""
    parts = divided(query, context.environment)
    if is_of_catalogs(query, context):
        return _evaluated(query, parts if query.from_ else None, context, {})
    from replctl.query.lake import spark_sql  # queries over catalogs do not need this import

    # Translate first, so that a query that Spark cannot run also fails while the table is small
    spark_query = spark_sql(query if parts is None else parts.rows, context)
    tables = small_tables(query, context)
    if tables is not None:
        with suppress(FeatureNotSupported):  # Spark can run it
            return _evaluated(query, parts, context, tables)
    return _SparkPart(spark_query, parts, tuple(context.read_tables))


def _evaluated(
    query: Query, parts: DividedQuery | None, context: FunctionContext, tables: SmallTables
) -> list[list[str | None]]:
    """Return the rows of a query that SQLite runs."""
    if parts is None:
        return run_query(query, context, tables=tables)
    rows = run_query(parts.rows, context, form=canonical_form, tables=tables)
    return parts.answer(context, rows)


def _fetched(session: Session, query: Query, part: _SparkPart) -> list[list[str | None]]:
    """Return the rows of a query from Spark.  Call this outside of the catalog's transaction, since
    it may take long.
    """
    from replctl.lake.catalog_name import check_names
    from replctl.spark import StagedColumn

    check_names(session, part.read_tables)
    parts = part.divided
    columns = [
        StagedColumn(f"c{i}", column.type, column.typmod)
        for i, column in enumerate((query if parts is None else parts.rows).columns, start=1)
    ]
    rows = session.engine().fetch(part.query, columns, int(session.setting(MEMORY)))
    if parts is None:
        return with_object_names(session, query, rows)
    with session.read() as catalog:
        return parts.answer(function_context(session, catalog), rows)


def with_object_names(
    session: Session, query: Query, rows: list[list[str | None]]
) -> list[list[str | None]]:
    """Return rows with the OIDs of regclass, regtype, ... replaced by names."""
    types = [column.type.removeprefix("_") for column in query.columns]
    if not any(type_ in object_identifier.TYPES for type_ in types):
        return rows
    with session.read() as catalog:
        environment = session.environment(catalog)
        known = [environment.type(column.type) for column in query.columns]
        return [
            [
                None if value is None else output_value(environment, type_, value)
                for value, type_ in zip(row, known, strict=True)
            ]
            for row in rows
        ]


def _reads_slots(query: Query) -> bool:
    """Return whether a query reads the state of slots, which depends on owners of adopted
    tables.
    """
    return any(
        table.is_catalog and table.relation.name == "pg_replication_slots"
        for table in tables_of(query)
    )


def is_of_catalogs(query: Query, context: FunctionContext) -> bool:
    """Return whether SQLite can run a query: it only reads catalogs, and its functions are
    known.
    """
    is_plain = all(table.is_catalog for table in tables_of(query))
    return is_plain and is_answerable(query, context.environment)
