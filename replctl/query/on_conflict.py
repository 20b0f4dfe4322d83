"""ON CONFLICT: skip a row whose key already exists in a unique index, or change the row that has
the key (ExecOnConflictUpdate).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from replctl import spark
from replctl.catalog.acl import Privilege
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Index, Relation
from replctl.catalog.transaction import Catalog
from replctl.errors import CardinalityViolation, FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.arbiter import arbiter
from replctl.query.permission import check_change, check_conditions, check_query, used_columns
from replctl.query.range_table import FromScope, RangeTableEntry, relation_entry, target_entry
from replctl.query.row_change import (
    EXCLUDED_NAME,
    TARGET,
    RowChange,
    affected_rows,
    changed_columns,
    check_changeable,
    needs_old_rows,
    tableoid_sql,
)
from replctl.query.row_policy import conflict_checks
from replctl.query.sequence_values import check_values
from replctl.query.set_clause import assigned_values
from replctl.query.sql import TABLEOID
from replctl.query.tree import transform
from replctl.query.with_check import check_updated_rows
from replctl.query.write import Plan, WrittenTable
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import EXCLUDED, reading

if TYPE_CHECKING:
    from replctl.spark import Outcome, Staged, UniqueKey

#: The varno of the proposed row in DO UPDATE.
_EXCLUDED_VARNO = TARGET - 1


@dataclass(frozen=True, slots=True)
class ConflictAction:
    """The effect of INSERT on a row whose key exists.

    Attributes:
        index: the unique index of the key; None if the table has none.
        is_named: the clause names the index, so the statement reads the key's columns.
        update: the change of DO UPDATE; None for DO NOTHING.
    """

    index: Index | None = None
    is_named: bool = False
    update: RowChange | None = None

    @property
    def assigned(self) -> frozenset[str]:
        """Return the names of the columns that DO UPDATE assigns."""
        if self.update is None:
            return frozenset()
        relation = self.update.plan.relation
        return frozenset(relation.column_at(attnum).name for attnum in self.update.values)

    def check_written(self, table: WrittenTable, outcome: Outcome) -> None:
        """Check that the table accepts an outcome, and that foreign keys do.

        Raises:
            IntegrityError: a check fails.
        """
        values = () if self.update is None else self.update.values
        table.check(outcome, updated=changed_columns(outcome.target, values))

    def changes_keys(self, outcome: Outcome) -> bool:
        """Return whether keys do not identify the old images of the changed rows."""
        return self.update is not None and (outcome.moves_keys or not outcome.target.key)


# ---------------------------------------------------------------------------------------------
# Analysis


def conflict_action(
    session: Session,
    catalog: Catalog,
    analyzer: QueryAnalyzer,
    plan: Plan,
    statement: ast.Insert,
) -> ConflictAction:
    """Return the action of an INSERT, and check the privileges for it.

    Raises:
        PostgresError: the clause is wrong, or a publication of the table needs another replica
            identity for DO UPDATE.
    """
    clause, relation = statement.on_conflict, plan.relation
    if clause is None:
        return ConflictAction()
    index = arbiter(analyzer, relation, statement)
    is_named = clause.constraint is not None or bool(clause.targets)
    key = set() if index is None or not is_named else {*index.key}
    if clause.action == "nothing":
        if key:
            analyzer.environment.privileges.check_relation(relation, Privilege.SELECT, key)
        return ConflictAction(index, is_named)
    update = _update(analyzer, plan, statement, clause)
    _check_permitted(analyzer, relation, update, key)
    old, new = conflict_checks(
        analyzer.environment.privileges, relation, session.setting("row_security")
    )
    check_conditions(analyzer.environment, [check.condition for check in (*old, *new)])
    check_changeable(catalog, relation, "update")
    return ConflictAction(index, is_named, replace(_of_pairs(update), checks=(*old, *new)))


def _update(
    analyzer: QueryAnalyzer, plan: Plan, statement: ast.Insert, clause: ast.OnConflict
) -> RowChange:
    """Return the change of DO UPDATE, in which the proposed row has the varno _EXCLUDED_VARNO."""
    relation = plan.relation
    entry = target_entry(analyzer.environment, relation, TARGET, statement.relation.alias)
    columns = relation_entry(analyzer.environment, relation, _EXCLUDED_VARNO, None).columns
    excluded = RangeTableEntry(EXCLUDED_NAME, _EXCLUDED_VARNO, columns)
    scope = FromScope((entry, excluded), entry.columns + excluded.columns)
    inner = analyzer.analyzer(scope, ExprContext.UPDATE)
    values = assigned_values(analyzer, inner, relation, clause.assignments, entry.name)
    where = analyzer.where(clause.where, inner)
    return RowChange(plan, (), where, values)


def _check_permitted(
    analyzer: QueryAnalyzer, relation: Relation, update: RowChange, key: set[int]
) -> None:
    """Check the current role's privileges.  The role must be able to read the columns of the key,
    and all columns that the clause uses, including columns of the proposed row.

    Raises:
        InsufficientPrivilege: a privilege is missing.
    """
    privileges, query = analyzer.environment.privileges, update.reading_query
    used = used_columns(query)
    read = used.get(TARGET, set()) | used.get(_EXCLUDED_VARNO, set())
    check_not_native(relation, EXPRESSIONS, read)
    check_change(privileges, relation, Privilege.UPDATE, list(update.values), read | key)
    check_query(analyzer.environment, query)
    check_values(privileges, ((relation.column_at(a), e) for a, e in update.values.items()))


def _of_pairs(update: RowChange) -> RowChange:
    """Return a change that reads the columns of the proposed row as further columns of the target.
    The result of `spark.jobs.conflicting` has these columns.
    """

    def replaced(part: Any) -> Any:
        if isinstance(part, nodes.Var) and part.varno == _EXCLUDED_VARNO:
            return replace(part, varno=TARGET, attnum=EXCLUDED + part.attnum)
        return None

    values = {attnum: transform(expr, replaced) for attnum, expr in update.values.items()}
    return replace(update, values=values, where=transform(update.where, replaced))


# ---------------------------------------------------------------------------------------------
# Execution


@contextmanager
def resolved(
    session: Session, table: WrittenTable, proposed: Outcome, action: ConflictAction
) -> Iterator[Outcome]:
    """Yield the outcome of an INSERT after the conflicts of its rows are resolved.

    Like PostgreSQL, first check all proposed rows, except their keys.  Then look for conflicts.

    Raises:
        CardinalityViolation: DO UPDATE would affect a row twice (21000).
        PostgresError: DO UPDATE cannot change a row.
    """
    name = None if action.index is None else action.index.name
    key = next((k for k in proposed.target.unique if k.leaf is None and k.name == name), None)
    if key is None:
        yield proposed
        return
    table.check_rows(proposed, ())
    engine = session.engine()
    if action.update is None:
        with spark.jobs.unconflicting(engine, proposed, key) as outcome:
            yield outcome
        return
    _check_leaves(session, action.update, proposed)
    with (
        spark.jobs.conflicting(engine, proposed, key) as pairs,
        _upserted(session, proposed, pairs, action.update) as outcome,
    ):
        _check_once(session, outcome, pairs, key, action.update)
        if any(group.moves for group in outcome.groups):
            raise FeatureNotSupported(
                "invalid ON UPDATE specification",
                detail="The result tuple would appear in a different partition than the original"
                " tuple.",
            )
        check_updated_rows(session, table.relation, outcome, action.update.checks)
        yield outcome


@contextmanager
def _upserted(
    session: Session, proposed: Outcome, pairs: Staged, update: RowChange
) -> Iterator[Outcome]:
    target = proposed.target
    if any(column.is_assigned for column in target.columns):
        raise FeatureNotSupported(
            "ON CONFLICT DO UPDATE is not supported if Delta assigns the identity values of the new"
            " rows"
        )
    tableoid = tableoid_sql(target, "leaf")
    rows = reading(
        f"SELECT *, {tableoid} AS c{TABLEOID} FROM {pairs.view} WHERE leaf IS NOT NULL", pairs.query
    )
    changes = affected_rows(session, update, target, rows, ("position", "leaf"), is_update=True)
    moves_keys = not changed_columns(target, update.values).isdisjoint(target.key)
    with_old = needs_old_rows(update, target) or any(c.is_using for c in update.checks)
    with spark.jobs.upserted(
        session.engine(), proposed, pairs, changes, moves_keys=moves_keys, with_old=with_old
    ) as outcome:
        yield outcome


def _check_leaves(session: Session, update: RowChange, proposed: Outcome) -> None:
    """Check that the partitions of the proposed rows allow updates.

    Raises:
        PostgresError: a publication of a partition needs another replica identity.
    """
    numbers = sorted({group.new_leaf for group in proposed.groups if group.new_leaf is not None})
    with session.read() as catalog:
        for number in numbers:
            leaf = update.plan.tree[proposed.target.leaves[number].relid]
            check_changeable(catalog, leaf, "update")


def _check_once(
    session: Session, outcome: Outcome, pairs: Staged, key: UniqueKey, update: RowChange
) -> None:
    """Check that the statement affects no row twice.

    Raises:
        CardinalityViolation: the statement affects a row twice (21000).
        FeatureNotSupported: the answer depends on the order of the rows.
    """
    engine = session.engine()
    if pairs.is_small and len(pairs.values("position")) < 2:
        return
    moves = not changed_columns(outcome.target, update.values).isdisjoint(key.used)
    if moves and spark.jobs.moves_to_proposed(engine, outcome, pairs, key):
        raise FeatureNotSupported(
            "ON CONFLICT DO UPDATE that changes the key of a row is not supported if another"
            " proposed row has the old or the new key",
            hint="Insert one of the rows in a statement of its own.",
        )
    if spark.jobs.affects_twice(engine, outcome, pairs, key):
        raise CardinalityViolation(
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            hint="Ensure that no rows proposed for insertion within the same command have"
            " duplicate constrained values.",
        )
