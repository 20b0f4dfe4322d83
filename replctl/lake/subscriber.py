"""A database of a cluster as a subscriber: initial copies and batches of changes written into its tables.

A batch is written table after table, each in one Delta commit.  Before the first of them the batch is in
the catalog with the version of every target; after a crash it is finished from there, and what is already
written is recognised by Delta's transaction identifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from replctl.catalog.pg_class import (
    RELKIND_PLURAL,
    Relation,
    descendants_of,
    find_relation_oid,
    load_relations,
)
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_replication_slots import advance_origin, create_origin, origin_progress
from replctl.catalog.pg_subscription import (
    ApplyBatch,
    Subscription,
    SubscriptionRelation,
    delete_apply_batch,
    get_apply_batch,
    insert_apply_batch,
    next_apply_step,
    put_subscription_relation,
    subscription_relations,
)
from replctl.catalog.transaction import begin_transaction, commit_transaction
from replctl.errors import (
    CheckViolation,
    NotNullViolation,
    PostgresError,
    UndefinedTable,
    UniqueViolation,
    WrongObjectType,
)
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.delta_log import applied_step, latest_version
from replctl.lake.table_write import TableWriter, recover
from replctl.lake.target import check_updatable, replication_target
from replctl.replication.conflict import ReplicationConflict
from replctl.replication.node import (
    ChangeBatch,
    RelationChanges,
    RemoteRelation,
    Rows,
    Snapshot,
    Truncation,
)
from replctl.session import Session
from replctl.spark import SentColumn, Target


class LakeSubscriber:
    """The subscriber that a session's database is, for one subscription."""

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self._session = session
        self._subscription = subscription

    # -- state

    def relations(self) -> dict[tuple[str, str], SubscriptionRelation]:
        """The tables of the subscription by (schema, name); tables that were dropped are left out."""
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
        with self._session.cluster.write(self._session.database_oid) as catalog:
            put_subscription_relation(catalog, relation)

    def progress(self) -> int:
        """The LSN of the publisher up to which changes are in."""
        with self._session.cluster.begin(write=False) as connection:
            return origin_progress(connection, self._subscription.origin_name) or 0

    def start_at(self, lsn: int) -> None:
        """Begin at an LSN of the publisher, unless there is progress already."""
        with self._session.cluster.begin(write=True) as connection:
            if origin_progress(connection, self._subscription.origin_name) is None:
                create_origin(connection, self._subscription.origin_name, lsn)

    def unfinished_batch(self) -> ApplyBatch | None:
        """The batch that a crash has left half written."""
        with self._session.read() as catalog:
            return get_apply_batch(catalog, self._subscription.oid)

    # -- initial copy

    def next_step(self, relid: int) -> int:
        """A number for a write into one of the tables."""
        with self._session.cluster.write(self._session.database_oid) as catalog:
            return next_apply_step(catalog, self._subscription.oid, relid)

    def copy(self, relid: int, remote: RemoteRelation, rows: Rows, snapshot: Snapshot) -> None:
        """Append the rows of a copy, converted, with defaults; a copy that is already there is left.

        Raises:
            ReplicationConflict: the rows do not fit the table; nothing is written.
        """
        relation, family = self._target_relation(relid)
        step = int(snapshot.state["step"])
        with _locked(self._session, family.values()), ExitStack() as stack:
            writer = self._begin(family, snapshot.state.get("xid"))
            snapshot.state["xid"] = writer.xid
            for oid in family:
                if not family[oid].is_partitioned:
                    writer.prepare(oid)
            target = replication_target(relation, remote, {**family, **writer.relations})
            engine = self._session.engine()
            copied = stack.enter_context(engine.copied_outcome(target, _sent(remote), rows))
            self._raise_problem(relation, target, copied, remote)
            injection_point("tablesync.before-write")
            for number, leaf in enumerate(target.leaves):
                self._write_leaf(writer, target, copied, number, leaf.relid, step)
            injection_point("tablesync.after-copy")
            self._commit(writer, 0)

    # -- changes

    def check_target(self, schema_name: str, name: str) -> int:
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

    def needs_whole_transactions(self, relation: tuple[str, str]) -> bool:
        """Whether changes of a table cannot be composed over transactions: it has no key."""
        target, _family = self._target_relation(self.check_target(*relation))
        from replctl.replication.replica_identity import target_key

        return not target_key(target)

    def apply(self, batch: ChangeBatch, first: int, last: int, to_lsn: int) -> None:
        """Write the changes at positions from `first` to `last`, as one batch; progress is then `to_lsn`.

        Raises:
            ReplicationConflict: one of them does not fit; nothing of the batch is written.
        """
        unfinished = self.unfinished_batch()
        changes = [c for c in batch.changes if any(first <= p <= last for p in c.positions)]
        truncations = [t for t in batch.truncations if first <= t.position <= last]
        names = [(c.relation.schema, c.relation.name) for c in changes]
        names += [name for truncation in truncations for name in truncation.relations]
        families: dict[tuple[str, str], tuple[Relation, dict[int, Relation]]] = {}
        for name in names:
            families[name] = self._target_relation(self.check_target(*name))
        tables = {oid: r for _root, family in families.values() for oid, r in family.items()}
        with _locked(self._session, tables.values()), ExitStack() as stack:
            if unfinished is None:
                recover(self._session, list(tables))
                with self._session.cluster.write(self._session.database_oid) as catalog:
                    for relation in tables.values():
                        commit_log.enter_versions(catalog, self._session.cluster, relation)
            done = set() if unfinished is None else self._written(unfinished, tables)
            outcomes = [
                self._outcome(stack, families, change, first, last, done) for change in changes
            ]
            injection_point("apply.before-batch")
            work = _Work([o for o in outcomes if o.has_changes], truncations)
            self._write(work, families, tables, batch.from_lsn, to_lsn, unfinished)

    def _outcome(
        self,
        stack: ExitStack,
        families: dict[tuple[str, str], tuple[Relation, dict[int, Relation]]],
        change: RelationChanges,
        first: int,
        last: int,
        done: set[int],
    ) -> _TableOutcome:
        """What the changes of one relation do to its table, checked."""
        remote = change.relation
        relation, family = families[remote.schema, remote.name]
        try:
            target = replication_target(relation, remote, family)
        except PostgresError as error:
            position = min(p for p in change.positions if first <= p <= last)
            raise ReplicationConflict(position, error, relation.qualified_name) from error
        engine = self._session.engine()
        try:
            converted = stack.enter_context(
                engine.converted_changes(target, _sent(remote), change.rows, first, last)
            )
            if converted.has_updates:
                check_updatable(target, remote, relation)
            outcome = stack.enter_context(engine.outcome(target, converted))
        except PostgresError as error:
            position = min(p for p in change.positions if first <= p <= last)
            raise ReplicationConflict(position, error, relation.qualified_name) from error
        if not done:
            self._raise_problem(relation, target, outcome, remote)
        return _TableOutcome(relation, target, outcome, engine.leaf_changes(outcome), done)

    def _raise_problem(self, relation: Relation, target: Target, outcome: Any, remote: RemoteRelation) -> None:
        problem = self._session.engine().first_problem(outcome)
        if problem is None:
            return
        shown = f"({', '.join('null' if t is None else t for t in problem.row.values())})"
        if problem.violation is None:
            names = [relation.column_at(attnum).name for attnum in target.key]
            values = ["null" if (t := problem.row[a]) is None else t for a in target.key]
            index = next((i for i in relation.indexes if i.key == target.key and i.is_unique), None)
            error: PostgresError = UniqueViolation(
                f'duplicate key value violates unique constraint "{index.name if index else ""}"',
                detail=f"Key ({', '.join(names)})=({', '.join(values)}) already exists.",
                constraint=index.name if index else None,
            )
        elif problem.violation > 0:
            column = relation.column_at(problem.violation)
            error = NotNullViolation(
                f'null value in column "{column.name}" of relation "{relation.name}" violates not-null constraint',
                detail=f"Failing row contains {shown}.",
            )
        elif problem.violation < 0:
            name = target.checks[-problem.violation - 1][0]
            error = CheckViolation(
                f'new row for relation "{relation.name}" violates check constraint "{name}"',
                detail=f"Failing row contains {shown}.",
                constraint=name,
            )
        else:
            error = CheckViolation(
                f'no partition of relation "{relation.name}" found for row',
                detail=f"Failing row contains {shown}.",
            )
        raise ReplicationConflict(problem.position, error, relation.qualified_name)

    # -- writing

    def _write(
        self,
        work: _Work,
        families: dict[tuple[str, str], tuple[Relation, dict[int, Relation]]],
        tables: dict[int, Relation],
        from_lsn: int,
        to_lsn: int,
        unfinished: ApplyBatch | None,
    ) -> None:
        truncated = [oid for name in work.truncated_names for oid in families[name][1]]
        written = sorted(work.leaf_relids | set(truncated))
        if not written:
            self._advance(to_lsn)
            return
        if unfinished is None:
            writer = self._begin({oid: tables[oid] for oid in written}, None)
            with self._session.cluster.write(self._session.database_oid) as catalog:
                targets = {
                    oid: (writer.base_versions[oid], next_apply_step(catalog, self._subscription.oid, oid))
                    for oid in written
                }
                insert_apply_batch(
                    catalog,
                    ApplyBatch(self._subscription.oid, from_lsn, to_lsn, writer.xid, targets),
                )
        else:
            writer = self._begin({oid: tables[oid] for oid in written}, unfinished.xid)
            targets = unfinished.targets
        injection_point("apply.after-batch")
        for truncation in work.truncations:
            self._truncate(writer, truncation, families, targets)
        for table in work.outcomes:
            for number, leaf in enumerate(table.target.leaves):
                if leaf.relid in table.done or table.leaf_changes[number].is_nothing:
                    continue
                _version, step = targets[leaf.relid]
                self._write_leaf(writer, table.target, table.outcome, number, leaf.relid, step)
                injection_point("apply.after-first-table")
        injection_point("apply.after-tables")
        self._commit(writer, to_lsn)

    def _write_leaf(
        self, writer: TableWriter, target: Target, outcome: Any, number: int, relid: int, step: int
    ) -> None:
        """Write an outcome's rows of one leaf."""
        engine = self._session.engine()
        change = engine.leaf_changes(outcome)[number]
        if change.is_nothing:
            return
        writer.prepare(relid)
        leaf = target.leaves[number]
        stored = writer.source(relid)
        names = {column.attnum: column for column in stored.columns}
        root = {column.name: column.attnum for column in target.columns}
        relation = writer.relations[relid]
        columns = tuple(
            replace(names[column.attnum], attnum=root[column.name])
            for column in relation.columns
            if column.name in root
        )
        note = writer.note(
            changes_keys=outcome.moves_keys or outcome.is_whole_row,
            application=self._application(relid),
            step=step,
        )
        engine.write_leaf(
            outcome, number, replace(leaf, source=replace(stored, columns=columns)), change, note
        )

    def _truncate(
        self,
        writer: TableWriter,
        truncation: Truncation,
        families: dict[tuple[str, str], tuple[Relation, dict[int, Relation]]],
        targets: dict[int, tuple[int | None, int]],
    ) -> None:
        """Empty the tables of a TRUNCATE; it is an entry of the log for each of them."""
        for name in truncation.relations:
            root, family = families[name]
            for oid in {root.oid, *family}:
                writer.truncations[oid] = {"cascade": truncation.cascade}
            for oid, relation in family.items():
                if relation.storage is not None and relation.storage.is_made:
                    _version, step = targets[oid]
                    note = writer.note(silent=True, application=self._application(oid), step=step)
                    self._session.engine().truncate(relation.storage.location, note)

    def _begin(self, tables: dict[int, Relation], xid: int | None) -> TableWriter:
        """A transaction that is finished after a crash, not undone: its batch, or its copy, tells how."""
        with self._session.cluster.write(self._session.database_oid) as catalog:
            if xid is None:
                xid = begin_transaction(
                    catalog.connection, self._session.database_oid, self._session.cluster.backend
                )
            versions = {oid: commit_log.last_logged_version(catalog, oid) for oid in tables}
        return TableWriter(
            self._session, xid, dict(tables), versions, origin=self._subscription.origin_name
        )

    def _commit(self, writer: TableWriter, to_lsn: int) -> None:
        """Enter the versions, the progress and the commit, all at once."""
        session = self._session
        injection_point("apply.before-progress")
        with session.cluster.write(session.database_oid) as catalog:
            for relid, detail in writer.truncations.items():
                commit_log.enter(catalog, writer.xid, relid, None, commit_log.TRUNCATE, detail)
            for relation in writer.relations.values():
                commit_log.enter_versions(catalog, session.cluster, relation, own_xid=writer.xid)
            local_lsn = commit_transaction(
                catalog.connection,
                writer.xid,
                changes_catalog=False,
                origin=self._subscription.origin_name,
                origin_lsn=to_lsn or None,
            )
            delete_apply_batch(catalog, self._subscription.oid)
            if to_lsn:
                advance_origin(catalog.connection, self._subscription.origin_name, to_lsn, local_lsn)
        injection_point("apply.after-progress")

    def _advance(self, to_lsn: int) -> None:
        with self._session.cluster.write(self._session.database_oid) as catalog:
            delete_apply_batch(catalog, self._subscription.oid)
            advance_origin(catalog.connection, self._subscription.origin_name, to_lsn, 0)

    def _application(self, relid: int) -> str:
        """Delta's name for what this subscription writes into a table."""
        identifier = self._session.cluster.system_identifier
        return f"replctl-{identifier}-{self._subscription.oid}-{relid}"

    def _written(self, batch: ApplyBatch, tables: dict[int, Relation]) -> set[int]:
        """The tables into which a batch is written already."""
        result = set()
        for relid, (version, step) in batch.targets.items():
            storage = tables[relid].storage if relid in tables else None
            if storage is None:
                continue
            newest = latest_version(storage.location)
            if newest is None:
                continue
            versions = range(0 if version is None else version + 1, newest + 1)
            found = applied_step(storage.location, self._application(relid), versions)
            if found is not None and found >= step:
                result.add(relid)
        return result

    def _target_relation(self, relid: int) -> tuple[Relation, dict[int, Relation]]:
        """A table, and the tables that hold its rows: its leaves, or itself."""
        with self._session.read() as catalog:
            loaded = load_relations(catalog, descendants_of(catalog, relid))
        return loaded[relid], loaded


@dataclass(frozen=True, slots=True)
class _TableOutcome:
    relation: Relation
    target: Target
    outcome: Any
    leaf_changes: Sequence[Any]
    done: set[int] = field(hash=False)

    @property
    def has_changes(self) -> bool:
        return any(not change.is_nothing for change in self.leaf_changes)


@dataclass(frozen=True, slots=True)
class _Work:
    outcomes: list[_TableOutcome]
    truncations: list[Truncation]

    @property
    def leaf_relids(self) -> set[int]:
        return {
            leaf.relid
            for table in self.outcomes
            for leaf, change in zip(table.target.leaves, table.leaf_changes, strict=True)
            if not change.is_nothing
        }

    @property
    def truncated_names(self) -> list[tuple[str, str]]:
        return [name for truncation in self.truncations for name in truncation.relations]


@contextmanager
def _locked(session: Session, relations: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for oid in sorted(relation.oid for relation in relations):
            stack.enter_context(session.cluster.lock(f"relation-{oid}"))
        yield


def _sent(remote: RemoteRelation) -> tuple[SentColumn, ...]:
    return tuple(SentColumn(column.name, column.type, column.typmod) for column in remote.columns)


