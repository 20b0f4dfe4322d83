"""The unique index of ON CONFLICT, in which a row's key must not exist (infer_arbiter_indexes)."""

from __future__ import annotations

from replctl.adt.fold import simplified
from replctl.catalog.pg_class import Index, Relation, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.relation_kind import ConstraintKind
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.expr.scope import missing_column
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.range_table import FromScope, RangeTableEntry, relation_entry
from replctl.query.row_change import EXCLUDED_NAME


def arbiter(analyzer: QueryAnalyzer, relation: Relation, statement: ast.Insert) -> Index | None:
    """Return the unique index of ON CONFLICT; None if the table has no unique index, and the clause
    names none.  Several indexes would have to be checked row by row.

    Raises:
        InvalidColumnReference: no unique index is over the columns (42P10).
        UndefinedColumn, UndefinedObject, WrongObjectType: there is no such column or constraint.
        ObjectNotInPrerequisiteState: the index is deferrable (55000).
        SqlSyntaxError: DO UPDATE names no index.
        FeatureNotSupported: several indexes, or an index that replctl cannot find.
    """
    clause = statement.on_conflict
    assert clause is not None
    if clause.constraint is not None:
        found = [_index_of_constraint(relation, clause.constraint)]
    elif clause.targets:
        found = [_inferred(analyzer, relation, statement, clause)]
    elif clause.action == "update":
        raise SqlSyntaxError(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=clause.pos,
        )
    else:
        found = [index for index in relation.indexes if index.is_unique]
        _check_no_own_keys(analyzer.environment.catalog, relation)
    for index in found:
        if index.is_deferrable:
            raise ObjectNotInPrerequisiteState(
                "ON CONFLICT does not support deferrable unique constraints/exclusion constraints"
                " as arbiters"
            )
    if len(found) > 1:
        raise FeatureNotSupported(
            "ON CONFLICT of several unique indexes is not supported",
            hint="Name the columns of one of them: ON CONFLICT (column_name).",
        )
    return found[0] if found else None


def _check_no_own_keys(catalog: Catalog, relation: Relation) -> None:
    """Check that no partition has a unique index that does not belong to an index of its parent.

    Raises:
        FeatureNotSupported: a partition has one.
    """
    oids = descendants_of(catalog, relation.oid)[1:] if relation.is_partitioned else []
    for partition in load_relations(catalog, oids).values():
        if any(index.is_unique and not index.parent_oid for index in partition.indexes):
            raise FeatureNotSupported(
                "ON CONFLICT DO NOTHING without a key is not supported because partition"
                f' "{partition.name}" has a unique index of its own'
            )


def _index_of_constraint(relation: Relation, name: str) -> Index:
    constraint = next((c for c in relation.constraints if c.name == name), None)
    if constraint is None:
        raise UndefinedObject(f'constraint "{name}" for table "{relation.name}" does not exist')
    index = next((i for i in relation.indexes if i.oid == constraint.index_oid), None)
    if index is None or constraint.kind == ConstraintKind.FOREIGN_KEY:
        raise WrongObjectType("constraint in ON CONFLICT clause has no associated index")
    return index


def _inferred(
    analyzer: QueryAnalyzer, relation: Relation, statement: ast.Insert, clause: ast.OnConflict
) -> Index:
    """Return the first unique index over exactly the named columns.  The condition of the clause
    must contain that of a partial index.
    """
    attnums = set()
    for target in clause.targets:
        if not isinstance(target, ast.ColumnRef) or len(target.fields) != 1:
            raise FeatureNotSupported("expressions in ON CONFLICT are not supported")
        column = relation.column(target.fields[0])
        if column is None:
            name = target.fields[0]
            entries = [relation_entry(analyzer.environment, relation, 1, statement.relation.alias)]
            if clause.action == "update":
                entries.append(RangeTableEntry(EXCLUDED_NAME, 2, entries[0].columns))
            raise missing_column(entries, None, name, clause.pos)
        attnums.add(column.attnum)
    given = _conditions_of_clause(analyzer, relation, statement, clause)
    alike = [i for i in relation.indexes if i.is_unique_over_columns and set(i.key) == attnums]
    alike.sort(key=lambda index: index.predicate is not None)
    for index in alike:
        if index.predicate is None or _parts(index.predicate) <= given:
            return index
    if alike and given:  # replctl does not derive one condition from another
        raise FeatureNotSupported(
            "ON CONFLICT with a condition that the partial index does not have is not supported"
        )
    raise InvalidColumnReference(
        "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    )


def _conditions_of_clause(
    analyzer: QueryAnalyzer, relation: Relation, statement: ast.Insert, clause: ast.OnConflict
) -> set[nodes.Expr]:
    """Return the parts of the clause's WHERE."""
    if clause.target_where is None:
        return set()
    alias = statement.relation.alias
    # As in the condition of an index, the table has the varno 1.
    entry = relation_entry(analyzer.environment, relation, 1, alias)
    scope = FromScope((entry,), entry.columns)
    inner = analyzer.analyzer(scope, ExprContext.INDEX_PREDICATE)
    return _parts(analyzer.finished(inner.expr(clause.target_where)))


def _parts(condition: nodes.Expr) -> set[nodes.Expr]:
    """Return the conditions that AND joins."""
    plain = simplified(condition)
    if isinstance(plain, nodes.BoolExpr) and plain.op == "and":
        return {part for arg in plain.args for part in _parts(arg)}
    return {plain}
