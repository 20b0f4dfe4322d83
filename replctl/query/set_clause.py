"""SET of UPDATE and of ON CONFLICT DO UPDATE: the new values of columns."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.native_column import VALUES, check_not_native
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import Identity
from replctl.errors import FeatureNotSupported, GeneratedAlways, SqlSyntaxError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.error_location import raw_location
from replctl.lake.delta_rules import check_takes_updates
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.assigned_column import AssignedValues, assigned_column
from replctl.query.row_change import TARGET


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
    values = AssignedValues(
        analyzer,
        inner,
        lambda c: nodes.Var(c.attnum, c.declared_type, c.declared_typmod, c.collation, TARGET),
    )
    for assignment in assignments:
        for target, raw in _pairs(assignment):
            assigned = assigned_column(relation, target, name)
            column = assigned.column
            check_takes_updates(relation, column.name)
            if isinstance(raw, ast.SetToDefault):
                assigned.check_default()
                if not column.generated:
                    values.put(column, column.filling)
                continue
            check_not_native(relation, VALUES, [column.attnum])
            values.add(assigned, inner.expr(raw), raw_location(raw))
            if column.generated or column.identity == Identity.ALWAYS:
                what = "a generated column"
                if column.identity:
                    what = "an identity column defined as GENERATED ALWAYS"
                raise GeneratedAlways(
                    f'column "{column.name}" can only be updated to DEFAULT',
                    detail=f'Column "{column.name}" is {what}.',
                )
    return values.finished()


def _pairs(assignment: ast.Assignment) -> list[tuple[ast.ResTarget, ast.RawExpr]]:
    """Split an assignment to several columns: `(a, b) = (1, 2)` becomes `a = 1`, `b = 2`."""
    value = assignment.value
    is_select = isinstance(value, ast.SubLink) and value.kind == "expr" and value.test is None
    if not assignment.is_row or (is_select and len(assignment.targets) == 1):
        return [(assignment.targets[0], value)]
    if is_select:
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
