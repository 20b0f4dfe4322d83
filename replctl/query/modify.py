"""UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.acl import Privilege
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.expr.nextval_call import sequences_of
from replctl.lake.delta_rules import with_delta_columns
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import target_rows
from replctl.query.permission import check_change, check_conditions, check_query, used_columns
from replctl.query.range_table import FromScope, target_entry
from replctl.query.returning import of_member, returned, returned_rows, returning_outputs
from replctl.query.row_change import (
    TARGET,
    RowChange,
    affected_rows,
    changed_columns,
    check_changeable,
    needs_old_rows,
)
from replctl.query.row_policy import changed_rows, numbered_as
from replctl.query.sequence_values import check_values
from replctl.query.set_clause import assigned_values
from replctl.query.tree import Output, is_volatile
from replctl.query.with_check import check_new_rows
from replctl.query.write import WrittenTable, modified_relation, plan_of, written
from replctl.replication.replica_identity import check_sent_in_parts
from replctl.replication.update_transformation import Action
from replctl.result import Result
from replctl.session import Session

_PRIVILEGES = {"update": Privilege.UPDATE, "delete": Privilege.DELETE}


def update(session: Session, statement: ast.Update) -> Result:
    """Change rows of a table and of its children.

    Raises:
        PostgresError: the statement is wrong, the table refuses a row, or a publication of the
            table needs another replica identity.
    """
    return _modify(session, statement, "UPDATE")


def delete(session: Session, statement: ast.Delete) -> Result:
    """Remove rows of a table and of its children.

    Raises:
        PostgresError: see `update`.
    """
    return _modify(session, statement, "DELETE")


def _modify(session: Session, statement: ast.Update | ast.Delete, word: str) -> Result:
    if statement.with_clause is not None:
        raise FeatureNotSupported(f"WITH before {word} is not supported")
    with session.read() as catalog:
        analyzer = QueryAnalyzer(session.environment(catalog), session.transaction_start)
        relation = modified_relation(analyzer, statement.relation)
        changes = [
            _change(catalog, analyzer, member, relation, statement)
            for member in _members(catalog, relation, statement.relation.inherit)
        ]
        outputs = changes[0].returning if changes else ()
        changes = [
            replace(change, returning=of_member(outputs, relation, change.plan.relation))
            for change in changes
        ]
        command = "update" if isinstance(statement, ast.Update) else "delete"
        for change in changes:
            if change.plan.relation.oid == relation.oid:
                _check_permitted(session, catalog, relation, change, command)
        changes = _with_policies(session, catalog, relation, changes, command)
        for change in changes:
            if change.is_volatile and not change.plan.target.key:
                check_sent_in_parts(catalog, change.plan.relation)
        for changed in _changed_relations(changes):
            check_changeable(catalog, changed, command)
    changes = [change for change in changes if change.plan.target.leaves]
    count, rows = 0, list[list[str | None]]()
    if changes:
        with written(session, [change.plan for change in changes]) as tables:
            for table, change in zip(tables, changes, strict=True):
                done, shown = _carry_out(session, table, change, is_update=command == "update")
                count += done
                rows += shown
    return returned(f"{word} {count}", outputs, rows)


def _check_permitted(
    session: Session, catalog: Catalog, relation: Relation, change: RowChange, command: str
) -> None:
    """Check the current role's privileges on the table that the statement names. Like PostgreSQL,
    ignore the privileges on its partitions and children.

    Raises:
        InsufficientPrivilege: a privilege is missing.
    """
    environment = session.environment(catalog)
    query = change.reading_query
    read = used_columns(query).get(TARGET)
    check_not_native(change.plan.relation, EXPRESSIONS, read or ())
    written = list(change.values) if command == "update" else None
    check_change(environment.privileges, relation, _PRIVILEGES[command], written, read)
    check_query(environment, query)
    values = ((relation.column_at(attnum), expr) for attnum, expr in change.values.items())
    check_values(environment.privileges, values)


def _with_policies(
    session: Session, catalog: Catalog, named: Relation, changes: Sequence[RowChange], command: str
) -> list[RowChange]:
    """Return the changes with the conditions of policies.  The policies of the named table also
    apply to its children.
    """
    environment = session.environment(catalog)
    result = []
    for change in changes:
        reads = TARGET in used_columns(change.reading_query)
        conditions, checks = changed_rows(
            environment.privileges,
            named,
            _PRIVILEGES[command],
            session.setting("row_security"),
            reads=reads,
        )
        check_conditions(environment, (*conditions, *(check.condition for check in checks)))
        member = change.plan.relation
        if member.oid != named.oid:
            conditions = tuple(numbered_as(item, named, member) for item in conditions)
            checks = tuple(
                replace(check, condition=numbered_as(check.condition, named, member))
                for check in checks
            )
        result.append(replace(change, conditions=conditions, checks=checks))
    return result


def _changed_relations(changes: Sequence[RowChange]) -> list[Relation]:
    """Return the tables that a statement changes, without those whose condition is never true. If
    none remains, return the first table.

    PostgreSQL's planner leaves these relations to CheckValidResultRel.
    """
    left = [
        change for change in changes if change.where is None or not _is_never_true(change.where)
    ]
    if not left:
        return [change.plan.relation for change in changes[:1]]
    return [change.plan.tree[leaf.relid] for change in left for leaf in change.plan.target.leaves]


def _is_never_true(condition: nodes.Expr) -> bool:
    """Return whether a condition is obviously never true, such as `false`, `a = 1 AND 1 > 2` or
    `a = NULL`.
    """
    known = simplified(condition)
    parts = known.args if isinstance(known, nodes.BoolExpr) and known.op == "and" else (known,)
    return any(isinstance(part, nodes.Const) and part.value != "t" for part in parts)


def _members(catalog: Catalog, relation: Relation, inherit: bool) -> list[Relation]:
    """Return the tables to change separately: a partitioned table counts as one, an inheritance
    tree as many.
    """
    if relation.is_partitioned or not inherit:
        return [] if relation.is_partitioned and not inherit else [relation]
    tree = load_relations(catalog, descendants_of(catalog, relation.oid))
    return [tree[oid] for oid in descendants_of(catalog, relation.oid)]


def _change(
    catalog: Catalog,
    analyzer: QueryAnalyzer,
    member: Relation,
    named: Relation,
    statement: ast.Update | ast.Delete,
) -> RowChange:
    """Return the statement's change of one table, whose columns correspond by name."""
    member = with_delta_columns(member)
    alias = statement.relation.alias
    entry = target_entry(analyzer.environment, member, TARGET, alias, named=named)
    scope = FromScope((entry,), entry.columns)
    inner = analyzer.analyzer(scope, ExprContext.UPDATE)
    items = statement.from_clause if isinstance(statement, ast.Update) else statement.using
    from_ = tuple(analyzer.from_clause(items, inner))
    values: dict[int, nodes.Expr] = {}
    if isinstance(statement, ast.Update):
        values = assigned_values(analyzer, inner, member, statement.assignments, entry.name)
    where = analyzer.where(statement.where, inner)
    supplied = frozenset(member.column_at(attnum).name for attnum in values)
    plan = replace(plan_of(catalog, member), named=named, supplied=supplied)
    if not plan.target.key and is_volatile(analyzer.environment, (from_, where)):
        raise FeatureNotSupported(
            "volatile functions in the condition of UPDATE and DELETE are not supported for a table"
            " without a key",
            hint="Add a primary key to the table.",
        )
    if from_ and any(map(sequences_of, map(simplified, values.values()))):
        raise FeatureNotSupported("nextval in UPDATE ... FROM is not supported")
    returning: tuple[Output, ...] = ()
    if statement.returning and member.oid == named.oid:
        returning = returning_outputs(analyzer, inner, statement.returning)
    own_values = is_volatile(analyzer.environment, tuple(values.values()))
    return RowChange(plan, from_, where, values, is_volatile=own_values, returning=returning)


# ---------------------------------------------------------------------------------------------
# Execution


def _carry_out(
    session: Session, table: WrittenTable, change: RowChange, *, is_update: bool
) -> tuple[int, list[list[str | None]]]:
    """Change the rows of one table. Return the number of these rows, and the rows of RETURNING."""
    target, places = table.target, ("leaf", "row_version", "row_id")
    rows = affected_rows(session, change, target, target_rows(target), places, is_update=is_update)
    key = target.key
    changed = changed_columns(target, change.values)
    moves_keys = is_update and not changed.isdisjoint(key)
    action = Action.UPDATE if is_update else Action.DELETE
    engine = session.engine()
    with spark.jobs.changed(
        engine,
        target,
        rows,
        action=action,
        moves_keys=moves_keys,
        with_old=needs_old_rows(change, target),
        has_own_values=change.is_volatile,
    ) as outcome:
        if is_update:
            check_new_rows(session, change.plan.relation, outcome, change.checks)
            table.check(outcome, changed, updated=changed)
        else:
            table.check_references(outcome)
        shown = returned_rows(session, change.plan.relation, outcome, change.returning)
        is_by_key = outcome.matching == "key" and not moves_keys
        count = table.write(outcome, changes_keys=is_update and not is_by_key)
        return count, shown
