"""Read and record the state of a subscription: its tables' states, its progress and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from replctl.catalog.apply_batch import ApplyBatch, get_apply_batch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_class import relation_names
from replctl.catalog.pg_replication_slots import (
    advance_origin,
    drop_origin,
    followed_lsn,
    origin_position,
    put_followed_lsn,
    put_origin,
)
from replctl.catalog.pg_stat_subscription_stats import count_conflicts, count_error
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    TwoPhaseState,
    change_subscription,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.transaction import Catalog
from replctl.errors import Notice
from replctl.lake.abandoned_write import note_abandoned, undo
from replctl.lake.target_check import TargetCheck
from replctl.lake.waiting import when_free
from replctl.lsn import INVALID_LSN
from replctl.relation_name import RelationName
from replctl.replication.conflict_type import ConflictType
from replctl.session import Session


class SubscriberState:
    """The state of one subscription in the catalog of a session's database
    (replication.node.SubscriberState).

    Args:
        table: the table to synchronize; None: the tables that apply writes.

    Attributes:
        check: checks that other writers have not damaged the subscription's tables.
    """

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        table: SubscriptionRelation | None = None,
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.table = table
        self.check = TargetCheck(session, subscription)

    def of_table(self, relation: SubscriptionRelation) -> SubscriberState:
        """Return the state of the same subscription for the synchronization of one table."""
        return SubscriberState(self.session, self.subscription, relation)

    @property
    def origin_name(self) -> str:
        """Return the name of the replication origin that records the progress."""
        if self.table is None:
            return self.subscription.origin_name
        return self.subscription.table_origin_name(self.table.relid)

    @property
    def synchronization_id(self) -> int:
        """Return the number by which the publisher identifies the subscriber."""
        return self.session.cluster.system_identifier

    @property
    def max_batch_changes(self) -> int:
        """Return the approximate maximum number of changes in a batch; 0: no limit."""
        return int(self.session.setting("replctl.max_batch_changes"))

    @property
    def max_parallel_tables(self) -> int:
        """Return the maximum number of tables that are written in parallel."""
        return int(self.session.setting("max_parallel_apply_workers_per_subscription"))

    @property
    def relid(self) -> int:
        """Return the OID of the table that is synchronized; 0: none."""
        return 0 if self.table is None else self.table.relid

    @contextmanager
    def writing(self) -> Iterator[Catalog]:
        """Yield the catalog for changes of the subscription's state, but not of definitions."""
        with self.session.cluster.write(self.session.database_oid) as catalog:
            yield catalog

    def applied_positions(self) -> dict[RelationName, int]:
        """Return the tables whose changes are applied: for each (schema, name), the LSN after which
        changes are applied.
        """
        return {
            name: relation.lsn or 0
            for name, relation in self.relations().items()
            if (relation.state.is_applied if self.table is None else relation.relid == self.relid)
        }

    def relations(self) -> dict[RelationName, SubscriptionRelation]:
        """Return the tables of the subscription by (schema, name) of the published tables.  Omit
        dropped tables.
        """
        with self.session.read() as catalog:
            states = subscription_relations(catalog, self.subscription.oid)
            names = relation_names(catalog, [state.relid for state in states])
        found = ((names[state.relid], state) for state in states if state.relid in names)
        map_ = self.subscription.table_map
        return {
            published: state
            for name, state in found
            if (published := map_.published(name)) is not None
        }

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Record a table's new state.  If the table becomes ready, forget its own progress."""
        with self.writing() as catalog:
            update_subscription_relation(catalog, relation)
            if relation.state is RelState.READY:
                drop_origin(catalog.connection, self.of_table(relation).origin_name)

    def position(self) -> LogPosition:
        """Return the publisher's LSN up to which changes are applied, with the digest of the
        publisher's commit there.
        """
        with self.session.cluster.begin(write=False) as connection:
            known = origin_position(connection, self.origin_name)
        return LogPosition(INVALID_LSN) if known is None else known

    def advance(self, to: LogPosition) -> None:
        """Record progress over changes that write nothing."""
        with self.writing() as catalog:
            advance_origin(catalog.connection, self.origin_name, to, 0)

    def followed_lsn(self) -> int:
        """Return the publisher's LSN up to which changes of definitions are repeated."""
        with self.session.cluster.begin(write=False) as connection:
            return followed_lsn(connection, self.origin_name)

    def restart(self, position: LogPosition) -> None:
        """Continue from a position of another log.  Undo a partly written batch of the old log."""
        with self.writing() as catalog:
            batch = get_apply_batch(catalog, self.subscription.oid, self.relid)
            begun = [] if batch is None else [(batch.xid, batch.targets)]
            note_abandoned(catalog, self.subscription, self.relid, begun)
            put_origin(catalog.connection, self.origin_name, position, 0)
            put_followed_lsn(catalog.connection, self.origin_name, INVALID_LSN)
        undo(self.session, begun)

    def check_targets(self) -> None:
        """Check that the applied rows still exist (TargetCheck.check_targets)."""
        self.check.check_targets(None if self.table is None else self.table.relid)

    def unfinished_batch(self) -> ApplyBatch | None:
        """Return the batch that a crash left unfinished."""
        with self.session.read() as catalog:
            return get_apply_batch(catalog, self.subscription.oid, self.relid)

    def note_error(self, kind: str, *, disable: bool) -> None:
        """Count an error, and disable the subscription if `disable` is true.

        Args:
            kind: apply or sync.
        """

        def note(catalog: Catalog) -> None:
            count_error(catalog, self.subscription.oid, kind)
            if disable:
                self._change(catalog, enabled=False)

        self._define(note)

    def count_conflicts(self, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts that have stopped a transaction."""
        with self.writing() as catalog:
            self.enter_conflicts(catalog, counts)

    def enter_conflicts(self, catalog: Catalog, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts within the caller's transaction of the catalog."""
        by_name = {kind.value: count for kind, count in counts.items()}
        count_conflicts(catalog, self.subscription.oid, by_name)

    def enable_two_phase(self) -> None:
        """Change the two-phase state from pending to enabled."""
        self._define(lambda catalog: self._change(catalog, two_phase_state=TwoPhaseState.ENABLED))

    def clear_skip(self, skipped: LogPosition | None) -> None:
        """Clear the LSN of ALTER SUBSCRIPTION ... SKIP.

        Args:
            skipped: the position of the transaction that was skipped; None if another transaction
                came first.
        """

        def clear(catalog: Catalog) -> None:
            self._change(catalog, skip_lsn=0)
            if skipped is not None:
                advance_origin(catalog.connection, self.origin_name, skipped, 0)

        self._define(clear)

    def _define(self, change: Callable[[Catalog], None]) -> None:
        """Change definitions.  First wait for a transaction block that changes the subscription."""

        def attempt() -> None:
            with self.session.write() as catalog:
                change(catalog)

        when_free(self.session, attempt)

    def _change(self, catalog: Catalog, **fields: object) -> None:
        """Change the subscription, if it still exists."""
        change_subscription(
            catalog,
            self.subscription.oid,
            lambda current: replace(current, **fields),  # type: ignore[arg-type]
        )

    def report(self, notice: Notice) -> None:
        """Write a line to the user who runs the subscription, and to the cluster's log."""
        worker = "apply" if self.table is None else "tablesync"
        backend_type = f"logical replication {worker} worker"
        self.session.cluster.log.report_error(notice, backend_type=backend_type)
        self.session.on_notice(notice)
