"""A database of a cluster as a subscriber: initial copies and batches of changes written into its
tables.

A batch is written table after table, each in one Delta commit.  Before the first of them the batch
is in the catalog with the version of every target; after a crash it is finished from there, and
what is already written is recognised by Delta's transaction identifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from replctl.catalog.pg_class import (
    RELKIND_PLURAL,
    Relation,
    find_relation_oid,
    load_relations,
)
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_replication_slots import advance_origin, origin_progress
from replctl.catalog.pg_subscription import (
    ApplyBatch,
    CopySnapshot,
    RelState,
    Subscription,
    SubscriptionRelation,
    count_error,
    delete_apply_batch,
    get_apply_batch,
    get_subscription,
    insert_apply_batch,
    next_apply_step,
    put_subscription_relation,
    subscription_relations,
    update_subscription,
)
from replctl.catalog.pg_wal import last_logged_version
from replctl.catalog.transaction import Catalog, abort_transaction, begin_transaction
from replctl.errors import PostgresError, UndefinedTable, WrongObjectType
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.partition import partition_tree
from replctl.lake.replicated_table import ReplicatedTable, TableOutcome, written_leaves
from replctl.lake.table_write import TableWriter, commit, recover
from replctl.lake.truncation import check_truncatable
from replctl.replication.conflict import ReplicationConflict
from replctl.replication.node import ChangeBatch, RemoteRelation, Rows, Snapshot, Truncation
from replctl.session import Session

#: Relations with all that is in the same partition tree, by (schema, name).
_Families = dict[tuple[str, str], tuple[Relation, dict[int, Relation]]]


class LakeSubscriber:
    """The subscriber that a session's database is, for one subscription
    (replication.node.Subscriber)."""

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self._session = session
        self._subscription = subscription

    # -- state

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
        """Note a table's new state."""
        with self._writing() as catalog:
            put_subscription_relation(catalog, relation)

    def progress(self) -> int:
        """The LSN of the publisher up to which changes are in."""
        with self._session.cluster.begin(write=False) as connection:
            return origin_progress(connection, self._subscription.origin_name) or 0

    def advance(self, to_lsn: int) -> None:
        """Note progress over changes that write nothing."""
        with self._writing() as catalog:
            advance_origin(catalog.connection, self._subscription.origin_name, to_lsn, 0)

    def unfinished_batch(self) -> ApplyBatch | None:
        """The batch that a crash has left half written."""
        with self._session.read() as catalog:
            return get_apply_batch(catalog, self._subscription.oid)

    def note_error(self, kind: str, *, disable: bool) -> None:
        """Count an error (kind: apply or sync), and disable the subscription if asked."""
        with self._session.write() as catalog:
            count_error(catalog, self._subscription.oid, kind)
            current = get_subscription(catalog, self._subscription.oid)
            if disable and current is not None:
                update_subscription(catalog, replace(current, enabled=False))

    def clear_skip(self) -> None:
        """The transaction that ALTER SUBSCRIPTION ... SKIP named has been skipped."""
        with self._session.write() as catalog:
            current = get_subscription(catalog, self._subscription.oid)
            if current is not None:
                update_subscription(catalog, replace(current, skip_lsn=0))

    # -- initial copies

    def begin_copy(
        self, relation: SubscriptionRelation, snapshot: Snapshot
    ) -> SubscriptionRelation:
        """Note what a copy reads, and the versions of the tables that it writes: state d."""
        with self._writing() as catalog:
            loaded = load_relations(catalog, [relation.relid])[relation.relid]
            leaves = _leaves(loaded, partition_tree(catalog, loaded))
            for leaf in leaves:
                commit_log.enter_versions(catalog, self._session.cluster, leaf)
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            begun = replace(
                relation,
                state=RelState.DATASYNC,
                snapshot=CopySnapshot(
                    snapshot.lsn, snapshot.state, xid, self._targets(catalog, leaves)
                ),
            )
            put_subscription_relation(catalog, begun)
        injection_point("tablesync.after-snapshot")
        return begun

    def copy(self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows) -> None:
        """Append the rows of a copy, with defaults; what a crash has left is completed.  State f.

        Raises:
            PostgresError: the rows do not fit the table: nothing is written, and the copy is
                forgotten.
        """
        copied = relation.snapshot
        assert copied is not None
        families = self._families([(remote.schema, remote.name)])
        root, family = families[remote.schema, remote.name]
        with self._locked(families) as tables, ExitStack() as stack:
            done = written_leaves(tables, copied.targets, self._application)
            writer = self._writer(tables, copied.xid)
            try:
                table = ReplicatedTable(self._session, root, family, remote, done)
                outcome = stack.enter_context(table.copied(rows))
            except (PostgresError, ReplicationConflict) as error:
                if not done:
                    self._forget_copy(relation)
                raise error.error if isinstance(error, ReplicationConflict) else error from error
            injection_point("tablesync.before-write")
            for number in outcome.changed_leaves:
                self._write_leaf(writer, outcome, number, copied.targets)
                injection_point("tablesync.after-copy")
            injection_point("tablesync.before-finishedcopy")
            finished = replace(relation, state=RelState.FINISHEDCOPY, lsn=copied.lsn, snapshot=None)
            commit(writer, lambda catalog, lsn: put_subscription_relation(catalog, finished))
        injection_point("tablesync.after-finishedcopy")

    def _forget_copy(self, relation: SubscriptionRelation) -> None:
        """Nothing is written: the next attempt reads the publisher as it is then."""
        assert relation.snapshot is not None
        with self._writing() as catalog:
            put_subscription_relation(catalog, replace(relation, snapshot=None))
            abort_transaction(catalog.connection, relation.snapshot.xid)

    # -- changes

    def target_oid(self, schema_name: str, name: str) -> int:
        """The OID of the local table for a published one.

        Raises:
            UndefinedTable: there is none (42P01).
            WrongObjectType: it is not a table (42809).
        """
        with self._session.read() as catalog:
            schema_oid = find_schema(catalog, schema_name)
            oid = None if schema_oid is None else find_relation_oid(catalog, name, schema_oid)
            relation = None if oid is None else load_relations(catalog, [oid])[oid]
        if relation is None:
            raise UndefinedTable(f'relation "{schema_name}.{name}" does not exist')
        if relation.kind not in ("r", "p"):
            raise WrongObjectType(
                f'cannot use relation "{schema_name}.{name}" as logical replication target',
                detail=f"This operation is not supported for {RELKIND_PLURAL[relation.kind]}.",
            )
        return relation.oid

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """The changes that cannot be composed with those of other transactions: they move keys, or
        their table has no key."""
        result: set[int] = set()
        for changes in batch.changes:
            try:
                families = self._families([(changes.relation.schema, changes.relation.name)])
                (root, family), *_ = families.values()
                table = ReplicatedTable(self._session, root, family, changes.relation)
            except PostgresError:  # it is reported for the first of its changes (apply)
                continue
            result |= table.isolated_positions(changes)
        return result

    def apply(self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to_lsn: int) -> None:
        """Write the changes at positions from `first` to `last`, as one batch; progress is then
        `to_lsn`.

        Raises:
            ReplicationConflict: one of them does not fit; nothing of the batch is written.
        """
        unfinished = self.unfinished_batch()
        truncations = [t for t in batch.truncations if first <= t.position <= last]
        changes = [c for c in batch.changes if any(first <= p <= last for p in c.positions)]
        families: _Families = {}
        for item in changes:
            position = min(p for p in item.positions if first <= p <= last)
            name = (item.relation.schema, item.relation.name)
            with _at(position, ".".join(name)):
                families |= self._families([name])
        for truncation in truncations:
            with _at(truncation.position, "", "TRUNCATE"):
                truncated = self._families(truncation.relations)
                self._check_truncatable(truncated)
            families |= truncated
        with self._locked(families) as tables, ExitStack() as stack:
            targets = {} if unfinished is None else unfinished.targets
            done = written_leaves(tables, targets, self._application)
            outcomes = []
            for item in changes:
                root, family = families[item.relation.schema, item.relation.name]
                position = min(p for p in item.positions if first <= p <= last)
                with _at(position, root.qualified_name):
                    table = ReplicatedTable(self._session, root, family, item.relation, done)
                    outcomes.append(stack.enter_context(table.changed(item, first, last)))
            injection_point("apply.before-batch")
            leaves = {relid for outcome in outcomes for relid in outcome.changed_relids}
            leaves |= {leaf.oid for leaf in _truncated(truncations, families)}
            if not leaves and not truncations:
                self._finish_empty(unfinished, to_lsn)
                return
            if unfinished is None:
                unfinished = self._begin_batch([tables[oid] for oid in leaves], from_lsn, to_lsn)
            injection_point("apply.after-batch")
            writer = self._writer(tables, unfinished.xid)
            for truncation in truncations:
                self._truncate(writer, truncation, families, unfinished, done)
            for outcome in outcomes:
                for number in outcome.changed_leaves:
                    self._write_leaf(writer, outcome, number, unfinished.targets)
                    injection_point("apply.after-first-table")
            injection_point("apply.after-tables")
            self._finish_batch(writer, to_lsn)

    # -- batches

    def _begin_batch(self, leaves: Sequence[Relation], from_lsn: int, to_lsn: int) -> ApplyBatch:
        with self._writing() as catalog:
            xid = begin_transaction(
                catalog.connection, self._session.database_oid, self._session.cluster.backend
            )
            targets = self._targets(catalog, leaves)
            batch = ApplyBatch(self._subscription.oid, from_lsn, to_lsn, xid, targets)
            insert_apply_batch(catalog, batch)
        return batch

    def _finish_batch(self, writer: TableWriter, to_lsn: int) -> None:
        """Enter the versions, the commit and the progress, all at once."""

        def note_progress(catalog: Catalog, local_lsn: int) -> None:
            delete_apply_batch(catalog, self._subscription.oid)
            advance_origin(catalog.connection, self._subscription.origin_name, to_lsn, local_lsn)

        injection_point("apply.before-progress")
        writer.origin_lsn = to_lsn
        commit(writer, note_progress)
        injection_point("apply.after-progress")

    def _finish_empty(self, unfinished: ApplyBatch | None, to_lsn: int) -> None:
        with self._writing() as catalog:
            delete_apply_batch(catalog, self._subscription.oid)
            if unfinished is not None:
                abort_transaction(catalog.connection, unfinished.xid)
            advance_origin(catalog.connection, self._subscription.origin_name, to_lsn, 0)

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
        outcome.write(number, writer.relations, note)

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

    def _check_truncatable(self, families: _Families) -> None:
        emptied = {root.oid: root for root, _family in families.values()}
        emptied |= {leaf.oid: leaf for entry in families.values() for leaf in _leaves(*entry)}
        with self._session.read() as catalog:
            check_truncatable(catalog, emptied)

    def _families(self, names: Sequence[tuple[str, str]]) -> _Families:
        """The local tables of published relations, with their partition trees.

        Raises:
            UndefinedTable, WrongObjectType: as `target_oid`.
        """
        oids = {name: self.target_oid(*name) for name in names}
        with self._session.read() as catalog:
            loaded = load_relations(catalog, oids.values())
            return {
                name: (loaded[oid], partition_tree(catalog, loaded[oid]))
                for name, oid in oids.items()
            }

    @contextmanager
    def _locked(self, families: _Families) -> Iterator[dict[int, Relation]]:
        """Hold the locks of all tables that may be written, and know what others have done to
        them."""
        relids = sorted(
            {leaf.oid for root, family in families.values() for leaf in _leaves(root, family)}
        )
        with ExitStack() as stack:
            self._session.lock_relations(relids, stack)
            recover(self._session, relids)
            with self._writing() as catalog:
                for relation in load_relations(catalog, relids).values():
                    if commit_log.has_unlogged_versions(catalog, relation):
                        commit_log.enter_versions(catalog, self._session.cluster, relation)
                current = load_relations(catalog, relids)
            for name, (root, family) in families.items():
                fresh = {oid: current.get(oid, relation) for oid, relation in family.items()}
                families[name] = (fresh[root.oid], fresh)
            yield current

    def _writer(self, tables: dict[int, Relation], xid: int) -> TableWriter:
        """A transaction that is finished after a crash, not undone: its batch, or its copy, tells
        how."""
        return TableWriter(
            self._session, xid, dict(tables), {}, origin=self._subscription.origin_name
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


@contextmanager
def _at(position: int, relation: str, message_type: str = "") -> Iterator[None]:
    """What fails here, fails at a change of the batch."""
    try:
        yield
    except PostgresError as error:
        raise ReplicationConflict(position, error, relation, message_type) from error


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
