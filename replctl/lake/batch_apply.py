"""Apply batches of changes to a subscription's tables.

replctl writes a batch table after table, each in one Delta commit.  Before the first commit, it
records the batch in the catalog, with the version of every target.  After a crash, replctl finishes
the batch from this record.  It skips tables whose Delta log has the batch's transaction identifier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from functools import partial

from replctl import spark
from replctl.catalog.apply_batch import ApplyBatch, delete_apply_batch, insert_apply_batch
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import advance_origin
from replctl.catalog.pg_subscription import note_applied_filters
from replctl.catalog.transaction import Catalog, abort_transaction, backend_of, begin_transaction
from replctl.errors import ConnectionFailure, DataError, IntegrityError, PostgresError
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.abandoned_write import note_abandoned, undo
from replctl.lake.batch_part import BatchPart, TableWork
from replctl.lake.batch_stage import Stage
from replctl.lake.delta_files import is_empty_at
from replctl.lake.delta_log import latest_version
from replctl.lake.leftovers import take_over
from replctl.lake.native_target import ConvertedNative
from replctl.lake.partition_tree import subtree
from replctl.lake.replicated_table import TableOutcome, count_actions
from replctl.lake.retry import repeated
from replctl.lake.small_definition import remove_rows
from replctl.lake.subscriber_state import SubscriberState
from replctl.lake.table_write import TableWriter, commit
from replctl.lake.target_check import TargetCheck
from replctl.lake.target_fault import check_faults
from replctl.lake.target_relations import (
    PartitionTrees,
    TargetRelations,
    leaves_of_root,
    leaves_of_trees,
)
from replctl.lake.target_write import Locked, TargetWrite
from replctl.lake.written_steps import WrittenSteps
from replctl.record import dataclass
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import (
    ChangeBatch,
    RelationChanges,
    RemoteRelation,
    RowCounts,
    Truncation,
)
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.session_thread import in_parallel
from replctl.spark import LeafChange, cancel_jobs, estimated_path


class _Regrouped(Exception):
    """Raised if a begun batch has other stages now, because its targets share other leaf
    partitions than before.  So its record does not tell what is written.
    """


@dataclass
class _Attempt:
    """An attempt to write a part of a batch.

    Attributes:
        stage_count: the number of stages of the part.
        from_lsn, to: the part has the changes after `from_lsn`, up to `to`.
        batch: the record of the begun batch; None before.
        versions: the newest versions of the locked tables before the current stage.
        conflicts: the numbers of changes that found no row.
        writer_or_none: the writer; None before the first write.
    """

    part: BatchPart
    locked: Locked
    stage_count: int
    from_lsn: int
    to: LogPosition
    batch: ApplyBatch | None
    versions: Mapping[int, int | None]
    conflicts: Counter[ConflictType] = field(default_factory=Counter)
    writer_or_none: TableWriter | None = None

    @property
    def writer(self) -> TableWriter:
        """Return the writer of the begun batch."""
        assert self.writer_or_none is not None
        return self.writer_or_none

    def look_again(self) -> None:
        """Take note of the tables' state after a stage, which the next one reads."""
        current = self.locked.relations
        if self.writer_or_none is not None:
            current = self.writer_or_none.relations
            self.part.renew(current)
        self.versions = {
            oid: None if item.storage is None else latest_version(item.storage.location)
            for oid, item in current.items()
        }


class BatchApply(TargetWrite):
    """Applies changes of published tables to the tables of one subscription
    (replication.node.Changes).
    """

    def has_target(self, remote: RemoteRelation) -> bool:
        """Return whether a local table can receive changes of a relation.  Like PostgreSQL's
        worker, apply also checks relations whose changes it does not apply.
        """
        if self._state.table is not None:
            return True
        if self._subscription.follow_schema and remote.relation_name in self._state.relations():
            return True  # a copy of the table has followed later definitions
        try:
            self._local.table(remote)
        except ConvertedNative:  # a REFRESH TABLE may have begun after these changes
            return True
        except PostgresError:  # the publisher then sends the relation, and apply reports it
            return False
        return True

    def joins(self, remote: RemoteRelation) -> bool:
        """Return whether replctl may join versions of a relation: only if the local table has no
        columns of its own, and shares no leaf partition with another table of the subscription.
        Joining turns a DELETE and an INSERT of the same key into an UPDATE, which would keep the
        old values of such columns.  It also loses the order among the tables.
        """
        try:
            table = self._local.table(remote)
        except PostgresError:  # apply reports it for the relation's first change
            return False
        return table.has_no_own_columns and not self._local.shares_leaves(table.relation)

    def shares_leaves(self, remote: RemoteRelation) -> bool:
        """Return whether the local table of a relation shares a leaf partition with another table
        of the subscription.
        """
        try:
            table = self._local.table(remote)
        except PostgresError:  # apply reports it for the relation's first change
            return False
        return self._local.shares_leaves(table.relation)

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """Return the positions of changes that cannot be composed with other transactions, because
        they change keys or their table has no key.
        """
        found = [(item.thread, partial(_isolated, self._local, item)) for item in batch.changes]
        return set().union(*in_parallel(found, cancel_jobs))

    def apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Write the changes at positions from `first` to `last` as one batch, set the progress to
        `to`, and return the row counts.

        Raises:
            ReplicationConflict: a change conflicts with its table.  The written part of the batch
                is undone if this call has begun the batch, or if the error is one of data.
            PostgresError: the batch cannot be written.  It is abandoned if no part of it is
                written.
        """
        is_begun = self._state.unfinished_batch() is not None
        action = partial(self._apply, batch, first, last, from_lsn, to)
        try:
            # Programs other than replctl may commit first.  A retry skips the written tables.
            try:
                return repeated(action)
            except _Regrouped:
                self._take_back_batch()
                is_begun = False
                return repeated(action)
        except ConnectionFailure:  # Spark may still be writing
            raise
        except ReplicationConflict as conflict:
            self._give_up_batch()
            if not is_begun or isinstance(conflict.error, (DataError, IntegrityError)):
                self._take_back_batch()
            raise
        except PostgresError:
            self._give_up_batch()
            raise

    def _apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Apply a batch and return the row counts.  If another writer commits first, the batch
        stays unfinished.
        """
        unfinished = self._state.unfinished_batch()
        begun = 0 if unfinished is None else unfinished.begun
        part = BatchPart(self._local, batch, first, last, begun=begun)
        rows = RowCounts()
        with self.locked(part.trees) as locked:
            with self._session.read() as catalog:
                if unfinished is None:
                    roots = [root.oid for root, _tree in part.trees.values()]
                    check_faults(catalog, self._subscription, roots)
                for leaf in locked.relations.values():
                    self._check.check_history(catalog, leaf)
            if unfinished is not None:
                take_over(self._session, unfinished.xid, unfinished.targets)
            stages = part.stages()
            if unfinished is not None and len(unfinished.writes) != len(stages):
                raise _Regrouped
            attempt = _Attempt(part, locked, len(stages), from_lsn, to, unfinished, locked.versions)
            for number, stage in enumerate(stages):
                if number:
                    attempt.look_again()
                rows += self._write_stage(attempt, number, stage)
            if attempt.batch is None:
                _finish_empty(self._state, to, attempt.conflicts)
            else:
                self._finish_batch(attempt.writer, attempt.batch, to, attempt.conflicts, part)
        return rows

    def _write_stage(self, attempt: _Attempt, number: int, stage: Stage) -> RowCounts:
        """Write a stage of a batch, and return the row counts."""
        part, tables = attempt.part, attempt.locked.relations
        done = _written(self._session, self._check, tables, attempt.batch, number)
        with ExitStack() as stack:
            pieces = part.table_work(number, stage, done, stack, attempt.versions)
            for work in pieces:
                attempt.conflicts.update(work.missing)
            injection_point("apply.before-batch")
            leaves = {relid for work in pieces for relid in work.outcome.changed_relids}
            leaves |= part.truncated(stage)
            if attempt.batch is None and not leaves and not stage.truncations:
                return RowCounts()
            targets = self._plan_stage(attempt, number, leaves, done)
            injection_point("apply.after-batch")
            for truncation in stage.truncations:
                self._truncate(attempt.writer, truncation, part.trees, targets, done)
            in_parallel(
                [
                    (work.thread, partial(self._write_table, attempt.writer, work, targets))
                    for work in pieces
                ],
                cancel_jobs,
            )
            injection_point("apply.after-tables")
            return sum((work.outcome.row_counts for work in pieces), RowCounts())

    def _plan_stage(
        self, attempt: _Attempt, number: int, leaves: set[int], done: Mapping[int, int | None]
    ) -> dict[int, WriteStep]:
        """Record the writes of a stage before the first one, and return them.

        Args:
            leaves: the OIDs of the tables to write.
            done: those of them that are already written.
        """
        tables = attempt.locked.relations
        versions = attempt.versions if number else None
        if attempt.batch is None:
            attempt.batch = self._begin_batch(attempt, number, [tables[oid] for oid in leaves])
        else:
            # Finish the batch even if nothing seems left to write: Spark may have completed a
            # write since the tables were checked.  Other programs may also have written.
            targets = attempt.batch.writes[number]
            undone = WrittenSteps(self._session, tables, targets, self._check.application).undone()
            missing = ((leaves & undone) | leaves.difference(targets)).difference(done)
            attempt.batch = self._extend_batch(
                attempt.batch, number, [tables[oid] for oid in missing], versions
            )
        if attempt.writer_or_none is None:
            attempt.writer_or_none = self.writer(attempt.locked, attempt.batch.xid)
        attempt.writer.read_versions = dict(attempt.versions)
        return attempt.batch.writes[number]

    @contextmanager
    def planned(self, batch: ChangeBatch, first: int, last: int) -> Iterator[list[TableOutcome]]:
        """Yield the outcomes that `apply` would write now, without locking or writing anything.

        Raises:
            ReplicationConflict: see `apply`.
        """
        unfinished = self._state.unfinished_batch()
        begun = 0 if unfinished is None else unfinished.begun
        part = BatchPart(self._local, batch, first, last, begun=begun, is_trial=True)
        tables = leaves_of_trees(part.trees)
        found: list[TableOutcome] = []
        with ExitStack() as stack:
            for number, stage in enumerate(part.stages()):
                done = _written(self._session, self._check, tables, unfinished, number)
                found += [w.outcome for w in part.table_work(number, stage, done, stack)]
            yield found

    def count_sent(self, changes: RelationChanges, first: int, last: int) -> dict[Action, int]:
        """Count a relation's changes at positions from `first` to `last`, by action (I, U, D)."""
        return count_actions(self._session, changes, first, last)

    def estimated_paths(
        self, changes: RelationChanges, counts: Mapping[Action, int], first: int, last: int
    ) -> list[str]:
        """Return the likely write paths of changes, without reading the rows that they affect.

        Args:
            counts: the result of `count_sent`.
            first, last: the positions of the changes.
        """
        if not any(counts.values()):
            return []
        table = self._local.table(changes.relation)
        change = LeafChange(
            *(counts.get(action, 0) for action in (Action.DELETE, Action.UPDATE, Action.INSERT))
        )
        keeps_keys = table.isolated_positions(changes).isdisjoint(range(first, last + 1))
        return [estimated_path(change, is_by_key=bool(table.target.key) and keeps_keys)]

    def _begin_batch(
        self, attempt: _Attempt, number: int, leaves: Sequence[Relation]
    ) -> ApplyBatch:
        """Record a batch that begins with a stage, since the earlier ones write nothing."""
        relid, to = self._state.relid, attempt.to
        with self._state.writing() as catalog:
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            targets = self.steps(catalog, leaves, attempt.versions if number else None)
            empty = ApplyBatch(
                self._subscription.oid,
                attempt.from_lsn,
                to.lsn,
                xid,
                ({},) * attempt.stage_count,
                relid,
                to.digest,
            )
            batch = empty.with_writes(number, targets)
            insert_apply_batch(catalog, batch)
            for oid, filters in attempt.part.applied_filters().items():
                note_applied_filters(catalog, self._subscription.oid, oid, filters)
        return batch

    def _give_up_batch(self) -> None:
        """Release the tables of the batch after an error, unless a part of it is written.  If a
        part was written and undone, its transaction ends as an undone one, because the log has it.
        """
        batch = self._state.unfinished_batch()
        if batch is None:
            return
        with self._session.read() as catalog:
            tables = load_relations(catalog, batch.targets)
            is_own = backend_of(catalog.connection, batch.xid) == self._session.cluster.backend
        if not is_own or _written(self._session, self._check, tables, batch, 0):
            return
        if any(
            WrittenSteps(self._session, tables, targets, self._check.application)
            for targets in batch.writes
        ):
            self._take_back_batch()
            return
        with self._state.writing() as catalog:
            delete_apply_batch(catalog, self._subscription.oid, self._state.relid)
            abort_transaction(catalog.connection, batch.xid)

    def _take_back_batch(self) -> None:
        """Undo the written part of the batch: a later stage, or rows of other writers, conflict, or
        the batch has other stages now.  Then the transactions before the failing one can be applied
        by themselves.
        """
        batch = self._state.unfinished_batch()
        if batch is None:
            return
        begun = [(batch.xid, batch.targets)]
        with self._state.writing() as catalog:
            note_abandoned(catalog, self._subscription, self._state.relid, begun)
        undo(self._session, begun)

    def _extend_batch(
        self,
        batch: ApplyBatch,
        number: int,
        leaves: Sequence[Relation],
        versions: Mapping[int, int | None] | None,
    ) -> ApplyBatch:
        """Return a batch in which these tables have new write steps in a stage."""
        if not leaves:
            return batch
        with self._state.writing() as catalog:
            extended = batch.with_writes(number, self.steps(catalog, leaves, versions))
            delete_apply_batch(catalog, self._subscription.oid, self._state.relid)
            insert_apply_batch(catalog, extended)
        return extended

    def _finish_batch(
        self,
        writer: TableWriter,
        batch: ApplyBatch,
        to: LogPosition,
        conflicts: Mapping[ConflictType, int],
        part: BatchPart,
    ) -> None:
        """Record the versions, the commit and the progress in one transaction of the catalog."""

        def note_progress(catalog: Catalog, local_lsn: int) -> None:
            part.sequences.put(catalog)
            delete_apply_batch(catalog, self._subscription.oid, self._state.relid)
            advance_origin(catalog.connection, self._state.origin_name, to, local_lsn)
            self._state.enter_conflicts(catalog, conflicts)
            for targets in batch.writes:
                self.note_written(catalog, writer, targets)

        injection_point("apply.before-progress")
        writer.origin_lsn = to.lsn
        commit(writer, note_progress)
        injection_point("apply.after-progress")

    def _write_table(
        self, writer: TableWriter, work: TableWork, targets: dict[int, WriteStep]
    ) -> None:
        for number in work.outcome.changed_leaves:
            self.write_leaf(writer, work.outcome, number, targets)
            injection_point("apply.after-first-table")

    def _truncate(
        self,
        writer: TableWriter,
        truncation: Truncation,
        trees: PartitionTrees,
        targets: Mapping[int, WriteStep],
        done: Mapping[int, int | None],
    ) -> None:
        """Empty the tables of a TRUNCATE.  The log gets an entry for each table of their trees.

        CASCADE has no effect here (apply_handle_truncate).
        """
        detail: dict[str, object] = {
            "cascade": False,
            "restart_identity": truncation.restart_identity,
        }
        for name in truncation.relations:
            root, tree = trees[name]
            writer.truncations |= {part.oid: detail for part in subtree(root, tree)}
            for leaf in leaves_of_root(root, tree):
                storage = leaf.storage
                if storage is None or not storage.is_made or leaf.oid in done:
                    continue
                before = latest_version(storage.location)
                with writer.commit_to(
                    leaf.oid,
                    truncates=True,
                    application=self._check.application(leaf.oid),
                    step=targets[leaf.oid].number,
                    may_be_nothing=True,
                ) as note:
                    remove_rows(self._session, storage.location, note)
                if (
                    latest_version(storage.location) == before
                    and not is_empty_at(storage.location, before or 0)
                    and spark.jobs.has_rows(self._session.engine(), storage.location)
                ):
                    raise commit_log.not_carried_out(leaf)


def _isolated(local: TargetRelations, changes: RelationChanges) -> set[int]:
    """Return the positions of a relation's changes that cannot be composed.

    Transactions that change two tables with a common leaf partition take turns: together they would
    need a stage for each.
    """
    try:
        table = local.table(changes.relation)
    except PostgresError:  # apply reports it for the relation's first change
        return set()
    if local.shares_leaves(table.relation):
        return set(changes.positions)
    return table.isolated_positions(changes)


def _written(
    session: Session,
    check: TargetCheck,
    tables: Mapping[int, Relation],
    batch: ApplyBatch | None,
    number: int,
) -> dict[int, int | None]:
    """Return the tables that a batch has already written in a stage or a later one.  Each has its
    version before the first of these writes.
    """
    done: dict[int, int | None] = {}
    for targets in reversed(() if batch is None else batch.writes[number:]):
        done |= WrittenSteps(session, tables, targets, check.application).leaves
    return done


def _finish_empty(
    state: SubscriberState, to: LogPosition, conflicts: Mapping[ConflictType, int]
) -> None:
    """Record progress over changes that write nothing, and count the conflicts among them."""
    with state.writing() as catalog:
        advance_origin(catalog.connection, state.origin_name, to, 0)
        state.enter_conflicts(catalog, conflicts)
