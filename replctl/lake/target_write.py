"""Write a subscription's tables for copies and batches: lock them, assign steps, and write leaf
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from replctl.catalog.apply_step import WriteStep, next_apply_step, note_written_steps
from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_wal import last_logged_version
from replctl.catalog.transaction import Catalog
from replctl.errors import SerializationFailure
from replctl.lake.delta_log import latest_version
from replctl.lake.delta_rules import append_only_error
from replctl.lake.durable_version import sync_versions
from replctl.lake.file_access import check_writable
from replctl.lake.leftovers import removing_leftovers
from replctl.lake.recovery import recover
from replctl.lake.replicated_table import TableOutcome
from replctl.lake.schema_rewrite import rewrite_when_free
from replctl.lake.spark_ability import check_spark_can_write
from replctl.lake.subscriber_state import SubscriberState
from replctl.lake.table_write import TableWriter, undo_relation
from replctl.lake.target_relations import PartitionTrees, TargetRelations, leaves_of_trees
from replctl.lake.undo import storage_of
from replctl.lake.waiting import when_free
from replctl.record import dataclass
from replctl.relation_lock import lock_relations
from replctl.replication.update_transformation import Action


@dataclass(frozen=True, slots=True)
class Locked:
    """Locked tables, and the newest version that each had when replctl locked it."""

    relations: dict[int, Relation]
    versions: dict[int, int | None]


class TargetWrite:
    """Writes the tables of one subscription in a session's database.  This is the base class of
    copies and batches.
    """

    def __init__(self, state: SubscriberState) -> None:
        self._state = state
        self._session = state.session
        self._subscription = state.subscription
        self._check = state.check
        #: The subscription's tables, by the names of the published tables.
        self._local = TargetRelations(state.session, state.subscription)

    def steps(
        self,
        catalog: Catalog,
        leaves: Sequence[Relation],
        versions: Mapping[int, int | None] | None = None,
    ) -> dict[int, WriteStep]:
        """Return each table's version and the number of the step that will write it, by OID.

        Args:
            versions: the tables' newest versions; None for the last versions in the commit log.
        """
        return {
            leaf.oid: WriteStep(
                last_logged_version(catalog.connection, leaf.oid)
                if versions is None
                else versions[leaf.oid],
                next_apply_step(catalog, self._subscription.oid, leaf.oid),
            )
            for leaf in leaves
        }

    @contextmanager
    def locked(self, trees: PartitionTrees, *, is_replaced: bool = False) -> Iterator[Locked]:
        """Lock all tables that may be written, and record other writers' commits to them.

        Args:
            is_replaced: see TargetCheck.enter.
        """
        leaves = leaves_of_trees(trees)
        relids = sorted(leaves)
        rewrite_when_free(self._session, leaves.values())
        with ExitStack() as stack:
            # A transaction block of another session may write the tables for a long time
            when_free(self._session, lambda: lock_relations(self._session, relids, stack))
            recover(self._session, relids)
            with self._state.writing() as catalog:
                found = load_relations(catalog, relids).values()
                self._check.enter(catalog, found, is_replaced=is_replaced)
                current = load_relations(catalog, relids)
                check_writable(catalog, current.values())
            for relation in current.values():
                check_spark_can_write(self._session, relation)
                if (
                    is_replaced
                    and (error := append_only_error(relation, Action.DELETE)) is not None
                ):
                    raise error
            versions = {
                oid: None if item.storage is None else latest_version(item.storage.location)
                for oid, item in current.items()
            }
            for name, (root, tree) in trees.items():
                fresh = {oid: current.get(oid, relation) for oid, relation in tree.items()}
                trees[name] = (fresh[root.oid], fresh)
            with removing_leftovers(self._session, current, versions):
                yield Locked(current, versions)

    def writer(self, locked: Locked, xid: int) -> TableWriter:
        """Return the writer of a transaction.  After a crash, replctl finishes the transaction from
        the record of its batch or copy, and does not undo it.
        """
        with self._state.writing() as catalog:
            nonces = make_nonces(catalog.connection, xid, locked.relations)
        return TableWriter(
            self._session,
            xid,
            dict(locked.relations),
            {},
            locked.versions,
            origin=self._state.origin_name,
            nonces=nonces,
        )

    def write_leaf(
        self,
        writer: TableWriter,
        outcome: TableOutcome,
        number: int,
        targets: dict[int, WriteStep],
    ) -> None:
        """Write the rows of an outcome into one leaf partition, unless they are already written."""
        relid = outcome.leaf_relid(number)
        if relid in outcome.table.done:  # perhaps by a dead process
            location = storage_of(writer.relations[relid]).location
            sync_versions(location, outcome.table.done[relid])
            return
        writer.prepare(relid)
        if not outcome.table.is_replaced:
            writer.check_unchanged(relid)
        with writer.commit_to(
            relid,
            changes_keys=outcome.changes_keys,
            application=self._check.application(relid),
            step=targets[relid].number,
        ) as note:
            outcome.write(number, writer.relations, note)
        if outcome.table.is_replaced:
            return
        try:
            writer.check_not_overtaken(relid)
        except SerializationFailure:
            undo_relation(writer, relid)
            raise

    def make_tables(self, writer: TableWriter) -> None:
        """Create the Delta tables that received no row, so that other programs find them empty."""
        for relid, relation in list(writer.relations.items()):
            if relation.storage is not None and not relation.storage.is_made:
                writer.prepare(relid)
                writer.written.discard(relid)  # its step is not in the log

    def note_written(
        self,
        catalog: Catalog,
        writer: TableWriter,
        targets: Mapping[int, WriteStep],
    ) -> None:
        """Record the steps of the tables into which this transaction has written rows."""
        steps = {oid: step.number for oid, step in targets.items() if oid in writer.written}
        note_written_steps(catalog.connection, self._subscription.oid, steps)
