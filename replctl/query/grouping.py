"""Check for columns outside of GROUP BY and aggregates (check_ungrouped_columns in parse_agg.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.errors import GroupingError
from replctl.expr import nodes
from replctl.expr.scope import Scope
from replctl.query.range_table import FromScope, RangeTableEntry
from replctl.query.tree import Query


def check_grouping(query: Query, scope: Scope) -> Query:
    """Check the columns of an aggregated query, and return the query.  If it groups by the primary
    key of a table, the result also has the table's other used columns in GROUP BY.

    Raises:
        GroupingError: a column is neither in GROUP BY nor in an aggregate function.
    """
    assert isinstance(scope, FromScope)
    grouped = list(query.group_by)
    outputs = (output.expr for output in query.outputs)
    for expr in (*outputs, *query.windows, *filter(None, (query.having,))):
        for var in _ungrouped(expr, query.group_by):
            if var in grouped:
                continue
            entry = _entry(scope, var)
            if not _depends_on_key(entry, var, query.group_by):
                raise _not_grouped(entry, var)
            grouped.append(var)
    return replace(query, group_by=tuple(grouped))


def _ungrouped(expr: Any, grouped: Sequence[nodes.Expr]) -> list[nodes.Var]:
    """Return the columns of this query level outside of aggregates and grouped expressions."""
    if expr in grouped:
        return []
    match expr:
        case nodes.Aggref(levels_up=0) | nodes.GroupingFunc():
            return []
        case nodes.Var(levels_up=0):
            return [expr]
    return [var for child in nodes.children(expr) for var in _ungrouped(child, grouped)]


def _entry(scope: FromScope, var: nodes.Var) -> RangeTableEntry | None:
    return next((entry for entry in scope.entries if entry.varno == var.varno), None)


def _depends_on_key(
    entry: RangeTableEntry | None, var: nodes.Var, grouped: Sequence[nodes.Expr]
) -> bool:
    relation = None if entry is None else entry.relation
    if not isinstance(relation, Relation) or relation.primary_key is None:
        return False
    attnums = {
        expr.attnum
        for expr in grouped
        if isinstance(expr, nodes.Var) and expr.varno == var.varno and expr.levels_up == 0
    }
    return set(relation.primary_key.key) <= attnums


def _not_grouped(entry: RangeTableEntry | None, var: nodes.Var) -> GroupingError:
    name = "?"
    if entry is not None:
        column = next(
            (
                column
                for column, expr in entry.columns
                if isinstance(expr, nodes.Var) and expr.attnum == var.attnum
            ),
            "?",
        )
        name = f"{entry.name}.{column}"
    return GroupingError(
        f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
        position=var.pos,
    )
