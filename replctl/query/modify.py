"""UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.native_column import EXPRESSIONS, VALUES, check_not_native
from replctl.catalog.pg_class import Column, Relation, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_sequence import NumberedCalls, sequences_of
from replctl.catalog.transaction import Catalog
from replctl.does_not_exist import no_column
from replctl.errors import FeatureNotSupported, GeneratedAlways, SqlSyntaxError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.context import ExprContext
from replctl.expr.error_location import raw_location
from replctl.functions.function_context import function_context
from replctl.lake.catalog_name import check_names
from replctl.lake.delta_rules import append_only_error, check_takes_updates, with_delta_columns
from replctl.lake.target import generating_columns
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.lake import changing_query, target_rows
from replctl.query.permission import check_change, check_conditions, check_query, used_columns
from replctl.query.range_table import FromScope, relation_entry
from replctl.query.returning import of_member, returned, returned_rows, returning_outputs
from replctl.query.row_policy import POLICY_VARNO, RowCheck, changed_rows, numbered_as
from replctl.query.sequence_values import check_unconditional, check_values, with_call_columns
from replctl.query.sql import QueryWriter
from replctl.query.tree import FromNode, FromTable, Output, Query, is_volatile
from replctl.query.with_check import check_new_rows
from replctl.query.write import Plan, WrittenTable, modified_relation, plan_of, written
from replctl.record import dataclass
from replctl.replication.replica_identity import check_replica_identity, check_sent_in_parts
from replctl.result import Result
from replctl.session import Session
from replctl.spark import NEXT_VALUE, Target, TargetColumn

_TARGET = POLICY_VARNO  # varno of the table that a statement changes


@dataclass(frozen=True, slots=True)
class _Change:
    """The effect of a statement on the rows of one table.

    Attributes:
        from_, where: the other items of FROM, and the condition for the affected rows.
        values: the new values of an UPDATE, by attnum.
        conditions, checks: the policies' conditions for the old rows, and for the new rows.
        is_volatile: equal rows may get different values.
    """

    plan: Plan
    from_: tuple[FromNode, ...]
    where: nodes.Expr | None
    values: dict[int, nodes.Expr]
    conditions: tuple[nodes.Expr, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    is_volatile: bool = False
    returning: tuple[Output, ...] = ()


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
            check_replica_identity(catalog, changed, command)
            error = append_only_error(changed, "U" if command == "update" else "D")
            if error is not None:
                raise error
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
    session: Session, catalog: Catalog, relation: Relation, change: _Change, command: str
) -> None:
    """Check the current role's privileges on the table that the statement names. Like PostgreSQL,
    ignore the privileges on its partitions and children.

    Raises:
        InsufficientPrivilege: a privilege is missing.
    """
    environment = session.environment(catalog)
    query = _read_by(change)
    read = used_columns(query).get(_TARGET)
    check_not_native(change.plan.relation, EXPRESSIONS, read or ())
    written = list(change.values) if command == "update" else None
    letter = "w" if command == "update" else "d"
    check_change(environment.privileges, relation, letter, written, read)
    check_query(environment, query)
    values = ((relation.column_at(attnum), expr) for attnum, expr in change.values.items())
    check_values(environment.privileges, values)


def _read_by(change: _Change) -> Query:
    """Return a query that reads the same columns as the change."""
    values = (Output("", expr) for expr in change.values.values())
    return Query((*values, *change.returning), change.from_, change.where)


def _with_policies(
    session: Session, catalog: Catalog, named: Relation, changes: Sequence[_Change], command: str
) -> list[_Change]:
    """Return the changes with the conditions of policies.  The policies of the named table also
    apply to its children.
    """
    environment = session.environment(catalog)
    result = []
    for change in changes:
        reads = _TARGET in used_columns(_read_by(change))
        conditions, checks = changed_rows(
            environment.privileges,
            named,
            "w" if command == "update" else "d",
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


def _changed_relations(changes: Sequence[_Change]) -> list[Relation]:
    """Return the tables that a statement changes, without those whose condition is never true. If
    none remains, return the first table (as CheckValidResultRel sees the plan's relations).
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
) -> _Change:
    """Return the statement's change of one table, whose columns correspond by name."""
    member = with_delta_columns(member)
    alias = statement.relation.alias or ast.Alias(named.name)
    entry = relation_entry(analyzer.environment, member, _TARGET, alias, statement.relation.pos)
    scope = FromScope((entry,), entry.columns)
    inner = analyzer.analyzer(scope, ExprContext.UPDATE)
    items = statement.from_clause if isinstance(statement, ast.Update) else statement.using
    from_ = tuple(analyzer.from_clause(items, inner))
    values: dict[int, nodes.Expr] = {}
    if isinstance(statement, ast.Update):
        values = _assignments(analyzer, inner, member, statement)
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
    return _Change(plan, from_, where, values, is_volatile=own_values, returning=returning)


def _assignments(
    analyzer: QueryAnalyzer, inner: Analyzer, relation: Relation, statement: ast.Update
) -> dict[int, nodes.Expr]:
    """Return the new values of SET, by attnum (transformUpdateTargetList)."""
    values: dict[int, nodes.Expr] = {}
    for assignment in statement.assignments:
        for target, raw in _pairs(assignment):
            column = _assigned_column(relation, target)
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
    if not isinstance(value, ast.RowExpr):
        raise FeatureNotSupported(
            "source for a multiple-column UPDATE item must be a ROW() expression",
            position=raw_location(value),
        )
    if len(value.args) != len(assignment.targets):
        raise SqlSyntaxError(
            "number of columns does not match number of values", position=raw_location(value)
        )
    return list(zip(assignment.targets, value.args, strict=True))


def _assigned_column(relation: Relation, target: ast.ResTarget) -> Column:
    column = relation.column(target.name or "")
    if column is None:
        raise no_column(
            target.name,
            relation.name,
            position=target.pos,
        )
    if target.indirection:
        raise FeatureNotSupported(
            "UPDATE of an element of a column is not supported", position=target.pos
        )
    return column


# ---------------------------------------------------------------------------------------------
# Execution


def _carry_out(
    session: Session, table: WrittenTable, change: _Change, *, is_update: bool
) -> tuple[int, list[list[str | None]]]:
    """Change the rows of one table. Return the number of these rows, and the rows of RETURNING."""
    rows = _rows_sql(session, change, table.target, is_update)
    key = table.target.key
    changed = _changed_columns(table.target, change.values)
    moves_keys = is_update and not changed.isdisjoint(key)
    op = "U" if is_update else "D"
    engine = session.engine()
    with_old = any(
        not set(constraint.ref_columns) <= set(key)
        for _other, constraint, _reference in change.plan.referenced_by
    )
    with spark.jobs.changed(
        engine,
        table.target,
        rows,
        op=op,
        moves_keys=moves_keys,
        with_old=with_old,
        has_own_values=change.is_volatile,
    ) as outcome:
        assigned = changed if is_update else None
        if is_update:
            check_new_rows(session, change.plan.relation, outcome, change.checks)
            table.check(outcome, assigned)
        table.check_references(outcome, assigned)
        shown = returned_rows(session, change.plan.relation, outcome, change.returning)
        count = table.write(outcome, changes_keys=is_update and (moves_keys or not key))
        return count, shown


def _changed_columns(target: Target, assigned: Collection[int]) -> set[int]:
    """Return the assigned columns, and the generated columns that use them."""
    changed = set(assigned)
    for column in target.columns:
        generated = column.generated
        if generated is not None and not generating_columns(generated).isdisjoint(assigned):
            changed.add(column.attnum)
    return changed


def _rows_sql(session: Session, change: _Change, target: Target, is_update: bool) -> str:
    """Return SQL of the affected rows, with the columns leaf, row_version, row_id, c<attnum> (the
    old values) and w<attnum> (the new values).
    """
    with session.read() as catalog:
        context = function_context(session, catalog)
        table = FromTable(_TARGET, change.plan.relation)
        outputs = tuple(_output(target_column, change) for target_column in _new(target, is_update))
        query = Query(outputs, (table, *change.from_), change.where)
        query, dialect = changing_query(context, query, target_rows(target), change.conditions)
        writer = QueryWriter(dialect)
        calls = NumberedCalls(NEXT_VALUE, _TARGET)
        columns = [f"r{_TARGET}.{name}" for name in ("leaf", "row_version", "row_id")]
        columns += [f"r{_TARGET}.c{column.attnum} AS c{column.attnum}" for column in target.columns]
        for output, column in zip(query.outputs, _new(target, is_update), strict=True):
            check_unconditional(output.expr)
            value = dialect.expr(calls.with_columns(output.expr), writer.write)
            columns.append(f"{value} AS w{column.attnum}")
        source = writer.source(query)
        if calls.sequences:
            rows, order = f"SELECT r{_TARGET}.*{source}", "leaf, row_version, row_id"
            rows = with_call_columns(session, context, calls, rows, order)
            source = f" FROM ({rows}) r{_TARGET}"
        text = f"SELECT {', '.join(columns)}{source}"
    check_names(session, context.read_tables)
    if change.from_:  # change a row once, even if several rows join it
        place = (
            "row_number() OVER (PARTITION BY leaf, row_version, row_id ORDER BY 1) AS occurrence"
        )
        text = f"SELECT * FROM (SELECT *, {place} FROM ({text})) WHERE occurrence = 1"
    return text


def _new(target: Target, is_update: bool) -> list[TargetColumn]:
    """Return the columns whose new values the query for the affected rows must compute."""
    return [column for column in target.columns if is_update and column.generated is None]


def _output(column: TargetColumn, change: _Change) -> Output:
    same = nodes.Var(column.attnum, column.type, column.typmod, varno=_TARGET)
    return Output(column.name, change.values.get(column.attnum, same))
