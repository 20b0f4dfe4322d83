"""Apply changes of a published relation to a subscriber's table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from replctl import spark
from replctl.catalog.aclchk import Privileges
from replctl.catalog.file_layout import delta_properties
from replctl.catalog.nextval import RestartedSequences
from replctl.catalog.pg_class import Relation
from replctl.errors import (
    DataError,
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.expr.nextval_call import NumberedCalls
from replctl.lake.conflict_message import doubly_published, violation
from replctl.lake.delta_log import latest_version
from replctl.lake.file_layout import current_layout
from replctl.lake.left_out import left_out_error
from replctl.lake.native_target import check_native
from replctl.lake.received_type import check_zone, domain_tests, received_types
from replctl.lake.remote_relation import sent_columns
from replctl.lake.row_description import RowReader
from replctl.lake.small_source import with_small_leaves
from replctl.lake.small_write import write_leaf
from replctl.lake.table_state import table_state
from replctl.lake.target import (
    check_updatable,
    pinned,
    replication_target,
)
from replctl.lake.widened_column import is_wider
from replctl.lake.writer_values import with_writer_values
from replctl.record import dataclass
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import RelationChanges, RemoteRelation, RowCounts, Rows
from replctl.replication.reconcile_rules import Scope, UnpublishedRows
from replctl.replication.update_transformation import ROW_ACTIONS, Action
from replctl.session import Session
from replctl.spark import (
    NEXT_VALUE,
    TABLE_PROPERTIES,
    CommitNote,
    Leaf,
    SparkQuery,
    Target,
    UniqueKey,
    reading,
)

if TYPE_CHECKING:
    from replctl.spark import LeafChange, Outcome, Problem, Staged, WritePath


@dataclass
class ReplicatedTable:
    """A table of the subscriber, and the published relation whose changes it receives.

    Attributes:
        session: a session of the subscriber's database.
        relation: the table.
        tree: the table's partition tree, by OID.
        remote: the published relation.
        role: OID of the role that writes the table.
        done: tables that the batch has already written, each with its version before the write.
        emptied: OIDs of the tables that will be emptied before the changes.
        is_replaced: the existing rows will be replaced, and are ignored.
        denied_actions: the actions that the subscription may not perform on the table,
            each with the error.
        is_trial: the outcome will not be written.  So sequences do not advance.
        versions: the versions at which to read tables, by OID; other tables are read at their
            newest version.
        locked_versions: the versions of the tables when they were locked, by OID.
        sequences: takes the values of sequences; None for the session's.
        target: the table in the form that Spark's jobs use.
        sent: the published columns in the form that Spark's jobs use.

    Raises:
        ObjectNotInPrerequisiteState: the table lacks a sent column (55000).
        UndefinedObject: a default or constraint uses a missing setting (42704).
    """

    session: Session
    relation: Relation
    tree: dict[int, Relation]
    remote: RemoteRelation
    role: int
    done: Mapping[int, int | None] = field(default_factory=dict)
    is_replaced: bool = False
    emptied: Collection[int] = ()
    denied_actions: Mapping[Action, PostgresError] = field(default_factory=dict)
    is_trial: bool = False
    versions: Mapping[int, int | None] = field(default_factory=dict)
    locked_versions: Mapping[int, int | None] = field(default_factory=dict)
    sequences: RestartedSequences | None = None

    def __post_init__(self) -> None:
        emptied = self.tree if self.is_replaced else self.emptied
        read = {**self.versions, **self.done, **dict.fromkeys(emptied)}
        with self.session.read() as catalog:
            environment = self.session.environment(catalog)
            user_types = received_types(environment, self.relation)
            target = replication_target(self.relation, self.remote, self.tree, read, user_types)
            check_native(catalog, self.relation, self.remote)
            check_zone(self.relation, self.remote)
            target = replace(target, domain_tests=domain_tests(environment, self.relation, target))
            self.target = with_writer_values(self.session, catalog, target, self.role)
        self.sent = sent_columns(self.remote)

    @property
    def has_no_own_columns(self) -> bool:
        """Return whether all columns of the table are sent or generated."""
        columns = self.target.columns
        return all(c.sent is not None or c.generated is not None for c in columns)

    def isolated_positions(self, changes: RelationChanges) -> set[int]:
        """Return the positions of changes that must be applied without other transactions."""
        if not self.target.key:
            return set(changes.positions)
        sent = [self.target.column(attnum).sent for attnum in self.target.key]
        if None in sent or not changes.positions:  # applying the changes reports it
            return set()
        key = [position for position in sent if position is not None]
        rows, first, last = _staged(changes.rows), min(changes.positions), max(changes.positions)
        return spark.jobs.moving_positions(self.session.engine(), rows, key, first, last)

    @contextmanager
    def copied(self, rows: Rows) -> Iterator[TableOutcome]:
        """Yield the outcome of an initial copy, which adds rows or replaces all rows.

        Args:
            rows: the query of the rows to copy.

        Raises:
            ReplicationConflict: a row conflicts with the table.
        """
        engine = self.session.engine()
        target = self._with_taken_values(
            lambda: spark.jobs.count_rows(engine, cast(SparkQuery, rows))
        )
        with spark.jobs.copied(engine, target, self.sent, cast(SparkQuery, rows)) as outcome:
            self._check(outcome, self.target.unique)
            yield TableOutcome(self, outcome, spark.jobs.leaf_changes(outcome))

    @contextmanager
    def reconciled(self, difference: Staged) -> Iterator[TableOutcome]:
        """Yield the outcome that makes the table equal to the published rows.

        Args:
            difference: the difference from the published rows.

        Raises:
            ReplicationConflict: a row conflicts with the table, or several published rows have the
                same key.
        """
        engine = self.session.engine()
        added = reading(
            f"SELECT 1 FROM {difference.view} WHERE op = 'I' AND leaf IS NULL", difference.query
        )
        target = self._with_taken_values(lambda: spark.jobs.count_rows(engine, added))
        with spark.jobs.reconciled(engine, target, difference) as outcome:
            for action, count in zip(ROW_ACTIONS, outcome.changed_rows, strict=True):
                if count and action in self.denied_actions:
                    raise ReplicationConflict(
                        0, self.denied_actions[action], self.relation.qualified_name
                    )
            keys = [k for k in self.target.unique if set(k.attnums) != set(self.target.key)]
            self._check(outcome, keys, is_reconciled=True)
            yield TableOutcome(self, outcome, spark.jobs.leaf_changes(outcome))

    def count_unpublished(self, rows: Rows, scope: Scope) -> UnpublishedRows:
        """Count the table's rows that the publisher does not send, within a scope and in total."""
        filters = None if scope.problem is not None else scope.filters
        engine = self.session.engine()
        in_scope, total = spark.jobs.count_unpublished(
            engine, self.target, self.sent, cast(SparkQuery, rows), filters
        )
        return UnpublishedRows(None if filters is None else in_scope, total)

    @contextmanager
    def changed(self, changes: RelationChanges, first: int, last: int) -> Iterator[TableOutcome]:
        """Yield the outcome of the changes at positions from `first` to `last`.

        Raises:
            ReplicationConflict: a change conflicts with the table.
        """
        with ExitStack() as stack:
            try:
                outcome = stack.enter_context(self._outcome(changes, first, last))
            except DataError as error:
                raise self._located(changes, first, last, error) from error
            yield TableOutcome(self, outcome, spark.jobs.leaf_changes(outcome))

    @contextmanager
    def _outcome(
        self, changes: RelationChanges, first: int, last: int, *, is_prefix: bool = False
    ) -> Iterator[Outcome]:
        """Yield the outcome of changes, after a check that it has no conflicts.

        Args:
            is_prefix: check only the row that the last change makes.
        """
        engine = self.session.engine()
        rows = _staged(changes.rows)
        with spark.jobs.converted(engine, self.target, self.sent, rows, first, last) as converted:
            self._check_privileges(converted, first, last)
            summary = spark.jobs.summary(engine, self.target, converted)
            if summary.actions & {Action.UPDATE, Action.DELETE}:
                self._check_updatable(converted, first, last)
            hidden = () if is_prefix else summary.violating_positions
            # Each row is made and fails, unless the row to update is missing
            for position in hidden:
                with self._outcome(changes, first, position, is_prefix=True):
                    pass
            others = [k for k in self.target.unique if set(k.attnums) != set(self.target.key)]
            text = f"SELECT 1 FROM {converted.view} WHERE action = 'I'"
            added = reading(text, converted.query)
            target = self._with_taken_values(lambda: spark.jobs.count_rows(engine, added))
            with ExitStack() as stack:
                if converted.is_small:
                    target = stack.enter_context(with_small_leaves(self.session, target))
                else:
                    target = pinned(target, self.locked_versions)
                job = spark.jobs.outcome(engine, target, converted, summary)
                outcome = stack.enter_context(job)
                self._check(outcome, others, first=first)  # conflicts of the key are in the outcome
                yield outcome

    def _check_privileges(self, converted: Staged, first: int, last: int) -> None:
        """Check that the subscription may perform all actions (TargetPrivilegesCheck)."""
        if not self.denied_actions:
            return
        found = spark.jobs.first_action(
            self.session.engine(), converted, first, last, self.denied_actions
        )
        if found is not None:
            position, action = found
            raise ReplicationConflict(
                position,
                self.denied_actions[action],
                self.relation.qualified_name,
                action.name,
            )

    def _check_updatable(self, converted: Staged, first: int, last: int) -> None:
        try:
            check_updatable(self.target, self.remote, self.relation, self.tree)
        except (FeatureNotSupported, ObjectNotInPrerequisiteState) as error:
            found = spark.jobs.first_action(
                self.session.engine(), converted, first, last, {Action.UPDATE, Action.DELETE}
            )
            assert found is not None
            position, action = found
            raise ReplicationConflict(
                position, error, self.relation.qualified_name, action.name
            ) from error

    def _located(
        self, changes: RelationChanges, first: int, last: int, error: DataError
    ) -> ReplicationConflict:
        """Return the conflict of the first change whose value or expression fails.  Find it by
        computing the outcomes of fewer changes.
        """
        positions = sorted(p for p in changes.positions if first <= p <= last)
        low, high = 0, len(positions) - 1
        while low < high:
            middle = (low + high) // 2
            try:
                with self._outcome(changes, first, positions[middle], is_prefix=True):
                    low = middle + 1
            except DataError as earlier:  # the failing change is in the first half
                error, high = earlier, middle
            except ReplicationConflict as conflict:  # an earlier change fails for another reason
                return conflict
        engine, rows, position = self.session.engine(), _staged(changes.rows), positions[low]
        action, column = spark.jobs.failing_conversion(
            engine, self.target, self.sent, rows, position
        ) or (
            (
                spark.jobs.first_action(engine, rows, position, position)
                or (position, Action.INSERT)
            )[1],
            "",
        )
        return ReplicationConflict(
            position,
            error,
            self.relation.qualified_name,
            action.name,
            column,
            published_type=self._wider_type(column),
        )

    def _wider_type(self, name: str) -> str:
        """Return ReplicationConflict.published_type of a column; '' if `name` is ''."""
        own = self.relation.column(name)
        sent = next((column for column in self.remote.columns if column.name == name), None)
        if own is None or sent is None:
            return ""
        old, new = (own.type, own.typmod), (sent.type, sent.typmod)
        if not is_wider(old, new):
            return ""
        with self.session.read() as catalog:
            return self.session.environment(catalog).format_type(*new)

    def _with_taken_values(self, count: Callable[[], int]) -> Target:
        """Return the target with values for the sequences in its defaults.

        Args:
            count: returns the number of new rows; each of them gets one value of each sequence.
        """
        columns, counted = [], cache(count)  # only if a default uses a sequence
        sequences = self.sequences or self.session.sequences
        take = sequences.upcoming if self.is_trial else sequences.take
        for column in self.target.columns:
            if column.sent is None and column.default is not None:
                calls = NumberedCalls(NEXT_VALUE)
                default = calls.with_columns(column.default)
                if calls.sequences:
                    rows = counted()
                    with self.session.read() as catalog:
                        taken = tuple(calls.taken(partial(take, catalog), rows))
                    column = replace(column, default=default, taken=taken)
            columns.append(column)
        return replace(self.target, columns=tuple(columns))

    def _check(
        self,
        outcome: Outcome,
        keys: Sequence[UniqueKey],
        *,
        first: int = 0,
        is_reconciled: bool = False,
    ) -> None:
        """Check an outcome, and raise its first conflict.

        Args:
            keys: unique indexes that rows may violate.
            first: the position of the first change.
            is_reconciled: the outcome is one of a reconcile.  Then a duplicate key means that two
                published rows have the same key.
        """
        self._check_identity(outcome, first)
        error = left_out_error(outcome, self.tree)
        if error is not None:
            raise ReplicationConflict(first, error, self.relation.qualified_name)
        problem = spark.jobs.first_problem(self.session.engine(), outcome, keys)
        if problem is not None:
            action = Action(problem.action)
            sent = {c.name for c in self.target.columns if c.sent is not None}
            with self.session.read() as catalog:  # an UPDATE assigns the sent columns
                supplied = sent if action is Action.UPDATE else ()
                reader = RowReader(Privileges(catalog, self.role), supplied)
                if is_reconciled and problem.kind == "key":
                    error = doubly_published(self.relation, self.target, problem, reader)
                else:
                    error = violation(self.relation, self.tree, self.target, problem, reader)
            raise ReplicationConflict(
                problem.position,
                error,
                self.relation.qualified_name,
                action.name,
                self._failing_column(problem),
                type=_conflict_type(problem, action),
            )

    def _failing_column(self, problem: Problem) -> str:
        """Return the column whose domain does not allow the value; '' for other problems."""
        tests = self.target.domain_tests
        if problem.kind != "check" or problem.number >= len(tests):
            return ""
        return self.target.column(tests[problem.number].attnum).name

    def _check_identity(self, outcome: Outcome, position: int) -> None:
        """Check that changed rows can keep the values of Delta's identity columns.

        Raises:
            ReplicationConflict: a changed row would get another value.
        """
        names = [column.name for column in self.target.columns if column.is_identity]
        if not names or not (outcome.moves_keys or outcome.matching == "sent columns"):
            return
        _inserted, updated, deleted = outcome.changed_rows
        if updated or deleted:
            error = FeatureNotSupported(
                f'identity column "{names[0]}" of logical replication target relation'
                f' "{self.relation.qualified_name}" cannot keep its values',
                detail="Delta does not update identity columns. The changes move keys, or the table"
                " has no key.",
            )
            raise ReplicationConflict(position, error, self.relation.qualified_name)


def _conflict_type(problem: Problem, action: Action) -> ConflictType | None:
    if problem.kind not in ("key", "unique"):
        return None
    if problem.broken_keys > 1:
        return ConflictType.MULTIPLE_UNIQUE_CONFLICTS
    exists = {
        Action.INSERT: ConflictType.INSERT_EXISTS,
        Action.UPDATE: ConflictType.UPDATE_EXISTS,
    }
    return exists[action]


@dataclass(frozen=True)
class TableOutcome:
    """The outcome of changes for a table; a row has its leaf partition by number."""

    table: ReplicatedTable
    outcome: Outcome
    leaf_changes: Sequence[LeafChange]

    @property
    def changed_leaves(self) -> list[int]:
        """Return the numbers of the leaf partitions that change."""
        return [
            number
            for number, change in enumerate(self.leaf_changes)
            if not change.is_nothing or (self.table.is_replaced and self._is_made(number))
        ]

    def _is_made(self, number: int) -> bool:
        storage = self.table.tree[self.leaf_relid(number)].storage
        return storage is not None and storage.is_made

    @property
    def paths(self) -> set[WritePath]:
        """Return the write paths of the leaf partitions that change."""
        return {
            spark.jobs.write_path(self.outcome, self.leaf_changes[number])
            for number in self.changed_leaves
        }

    @property
    def changed_relids(self) -> set[int]:
        return {self.leaf_relid(number) for number in self.changed_leaves}

    @property
    def missing(self) -> dict[ConflictType, int]:
        """Return the numbers of updates and of deletes that found no row."""
        updates, deletes = self.outcome.missing_rows
        return {ConflictType.UPDATE_MISSING: updates, ConflictType.DELETE_MISSING: deletes}

    @property
    def row_counts(self) -> RowCounts:
        """Return the numbers of rows that change, whether they are already written or not.  Do not
        count rows that a copy replaces.
        """
        return RowCounts(*self.outcome.changed_rows)

    @property
    def changes_keys(self) -> bool:
        """Return whether images of the table's updates must be paired by row id."""
        return self.outcome.moves_keys or self.outcome.matching != "key"

    def leaf_relid(self, number: int) -> int:
        """Return the OID of a leaf partition."""
        return self.table.target.leaves[number].relid

    def write(self, number: int, relations: Mapping[int, Relation], note: CommitNote) -> None:
        """Write the rows of one leaf partition.

        Args:
            number: the number of the leaf.
            relations: the tables in their current state, after all columns were created in storage.
        """
        table = self.table
        tree = {**table.tree, **relations}
        current = replication_target(tree[table.relation.oid], table.remote, tree)
        leaf = current.leaves[number]
        if table.is_replaced:
            _restore_properties(table.session, tree[leaf.relid])
            self._replace(number, leaf, note)
        else:
            change = self.leaf_changes[number]
            write_leaf(table.session, self.outcome, number, leaf, change, note)

    def _replace(self, number: int, leaf: Leaf, note: CommitNote) -> None:
        """Replace the rows of one leaf partition.  A clustered table stays clustered."""
        location, engine = leaf.source.location, self.table.session.engine()
        assert location is not None
        clusters = current_layout(table_state(location), location).clusters
        is_clustered = bool(clusters)
        spark.jobs.replace_leaf(engine, self.outcome, number, leaf, note, is_clustered=is_clustered)
        if clusters and leaf.source.left_out:  # INSERT OVERWRITE ends the clustering
            spark.jobs.cluster(engine, location, clusters)


def _restore_properties(session: Session, leaf: Relation) -> None:
    """Restore the properties of replctl's own table that another program has removed or changed."""
    storage = leaf.storage
    if storage is None or storage.is_adopted or latest_version(storage.location) is None:
        return
    wanted = TABLE_PROPERTIES | delta_properties(leaf.options)
    if not wanted.items() <= table_state(storage.location).properties.items():
        spark.jobs.set_properties(session.engine(), storage.location, wanted)


def first_action(
    session: Session, changes: RelationChanges, first: int, last: int
) -> tuple[int, Action] | None:
    """Return position and action of the first change at positions from `first` to `last`; None if
    there is none.
    """
    return spark.jobs.first_action(session.engine(), _staged(changes.rows), first, last)


def count_actions(
    session: Session, changes: RelationChanges, first: int, last: int
) -> dict[Action, int]:
    """Return the number of changes at positions from `first` to `last`, by action."""
    return spark.jobs.count_actions(session.engine(), _staged(changes.rows), first, last)


def _staged(rows: Rows) -> Staged:
    """Narrow the type of decoded changes.  LakePublisher makes a temporary view of them."""
    return cast("Staged", rows)
