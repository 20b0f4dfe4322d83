"""Compute the outcome of a part of a batch for the tables: before it is written, and for
`sync --explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from replctl.catalog.nextval import RestartedSequences
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_sequence import Sequence, owned_sequences
from replctl.catalog.table_copy import AppliedFilter
from replctl.errors import (
    ConnectionFailure,
    DiskFull,
    FileAccessDenied,
    InternalError,
    PostgresError,
    QueryCanceled,
    SerializationFailure,
)
from replctl.lake.batch_stage import Run, Stage, stages_of
from replctl.lake.partition_tree import subtree
from replctl.lake.replicated_table import ReplicatedTable, TableOutcome, first_action
from replctl.lake.target_relations import (
    PartitionTrees,
    TargetRelations,
    leaves_of_root,
)
from replctl.lake.truncation import check_truncatable
from replctl.record import dataclass
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import ChangeBatch, RelationChanges, Truncation
from replctl.replication.update_transformation import Action
from replctl.session_thread import SessionThread, in_parallel
from replctl.spark import cancel_jobs

#: Errors that no change causes.
_NO_CONFLICT = (
    ConnectionFailure,
    DiskFull,
    FileAccessDenied,
    InternalError,
    QueryCanceled,
    SerializationFailure,
)


@dataclass(frozen=True, slots=True)
class TableWork:
    """The work of a batch part for one table: the rows to write, the leaves already written, and
    the changes that found no row.
    """

    thread: SessionThread
    outcome: TableOutcome
    missing: Mapping[ConflictType, int]


class BatchPart:
    """The changes of a batch at some positions.

    Args:
        first, last: the positions.
        begun: the number of stages of the batch that are begun.  Their changes were checked before,
            and some may be written.
        is_trial: the changes will not be written.

    Attributes:
        trees: the existing tables that the changes affect.
        sequences: takes the values of sequences for new rows.
    """

    def __init__(
        self,
        relations: TargetRelations,
        batch: ChangeBatch,
        first: int,
        last: int,
        *,
        begun: int = 0,
        is_trial: bool = False,
    ) -> None:
        self._relations = relations
        self._last, self._begun, self._is_trial = last, begun, is_trial
        self.truncations = tuple(t for t in batch.truncations if first <= t.position <= last)
        self._changes = list(_after_truncations(batch, self.truncations, first, last))
        self._problems = _Problems()
        self.trees: PartitionTrees = {}
        self._find_trees()
        self.sequences = RestartedSequences(relations.session.sequences, self._restarted())

    def _find_trees(self) -> None:
        relations = self._relations
        for item, start in self._changes:
            with self._problems.of(item, self._first_action(item, start, self._last)):
                self.trees |= relations.trees([item.relation.relation_name])
        for truncation in self.truncations:
            with self._problems.of_truncation(truncation):
                truncated = relations.trees(truncation.relations)
                self._check_truncatable(truncated)
                for root, tree in truncated.values():
                    if not self._begun and (
                        problem := relations.denied_actions(root, tree).get(Action.TRUNCATE)
                    ):
                        raise problem
                self.trees |= truncated

    def _restarted(self) -> list[Sequence]:
        """Return the sequences that the TRUNCATEs restart."""
        emptied = {
            oid
            for truncation in self.truncations
            if truncation.restart_identity
            for name in truncation.relations
            if name in self.trees
            for oid in (self.trees[name][0].oid, *self.trees[name][1])
        }
        if not emptied:
            return []
        with self._relations.session.read() as catalog:
            return [item for oid in emptied for item in owned_sequences(catalog, oid)]

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of the changes, in order; at least one.  Later stages see the rows of
        earlier ones.
        """
        leaves = {
            name: [leaf.oid for leaf in leaves_of_root(*entry)]
            for name, entry in self.trees.items()
        }
        return stages_of(self._changes, self.truncations, self._last, leaves)

    def truncated(self, stage: Stage) -> set[int]:
        """Return the OIDs of the tables that the TRUNCATEs of a stage empty."""
        return {
            leaf.oid
            for truncation in stage.truncations
            for name in truncation.relations
            for leaf in leaves_of_root(*self.trees[name])
        }

    def renew(self, current: Mapping[int, Relation]) -> None:
        """Use the current state of relations that a stage has written."""
        for name, (root, tree) in self.trees.items():
            fresh = {oid: current.get(oid, relation) for oid, relation in tree.items()}
            self.trees[name] = (fresh[root.oid], fresh)

    def applied_filters(self) -> dict[int, tuple[AppliedFilter, ...]]:
        """Return the row filters that the changes passed, by the table's OID."""
        return {
            self.trees[name][0].oid: item.relation.filters
            for item, _start in self._changes
            if (name := item.relation.relation_name) in self.trees
        }

    def table_work(
        self,
        number: int,
        stage: Stage,
        done: Mapping[int, int | None],
        stack: ExitStack,
        locked: Mapping[int, int | None] | None = None,
    ) -> list[TableWork]:
        """Return the work of a stage for each table.

        Args:
            number: the number of the stage, from 0.
            done: tables already written, each with its version before the write.
            stack: the outcomes remain valid until it closes.
            locked: the versions of the locked tables before the stage; None if they are not locked.

        Raises:
            ReplicationConflict: a change conflicts with its table.
        """
        is_begun = number < self._begun
        found = in_parallel(
            [
                (run.item.thread, partial(self._work, run, is_begun, done, locked or {}, stack))
                for run in stage.runs
            ],
            cancel_jobs,
        )
        self._problems.raise_first()
        return [work for work in found if work is not None]

    def _work(
        self,
        run: Run,
        is_begun: bool,
        done: Mapping[int, int | None],
        locked: Mapping[int, int | None],
        stack: ExitStack,
    ) -> TableWork | None:
        item = run.item
        root, tree = self.trees[item.relation.relation_name]
        with self._problems.of(item, self._first_action(item, run.first, run.last)):
            table = ReplicatedTable(
                self._relations.session,
                root,
                tree,
                item.relation,
                self._relations.writer_of(root),
                done,
                emptied=run.emptied,
                is_trial=self._is_trial,
                locked_versions=locked,
                sequences=self.sequences,
            )
            if not is_begun:
                table.denied_actions = self._relations.denied_actions(root, tree)
            outcome = stack.enter_context(table.changed(item, run.first, run.last))
            return TableWork(item.thread, outcome, outcome.missing)
        return None

    def _first_action(
        self, changes: RelationChanges, first: int, last: int
    ) -> Callable[[], tuple[int, Action] | None]:
        session = self._relations.session
        find = partial(first_action, session, changes, first, last)
        return lambda: changes.thread.run(find)

    def _check_truncatable(self, trees: PartitionTrees) -> None:
        emptied = {part.oid: part for entry in trees.values() for part in subtree(*entry)}
        with self._relations.session.read() as catalog:
            check_truncatable(catalog, emptied)


class _Problems:
    """Collects the changes that cannot be applied, and raises the error of the earliest one."""

    def __init__(self) -> None:
        self._found: list[ReplicationConflict] = []

    @contextmanager
    def of(
        self, changes: RelationChanges, first_action: Callable[[], tuple[int, Action] | None]
    ) -> Iterator[None]:
        """Attribute errors of the `with` block to the changes of one relation.  An error without a
        position belongs to the first change.  If no change is sent, ignore the error.

        Args:
            first_action: returns the position and action of the first change; None if there is
                none.
        """
        try:
            yield
        except ReplicationConflict as conflict:
            # an earlier change may have failed in another table
            self._found.append(conflict)
        except _NO_CONFLICT:
            raise
        except PostgresError as error:  # an earlier change may fail in another table
            found = first_action()
            if found is not None:
                position, action = found
                self._found.append(ReplicationConflict(position, error, "", action.name))

    @contextmanager
    def of_truncation(self, truncation: Truncation) -> Iterator[None]:
        """Attribute errors of the `with` block to a TRUNCATE."""
        try:
            yield
        except _NO_CONFLICT:
            raise
        except PostgresError as error:  # an earlier change may fail in another table
            self._found.append(ReplicationConflict(truncation.position, error, "", "TRUNCATE"))

    def raise_first(self) -> None:
        """Raise the problem of the earliest change, if any."""
        first = min(self._found, key=lambda conflict: conflict.position, default=None)
        if first is not None:
            raise first


def _after_truncations(
    batch: ChangeBatch, truncations: tuple[Truncation, ...], first: int, last: int
) -> Iterator[tuple[RelationChanges, int]]:
    """Yield the changes of a batch at positions from `first` to `last`.  For each relation these
    are the changes after its last TRUNCATE, with the position that they start from.
    """
    starts = {name: t.position + 1 for t in truncations for name in t.relations}
    for item in batch.changes:
        start = starts.get(item.relation.relation_name, first)
        if any(start <= position <= last for position in item.positions):
            yield item, start
