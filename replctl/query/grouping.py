"""Check for columns outside of GROUP BY and aggregates (check_ungrouped_columns in parse_agg.c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import RelKind
from replctl.errors import GroupingError
from replctl.expr import nodes
from replctl.expr.scope import Scope
from replctl.query.range_table import FromScope, RangeTableEntry
from replctl.query.tree import Query, walk_levels
from replctl.types.builtin import SystemRelation


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
        for var, depth in _ungrouped(expr, query.group_by):
            own = replace(var, levels_up=0)
            if own in grouped:
                continue
            entry = _entry(scope, var)
            if not _depends_on_key(entry, var, query.group_by):
                raise _not_grouped(entry, var, depth)
            grouped.append(own)
    return replace(query, group_by=tuple(grouped))


def _ungrouped(expr: nodes.Node, grouped: Sequence[nodes.Expr]) -> Iterator[tuple[nodes.Var, int]]:
    """Yield the columns of this query outside of its aggregates and of grouped expressions, each
    with the depth of the subquery that uses it. Subqueries can only use grouped columns, no other
    grouped expressions (check_ungrouped_columns_walker).
    """

    def is_entered(node: Any, depth: int) -> bool:
        is_aggregate = isinstance(node, nodes.Aggref | nodes.GroupingFunc)
        if is_aggregate and node.levels_up >= depth:
            return False
        return depth > 0 or node not in grouped

    for node, depth in walk_levels(expr, is_entered=is_entered):
        if isinstance(node, nodes.Var) and node.levels_up == depth:
            yield node, depth


def _entry(scope: FromScope, var: nodes.Var) -> RangeTableEntry | None:
    return next((entry for entry in scope.entries if entry.varno == var.varno), None)


def _depends_on_key(
    entry: RangeTableEntry | None, var: nodes.Var, grouped: Sequence[nodes.Expr]
) -> bool:
    key = _primary_key(None if entry is None else entry.relation)
    attnums = {
        expr.attnum
        for expr in grouped
        if isinstance(expr, nodes.Var) and expr.varno == var.varno and expr.levels_up == 0
    }
    return bool(key) and key <= attnums


def _primary_key(relation: Relation | SystemRelation | None) -> frozenset[int]:
    """Return the attnums of a relation's primary key; that of a catalog with OIDs is `oid`."""
    match relation:
        case Relation(primary_key=key) if key is not None:
            return frozenset(key.key)
        case SystemRelation(kind=RelKind.TABLE, columns=columns):
            return frozenset(i for i, (name, _) in enumerate(columns, start=1) if name == "oid")
    return frozenset()


def _not_grouped(entry: RangeTableEntry | None, var: nodes.Var, depth: int) -> GroupingError:
    name = "?" if entry is None else f"{entry.name}.{_column_name(entry, var)}"
    if depth:
        message = f'subquery uses ungrouped column "{name}" from outer query'
    else:
        message = (
            f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate'
            " function"
        )
    return GroupingError(message, position=var.pos)


def _column_name(entry: RangeTableEntry, var: nodes.Var) -> str:
    if var.attnum == 0:
        return "*"
    for column, expr in entry.columns:
        if isinstance(expr, nodes.Var) and expr.attnum == var.attnum:
            return column
    return "?"
