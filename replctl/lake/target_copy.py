"""Run initial copies and reconciles of a subscription's tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

from replctl import spark
from replctl.catalog.apply_batch import get_apply_batch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import create_origin, drop_origin
from replctl.catalog.pg_subscription import (
    CopySnapshot,
    RelState,
    SubscriptionRelation,
    clear_fault,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.pg_wal import acknowledge_changes
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.catalog.transaction import Catalog, abort_transaction, begin_transaction
from replctl.injection_point import injection_point
from replctl.lake.abandoned_write import note_abandoned, undo
from replctl.lake.leftovers import take_over
from replctl.lake.partition_tree import partition_tree
from replctl.lake.reconciliation import Reconciliation
from replctl.lake.replicated_table import ReplicatedTable
from replctl.lake.resync import begin_again, check_loss, check_ownership, objection
from replctl.lake.retry import repeated
from replctl.lake.row_owner import (
    check_deletion,
    copied_member,
    note_lost_rows,
    row_ownership,
    undecided,
)
from replctl.lake.schema_rewrite import rewrite_when_free
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.table_write import TableWriter, commit
from replctl.lake.target_fault import replaced_rows
from replctl.lake.target_origins import note_copied_origins
from replctl.lake.target_relations import leaves_of_root, leaves_of_trees
from replctl.lake.target_write import TargetWrite
from replctl.lake.unfinished_batch import leave_batch
from replctl.lake.verified_table import PinnedTarget, compared, pinned_target
from replctl.lake.written_steps import WrittenSteps
from replctl.relation_name import RelationName
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.node import RemoteRelation, RowCounts, Rows, Snapshot
from replctl.replication.reconcile_rules import deletion_of, owned_conditions
from replctl.replication.update_transformation import Action
from replctl.spark import Comparison, Mending, SparkQuery


class TargetCopy(TargetWrite):
    """Copies published tables into the tables of one subscription (replication.node.Copies)."""

    def begin(self, relation: SubscriptionRelation, snapshot: Snapshot) -> SubscriptionRelation:
        """Record the snapshot that a copy reads, and the versions of the tables that it writes.
        Set state d.  From then until state f the tables keep their columns.
        """
        if relation.method is not CopyMethod.REPLACE:  # otherwise after the copy
            with self._state.writing() as catalog:
                leaves = self._entered_leaves(catalog, relation)
            rewrite_when_free(self._session, leaves)
        with self._state.writing() as catalog:
            leaves = self._entered_leaves(catalog, relation)
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
                    self.steps(catalog, leaves),
                    snapshot.digest,
                ),
            )
            update_subscription_relation(catalog, begun)
        injection_point("tablesync.after-snapshot")
        return begun

    def _entered_leaves(self, catalog: Catalog, relation: SubscriptionRelation) -> list[Relation]:
        """Record commits of other writers to the tables that a copy writes, and return these
        tables.
        """
        loaded = load_relations(catalog, [relation.relid])[relation.relid]
        leaves = leaves_of_root(loaded, partition_tree(catalog, loaded))
        self._check.enter(catalog, leaves, is_replaced=relation.method is CopyMethod.REPLACE)
        return leaves

    def write(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Write the rows of a copy, with defaults, and return the row counts.  Set state f.

        According to the method of `relation`, the rows are added to the existing rows, replace
        them, or only correct differences.  A copy that a crash interrupted is completed.

        Raises:
            PostgresError: the rows conflict with the table, or cannot be read or written.
        """
        assert relation.snapshot is not None
        with ExitStack() as stack:
            known = Reconciliation(self._session, stack, relation.snapshot.xid)
            # Programs other than replctl may commit first.  A retry skips the written leaves.
            counts = repeated(lambda: self._write(self._newest(relation), remote, rows, known))
        if relation.method is CopyMethod.REPLACE:
            trees = self._local.trees([remote.relation_name])
            rewrite_when_free(self._session, leaves_of_trees(trees).values())
        return counts

    def _write(
        self,
        relation: SubscriptionRelation,
        remote: RemoteRelation,
        rows: Rows,
        known: Reconciliation,
    ) -> RowCounts:
        """Write a copy and return the row counts.  If another writer commits first, only a part may
        be written.

        Args:
            known: keeps the difference that a reconcile found before another writer committed.
        """
        copied = relation.snapshot
        assert copied is not None
        trees = self._local.trees([remote.relation_name])
        root, tree = trees[remote.relation_name]
        is_replaced = relation.method is CopyMethod.REPLACE
        with (
            self.locked(trees, is_replaced=is_replaced) as locked,
            ExitStack() as stack,
        ):
            tables = locked.relations
            take_over(self._session, copied.xid, tables)
            written = self._written(copied, tables)
            copied = self._renewed_copy(relation, root, copied, tables, written)
            done = {oid: v for oid, v in written.leaves.items() if oid not in written.replaced}
            writer = self.writer(locked, copied.xid)
            table = ReplicatedTable(
                self._session,
                root,
                tree,
                remote,
                self._local.writer_of(root),
                done,
                is_replaced=is_replaced,
                versions=locked.versions if relation.method.compares else {},
            )
            self._local.check_copy(root)
            deletion = None
            if relation.method.compares:
                table.denied_actions = self._local.denied_actions(root, tree)
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
                self.write_leaf(writer, outcome, number, copied.targets)
                injection_point("tablesync.after-copy")
            self.make_tables(writer)
            injection_point("tablesync.before-finishedcopy")
            writer.origin_lsn = copied.lsn
            self._finish_copy(writer, relation, copied, remote, deletion)
        injection_point("tablesync.after-finishedcopy")
        return outcome.row_counts

    def check_reconcile(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Callable[[], Rows]
    ) -> None:
        """Check that a reconcile of a table can decide which rows to delete.

        Args:
            relation: the table, with the options of the statement.
            remote: the published table.
            rows: returns the published rows; only called if they are needed to count the rows to
                delete.

        Raises:
            InsufficientPrivilege: the subscription may not read the table (42501).
            ObjectNotInPrerequisiteState: the statement must specify which rows to delete (55000).
        """
        table = self._local.table(remote)
        leaves = leaves_of_root(table.relation, table.tree)
        enter_foreign_versions(self._session, [leaf.oid for leaf in leaves])
        self._mending(relation, table, rows)

    def _mending(
        self, relation: SubscriptionRelation, table: ReplicatedTable, rows: Callable[[], Rows]
    ) -> tuple[Deletion, Mending]:
        """Return two rules of a reconcile: the rows that it may delete, and the changes that it may
        make.

        Raises:
            InsufficientPrivilege: the subscription may not read the table (42501).
            ObjectNotInPrerequisiteState: the rules are not clear (55000).
        """
        root, remote = table.relation, table.remote
        self._local.check_comparison(root)
        with self._session.read() as catalog:
            ownership = row_ownership(
                catalog, self._subscription, relation, remote, root, table.tree
            )
        if relation.method is CopyMethod.RESYNC:
            check_ownership(self._subscription, root, ownership)
        check_deletion(self._subscription, root, ownership, relation.deletion)
        deletion = deletion_of(ownership, relation.deletion)
        if deletion is None:
            counts = table.count_unpublished(rows(), ownership.scope)
            raise undecided(self._subscription, root, ownership, counts)
        return deletion, Mending(
            Action.UPDATE in remote.actions, owned_conditions(ownership, deletion)
        )

    def _written(self, copied: CopySnapshot, tables: dict[int, Relation]) -> WrittenSteps:
        return WrittenSteps(self._session, tables, copied.targets, self._check.application)

    def _renewed_copy(
        self,
        relation: SubscriptionRelation,
        root: Relation,
        copied: CopySnapshot,
        tables: dict[int, Relation],
        written: WrittenSteps,
    ) -> CopySnapshot:
        """Return a copy with new steps for the tables that it must write again: it was undone, or
        another program has replaced their rows.

        Raises:
            ObjectNotInPrerequisiteState: another program has replaced rows that the copy has added.
                Some of them may still be there, so the copy cannot add them again (55000).
        """
        replaced = written.replaced
        if replaced and relation.method is CopyMethod.APPEND:
            raise replaced_rows(self._subscription, root, next(iter(replaced.values())))
        unwritten = written.undone() | replaced.keys()
        if not unwritten:
            return copied
        with self._state.writing() as catalog:
            targets = self.steps(catalog, [tables[oid] for oid in unwritten])
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
        """Set state f with the LSN of the copied snapshot, and start the table's own progress."""
        finished = replace(
            relation,
            state=RelState.FINISHEDCOPY,
            lsn=copied.lsn,
            digest=copied.digest,
            snapshot=None,
        )

        def note_state(catalog: Catalog, local_lsn: int) -> None:
            name = self._state.of_table(relation).origin_name
            member = copied_member(finished, remote, deletion, local_lsn)
            update_subscription_relation(catalog, member)
            is_replaced = relation.method is CopyMethod.REPLACE
            this = (self._subscription.oid, relation.relid)
            note_copied_origins(catalog, *this, remote, is_replaced=is_replaced)
            clear_fault(catalog.connection, *this)
            root = load_relations(catalog, [relation.relid])[relation.relid]
            tree = partition_tree(catalog, root)
            note_lost_rows(catalog, self._subscription, relation, root, tree)
            self.note_written(catalog, writer, copied.targets)
            if relation.method is not CopyMethod.APPEND:
                origins = (self._subscription.origin_name, name)
                acknowledge_changes(catalog, set(writer.relations), origins, copied.lsn)
            drop_origin(catalog.connection, name)  # an unfinished synchronization may have left it
            create_origin(catalog.connection, name, LogPosition(copied.lsn, copied.digest))

        commit(writer, note_state)

    def planned(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Count the rows that a copy would write, without writing them.  Only a reconcile reads the
        table's own rows.

        Raises:
            PostgresError: the table is missing, or the subscription may not write it.
        """
        table = self._local.table(remote)
        table.is_trial = True
        self._local.check_copy(table.relation)
        if not relation.method.compares:
            return RowCounts(
                spark.jobs.count_rows(self._session.engine(), cast("SparkQuery", rows))
            )
        table.denied_actions = self._local.denied_actions(table.relation, table.tree)
        _deletion, mending = self._mending(relation, table, lambda: rows)
        engine = self._session.engine()
        query = cast("SparkQuery", rows)
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

    def pinned(self, name: RelationName) -> PinnedTarget:
        """Return a table with the versions at which to compare it with its publisher.

        Args:
            name: (schema, name) of the published table.

        Raises:
            PostgresError: the table is not synchronized yet, is unreadable, or the subscription may
                not read it.
        """
        return pinned_target(self._local, self._subscription, name)

    def compare(
        self, pinned: PinnedTarget, remote: RemoteRelation, rows: Rows, limit: int
    ) -> Comparison:
        """Compare a table's own rows with the published rows, without writing.

        Args:
            limit: maximum number of rows of each kind to return.

        Raises:
            PostgresError: the rows cannot be compared.
        """
        members = self._state.relations()
        with self._session.read() as catalog:
            ownership = row_ownership(
                catalog,
                self._subscription,
                members[remote.relation_name],
                remote,
                pinned.relation,
                pinned.tree,
            )
        owned = owned_conditions(ownership)
        return compared(self._session, pinned, remote, rows, owned, limit)

    def give_up(self, relation: SubscriptionRelation) -> None:
        """Discard the snapshot after an error, so that the next attempt uses a new one.  Do nothing
        if the copy is already written, completely or in part.
        """
        copied = self._newest(relation).snapshot
        assert copied is not None
        with self._session.read() as catalog:
            tables = load_relations(catalog, copied.targets)
        if self._written(copied, tables).leaves:
            return
        with self._state.writing() as catalog:
            current = self._current(catalog, relation)
            if current.snapshot is not None and current.snapshot.xid == copied.xid:
                update_subscription_relation(catalog, replace(current, snapshot=None))
                abort_transaction(catalog.connection, copied.xid)

    def resynchronize(self, names: Sequence[RelationName]) -> str | None:
        """Start automatic reconciles of tables if the subscription itself made every commit that
        changed their rows.  If it did not, start none, and return the reason.  A partly written
        batch continues without these tables.

        Args:
            names: schemas and names of the subscriber's tables.
        """
        map_ = self._subscription.table_map
        relations = {map_.target(name): item for name, item in self._state.relations().items()}
        members = [member for name in names if (member := relations.get(name)) is not None]
        if len(members) < len(names):
            return "It is no longer in the subscription."
        for member in members:
            why_not = objection(self._session, self._subscription, member)
            if why_not is not None:
                return why_not
        for member in members:
            TargetCopy(self._state.of_table(member)).abandon()
            with self._state.writing() as catalog:
                current = self._current(catalog, member)
                root = load_relations(catalog, [member.relid])[member.relid]
                leaves = leaves_of_root(root, partition_tree(catalog, root))
                oids = [leaf.oid for leaf in leaves]
                leave_batch(catalog, self._session, self._subscription, oids)
                begin_again(catalog, self._subscription, current, CopyMethod.RESYNC)
            injection_point("resync.after-table")
        return None

    def abandon(self) -> None:
        """End the table's synchronization.  Undo a partly written copy or batch of the table."""
        table = self._state.table
        assert table is not None
        with self._state.writing() as catalog:
            current = self._current(catalog, table)
            batch = get_apply_batch(catalog, self._subscription.oid, self._state.relid)
            begun = [(item.xid, item.targets) for item in (current.snapshot, batch) if item]
            note_abandoned(catalog, self._subscription, self._state.relid, begun)
            update_subscription_relation(catalog, replace(current, snapshot=None))
        undo(self._session, begun)

    def take_back(self, leaves: Collection[int]) -> None:
        """Undo the unfinished copies into some tables, because a statement writes the tables.  The
        next sync copies them again.  No other process runs the subscription meanwhile.

        Args:
            leaves: the OIDs of the tables.
        """
        for member in self._state.relations().values():
            if member.snapshot and not member.snapshot.targets.keys().isdisjoint(leaves):
                TargetCopy(self._state.of_table(member)).abandon()

    def _newest(self, relation: SubscriptionRelation) -> SubscriptionRelation:
        """Return a table whose copy has begun, with the newest steps: an attempt that failed may
        have given the copy new ones.
        """
        with self._session.read() as catalog:
            current = self._current(catalog, relation)
        begun, known = relation.snapshot, current.snapshot
        return current if begun and known and known.xid == begun.xid else relation

    def _current(self, catalog: Catalog, relation: SubscriptionRelation) -> SubscriptionRelation:
        """Return the current state of a table in the catalog."""
        known = subscription_relations(catalog, self._subscription.oid)
        return next((item for item in known if item.relid == relation.relid), relation)
