"""A database of a cluster as a subscriber: initial copies and batches of changes written into its
tables.

A batch is written table after table, each in one Delta commit.  Before the first of them the batch
is in the catalog with the version of every target; after a crash it is finished from there, and
what is already written is recognised by Delta's transaction identifier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

from replctl import spark
from replctl.catalog.apply_batch import (
    ApplyBatch,
    delete_apply_batch,
    get_apply_batch,
    insert_apply_batch,
)
from replctl.catalog.apply_step import next_apply_step, note_written_steps
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.pg_class import Relation, load_relations, relation_names
from replctl.catalog.pg_replication_slots import (
    advance_origin,
    create_origin,
    drop_origin,
    origin_position,
    origin_progress,
)
from replctl.catalog.pg_stat_subscription_stats import count_conflicts, count_error
from replctl.catalog.pg_subscription import (
    CopySnapshot,
    RelState,
    Subscription,
    SubscriptionRelation,
    clear_fault,
    get_subscription,
    note_applied_filters,
    subscription_relations,
    update_subscription,
    update_subscription_relation,
)
from replctl.catalog.pg_wal import acknowledge_changes, last_logged_version
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.catalog.transaction import (
    Catalog,
    abort_transaction,
    backend_of,
    begin_transaction,
)
from replctl.errors import (
    ConnectionFailure,
    DataError,
    IntegrityError,
    Notice,
    PostgresError,
    SerializationFailure,
)
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.batch_part import BatchPart, TableWork
from replctl.lake.delta_log import latest_version
from replctl.lake.delta_rules import append_only_error, check_uniform
from replctl.lake.file_access import check_writable
from replctl.lake.leftovers import removing_leftovers, take_over
from replctl.lake.partition import partition_tree
from replctl.lake.reconciliation import Reconciliation
from replctl.lake.repeat import repeated
from replctl.lake.replicated_table import (
    ReplicatedTable,
    TableOutcome,
    count_actions,
    undone_leaves,
    written_leaves,
)
from replctl.lake.resync import begin_again, check_loss, check_ownership, objection
from replctl.lake.row_owner import (
    check_deletion,
    copied_member,
    row_ownership,
    undecided,
)
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.table_write import (
    TableWriter,
    commit,
    recover,
    undo_or_leave,
    undo_relation,
)
from replctl.lake.target_check import TargetCheck
from replctl.lake.target_fault import check_faults
from replctl.lake.target_relations import (
    Families,
    TargetRelations,
    leaves_of_families,
    leaves_of_root,
)
from replctl.lake.unfinished_batch import leave_batch
from replctl.lake.verified_table import PinnedTarget, compared, pinned_target
from replctl.lake.waiting import when_free
from replctl.lane import side_by_side
from replctl.lsn import INVALID_LSN
from replctl.record import dataclass
from replctl.replication.conflict import ConflictType, ReplicationConflict
from replctl.replication.node import (
    ChangeBatch,
    RelationChanges,
    RemoteRelation,
    RowCounts,
    Rows,
    Snapshot,
    Truncation,
)
from replctl.replication.reconcile_rules import deletion_of, owned_conditions
from replctl.session import Session
from replctl.spark import Comparison, LeafChange, Mending, cancel_jobs, estimated_path

#: A transaction that is written in part: its number, and the tables by OID, each with its version
#: before and its step.
_Begun: TypeAlias = tuple[int, dict[int, tuple[int | None, int]]]


@dataclass(frozen=True, slots=True)
class _Locked:
    """Tables whose locks are held, with the newest versions that they had then."""

    relations: dict[int, Relation]
    versions: dict[int, int | None]


class LakeSubscriber:
    """The subscriber that a session's database is, for one subscription
    (replication.node.Subscriber).

    Args:
        table: the table whose synchronization it is for; None: the tables that are ready.
    """

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        table: SubscriptionRelation | None = None,
    ) -> None:
        self._session = session
        self._subscription = subscription
        self._table = table
        self._local = TargetRelations(session, subscription)
        self._check = TargetCheck(session, subscription)

    # -- state

    @property
    def origin_name(self) -> str:
        """The name of the replication origin that holds its progress."""
        if self._table is None:
            return self._subscription.origin_name
        return self._subscription.table_origin_name(self._table.relid)

    @property
    def synchronization_id(self) -> int:
        """The number by which the publisher tells subscribers apart."""
        return self._session.cluster.system_identifier

    @property
    def max_batch_changes(self) -> int:
        """How many changes it takes at once, about; 0: as many as there are."""
        return int(self._session.setting("replctl.max_batch_changes"))

    @property
    def max_parallel_tables(self) -> int:
        """How many tables it writes side by side."""
        return int(self._session.setting("max_parallel_apply_workers_per_subscription"))

    def of_table(self, relation: SubscriptionRelation) -> LakeSubscriber:
        """Return the same subscription's, for the synchronization of one table."""
        return LakeSubscriber(self._session, self._subscription, relation)

    def starts(self) -> dict[tuple[str, str], int]:
        """Return the tables whose changes it takes, by (schema, name), each with the LSN after
        which they count."""
        return {
            name: relation.lsn or 0
            for name, relation in self.relations().items()
            if (self._table is None and relation.state is RelState.READY)
            or relation.relid == self._relid
        }

    @property
    def _relid(self) -> int:
        return 0 if self._table is None else self._table.relid

    def relations(self) -> dict[tuple[str, str], SubscriptionRelation]:
        """Return the tables of the subscription by (schema, name); tables that were dropped are
        left out."""
        with self._session.read() as catalog:
            states = subscription_relations(catalog, self._subscription.oid)
            names = relation_names(catalog, [state.relid for state in states])
        return {names[state.relid]: state for state in states if state.relid in names}

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Note a table's new state; one that is ready has no progress of its own any more."""
        with self._writing() as catalog:
            update_subscription_relation(catalog, relation)
            if relation.state is RelState.READY:
                drop_origin(catalog.connection, self.of_table(relation).origin_name)

    def progress(self) -> int:
        """Return the LSN of the publisher up to which changes are in."""
        with self._session.cluster.begin(write=False) as connection:
            return origin_progress(connection, self.origin_name) or 0

    def position(self) -> LogPosition:
        """As `progress`, with the digest of the publisher's commit there."""
        with self._session.cluster.begin(write=False) as connection:
            known = origin_position(connection, self.origin_name)
        return LogPosition(INVALID_LSN) if known is None else known

    def advance(self, to: LogPosition) -> None:
        """Note progress over changes that write nothing."""
        with self._writing() as catalog:
            advance_origin(catalog.connection, self.origin_name, to, 0)

    def restart(self, position: LogPosition) -> None:
        """Go on from a position of another log: what a batch of the former one has written in part
        is undone."""
        with self._writing() as catalog:
            batch = get_apply_batch(catalog, self._subscription.oid, self._relid)
            begun = [] if batch is None else [(batch.xid, batch.targets)]
            self._note_abandoned(catalog, begun)
            advance_origin(catalog.connection, self.origin_name, position, 0)
        self._undo(begun)

    def check_targets(self) -> None:
        """Check that what was applied is still there, as TargetCheck.check_targets."""
        self._check.check_targets(None if self._table is None else self._table.relid)

    def unfinished_batch(self) -> ApplyBatch | None:
        """Return the batch that a crash has left half written."""
        with self._session.read() as catalog:
            return get_apply_batch(catalog, self._subscription.oid, self._relid)

    def note_error(self, kind: str, *, disable: bool) -> None:
        """Count an error (kind: apply or sync), and disable the subscription if asked."""

        def note(catalog: Catalog) -> None:
            count_error(catalog, self._subscription.oid, kind)
            if disable:
                self._change(catalog, enabled=False)

        self._define(note)

    def count_conflicts(self, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts that have stopped a transaction."""
        with self._writing() as catalog:
            count_conflicts(catalog, self._subscription.oid, _by_name(counts))

    def enable_two_phase(self) -> None:
        """Two-phase commit is not pending any more."""
        self._define(lambda catalog: self._change(catalog, two_phase_state="e"))

    def clear_skip(self, skipped: LogPosition | None) -> None:
        """The transaction that ALTER SUBSCRIPTION ... SKIP named has been skipped; or another one
        was the next."""

        def clear(catalog: Catalog) -> None:
            self._change(catalog, skip_lsn=0)
            if skipped is not None:
                advance_origin(catalog.connection, self.origin_name, skipped, 0)

        self._define(clear)

    def _define(self, change: Callable[[Catalog], None]) -> None:
        """Change definitions, after a block that is changing the subscription."""

        def attempt() -> None:
            with self._session.write() as catalog:
                change(catalog)

        when_free(self._session, attempt)

    def _change(self, catalog: Catalog, **fields: object) -> None:
        """Change the subscription, if it is still there."""
        current = get_subscription(catalog, self._subscription.oid)
        if current is not None:
            update_subscription(catalog, replace(current, **fields))  # type: ignore[arg-type]

    def report(self, notice: Notice) -> None:
        """A line for whoever runs the subscription, and for the cluster's log."""
        worker = "apply" if self._table is None else "tablesync"
        backend_type = f"logical replication {worker} worker"
        self._session.cluster.log.report_error(notice, backend_type=backend_type)
        self._session.on_notice(notice)

    # -- initial copies

    def begin_copy(
        self, relation: SubscriptionRelation, snapshot: Snapshot
    ) -> SubscriptionRelation:
        """Note what a copy reads, and the versions of the tables that it writes: state d."""
        with self._writing() as catalog:
            loaded = load_relations(catalog, [relation.relid])[relation.relid]
            leaves = leaves_of_root(loaded, partition_tree(catalog, loaded))
            self._check.enter(catalog, leaves, is_replaced=relation.method is CopyMethod.REPLACE)
            for leaf in leaves:
                if relation.method is CopyMethod.APPEND:
                    self._check.check_history(catalog, leaf)
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            begun = replace(
                self._current(catalog, relation),
                state=RelState.DATASYNC,
                snapshot=CopySnapshot(
                    snapshot.lsn,
                    snapshot.state,
                    xid,
                    self._targets(catalog, leaves),
                    snapshot.digest,
                ),
            )
            update_subscription_relation(catalog, begun)
        injection_point("tablesync.after-snapshot")
        return begun

    def copy(self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows) -> RowCounts:
        """Write the rows of a copy, with defaults, in addition to those that are there, in their
        place, or where these differ, and count them; what a crash has left is completed.  State f.

        Raises:
            PostgresError: the rows do not fit the table, or cannot be read or written.
        """
        assert relation.snapshot is not None
        with ExitStack() as stack:
            known = Reconciliation(self._session, stack, relation.snapshot.xid)
            return repeated(lambda: self._copy(relation, remote, rows, known))

    def _copy(
        self,
        relation: SubscriptionRelation,
        remote: RemoteRelation,
        rows: Rows,
        known: Reconciliation,
    ) -> RowCounts:
        """Return a copy; when it is overtaken, a part of it may be written.

        Args:
            known: what a reconcile has found before it was overtaken.
        """
        copied = relation.snapshot
        assert copied is not None
        families = self._local.families([(remote.schema, remote.name)])
        root, family = families[remote.schema, remote.name]
        is_replaced = relation.method is CopyMethod.REPLACE
        with self._locked(families, is_replaced=is_replaced) as locked, ExitStack() as stack:
            tables = locked.relations
            take_over(self._session, copied.xid, tables)
            copied = self._renewed_copy(relation, copied, tables)
            done = written_leaves(self._session, tables, copied.targets, self._check.application)
            writer = self._writer(locked, copied.xid)
            table = ReplicatedTable(
                self._session,
                root,
                family,
                remote,
                self._local.writer_of(root),
                done,
                is_replaced=is_replaced,
                versions=locked.versions if relation.method.compares else {},
            )
            self._local.check_copy(root)
            deletion = None
            if relation.method.compares:
                table.denied_actions = self._local.denied_actions(root, family)
                deletion, mending = self._mending(relation, table, lambda: rows)
                difference = known.difference(table, rows, mending, tables, locked.versions)
                if relation.method is CopyMethod.RESYNC and not done:
                    check_loss(self._session, self._subscription, table, difference)
                compared = table.reconciled(difference)
            else:
                compared = table.copied(rows)
            try:
                outcome = stack.enter_context(compared)
            except ReplicationConflict as conflict:
                raise conflict.error from conflict
            injection_point("tablesync.before-write")
            for number in outcome.changed_leaves:
                self._write_leaf(writer, outcome, number, copied.targets)
                injection_point("tablesync.after-copy")
            injection_point("tablesync.before-finishedcopy")
            writer.origin_lsn = copied.lsn
            self._finish_copy(writer, relation, copied, remote, deletion)
        injection_point("tablesync.after-finishedcopy")
        return outcome.row_counts

    def check_reconcile(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Callable[[], Rows]
    ) -> None:
        """Check that it is known which rows a reconcile of a table may delete.

        Args:
            relation: the table, with what the statement says.
            remote: the published table.
            rows: finds its rows, if they have to be compared to say how many would be deleted.

        Raises:
            ObjectNotInPrerequisiteState: the statement has to say which rows are deleted (55000).
        """
        table = self._local.table(remote)
        leaves = leaves_of_root(table.relation, table.family)
        enter_foreign_versions(self._session, [leaf.oid for leaf in leaves])
        self._mending(relation, table, rows)

    def _mending(
        self, relation: SubscriptionRelation, table: ReplicatedTable, rows: Callable[[], Rows]
    ) -> tuple[Deletion, Mending]:
        """Return which rows a reconcile deletes, and what else it may do."""
        root, remote = table.relation, table.remote
        with self._session.read() as catalog:
            ownership = row_ownership(
                catalog, self._subscription, relation, remote, root, table.family
            )
        if relation.method is CopyMethod.RESYNC:
            check_ownership(self._subscription, root, ownership)
        check_deletion(self._subscription, root, ownership, relation.deletion)
        deletion = deletion_of(ownership, relation.deletion)
        if deletion is None:
            counts = table.count_unpublished(rows(), ownership.scope)
            raise undecided(self._subscription, root, ownership, counts)
        return deletion, Mending("U" in remote.actions, owned_conditions(ownership, deletion))

    def _renewed_copy(
        self, relation: SubscriptionRelation, copied: CopySnapshot, tables: dict[int, Relation]
    ) -> CopySnapshot:
        """Return the copy, with new steps for tables in which it was undone."""
        undone = undone_leaves(self._session, tables, copied.targets, self._check.application)
        if not undone:
            return copied
        with self._writing() as catalog:
            targets = self._targets(catalog, [tables[oid] for oid in undone])
            renewed = replace(copied, targets={**copied.targets, **targets})
            update_subscription_relation(catalog, replace(relation, snapshot=renewed))
        return renewed

    def _finish_copy(
        self,
        writer: TableWriter,
        relation: SubscriptionRelation,
        copied: CopySnapshot,
        remote: RemoteRelation,
        deletion: Deletion | None,
    ) -> None:
        """State f, with the place in the log of what was copied, and progress of the table's
        own."""
        finished = replace(
            relation,
            state=RelState.FINISHEDCOPY,
            lsn=copied.lsn,
            digest=copied.digest,
            snapshot=None,
        )

        def note_state(catalog: Catalog, local_lsn: int) -> None:
            name = self.of_table(relation).origin_name
            member = copied_member(finished, remote, deletion, local_lsn)
            update_subscription_relation(catalog, member)
            clear_fault(catalog.connection, self._subscription.oid, relation.relid)
            self._note_written(catalog, writer, copied.targets)
            if relation.method is not CopyMethod.APPEND:
                origins = (self._subscription.origin_name, name)
                acknowledge_changes(catalog, set(writer.relations), origins, copied.lsn)
            drop_origin(catalog.connection, name)  # of a synchronization that was not finished
            create_origin(catalog.connection, name, LogPosition(copied.lsn, copied.digest))

        commit(writer, note_state)

    def planned_copy(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Return how many rows a copy would write; nothing is written, and only a reconcile looks
        at them.

        Raises:
            PostgresError: there is no table for them, or it may not be written.
        """
        table = self._local.table(remote)
        table.is_trial = True
        self._local.check_copy(table.relation)
        if not relation.method.compares:
            return RowCounts(spark.jobs.count_rows(self._session.engine(), cast("str", rows)))
        table.denied_actions = self._local.denied_actions(table.relation, table.family)
        _deletion, mending = self._mending(relation, table, lambda: rows)
        engine = self._session.engine()
        query = cast("str", rows)
        try:
            with (
                spark.jobs.difference(
                    engine, table.target, table.sent, query, mending
                ) as difference,
                table.reconciled(difference) as outcome,
            ):
                return outcome.row_counts
        except ReplicationConflict as conflict:
            raise conflict.error from conflict

    def pinned(self, name: tuple[str, str]) -> PinnedTarget:
        """Return a table as a comparison with its publisher reads it, by (schema, name).

        Raises:
            PostgresError: it is not synchronized yet, or cannot be read.
        """
        return pinned_target(self._local, self._subscription, name)

    def compare(
        self, pinned: PinnedTarget, remote: RemoteRelation, rows: Rows, limit: int
    ) -> Comparison:
        """Compare the published rows of a table with its own; nothing is written.

        Args:
            limit: how many rows of each kind are named.

        Raises:
            PostgresError: they cannot be compared.
        """
        members = self.relations()
        with self._session.read() as catalog:
            ownership = row_ownership(
                catalog,
                self._subscription,
                members[remote.schema, remote.name],
                remote,
                pinned.relation,
                pinned.family,
            )
        owned = owned_conditions(ownership)
        return compared(self._session, pinned, remote, rows, owned, limit)

    def give_up_copy(self, relation: SubscriptionRelation) -> None:
        """After an error: the next attempt reads the publisher as it is then, unless the copy, or a
        part of it, is written."""
        copied = relation.snapshot
        assert copied is not None
        with self._session.read() as catalog:
            tables = load_relations(catalog, copied.targets)
        if written_leaves(self._session, tables, copied.targets, self._check.application):
            return
        with self._writing() as catalog:
            current = self._current(catalog, relation)
            if current.snapshot is not None and current.snapshot.xid == copied.xid:
                update_subscription_relation(catalog, replace(current, snapshot=None))
                abort_transaction(catalog.connection, copied.xid)

    def resynchronize(self, names: Sequence[tuple[str, str]]) -> str | None:
        """Let tables be reconciled by themselves, if every commit that changed their rows is the
        subscription's own; else return why they are not, and let none be.  A batch of changes that
        is written in part goes on without them.

        Args:
            names: schemas and names.
        """
        relations = self.relations()
        members = [member for name in names if (member := relations.get(name)) is not None]
        if len(members) < len(names):
            return "It is not in the subscription any more."
        for member in members:
            why_not = objection(self._session, self._subscription, member)
            if why_not is not None:
                return why_not
        for member in members:
            self.of_table(member).abandon()
            with self._writing() as catalog:
                current = self._current(catalog, member)
                root = load_relations(catalog, [member.relid])[member.relid]
                leaves = leaves_of_root(root, partition_tree(catalog, root))
                oids = [leaf.oid for leaf in leaves]
                leave_batch(catalog, self._session, self._subscription, oids)
                begin_again(catalog, self._subscription, current, CopyMethod.RESYNC)
            injection_point("resync.after-table")
        return None

    def abandon(self) -> None:
        """The table's synchronization ends here: what its copy, or a batch of its changes, has
        written in part is undone."""
        assert self._table is not None
        with self._writing() as catalog:
            current = self._current(catalog, self._table)
            batch = get_apply_batch(catalog, self._subscription.oid, self._relid)
            begun = [(item.xid, item.targets) for item in (current.snapshot, batch) if item]
            self._note_abandoned(catalog, begun)
            update_subscription_relation(catalog, replace(current, snapshot=None))
        self._undo(begun)

    def _note_abandoned(self, catalog: Catalog, begun: Sequence[_Begun]) -> None:
        """Let transactions be undone instead of finished, whoever does so."""
        for xid, targets in begun:
            for relid, (version, _step) in targets.items():
                insert_intent(catalog.connection, xid, Intent(relid, version, is_whole=False))
        delete_apply_batch(catalog, self._subscription.oid, self._relid)

    def _undo(self, begun: Sequence[_Begun]) -> None:
        for xid, targets in begun:
            with ExitStack() as stack:
                relids = list(targets)
                when_free(self._session, partial(self._session.lock_relations, relids, stack))
                undo_or_leave(self._session, xid)

    def _current(self, catalog: Catalog, relation: SubscriptionRelation) -> SubscriptionRelation:
        """Return a table as the catalog has it now."""
        known = subscription_relations(catalog, self._subscription.oid)
        return next((item for item in known if item.relid == relation.relid), relation)

    # -- changes

    def opens(self, remote: RemoteRelation) -> bool:
        """Return whether there is a table that changes of a relation fit; apply asks also for
        relations that it does not apply, as PostgreSQL's does."""
        if self._table is not None:
            return True
        try:
            self._local.table(remote)
        except PostgresError:
            return False
        return True

    def joins(self, remote: RemoteRelation) -> bool:
        """Return whether the local table of a relation has no columns of its own, which an UPDATE
        would keep, and a DELETE with an INSERT of the same key would not."""
        try:
            table = self._local.table(remote)
        except PostgresError:  # it is reported for the first of its changes (apply)
            return False
        return table.has_no_own_columns

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """Return the changes that cannot be composed with those of other transactions: they move
        keys, or their table has no key."""
        found = [(item.lane, partial(self._isolated, item)) for item in batch.changes]
        return set().union(*side_by_side(found, cancel_jobs))

    def _isolated(self, changes: RelationChanges) -> set[int]:
        try:
            table = self._local.table(changes.relation)
        except PostgresError:  # it is reported for the first of its changes (apply)
            return set()
        return table.isolated_positions(changes)

    def apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Write the changes at positions from `first` to `last`, as one batch, and count the rows;
        progress is then `to`.

        Raises:
            ReplicationConflict: one of them does not fit; what was written of the batch is undone,
                unless a table cannot be used at all.
            PostgresError: it cannot be written; it is given up if nothing of it is written.
        """
        try:
            return repeated(lambda: self._apply(batch, first, last, from_lsn, to))
        except ConnectionFailure:  # Spark may still be writing
            raise
        except ReplicationConflict as conflict:
            self._give_up_batch()
            if isinstance(conflict.error, (DataError, IntegrityError)):
                self._take_back_batch()
            raise
        except PostgresError:
            self._give_up_batch()
            raise

    def _apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Return a batch; when it is overtaken, it is left unfinished."""
        unfinished = self.unfinished_batch()
        part = BatchPart(self._local, batch, first, last, is_begun=unfinished is not None)
        with self._locked(part.families) as locked, ExitStack() as stack:
            tables = locked.relations
            with self._session.read() as catalog:
                if unfinished is None:
                    roots = [root.oid for root, _family in part.families.values()]
                    check_faults(catalog, self._subscription, roots)
                for leaf in tables.values():
                    self._check.check_history(catalog, leaf)
            targets = {} if unfinished is None else unfinished.targets
            if unfinished is not None:
                take_over(self._session, unfinished.xid, targets)
            done = written_leaves(self._session, tables, targets, self._check.application)
            works = part.works(done, stack, locked.versions)
            conflicts: Counter[ConflictType] = Counter()
            for work in works:
                conflicts.update(work.missing)
            injection_point("apply.before-batch")
            leaves = {relid for work in works for relid in work.outcome.changed_relids}
            leaves |= part.truncated
            if unfinished is None:
                if not leaves and not part.truncations:
                    self._finish_empty(to, conflicts)
                    return RowCounts()
                unfinished = self._begin_batch([tables[oid] for oid in leaves], from_lsn, to, part)
            else:
                # It is finished as such even if nothing seems to be left of it: Spark may have
                # ended its write since its tables were looked at.  Others may have written, too.
                undone = undone_leaves(self._session, tables, targets, self._check.application)
                missing = (leaves & undone) | leaves.difference(targets)
                unfinished = self._extend_batch(unfinished, [tables[oid] for oid in missing])
            injection_point("apply.after-batch")
            writer = self._writer(locked, unfinished.xid)
            for truncation in part.truncations:
                self._truncate(writer, truncation, part.families, unfinished, done)
            side_by_side(
                [
                    (work.lane, partial(self._write_table, writer, work, unfinished.targets))
                    for work in works
                ],
                cancel_jobs,
            )
            injection_point("apply.after-tables")
            self._finish_batch(writer, unfinished, to, conflicts)
        return sum((work.outcome.row_counts for work in works), RowCounts())

    @contextmanager
    def planned(self, batch: ChangeBatch, first: int, last: int) -> Iterator[list[TableOutcome]]:
        """Yield what `apply` would write now; nothing is locked, and nothing is written.

        Raises:
            ReplicationConflict: as `apply`.
        """
        unfinished = self.unfinished_batch()
        is_begun = unfinished is not None
        part = BatchPart(self._local, batch, first, last, is_begun=is_begun, is_trial=True)
        targets = {} if unfinished is None else unfinished.targets
        done = written_leaves(
            self._session, leaves_of_families(part.families), targets, self._check.application
        )
        with ExitStack() as stack:
            yield [work.outcome for work in part.works(done, stack)]

    def count_sent(self, changes: RelationChanges, first: int, last: int) -> dict[str, int]:
        """Return how many changes of each action (I, U, D) a relation has at some positions."""
        return count_actions(self._session, changes, first, last)

    def estimated_paths(
        self, changes: RelationChanges, counts: Mapping[str, int], first: int, last: int
    ) -> list[str]:
        """Return how changes are probably written, if it cannot be known what rows they meet.

        Args:
            counts: as `count_sent` gives them.
            first, last: the positions of the changes.
        """
        if not any(counts.values()):
            return []
        table = self._local.table(changes.relation)
        change = LeafChange(counts.get("D", 0), counts.get("U", 0), counts.get("I", 0))
        keeps_keys = table.isolated_positions(changes).isdisjoint(range(first, last + 1))
        return [estimated_path(change, is_by_key=bool(table.target.key) and keeps_keys)]

    # -- batches

    def _begin_batch(
        self, leaves: Sequence[Relation], from_lsn: int, to: LogPosition, part: BatchPart
    ) -> ApplyBatch:
        with self._writing() as catalog:
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            targets = self._targets(catalog, leaves)
            batch = ApplyBatch(
                self._subscription.oid, from_lsn, to.lsn, xid, targets, self._relid, to.digest
            )
            insert_apply_batch(catalog, batch)
            for relid, filters in part.applied_filters().items():
                note_applied_filters(catalog, self._subscription.oid, relid, filters)
        return batch

    def _give_up_batch(self) -> None:
        """After an error: the tables of the batch can be written again, unless a part of it is."""
        batch = self.unfinished_batch()
        if batch is None:
            return
        with self._session.read() as catalog:
            tables = load_relations(catalog, batch.targets)
            is_own = backend_of(catalog.connection, batch.xid) == self._session.cluster.backend
        if not is_own or written_leaves(
            self._session, tables, batch.targets, self._check.application
        ):
            return
        with self._writing() as catalog:
            delete_apply_batch(catalog, self._subscription.oid, self._relid)
            abort_transaction(catalog.connection, batch.xid)

    def _take_back_batch(self) -> None:
        """After a conflict that others' changes have led to: what is written of the batch is
        undone, so that what precedes the transaction that fails can be applied by itself."""
        batch = self.unfinished_batch()
        if batch is None:
            return
        begun = [(batch.xid, batch.targets)]
        with self._writing() as catalog:
            self._note_abandoned(catalog, begun)
        self._undo(begun)

    def _extend_batch(self, batch: ApplyBatch, leaves: Sequence[Relation]) -> ApplyBatch:
        """Steps for tables that have none in a batch, or need another one."""
        if not leaves:
            return batch
        with self._writing() as catalog:
            targets = {**batch.targets, **self._targets(catalog, leaves)}
            extended = replace(batch, targets=targets)
            delete_apply_batch(catalog, self._subscription.oid, self._relid)
            insert_apply_batch(catalog, extended)
        return extended

    def _finish_batch(
        self,
        writer: TableWriter,
        batch: ApplyBatch,
        to: LogPosition,
        conflicts: Mapping[ConflictType, int],
    ) -> None:
        """Enter the versions, the commit and the progress, all at once."""

        def note_progress(catalog: Catalog, local_lsn: int) -> None:
            delete_apply_batch(catalog, self._subscription.oid, self._relid)
            advance_origin(catalog.connection, self.origin_name, to, local_lsn)
            count_conflicts(catalog, self._subscription.oid, _by_name(conflicts))
            self._note_written(catalog, writer, batch.targets)

        injection_point("apply.before-progress")
        writer.origin_lsn = to.lsn
        commit(writer, note_progress)
        injection_point("apply.after-progress")

    def _note_written(
        self,
        catalog: Catalog,
        writer: TableWriter,
        targets: Mapping[int, tuple[int | None, int]],
    ) -> None:
        """Note the steps of the tables that this transaction has written rows into."""
        steps = {oid: step for oid, (_version, step) in targets.items() if oid in writer.written}
        note_written_steps(catalog.connection, self._subscription.oid, steps)

    def _finish_empty(self, to: LogPosition, conflicts: Mapping[ConflictType, int]) -> None:
        """Note progress over changes that write nothing, and the conflicts among them."""
        with self._writing() as catalog:
            advance_origin(catalog.connection, self.origin_name, to, 0)
            count_conflicts(catalog, self._subscription.oid, _by_name(conflicts))

    def _targets(
        self, catalog: Catalog, leaves: Sequence[Relation]
    ) -> dict[int, tuple[int | None, int]]:
        """For each table its version and the number of the step that is going to write it."""
        return {
            leaf.oid: (
                last_logged_version(catalog.connection, leaf.oid),
                next_apply_step(catalog, self._subscription.oid, leaf.oid),
            )
            for leaf in leaves
        }

    # -- tables

    def _write_table(
        self, writer: TableWriter, work: TableWork, targets: dict[int, tuple[int | None, int]]
    ) -> None:
        for number in work.outcome.changed_leaves:
            self._write_leaf(writer, work.outcome, number, targets)
            injection_point("apply.after-first-table")

    def _write_leaf(
        self,
        writer: TableWriter,
        outcome: TableOutcome,
        number: int,
        targets: dict[int, tuple[int | None, int]],
    ) -> None:
        """Write an outcome's rows of one leaf, unless that has been done."""
        relid = outcome.leaf_relid(number)
        if relid in outcome.table.done:
            return
        writer.prepare(relid)
        _version, step = targets[relid]
        if not outcome.table.is_replaced:
            writer.check_unchanged(relid)
        with writer.commit_to(
            relid,
            changes_keys=outcome.changes_keys,
            application=self._check.application(relid),
            step=step,
        ) as note:
            outcome.write(number, writer.relations, note)
        if outcome.table.is_replaced:
            return
        try:
            writer.check_not_overtaken(relid)
        except SerializationFailure:
            undo_relation(writer, relid)
            raise

    def _truncate(
        self,
        writer: TableWriter,
        truncation: Truncation,
        families: Families,
        batch: ApplyBatch,
        done: dict[int, int | None],
    ) -> None:
        """Empty the tables of a TRUNCATE; it is an entry of the log for each of them."""
        detail: dict[str, object] = {
            "cascade": truncation.cascade,
            "restart_identity": truncation.restart_identity,
        }
        for name in truncation.relations:
            root, family = families[name]
            writer.truncations[root.oid] = detail
            for leaf in leaves_of_root(root, family):
                writer.truncations[leaf.oid] = detail
                storage = leaf.storage
                if storage is None or not storage.is_made or leaf.oid in done:
                    continue
                _version, step = batch.targets[leaf.oid]
                before, engine = latest_version(storage.location), self._session.engine()
                with writer.commit_to(
                    leaf.oid,
                    truncates=True,
                    application=self._check.application(leaf.oid),
                    step=step,
                    may_be_nothing=True,
                ) as note:
                    spark.jobs.truncate(engine, storage.location, note)
                if latest_version(storage.location) == before and spark.jobs.has_rows(
                    engine, storage.location
                ):
                    raise commit_log.not_carried_out(leaf)

    @contextmanager
    def _locked(self, families: Families, *, is_replaced: bool = False) -> Iterator[_Locked]:
        """Hold the locks of all tables that may be written, and know what others have done to
        them.

        Args:
            is_replaced: as for TargetCheck.enter.
        """
        relids = sorted(leaves_of_families(families))
        with ExitStack() as stack:
            when_free(self._session, lambda: self._session.lock_relations(relids, stack))
            recover(self._session, relids)
            with self._writing() as catalog:
                found = load_relations(catalog, relids).values()
                self._check.enter(catalog, found, is_replaced=is_replaced)
                current = load_relations(catalog, relids)
                check_writable(catalog, current.values())
            for relation in current.values():
                check_uniform(relation, lambda name: self._session.engine().has_class(name))
                if is_replaced and (error := append_only_error(relation, "D")) is not None:
                    raise error
            versions = {
                oid: None if item.storage is None else latest_version(item.storage.location)
                for oid, item in current.items()
            }
            for name, (root, family) in families.items():
                fresh = {oid: current.get(oid, relation) for oid, relation in family.items()}
                families[name] = (fresh[root.oid], fresh)
            with removing_leftovers(self._session, current, versions):
                yield _Locked(current, versions)

    def _writer(self, locked: _Locked, xid: int) -> TableWriter:
        """Return a transaction that is finished after a crash, not undone: its batch, or its copy,
        tells how."""
        with self._writing() as catalog:
            nonces = make_nonces(catalog.connection, xid, locked.relations)
        return TableWriter(
            self._session,
            xid,
            dict(locked.relations),
            {},
            locked.versions,
            origin=self.origin_name,
            nonces=nonces,
        )

    @contextmanager
    def _writing(self) -> Iterator[Catalog]:
        """Yield the catalog's state tables, which are no definitions."""
        with self._session.cluster.write(self._session.database_oid) as catalog:
            yield catalog


def _by_name(counts: Mapping[ConflictType, int]) -> dict[str, int]:
    return {kind.value: count for kind, count in counts.items()}
