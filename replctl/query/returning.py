"""RETURNING of INSERT, UPDATE and DELETE: compute columns from the changed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.catalog.pg_class import Relation
from replctl.errors import FeatureNotSupported
from replctl.expr.analyze import Analyzer
from replctl.expr.context import ExprContext
from replctl.expr.sorting import known_type
from replctl.functions.function_context import function_context
from replctl.lake.catalog_name import check_names
from replctl.memory_limit import SETTING as MEMORY
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import changing_query
from replctl.query.permission import used_columns
from replctl.query.range_table import FromScope, target_entry
from replctl.query.row_change import EXCLUDED_NAME, tableoid_sql
from replctl.query.row_policy import POLICY_VARNO, numbered_as
from replctl.query.select import with_object_names
from replctl.query.session_calls import divided
from replctl.query.settings_rewrite import shown_result
from replctl.query.sql import TABLEOID, QueryWriter
from replctl.query.tree import FromTable, Output, Query
from replctl.result import Result, ResultColumn
from replctl.session import Session
from replctl.spark import SparkQuery, StagedColumn, reading

if TYPE_CHECKING:
    from replctl.spark import Outcome


def returning_of(
    analyzer: QueryAnalyzer, relation: Relation, statement: ast.Insert | ast.Update | ast.Delete
) -> tuple[Output, ...]:
    """Return the columns of the RETURNING list of a statement that changes a relation."""
    alias = statement.relation.alias
    entry = target_entry(analyzer.environment, relation, POLICY_VARNO, alias)
    clause = statement.on_conflict if isinstance(statement, ast.Insert) else None
    hidden = () if clause is None or clause.action == "nothing" else (EXCLUDED_NAME,)
    scope = FromScope((entry,), entry.columns, hidden=hidden)
    inner = analyzer.analyzer(scope, ExprContext.RETURNING)
    match statement:
        case ast.Update():
            analyzer.from_clause(statement.from_clause, inner)
        case ast.Delete():
            analyzer.from_clause(statement.using, inner)
    return returning_outputs(analyzer, inner, statement.returning)


def returning_outputs(
    analyzer: QueryAnalyzer, inner: Analyzer, items: Sequence[ast.ResTarget]
) -> tuple[Output, ...]:
    """Return the columns of a RETURNING list (transformReturningList).

    Args:
        inner: an analyzer in which the changed table has the varno POLICY_VARNO.

    Raises:
        FeatureNotSupported: a column uses other tables, or calls a function of sequences.
    """
    with inner.in_context(ExprContext.RETURNING):
        found = analyzer.targets(items, inner)
    outputs = tuple(
        replace(o, expr=analyzer.finished(known_type(inner.coercion, o.expr))) for o in found
    )
    assert isinstance(inner.scope, FromScope)
    others = {entry.varno for entry in inner.scope.entries} - {POLICY_VARNO}
    if not others.isdisjoint(used_columns(Query(outputs))):
        raise FeatureNotSupported("columns of other tables in RETURNING are not supported")
    if divided(Query(outputs), analyzer.environment) is not None:
        raise FeatureNotSupported("functions of sequences in RETURNING are not supported")
    return outputs


def of_member(outputs: Sequence[Output], named: Relation, member: Relation) -> tuple[Output, ...]:
    """Convert the columns for the named table to columns for one of its children."""
    if member.oid == named.oid:
        return tuple(outputs)
    return tuple(replace(o, expr=numbered_as(o.expr, named, member)) for o in outputs)


def returned_rows(
    session: Session, relation: Relation, outcome: Outcome, outputs: Sequence[Output]
) -> list[list[str | None]]:
    """Return the RETURNING columns for the rows of an outcome.  The caller does this before it
    writes, so that an error in a value stops the statement.

    A deleted row has its old values, any other row its new values.
    """
    if not outputs:
        return []
    query = Query(tuple(outputs), (FromTable(POLICY_VARNO, relation),))
    with session.read() as catalog:
        context = function_context(session, catalog)
        query, dialect = changing_query(context, query, _changed_rows(outcome))
        writer = QueryWriter(dialect)
        selected = ", ".join(
            f"{dialect.expr(output.expr, writer.write)} AS c{i}"
            for i, output in enumerate(query.outputs, start=1)
        )
        names = ", ".join(f"c{i}" for i in range(1, len(outputs) + 1))
        source = writer.source(query)
    check_names(session, context.read_tables)
    text = (
        f"SELECT {names} FROM (SELECT {selected}, r{POLICY_VARNO}.position AS row_position{source})"
        " ORDER BY row_position"
    )
    columns = [
        StagedColumn(f"c{i}", column.type, column.typmod)
        for i, column in enumerate(query.columns, start=1)
    ]
    fetched = session.engine().fetch(
        reading(text, *dialect.read), columns, int(session.setting(MEMORY))
    )
    rows = with_object_names(session, query, fetched)
    shown_result(session, returned("", outputs, rows))  # refuses an output that it cannot print
    return rows


def _changed_rows(outcome: Outcome) -> SparkQuery:
    tableoid = tableoid_sql(outcome.target, "coalesce(new_leaf, old_leaf)")
    columns = "".join(f", w{c.attnum} AS c{c.attnum}" for c in outcome.target.columns)
    return reading(
        f"SELECT position, {tableoid} AS c{TABLEOID}{columns}"
        f" FROM {outcome.rows.view} WHERE op IN ('I', 'U', 'D')",
        outcome.rows.query,
    )


def returned(tag: str, outputs: Sequence[Output], rows: list[list[str | None]]) -> Result:
    """Return the result of a statement; without RETURNING, the result has no columns."""
    if not outputs:
        return Result(tag)
    return Result(tag, tuple(ResultColumn(o.name, o.expr.type) for o in outputs), rows)
