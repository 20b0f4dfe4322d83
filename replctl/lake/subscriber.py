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
from typing import cast

from replctl.catalog.aclchk import Privileges, denied
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_class import (
    RELKIND_PLURAL,
    Relation,
    find_relation_oid,
    load_relations,
)
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.pg_replication_slots import (
    advance_origin,
    create_origin,
    drop_origin,
    origin_progress,
)
from replctl.catalog.pg_subscription import (
    ApplyBatch,
    CopySnapshot,
    RelState,
    Subscription,
    SubscriptionRelation,
    count_conflicts,
    count_error,
    delete_apply_batch,
    get_apply_batch,
    get_subscription,
    insert_apply_batch,
    next_apply_step,
    raise_apply_step,
    subscription_relations,
    update_subscription,
    update_subscription_relation,
)
from replctl.catalog.pg_wal import has_forgotten_changes, last_logged_version
from replctl.catalog.transaction import Catalog, abort_transaction, begin_transaction
from replctl.errors import (
    ConnectionFailure,
    DataCorrupted,
    FeatureNotSupported,
    InsufficientPrivilege,
    InternalError,
    Notice,
    ObjectNotInPrerequisiteState,
    PostgresError,
    QueryCanceled,
    SerializationFailure,
    WrongObjectType,
)
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.delta_log import applied_step, latest_version
from replctl.lake.partition import partition_tree
from replctl.lake.repeat import repeated
from replctl.lake.replicated_table import (
    ReplicatedTable,
    TableOutcome,
    count_actions,
    first_action,
    undone_leaves,
    written_leaves,
)
from replctl.lake.table_write import TableWriter, commit, recover, undo_or_leave, undo_relation
from replctl.lake.truncation import check_truncatable
from replctl.lake.waiting import when_free
from replctl.lane import Lane, side_by_side
from replctl.record import dataclass
from replctl.replication.conflict import ConflictType, ReplicationConflict
from replctl.replication.node import (
    ChangeBatch,
    RelationChanges,
    RemoteRelation,
    Rows,
    Snapshot,
    Truncation,
)
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import LeafChange, cancel_jobs, estimated_path

#: Relations with all that is in the same partition tree, by (schema, name).
_Families = dict[tuple[str, str], tuple[Relation, dict[int, Relation]]]


@dataclass(frozen=True, slots=True)
class _Locked:
    """Tables whose locks are held, with the newest versions that they had then."""

    relations: dict[int, Relation]
    versions: dict[int, int | None]


@dataclass(frozen=True, slots=True)
class _TableWork:
    """What is going to be written into a table, where that is done, and what has found no row."""

    lane: Lane
    outcome: TableOutcome
    missing: Mapping[ConflictType, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a batch that is applied together.

    Attributes:
        first, last: the positions of its changes.
        changes: of each relation those behind its last TRUNCATE, with the position that they start
            from.
    """

    first: int
    last: int
    truncations: tuple[Truncation, ...]
    changes: tuple[tuple[RelationChanges, int], ...]

    @staticmethod
    def of(batch: ChangeBatch, first: int, last: int) -> _Part:
        """The changes of a batch at positions from `first` to `last`."""
        truncations = tuple(t for t in batch.truncations if first <= t.position <= last)
        starts = {name: t.position + 1 for t in truncations for name in t.relations}
        changes = []
        for item in batch.changes:
            start = starts.get((item.relation.schema, item.relation.name), first)
            if any(start <= position <= last for position in item.positions):
                changes.append((item, start))
        return _Part(first, last, truncations, tuple(changes))


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
        """The same subscription's, for the synchronization of one table."""
        return LakeSubscriber(self._session, self._subscription, relation)

    def starts(self) -> dict[tuple[str, str], int]:
        """The tables whose changes it takes, by (schema, name), each with the LSN after which they
        count."""
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
        """The tables of the subscription by (schema, name); tables that were dropped are left
        out."""
        with self._session.read() as catalog:
            states = subscription_relations(catalog, self._subscription.oid)
            loaded = load_relations(catalog, [state.relid for state in states])
        return {
            (loaded[state.relid].schema, loaded[state.relid].name): state
            for state in states
            if state.relid in loaded
        }

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Note a table's new state; one that is ready has no progress of its own any more."""
        with self._writing() as catalog:
            update_subscription_relation(catalog, relation)
            if relation.state is RelState.READY:
                drop_origin(catalog.connection, self.of_table(relation).origin_name)

    def progress(self) -> int:
        """The LSN of the publisher up to which changes are in."""
        with self._session.cluster.begin(write=False) as connection:
            return origin_progress(connection, self.origin_name) or 0

    def advance(self, to_lsn: int) -> None:
        """Note progress over changes that write nothing."""
        with self._writing() as catalog:
            advance_origin(catalog.connection, self.origin_name, to_lsn, 0)

    def unfinished_batch(self) -> ApplyBatch | None:
        """The batch that a crash has left half written."""
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

    def clear_skip(self, skipped_lsn: int | None) -> None:
        """The transaction that ALTER SUBSCRIPTION ... SKIP named has been skipped; or another one
        was the next."""

        def clear(catalog: Catalog) -> None:
            self._change(catalog, skip_lsn=0)
            if skipped_lsn is not None:
                advance_origin(catalog.connection, self.origin_name, skipped_lsn, 0)

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
            leaves = _leaves(loaded, partition_tree(catalog, loaded))
            for leaf in leaves:
                self._pass_forgotten_steps(catalog, leaf)
                commit_log.enter_versions(catalog, self._session.cluster, leaf)
                if not relation.replaces:
                    self._check_history(catalog, leaf)
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            begun = replace(
                self._current(catalog, relation),
                state=RelState.DATASYNC,
                snapshot=CopySnapshot(
                    snapshot.lsn, snapshot.state, xid, self._targets(catalog, leaves)
                ),
            )
            update_subscription_relation(catalog, begun)
        injection_point("tablesync.after-snapshot")
        return begun

    def copy(self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows) -> None:
        """Write the rows of a copy, with defaults, in addition to those that are there or in their
        place; what a crash has left is completed.  State f.

        Raises:
            PostgresError: the rows do not fit the table, or cannot be read or written.
        """
        repeated(lambda: self._copy(relation, remote, rows))

    def _copy(self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows) -> None:
        """A copy; when it is overtaken, a part of it may be written."""
        copied = relation.snapshot
        assert copied is not None
        families = self._families([(remote.schema, remote.name)])
        root, family = families[remote.schema, remote.name]
        with self._locked(families) as locked, ExitStack() as stack:
            tables = locked.relations
            copied = self._renewed_copy(relation, copied, tables)
            done = written_leaves(tables, copied.targets, self._application)
            writer = self._writer(locked, copied.xid)
            table = ReplicatedTable(
                self._session, root, family, remote, done, is_replaced=relation.replaces
            )
            if (problem := self._denied_actions(root).get("I")) is not None:
                raise problem
            try:
                outcome = stack.enter_context(table.copied(rows))
            except ReplicationConflict as conflict:
                raise conflict.error from conflict
            injection_point("tablesync.before-write")
            for number in outcome.changed_leaves:
                self._write_leaf(writer, outcome, number, copied.targets)
                injection_point("tablesync.after-copy")
            injection_point("tablesync.before-finishedcopy")
            writer.origin_lsn = copied.lsn
            self._finish_copy(writer, relation, copied.lsn)
        injection_point("tablesync.after-finishedcopy")

    def _renewed_copy(
        self, relation: SubscriptionRelation, copied: CopySnapshot, tables: dict[int, Relation]
    ) -> CopySnapshot:
        """The copy, with new steps for tables in which it was undone."""
        undone = undone_leaves(tables, copied.targets, self._application)
        if not undone:
            return copied
        with self._writing() as catalog:
            targets = self._targets(catalog, [tables[oid] for oid in undone])
            renewed = replace(copied, targets={**copied.targets, **targets})
            update_subscription_relation(catalog, replace(relation, snapshot=renewed))
        return renewed

    def _finish_copy(
        self, writer: TableWriter, relation: SubscriptionRelation, remote_lsn: int
    ) -> None:
        """State f, with the place in the log of what was copied, and progress of the table's
        own."""
        finished = replace(
            relation,
            state=RelState.FINISHEDCOPY,
            lsn=remote_lsn,
            snapshot=None,
            replaces=False,
        )

        def note_state(catalog: Catalog, local_lsn: int) -> None:
            name = self.of_table(relation).origin_name
            update_subscription_relation(catalog, finished)
            drop_origin(catalog.connection, name)  # of a synchronization that was not finished
            create_origin(catalog.connection, name, remote_lsn)

        commit(writer, note_state)

    def planned_copy(self, remote: RemoteRelation, rows: Rows) -> int:
        """How many rows a copy would write; nothing is written, and they are not looked at.

        Raises:
            PostgresError: there is no table for them, or it may not be written.
        """
        families = self._families([(remote.schema, remote.name)])
        (root, family), *_ = families.values()
        ReplicatedTable(self._session, root, family, remote)
        if (problem := self._denied_actions(root, family).get("I")) is not None:
            raise problem
        return self._session.engine().count_rows(cast("str", rows))

    def give_up_copy(self, relation: SubscriptionRelation) -> None:
        """After an error: the next attempt reads the publisher as it is then, unless the copy, or a
        part of it, is written."""
        copied = relation.snapshot
        assert copied is not None
        with self._session.read() as catalog:
            tables = load_relations(catalog, copied.targets)
        if written_leaves(tables, copied.targets, self._application):
            return
        with self._writing() as catalog:
            current = self._current(catalog, relation)
            if current.snapshot is not None and current.snapshot.xid == copied.xid:
                update_subscription_relation(catalog, replace(current, snapshot=None))
                abort_transaction(catalog.connection, copied.xid)

    def abandon(self) -> None:
        """The table's synchronization ends here: what its copy, or a batch of its changes, has
        written in part is undone."""
        assert self._table is not None
        with self._writing() as catalog:
            current = self._current(catalog, self._table)
            batch = get_apply_batch(catalog, self._subscription.oid, self._relid)
            begun = [(item.xid, item.targets) for item in (current.snapshot, batch) if item]
            for xid, targets in begun:
                for relid, (version, _step) in targets.items():
                    insert_intent(catalog.connection, xid, Intent(relid, version, is_whole=False))
            update_subscription_relation(catalog, replace(current, snapshot=None))
            delete_apply_batch(catalog, self._subscription.oid, self._relid)
        for xid, targets in begun:
            with ExitStack() as stack:
                relids = list(targets)
                when_free(self._session, partial(self._session.lock_relations, relids, stack))
                undo_or_leave(self._session, xid)

    def _current(self, catalog: Catalog, relation: SubscriptionRelation) -> SubscriptionRelation:
        """A table as the catalog has it now."""
        known = subscription_relations(catalog, self._subscription.oid)
        return next((item for item in known if item.relid == relation.relid), relation)

    # -- changes

    def target_oid(self, schema_name: str, name: str) -> int:
        """The OID of the local table for a published one.

        Raises:
            ObjectNotInPrerequisiteState: there is none (55000).
            WrongObjectType: it is not a table (42809).
        """
        with self._session.read() as catalog:
            schema_oid = find_schema(catalog, schema_name)
            oid = None if schema_oid is None else find_relation_oid(catalog, name, schema_oid)
            relation = None if oid is None else load_relations(catalog, [oid])[oid]
        if relation is None:
            raise ObjectNotInPrerequisiteState(
                f'logical replication target relation "{schema_name}.{name}" does not exist'
            )
        if relation.kind not in ("r", "p"):
            raise WrongObjectType(
                f'cannot use relation "{schema_name}.{name}" as logical replication target',
                detail=f"This operation is not supported for {RELKIND_PLURAL[relation.kind]}.",
            )
        return relation.oid

    def opens(self, remote: RemoteRelation) -> bool:
        """Whether there is a table that changes of a relation fit; apply asks also for relations
        that it does not apply, as PostgreSQL's does."""
        if self._table is not None:
            return True
        try:
            families = self._families([(remote.schema, remote.name)])
            (root, family), *_ = families.values()
            ReplicatedTable(self._session, root, family, remote)
        except PostgresError:
            return False
        return True

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """The changes that cannot be composed with those of other transactions: they move keys, or
        their table has no key."""
        found = [(item.lane, partial(self._isolated, item)) for item in batch.changes]
        return set().union(*side_by_side(found, cancel_jobs))

    def _isolated(self, changes: RelationChanges) -> set[int]:
        try:
            families = self._families([(changes.relation.schema, changes.relation.name)])
            (root, family), *_ = families.values()
            table = ReplicatedTable(self._session, root, family, changes.relation)
        except PostgresError:  # it is reported for the first of its changes (apply)
            return set()
        return table.isolated_positions(changes)

    def apply(self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to_lsn: int) -> None:
        """Write the changes at positions from `first` to `last`, as one batch; progress is then
        `to_lsn`.

        Raises:
            ReplicationConflict: one of them does not fit; nothing of the batch is written.
        """
        repeated(lambda: self._apply(batch, first, last, from_lsn, to_lsn))

    def _apply(self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to_lsn: int) -> None:
        """A batch; when it is overtaken, it is left unfinished."""
        unfinished = self.unfinished_batch()
        part = _Part.of(batch, first, last)
        problems = _Problems()
        families = self._families_of(part, problems, is_begun=unfinished is not None)
        truncations = part.truncations
        with self._locked(families) as locked, ExitStack() as stack:
            tables = locked.relations
            with self._session.read() as catalog:
                for leaf in tables.values():
                    self._check_history(catalog, leaf)
            targets = {} if unfinished is None else unfinished.targets
            done = written_leaves(tables, targets, self._application)
            works = self._works(
                part, families, done, problems, stack, is_begun=unfinished is not None
            )
            conflicts: Counter[ConflictType] = Counter()
            for work in works:
                conflicts.update(work.missing)
            injection_point("apply.before-batch")
            leaves = {relid for work in works for relid in work.outcome.changed_relids}
            leaves |= {leaf.oid for leaf in _truncated(truncations, families)}
            if unfinished is None:
                if not leaves and not truncations:
                    self._finish_empty(to_lsn, conflicts)
                    return
                unfinished = self._begin_batch([tables[oid] for oid in leaves], from_lsn, to_lsn)
            else:
                # It is finished as such even if nothing seems to be left of it: Spark may have
                # ended its write since its tables were looked at.  Others may have written, too.
                undone = undone_leaves(tables, targets, self._application)
                missing = (leaves & undone) | leaves.difference(targets)
                unfinished = self._extend_batch(unfinished, [tables[oid] for oid in missing])
            injection_point("apply.after-batch")
            writer = self._writer(locked, unfinished.xid)
            for truncation in truncations:
                self._truncate(writer, truncation, families, unfinished, done)
            side_by_side(
                [
                    (work.lane, partial(self._write_table, writer, work, unfinished.targets))
                    for work in works
                ],
                cancel_jobs,
            )
            injection_point("apply.after-tables")
            self._finish_batch(writer, to_lsn, conflicts)

    @contextmanager
    def planned(self, batch: ChangeBatch, first: int, last: int) -> Iterator[list[TableOutcome]]:
        """What `apply` would write now; nothing is locked, and nothing is written.

        Raises:
            ReplicationConflict: as `apply`.
        """
        unfinished = self.unfinished_batch()
        is_begun = unfinished is not None
        part = _Part.of(batch, first, last)
        problems = _Problems()
        families = self._families_of(part, problems, is_begun=is_begun)
        leaves = {leaf.oid: leaf for entry in families.values() for leaf in _leaves(*entry)}
        targets = {} if unfinished is None else unfinished.targets
        done = written_leaves(leaves, targets, self._application)
        with ExitStack() as stack:
            works = self._works(
                part, families, done, problems, stack, is_begun=is_begun, is_trial=True
            )
            yield [work.outcome for work in works]

    def count_sent(self, changes: RelationChanges, first: int, last: int) -> dict[str, int]:
        """How many changes of each action (I, U, D) a relation has at some positions."""
        return count_actions(self._session, changes, first, last)

    def estimated_paths(
        self, changes: RelationChanges, counts: Mapping[str, int], first: int, last: int
    ) -> list[str]:
        """How changes are probably written, if it cannot be known what rows they meet.

        Args:
            counts: as `count_sent` gives them.
            first, last: the positions of the changes.
        """
        if not any(counts.values()):
            return []
        families = self._families([(changes.relation.schema, changes.relation.name)])
        (root, family), *_ = families.values()
        table = ReplicatedTable(self._session, root, family, changes.relation)
        change = LeafChange(counts.get("D", 0), counts.get("U", 0), counts.get("I", 0))
        keeps_keys = table.isolated_positions(changes).isdisjoint(range(first, last + 1))
        return [estimated_path(change, is_by_key=bool(table.target.key) and keeps_keys)]

    def _families_of(self, part: _Part, problems: _Problems, *, is_begun: bool) -> _Families:
        """The tables that a part of a batch concerns, as far as there are such."""
        families: _Families = {}
        for item, start in part.changes:
            with problems.of(item, self._first_action(item, start, part.last)):
                families |= self._families([(item.relation.schema, item.relation.name)])
        for truncation in part.truncations:
            with problems.of_truncation(truncation):
                truncated = self._families(truncation.relations)
                self._check_truncatable(truncated)
                for root, family in truncated.values():
                    if not is_begun and (problem := self._denied_actions(root, family).get("T")):
                        raise problem
                families |= truncated
        return families

    def _works(
        self,
        part: _Part,
        families: _Families,
        done: Mapping[int, int | None],
        problems: _Problems,
        stack: ExitStack,
        *,
        is_begun: bool,
        is_trial: bool = False,
    ) -> list[_TableWork]:
        """What is going to be written into each table.

        Args:
            done: tables into which it is written already, each with its version before that.
            stack: keeps the outcomes.
            is_begun: it was looked at before.
            is_trial: it is not going to be written.

        Raises:
            ReplicationConflict: a change does not fit.
        """

        def find(item: RelationChanges, start: int) -> _TableWork | None:
            root, family = families[item.relation.schema, item.relation.name]
            with problems.of(item, self._first_action(item, start, part.last)):
                table = ReplicatedTable(
                    self._session,
                    root,
                    family,
                    item.relation,
                    done,
                    is_emptied=start > part.first,
                    is_trial=is_trial,
                )
                table.denied_actions = {} if is_begun else self._denied_actions(root, family)
                outcome = stack.enter_context(table.changed(item, start, part.last))
                return _TableWork(item.lane, outcome, outcome.missing)
            return None

        found = side_by_side(
            [
                (item.lane, partial(find, item, start))
                for item, start in part.changes
                if (item.relation.schema, item.relation.name) in families
            ],
            cancel_jobs,
        )
        problems.raise_first()
        return [work for work in found if work is not None]

    # -- batches

    def _begin_batch(self, leaves: Sequence[Relation], from_lsn: int, to_lsn: int) -> ApplyBatch:
        with self._writing() as catalog:
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            targets = self._targets(catalog, leaves)
            batch = ApplyBatch(self._subscription.oid, from_lsn, to_lsn, xid, targets, self._relid)
            insert_apply_batch(catalog, batch)
        return batch

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
        self, writer: TableWriter, to_lsn: int, conflicts: Mapping[ConflictType, int]
    ) -> None:
        """Enter the versions, the commit and the progress, all at once."""

        def note_progress(catalog: Catalog, local_lsn: int) -> None:
            delete_apply_batch(catalog, self._subscription.oid, self._relid)
            advance_origin(catalog.connection, self.origin_name, to_lsn, local_lsn)
            count_conflicts(catalog, self._subscription.oid, _by_name(conflicts))

        injection_point("apply.before-progress")
        writer.origin_lsn = to_lsn
        commit(writer, note_progress)
        injection_point("apply.after-progress")

    def _finish_empty(self, to_lsn: int, conflicts: Mapping[ConflictType, int]) -> None:
        """Note progress over changes that write nothing, and the conflicts among them."""
        with self._writing() as catalog:
            advance_origin(catalog.connection, self.origin_name, to_lsn, 0)
            count_conflicts(catalog, self._subscription.oid, _by_name(conflicts))

    def _targets(
        self, catalog: Catalog, leaves: Sequence[Relation]
    ) -> dict[int, tuple[int | None, int]]:
        """For each table its version and the number of the step that is going to write it."""
        return {
            leaf.oid: (
                last_logged_version(catalog, leaf.oid),
                next_apply_step(catalog, self._subscription.oid, leaf.oid),
            )
            for leaf in leaves
        }

    # -- tables

    def _write_table(
        self, writer: TableWriter, work: _TableWork, targets: dict[int, tuple[int | None, int]]
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
        note = writer.note(
            changes_keys=outcome.changes_keys, application=self._application(relid), step=step
        )
        if outcome.table.is_replaced:
            outcome.write(number, writer.relations, note)
            return
        writer.check_unchanged(relid)
        outcome.write(number, writer.relations, note)
        try:
            writer.check_not_overtaken(relid)
        except SerializationFailure:
            undo_relation(writer, relid)
            raise

    def _denied_actions(
        self, relation: Relation, family: Mapping[int, Relation] | None = None
    ) -> dict[str, PostgresError]:
        """What the subscription may not do to a table, of I, U, D and T, and why: with the
        privileges of the table's owner, or with its own if it runs as its owner, as TRUNCATE always
        does (SwitchToUntrustedUser, TargetPrivilegesCheck).

        Args:
            family: the table's partitions, if policies of these count, too.

        Raises:
            InsufficientPrivilege: it may not become the table's owner (42501).
        """
        with self._session.read() as catalog:
            owner = privileges = Privileges(catalog, self._subscription.owner)
            if not self._subscription.run_as_owner:
                names = role_names(catalog)
                if not owner.may_become(relation.owner):
                    raise InsufficientPrivilege(
                        f'role "{names[self._subscription.owner]}" cannot SET ROLE to'
                        f' "{names[relation.owner]}"'
                    )
                privileges = Privileges(catalog, relation.owner)
            tables = (relation, *(family or {}).values())
            needed = {"I": "a", "U": "rw", "D": "rd", "T": "D"}
            found = {}
            for action, letters in needed.items():
                problem = _problem_of(owner if action == "T" else privileges, tables, letters)
                if problem is not None:
                    found[action] = problem
        return found

    def _truncate(
        self,
        writer: TableWriter,
        truncation: Truncation,
        families: _Families,
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
            for leaf in _leaves(root, family):
                writer.truncations[leaf.oid] = detail
                storage = leaf.storage
                if storage is None or not storage.is_made or leaf.oid in done:
                    continue
                _version, step = batch.targets[leaf.oid]
                note = writer.note(
                    truncates=True, application=self._application(leaf.oid), step=step
                )
                self._session.engine().truncate(storage.location, note)

    def _first_action(
        self, changes: RelationChanges, first: int, last: int
    ) -> Callable[[], tuple[int, str] | None]:
        return lambda: changes.lane.run(lambda: first_action(self._session, changes, first, last))

    def _check_truncatable(self, families: _Families) -> None:
        emptied = {root.oid: root for root, _family in families.values()}
        emptied |= {leaf.oid: leaf for entry in families.values() for leaf in _leaves(*entry)}
        with self._session.read() as catalog:
            check_truncatable(catalog, emptied)

    def _families(self, names: Sequence[tuple[str, str]]) -> _Families:
        """The local tables of published relations, with their partition trees.

        Raises:
            ObjectNotInPrerequisiteState, WrongObjectType: as `target_oid`.
        """
        oids = {name: self.target_oid(*name) for name in names}
        with self._session.read() as catalog:
            loaded = load_relations(catalog, oids.values())
            return {
                name: (loaded[oid], partition_tree(catalog, loaded[oid]))
                for name, oid in oids.items()
            }

    @contextmanager
    def _locked(self, families: _Families) -> Iterator[_Locked]:
        """Hold the locks of all tables that may be written, and know what others have done to
        them."""
        relids = sorted(
            {leaf.oid for root, family in families.values() for leaf in _leaves(root, family)}
        )
        with ExitStack() as stack:
            when_free(self._session, lambda: self._session.lock_relations(relids, stack))
            recover(self._session, relids)
            with self._writing() as catalog:
                for relation in load_relations(catalog, relids).values():
                    if commit_log.has_unlogged_versions(catalog, relation):
                        self._pass_forgotten_steps(catalog, relation)
                        commit_log.enter_versions(catalog, self._session.cluster, relation)
                current = load_relations(catalog, relids)
            versions = {
                oid: None if item.storage is None else latest_version(item.storage.location)
                for oid, item in current.items()
            }
            for name, (root, family) in families.items():
                fresh = {oid: current.get(oid, relation) for oid, relation in family.items()}
                families[name] = (fresh[root.oid], fresh)
            yield _Locked(current, versions)

    def _check_history(self, catalog: Catalog, leaf: Relation) -> None:
        """Whether the catalog knows how all that this subscription has written into a table came
        there.

        Raises:
            DataCorrupted: it does not, as after a restore of an older copy of it: how far the table
                is cannot be told (XX001).
        """
        known, name = self._subscription, leaf.qualified_name
        origins = (known.origin_name, known.table_origin_name(leaf.oid))
        if has_forgotten_changes(catalog, leaf.oid, origins):
            raise DataCorrupted(
                f'table "{name}" has changes of subscription "{known.name}" that the catalog does'
                " not know of",
                detail="The catalog is of an earlier time than the table.",
                hint="Synchronize the subscription's tables again: ALTER SUBSCRIPTION"
                f" {known.name} REFRESH TABLE {name} WITH (copy_data = true).",
            )

    def _pass_forgotten_steps(self, catalog: Catalog, leaf: Relation) -> None:
        """Take no step again that the table has, but the catalog does not know of."""
        assert leaf.storage is not None
        application = self._application(leaf.oid)
        for unlogged in commit_log.unlogged_commits(catalog, leaf):
            step = applied_step(leaf.storage.location, application, unlogged.version)
            if step is not None:
                raise_apply_step(catalog, self._subscription.oid, leaf.oid, step)

    def _writer(self, locked: _Locked, xid: int) -> TableWriter:
        """A transaction that is finished after a crash, not undone: its batch, or its copy, tells
        how."""
        return TableWriter(
            self._session,
            xid,
            dict(locked.relations),
            {},
            locked.versions,
            origin=self.origin_name,
        )

    def _application(self, relid: int) -> str:
        """Delta's name for what this subscription writes into a table."""
        identifier = self._session.cluster.system_identifier
        return f"replctl-{identifier}-{self._subscription.oid}-{relid}"

    @contextmanager
    def _writing(self) -> Iterator[Catalog]:
        """The catalog's state tables, which are no definitions."""
        with self._session.cluster.write(self._session.database_oid) as catalog:
            yield catalog


class _Problems:
    """What the tables of a batch do not take: of several problems the first is reported."""

    def __init__(self) -> None:
        self._found: list[ReplicationConflict] = []

    @contextmanager
    def of(
        self, changes: RelationChanges, first_action: Callable[[], tuple[int, str] | None]
    ) -> Iterator[None]:
        """What fails here concerns changes of one relation; if nothing else is known, the first of
        them.  It is no problem if nothing is sent.

        Args:
            first_action: finds that change's position and action.
        """
        try:
            yield
        except ReplicationConflict as conflict:
            self._found.append(conflict)
        except (ConnectionFailure, SerializationFailure, InternalError, QueryCanceled):
            raise
        except PostgresError as error:
            found = first_action()
            if found is not None:
                position, action = found
                self._found.append(ReplicationConflict(position, error, "", Action(action).name))

    @contextmanager
    def of_truncation(self, truncation: Truncation) -> Iterator[None]:
        """What fails here concerns a TRUNCATE."""
        try:
            yield
        except PostgresError as error:
            self._found.append(ReplicationConflict(truncation.position, error, "", "TRUNCATE"))

    def raise_first(self) -> None:
        """Raise the problem of the earliest change, if there is one."""
        first = min(self._found, key=lambda conflict: conflict.position, default=None)
        if first is not None:
            raise first


def _problem_of(
    privileges: Privileges, tables: Sequence[Relation], letters: str
) -> PostgresError | None:
    """Why a role may not change a table, the first of these, with its partitions: privileges of
    these letters are missing, or policies count."""
    relation = tables[0]
    if not all(privileges.has_on_relation(relation, letter) for letter in letters):
        return denied("table", relation.name)
    for table in tables:
        if is_row_security_active(privileges, table):
            return FeatureNotSupported(
                f'user "{privileges.role.name}" cannot replicate into relation with row-level'
                f' security enabled: "{table.name}"'
            )
    return None


def _by_name(counts: Mapping[ConflictType, int]) -> dict[str, int]:
    return {kind.value: count for kind, count in counts.items()}


def _leaves(root: Relation, family: dict[int, Relation]) -> list[Relation]:
    """The tables that hold a relation's rows."""
    if not root.is_partitioned:
        return [root]
    result = []
    for relation in family.values():
        if root.oid in relation.parents:
            result += _leaves(relation, family)
    return result


def _truncated(truncations: Sequence[Truncation], families: _Families) -> list[Relation]:
    return [
        leaf
        for truncation in truncations
        for name in truncation.relations
        for leaf in _leaves(*families[name])
    ]
