"""The common part of statements that change rows: find, check and write tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl import spark
from replctl.catalog.pg_class import Constraint, Relation, load_relations
from replctl.catalog.relation_kind import ForeignKeyAction, RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported, SerializationFailure, WrongObjectType
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.session_value import with_session_values
from replctl.functions.settings_form import in_form
from replctl.injection_point import injection_point
from replctl.lake.column_fault import check_columns
from replctl.lake.conflict_message import not_carried_out, orphan, still_referenced, violation
from replctl.lake.delta_rules import with_delta_columns
from replctl.lake.file_access import check_writable
from replctl.lake.left_out import left_out_error
from replctl.lake.partition_tree import partition_tree
from replctl.lake.row_description import RowReader
from replctl.lake.schema_rewrite import rewrite_schemas
from replctl.lake.small_source import with_small_leaves
from replctl.lake.small_write import write_leaf
from replctl.lake.table_read import relation_leaves
from replctl.lake.table_write import TableWriter, writing
from replctl.lake.target import (
    local_target,
    references_of,
    references_to,
    with_checks,
    without_user_types_in,
)
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.open_relation import open_relation
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import Reference, Target, UniqueKey

if TYPE_CHECKING:
    from replctl.spark import Outcome, Problem


@dataclass(frozen=True, slots=True)
class Plan:
    """A table to write, as defined in the catalog.

    Attributes:
        relation: the table to write.
        tree: the table's partition tree, by OID.
        references, referenced_by: the table's foreign keys, and the foreign keys that refer to it.
        other_relations: the tables at the other ends of these keys.
        named: the table that the statement names, if `relation` is a child of it.
        supplied: names of the columns with values in the statement.
        only_adds: the statement adds rows, and changes no existing row.
    """

    relation: Relation
    tree: dict[int, Relation]
    references: tuple[tuple[Constraint, Reference], ...]
    referenced_by: tuple[tuple[Relation, Constraint, Reference], ...]
    other_relations: dict[int, Relation]
    named: Relation | None = None
    supplied: frozenset[str] = frozenset()
    only_adds: bool = False

    @property
    def target(self) -> Target:
        return local_target(self.relation, self.tree)

    @property
    def checked_relations(self) -> dict[int, Relation]:
        """Return the tables that the statement reads to check foreign keys, by OID.  New rows break
        no foreign key that refers to the table.
        """
        if not self.only_adds:
            return self.other_relations
        referenced = (constraint.ref_relid for constraint, _reference in self.references)
        return {oid: self.other_relations[oid] for oid in referenced}


class WrittenTable:
    """A table while a statement writes it.

    Attributes:
        target: the table as it was before the write; until the `with` block of `written` ends.
    """

    def __init__(self, session: Session, plan: Plan, writer: TableWriter, stack: ExitStack) -> None:
        self._session = session
        self._plan = plan
        self._writer = writer
        self.tree = {**plan.tree, **writer.relations}
        self.relation = self.tree[plan.relation.oid]
        known = _known_target(session, local_target(self.relation, self.tree))
        if plan.only_adds:  # and so computes all generated columns: refuse it before Spark starts
            _check_settings(session, known)
        self.target = stack.enter_context(with_small_leaves(session, known))

    def check(
        self,
        outcome: Outcome,
        assigned: Collection[int] | None = None,
        context: Callable[[Problem], str] | None = None,
        updated: Collection[int] = (),
    ) -> None:
        """Check that the table accepts the new rows, and that foreign keys refer to existing rows.

        Like PostgreSQL, look for rows that refer to an old key first.

        Args:
            assigned: the columns that an UPDATE assigns; None for all.
            context: returns the CONTEXT of an error for a row.
            updated: the columns with new values in existing rows.

        Raises:
            IntegrityError: a check fails.
            FeatureNotSupported: a computed column depends on a setting in an unsupported way
                (0A000).
        """
        _check_settings(self._session, self.target, assigned)
        engine, plan = self._session.engine(), self._plan
        self.check_rows(outcome, self._keys(assigned), context)
        self.check_references(outcome, updated)
        orphans = [
            (problem, constraint)
            for constraint, reference in plan.references
            if assigned is None or not set(constraint.columns).isdisjoint(assigned)
            if (problem := spark.jobs.first_orphan(engine, outcome, reference)) is not None
        ]
        if orphans:
            problem, constraint = min(orphans, key=lambda found: found[0].position)
            other = plan.other_relations[constraint.ref_relid]
            values = [problem.row[attnum] for attnum in constraint.columns]
            with self._reader() as reader:
                raise orphan(self.relation, other, constraint, values, reader)

    def check_rows(
        self,
        outcome: Outcome,
        keys: Sequence[UniqueKey],
        context: Callable[[Problem], str] | None = None,
    ) -> None:
        """Check each new row by itself, and check `keys` for duplicates.

        Raises:
            IntegrityError: a row is invalid.
        """
        lost = left_out_error(outcome, self.tree)
        if lost is not None:
            raise lost
        problem = spark.jobs.first_problem(self._session.engine(), outcome, keys)
        if problem is not None:
            with self._reader() as reader:
                error = violation(self.relation, self.tree, self.target, problem, reader)
            error.context = None if context is None else context(problem)
            raise error

    def _keys(self, assigned: Collection[int] | None) -> list[UniqueKey]:
        """Return the unique keys whose values the assigned columns may change."""
        return [
            key
            for key in self.target.unique
            if assigned is None or not key.used.isdisjoint(assigned)
        ]

    def check_references(self, outcome: Outcome, assigned: Collection[int] | None = None) -> None:
        """Check that no foreign key refers to a removed row or an old key.

        Raises:
            ForeignKeyViolation: a row of another table refers to one.
            FeatureNotSupported: such a foreign key has an action such as CASCADE.
        """
        for other, constraint, reference in self._plan.referenced_by:
            if assigned is not None and set(constraint.ref_columns).isdisjoint(assigned):
                continue
            action = constraint.on_delete if assigned is None else constraint.on_update
            problem = spark.jobs.first_broken_reference(
                self._session.engine(),
                outcome,
                reference,
                acts=action.changes_rows,
                restricts=action is ForeignKeyAction.RESTRICT,
            )
            if problem is not None:
                values = [problem.row[attnum] for attnum in constraint.ref_columns]
                with self._reader() as reader:
                    error = still_referenced(self.relation, other, constraint, values, reader)
                    if action.changes_rows:
                        raise not_carried_out(constraint, other, error, assigned)
                    raise error

    def write(self, outcome: Outcome, *, changes_keys: bool = False) -> int:
        """Write an outcome, and return the number of changed rows.

        Args:
            changes_keys: keys do not identify the old image of an updated row, because the table
                has no key or an update may change it.

        Raises:
            UniqueViolation: another writer has meanwhile added the same key. The caller undoes the
                write.
            SerializationFailure: another writer has changed the table since the statement read it.
                The caller undoes the write.
        """
        writer = self._writer
        changes = spark.jobs.leaf_changes(outcome)
        replaces = any(change.deleted or change.updated for change in changes)
        for number, (leaf, change) in enumerate(zip(self.target.leaves, changes, strict=True)):
            if change.is_nothing:
                continue
            writer.prepare(leaf.relid)
            self.tree = {**self.tree, **writer.relations}
            current = local_target(self.tree[self.relation.oid], self.tree).leaves[number]
            if replaces:
                writer.check_unchanged(leaf.relid)
            with writer.commit_to(leaf.relid, changes_keys=changes_keys) as note:
                write_leaf(self._session, outcome, number, current, change, note)
            injection_point("write.after-delta-commit")
            if replaces:
                writer.check_not_overtaken(leaf.relid)
        self._check_again(outcome)
        return sum(group.count for group in outcome.groups)

    def _check_again(self, outcome: Outcome) -> None:
        """Check keys again if a program that ignores our locks has committed in the meantime."""
        if not self.target.unique or not any(
            self._writer.has_foreign_commits(relid) for relid in self._writer.written
        ):
            return
        current = local_target(self.tree[self.relation.oid], self.tree)
        problem = spark.jobs.first_collision(self._session.engine(), outcome, current)
        if problem is not None:
            with self._reader() as reader:
                raise violation(self.relation, self.tree, current, problem, reader)

    @contextmanager
    def _reader(self) -> Iterator[RowReader]:
        """Yield the description of rows for errors that the current role sees."""
        with self._session.read() as catalog:
            privileges = self._session.privileges(catalog)
            yield RowReader(
                privileges, self._plan.supplied, self._plan.named, self._session.value_format
            )


def plan_of(catalog: Catalog, relation: Relation) -> Plan:
    """Return the plan to write a table, from the current catalog."""
    references = tuple(references_of(catalog, relation))
    referenced_by = tuple(references_to(catalog, relation))
    others = {other.oid: other for other, _constraint, _reference in referenced_by}
    others |= load_relations(catalog, [constraint.ref_relid for constraint, _ in references])
    return Plan(relation, partition_tree(catalog, relation), references, referenced_by, others)


def modified_relation(analyzer: QueryAnalyzer, name: ast.RangeVar) -> Relation:
    """Return the table that a statement writes.

    Raises:
        UndefinedTable: the relation does not exist.
        WrongObjectType: statements cannot change the rows of this kind of relation.
    """
    relation = open_relation(analyzer.environment, name, or_sequence=True)
    if not isinstance(relation, Relation):
        raise WrongObjectType(f'permission denied: "{relation.name}" is a system catalog')
    if relation.kind == RelKind.SEQUENCE:
        raise WrongObjectType(f'cannot change sequence "{relation.name}"')
    if relation.kind == RelKind.MATERIALIZED_VIEW:
        raise WrongObjectType(f'cannot change materialized view "{relation.name}"')
    if relation.kind == RelKind.VIEW:
        raise FeatureNotSupported("INSERT, UPDATE and DELETE of views are not supported")
    check_writable(analyzer.environment.catalog, [relation])
    return with_delta_columns(relation)


@contextmanager
def written(session: Session, plans: Sequence[Plan]) -> Iterator[list[WrittenTable]]:
    """Lock tables, and yield them for writing in one transaction. After a failure, undo it all."""
    leaves = {leaf.relid: plan.tree[leaf.relid] for plan in plans for leaf in plan.target.leaves}
    guarded = {oid for plan in plans for oid in plan.other_relations}
    is_whole = len(leaves) == 1
    if rewrite_schemas(session, leaves.values()):
        raise SerializationFailure("columns have other names in the Delta table now")
    with (
        writing(session, list(leaves.values()), is_whole=is_whole, guarded=guarded) as writer,
        ExitStack() as stack,
    ):
        for oid, leaf in leaves.items():
            as_planned(writer.relations.get(oid), leaf)
        for plan in plans:
            if not plan.only_adds:  # it reads all columns; an INSERT is checked where it writes
                for part in plan.target.leaves:
                    check_columns(session, writer.relations[part.relid])
        _check_others(session, {k: v for plan in plans for k, v in plan.checked_relations.items()})
        yield [WrittenTable(session, plan, writer, stack) for plan in plans]


def as_planned(current: Relation | None, planned: Relation) -> Relation:
    """Return the current table, and check that its definition is that of the statement's plan.

    Raises:
        SerializationFailure: another session has changed or dropped the table (40001).
    """
    if current is None or replace(current, storage=None) != replace(planned, storage=None):
        raise _changed(planned)
    return current


def _check_others(session: Session, others: Mapping[int, Relation]) -> None:
    """Check that the tables that are read to check foreign keys still store their columns as
    planned, and have no commits of a newer state of the catalog.

    Raises:
        SerializationFailure: a table stores a column elsewhere now, or was dropped (40001).
        PostgresError: a table cannot be read (see `relation_leaves`).
    """
    if not others:
        return
    with session.read() as catalog:
        current = load_relations(catalog, others)
        for other in current.values():
            relation_leaves(catalog, other, cluster=session.cluster)
    for oid, other in others.items():
        if oid not in current or _stored_numbers(current[oid]) != _stored_numbers(other):
            raise _changed(other)


def _stored_numbers(relation: Relation) -> dict[int, int]:
    storage = relation.storage
    return {} if storage is None else {a: column.number for a, column in storage.columns.items()}


def _changed(relation: Relation) -> SerializationFailure:
    return SerializationFailure(
        f'relation "{relation.name}" was changed by another session',
        hint="Repeat the statement.",
    )


def _known_target(session: Session, target: Target) -> Target:
    """Return a table whose CHECK constraints the engine can compute: now(), current_user and
    similar functions, the session's settings and user-defined types are replaced.

    Raises:
        FeatureNotSupported: a CHECK depends on a setting in an unsupported way (0A000).
    """
    with session.read() as catalog:
        target = without_user_types_in(session.environment(catalog), target)
        context = function_context(session, catalog)
        return with_checks(
            target, lambda check: with_session_values(context, in_form(session, check))
        )


def _check_settings(
    session: Session, target: Target, assigned: Collection[int] | None = None
) -> None:
    """Check that generated columns do not depend on the session's settings.  Their expressions are
    immutable, except for casts to text.

    Args:
        assigned: the columns that get new values; None for all.

    Raises:
        FeatureNotSupported: a column depends on a setting in an unsupported way (0A000).
    """
    of_leaves = (item for leaf in target.leaves for item in leaf.generated)
    of_root = ((column.attnum, column.generated) for column in target.columns)
    for attnum, expr in (*of_root, *of_leaves):
        if isinstance(expr, nodes.Node) and (assigned is None or attnum in assigned):
            in_form(session, expr)
