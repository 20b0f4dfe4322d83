"""SET of UPDATE and of ON CONFLICT DO UPDATE: the new values of columns."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.native_column import VALUES, check_not_native
from replctl.catalog.pg_class import Column, Relation
from replctl.does_not_exist import no_column
from replctl.errors import FeatureNotSupported, GeneratedAlways, SqlSyntaxError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.error_location import raw_location
from replctl.lake.delta_rules import check_takes_updates
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer


def assigned_values(
    analyzer: QueryAnalyzer,
    inner: Analyzer,
    relation: Relation,
    assignments: Sequence[ast.Assignment],
    name: str,
) -> dict[int, nodes.Expr]:
    """Return the new values of SET, by attnum (transformUpdateTargetList).

    Args:
        inner: an analyzer whose scope has the columns that the values may use.
        name: the name of the relation in the statement.
    """
    values: dict[int, nodes.Expr] = {}
    for assignment in assignments:
        for target, raw in _pairs(assignment):
            column = _assigned_column(relation, target, name)
            if column.attnum in values:
                raise SqlSyntaxError(f'multiple assignments to same column "{column.name}"')
            check_takes_updates(relation, column.name)
            if isinstance(raw, ast.SetToDefault):
                if not column.generated:
                    values[column.attnum] = column.filling
                continue
            check_not_native(relation, VALUES, [column.attnum])
            if column.generated or column.identity == "a":
                what = "a generated column"
                if column.identity:
                    what = "an identity column defined as GENERATED ALWAYS"
                raise GeneratedAlways(
                    f'column "{column.name}" can only be updated to DEFAULT',
                    detail=f'Column "{column.name}" is {what}.',
                )
            expr = inner.coerce_for_assignment(
                inner.expr(raw),
                column.declared_type,
                column.declared_typmod,
                column.name,
                raw_location(raw),
            )
            values[column.attnum] = analyzer.finished(expr)
    return values


def _pairs(assignment: ast.Assignment) -> list[tuple[ast.ResTarget, ast.RawExpr]]:
    """Split an assignment to several columns: `(a, b) = (1, 2)` becomes `a = 1`, `b = 2`."""
    if len(assignment.targets) == 1:
        return [(assignment.targets[0], assignment.value)]
    value = assignment.value
    if isinstance(value, ast.SubLink) and value.kind == "expr" and value.test is None:
        raise FeatureNotSupported(
            "a sub-SELECT as source for a multiple-column UPDATE item is not supported",
            position=raw_location(value),
        )
    if not isinstance(value, ast.RowExpr):
        raise FeatureNotSupported(
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            position=raw_location(value),
        )
    if len(value.args) != len(assignment.targets):
        raise SqlSyntaxError(
            "number of columns does not match number of values", position=raw_location(value)
        )
    return list(zip(assignment.targets, value.args, strict=True))


def _assigned_column(relation: Relation, target: ast.ResTarget, name: str) -> Column:
    column = relation.column(target.name or "")
    if column is None:
        error = no_column(target.name, relation.name, position=target.pos)
        if target.indirection and target.name == name:
            error.hint = "SET target columns cannot be qualified with the relation name."
        raise error
    if target.indirection:
        raise FeatureNotSupported(
            "UPDATE of an element of a column is not supported", position=target.pos
        )
    return column
