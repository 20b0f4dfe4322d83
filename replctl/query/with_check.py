"""Check new rows against policies (ExecWithCheckOptions)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.catalog.pg_class import Relation
from replctl.errors import InsufficientPrivilege
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.lake.catalog_name import check_names
from replctl.query.lake import changing_query
from replctl.query.row_policy import POLICY_VARNO, RowCheck
from replctl.query.sql import QueryWriter
from replctl.query.tree import FromTable, Output, Query
from replctl.session import Session
from replctl.spark import SparkQuery, StagedColumn, reading

if TYPE_CHECKING:
    from replctl.spark import Outcome

_FALSE = nodes.Const("bool", "f")
_COLUMN = StagedColumn("c1", "bool")


def check_new_rows(
    session: Session, relation: Relation, outcome: Outcome, checks: Sequence[RowCheck]
) -> None:
    """Check that policies allow the new rows of an outcome, before they are written.

    Raises:
        InsufficientPrivilege: a policy refuses a row (42501).
    """
    if checks:
        _check(session, relation, _images(outcome, "w", "op IN ('I', 'U')"), checks)


def check_updated_rows(
    session: Session, relation: Relation, outcome: Outcome, checks: Sequence[RowCheck]
) -> None:
    """Check that policies allow the changes of ON CONFLICT DO UPDATE, before they are written.  The
    outcome must have the old rows, if a check is about them.

    Raises:
        InsufficientPrivilege: a policy refuses an old or a new row (42501).
    """
    for is_using, image in ((True, "o"), (False, "w")):
        own = [check for check in checks if check.is_using == is_using]
        if own:
            _check(session, relation, _images(outcome, image, "op = 'U'"), own)


def _images(outcome: Outcome, image: str, condition: str) -> SparkQuery:
    """Return a query for the old (o) or new (w) rows of an outcome."""
    columns = ", ".join(f"{image}{c.attnum} AS c{c.attnum}" for c in outcome.target.columns)
    text = f"SELECT {columns} FROM {outcome.rows.view} WHERE {condition}"
    return reading(text, outcome.rows.query)


def _check(
    session: Session, relation: Relation, rows: SparkQuery, checks: Sequence[RowCheck]
) -> None:
    for check in checks:
        query = _failing_rows(session, relation, rows, check.condition)
        if session.engine().fetch(query, [_COLUMN]):
            policy = "" if check.policy is None else f' "{check.policy}"'
            clause = " (USING expression)" if check.is_using else ""
            raise InsufficientPrivilege(
                f"new row violates row-level security policy{policy}{clause}"
                f' for table "{relation.name}"'
            )


def _failing_rows(
    session: Session, relation: Relation, rows: SparkQuery, condition: nodes.Expr
) -> SparkQuery:
    """Return a query that finds a row that does not satisfy a condition; no row if all do."""
    query = Query(
        (Output("", nodes.Const("bool", "t")),),
        (FromTable(POLICY_VARNO, relation),),
        nodes.BoolExpr("not", (nodes.CoalesceExpr("bool", (condition, _FALSE)),)),
    )
    with session.read() as catalog:
        context = function_context(session, catalog)
        query, dialect = changing_query(context, query, rows)
        text = QueryWriter(dialect).write(query)
    check_names(session, context.read_tables)
    return reading(f"{text} LIMIT 1", *dialect.read)
