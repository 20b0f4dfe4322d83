"""The two ends of a subscription, and what they exchange.

A database of a cluster is a node of both kinds (replctl.lake); a PostgreSQL server will be another.
Rows stay where they are computed: the nodes exchange a handle (`Rows`) that only the engine
understands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, NewType, Protocol

from replctl.catalog.apply_batch import ApplyBatch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_subscription import SubscriptionRelation
from replctl.catalog.table_copy import EVERY_ROW, AppliedFilter, CopiedDefinition
from replctl.errors import Notice
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.table_definition import SchemaChange, TableDefinition
from replctl.session_thread import CALLING_THREAD, SessionThread

if TYPE_CHECKING:
    from replctl.replication.conflict_type import ConflictType

#: Rows in the engine, opaque here.
Rows = NewType("Rows", object)


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A published column: name, and type at the publisher."""

    name: str
    type: str
    typmod: int


@dataclass(frozen=True, slots=True)
class RemoteRelation:
    """The publisher's description of a published relation.

    Attributes:
        replica_identity: the names of the columns that identify old rows, None for FULL.
        filters: row filters, one of which a row must satisfy to be sent or copied.
        actions: the published actions among I, U, D and T.
        has_other_writers: programs that do not enforce its key write it.
    """

    schema: str
    name: str
    columns: tuple[RemoteColumn, ...]
    replica_identity: tuple[str, ...] | None
    filters: tuple[AppliedFilter, ...] = (EVERY_ROW,)
    actions: frozenset[str] = frozenset("IUDT")
    has_other_writers: bool = False

    @property
    def relation_name(self) -> RelationName:
        """Return schema and name."""
        return RelationName(self.schema, self.name)

    @property
    def qualified_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def definition(self) -> CopiedDefinition:
        """Return the definition that a copy records, to detect later changes."""
        return CopiedDefinition(
            frozenset(self.filters), tuple(column.name for column in self.columns)
        )


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE of published relations, by (schema, name)."""

    position: int
    relations: tuple[RelationName, ...]
    cascade: bool = False
    restart_identity: bool = False


@dataclass(frozen=True, slots=True)
class RemoteTransaction:
    """A transaction of the publisher with changes for the subscription.

    Its changes have the positions from `first` to `last` in the batch, in the order of commits.
    `origin` is the origin from which they were replicated to the publisher; None for its own
    changes.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    first: int
    last: int
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of rows of a subscriber's tables that a write changes.  Several changes of one row
    in one write count once.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
        )


@dataclass(frozen=True, slots=True)
class RelationChanges:
    """The changes of one published relation in a batch.

    Attributes:
        relation: the publisher's description.
        rows: position, action, old and new values of its columns.
        positions: the positions of its possible changes.
        thread: the thread that works with its rows.
    """

    relation: RemoteRelation
    rows: Rows
    positions: tuple[int, ...]
    thread: SessionThread = CALLING_THREAD


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The changes of a range of the publisher's log: everything committed in (from_lsn, to_lsn].

    Attributes:
        is_joined: only the net effect of some transactions is known.  It has the position of the
            last of them, and the batch is applied as a whole.
    """

    from_lsn: int
    to_lsn: int
    transactions: tuple[RemoteTransaction, ...]
    changes: tuple[RelationChanges, ...]
    truncations: tuple[Truncation, ...]
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a relation that a copy reads: its LSN, the publisher's data for finding it
    again, and the digest of the publisher's commit there.
    """

    lsn: int
    state: dict[str, Any] = field(hash=False)
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """The changes of one relation that are committed on the publisher but not applied.

    Attributes:
        rows: the number of rows changed by the transactions, before row filters; None if unknown.
        oldest_commit_time: microseconds since 1970.
        size: number of bytes that decoding reads.
    """

    transactions: int
    rows: int | None
    oldest_commit_time: int
    size: int


@dataclass(frozen=True, slots=True)
class TableRetention:
    """The effect of a published table's retention on changes that a slot must still send.

    Attributes:
        schema, name: the names of the published table.
        is_lost: some changes are gone.
        until: the time when the first of them may be removed, in microseconds since 1970.
        setting: the property of the table that decides.
        retention: its value, in seconds.
    """

    schema: str
    name: str
    is_lost: bool
    until: int | None
    setting: str
    retention: float

    @property
    def relation_name(self) -> RelationName:
        """Return schema and name."""
        return RelationName(self.schema, self.name)


class Slots(Protocol):
    """The log of a publisher for its subscribers."""

    def current_lsn(self, needed: Collection[RelationName] = ()) -> int:
        """Return the end of the log, after entering the commits of other writers.

        Args:
            needed: tables, by schema and name, that must be readable; others need not be.
        """

    def digest_at(self, lsn: int) -> str | None:
        """Return the digest of the newest commit at or before an LSN, which covers all earlier
        commits; None if it is no longer known.
        """

    def has_position(self, position: LogPosition) -> bool:
        """Return whether the log contains a position: it reaches there, with the same commits up to
        it.
        """

    def applied_lsn(self, slot_name: str) -> int | None:
        """Return the LSN that the subscription of a slot has reported.

        Returns:
            the LSN; 0 before the first report; None if there is no slot.

        Raises:
            SlotInvalidated: required changes may be gone (55000).
        """

    def sendable_lsn(self, slot_name: str, needed: Collection[RelationName] = ()) -> int:
        """Return `current_lsn`.  For a failover slot, return the LSN that all standbys in
        synchronized_standby_slots have reached.
        """

    def create(
        self, name: str, *, two_phase: bool, failover: bool, publications: Sequence[str]
    ) -> int:
        """Create a slot for a subscription to some publications, replacing an invalidated one.
        Return the LSN from which changes are sent.
        """

    def alter(
        self, name: str, *, failover: bool | None = None, two_phase: bool | None = None
    ) -> None:
        """Change properties of a slot; None keeps a property."""

    def drop(self, name: str) -> None:
        """Drop a slot."""

    def start_replication(
        self, slot_name: str, client: str, application_name: str, publications: Sequence[str]
    ) -> None:
        """Acquire a slot for the subscription that `client` names, to some publications.

        Raises:
            ObjectInUse: another process holds it (55006).
        """

    def report_end(self, slot_name: str) -> None:
        """Record that the subscription that holds a slot has reached the end of the log."""

    def end_replication(self, slot_name: str, *, stays: bool) -> None:
        """Release a slot.  A process that stays connected is still shown at it, but yields it to
        others.
        """

    def dismiss(self, slot_name: str, client: str) -> None:
        """Remove the record that a process reads a slot for the subscription that `client`
        names."""

    def position(self, name: str) -> int:
        """Return the confirmed LSN of a slot."""

    def retention(self, slot_name: str) -> list[TableRetention]:
        """Return the tables whose owners have removed, or may later remove, changes that a slot
        must still send.  The list is empty if there is no such slot."""

    def advance(self, name: str, lsn: int) -> None:
        """Confirm that changes up to an LSN are written."""


class PublishedTables(Protocol):
    """The tables that a publisher publishes, and snapshots of them."""

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Return those of the publications that do not exist."""

    def publications_from_elsewhere(
        self, names: Sequence[str], known: Collection[RelationName]
    ) -> list[str]:
        """Return those of the publications with tables that subscriptions of the publisher write
        into.

        Args:
            known: tables by (schema, name) that do not matter.
        """

    def relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """Return the relations of the publications, by name."""

    def definitions(self, names: Sequence[str]) -> list[TableDefinition]:
        """Return the definitions, by name, with which a subscriber can create the published
        tables.
        """

    def schema_changes(
        self, names: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[SchemaChange]:
        """Return the changes of published definitions in (from_lsn, to_lsn], in order."""

    def snapshot(self, name: RelationName) -> Snapshot:
        """Take a snapshot of a relation to copy."""

    def copy(
        self, publications: Sequence[str], name: RelationName, snapshot: Snapshot
    ) -> tuple[RemoteRelation, Rows]:
        """Return the rows to copy of a relation at a snapshot."""

    def past_snapshot(self, name: RelationName, lsn: int) -> Snapshot:
        """Return the state of a relation at an LSN, for a comparison."""

    def relation_size(self, name: RelationName) -> int:
        """Return the size of the rows of a relation in bytes."""


class Decoding(Protocol):
    """The changes of a publisher's log."""

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn) at which published definitions change, in order."""

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""

    def batch_ends(self, log: LogRange, max_changes: int) -> list[int]:
        """Return the ends of the batches of a range in which definitions do not change.  Batches
        end with a transaction, and do not have many more changes than `max_changes` unless they are
        a single transaction.  The last one ends with the range.

        Args:
            max_changes: 0 for one batch.
        """

    def changes(
        self,
        log: LogRange,
        has_target: Callable[[RemoteRelation], bool],
        max_parallel: int,
        joins: Callable[[RemoteRelation], bool] | None = None,
    ) -> AbstractContextManager[ChangeBatch]:
        """Return the changes of a range in which definitions do not change.

        Args:
            has_target: returns whether the subscriber has a table for a relation's changes.  If
                not, the changes are sent anyway, so that it reports the missing table.
            max_parallel: the number of relations whose changes are decoded and applied in parallel.
            joins: returns whether only the net effect of transactions matters for the table that
                receives a relation's changes; None: each transaction matters.
        """

    def pending(self, log: LogRange) -> dict[RelationName, PendingChanges]:
        """Return a summary of a range's changes of published relations, by (schema, name), without
        decoding.
        """


class Publisher(Protocol):
    """A node that changes are read from."""

    @property
    def slots(self) -> Slots:
        """Return its log and slots."""

    @property
    def tables(self) -> PublishedTables:
        """Return its published tables."""

    @property
    def decoding(self) -> Decoding:
        """Return the interface for decoding its changes."""


class SubscriberState(Protocol):
    """The state of a subscription."""

    @property
    def origin_name(self) -> str:
        """The name of the replication origin that holds its progress."""

    @property
    def synchronization_id(self) -> int:
        """The number by which the publisher identifies the subscriber."""

    @property
    def max_batch_changes(self) -> int:
        """The approximate maximum number of changes in a batch; 0: no limit."""

    @property
    def max_parallel_tables(self) -> int:
        """The number of tables written in parallel."""

    def starts(self) -> dict[RelationName, int]:
        """Return the tables whose changes are applied, by (schema, name), each with the LSN after
        which changes count.
        """

    def relations(self) -> dict[RelationName, SubscriptionRelation]:
        """Return the tables of the subscription, by (schema, name)."""

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Record a table's new state."""

    def check_targets(self) -> None:
        """Check that the applied rows still exist.

        Raises:
            ObjectNotInPrerequisiteState: another program has replaced the rows of a table (55000).
            PostgresError: a table cannot be read.
        """

    def progress(self) -> int:
        """Return the publisher's LSN up to which changes are applied."""

    def position(self) -> LogPosition:
        """Return `progress` with the digest of the publisher's commit there."""

    def advance(self, to: LogPosition) -> None:
        """Record progress over changes that write nothing."""

    def restart(self, position: LogPosition) -> None:
        """Continue from a position of another log.  No table has the old position, and a batch of
        the old log is undone.
        """

    def enable_two_phase(self) -> None:
        """Change the two-phase state from pending to enabled."""

    def clear_skip(self, skipped: LogPosition | None) -> None:
        """Clear the LSN of the transaction to skip.

        Args:
            skipped: the position of the skipped transaction, which becomes the progress.
        """

    def count_conflicts(self, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts that have stopped a transaction."""

    def report(self, notice: Notice) -> None:
        """Report an event in the words of an apply worker's log."""

    def unfinished_batch(self) -> ApplyBatch | None:
        """Return the batch that a crash left unfinished."""


class Copies(Protocol):
    """Initial copies and reconciles of a subscription's tables."""

    def begin(self, relation: SubscriptionRelation, snapshot: Snapshot) -> SubscriptionRelation:
        """Record the snapshot that a copy reads, and set state d."""

    def write(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Write the rows of a copy, or its differences, once, count them, and set state f."""

    def give_up(self, relation: SubscriptionRelation) -> None:
        """Discard a failed copy if no part of it is written."""

    def abandon(self) -> None:
        """Undo the partly written synchronization of the one table."""


class Changes(Protocol):
    """Applies changes to the tables of a subscription."""

    def has_target(self, remote: RemoteRelation) -> bool:
        """Return whether a local table can receive changes of a relation."""

    def joins(self, remote: RemoteRelation) -> bool:
        """Return whether the changes of several transactions may be composed before they are
        written.  This requires that all columns of the target are sent.
        """

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """Return the positions of changes that cannot be composed with other transactions."""

    def apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Write the changes at positions from `first` to `last` once, count the rows, and set the
        progress to `to`.

        Raises:
            ReplicationConflict: a change does not fit; none is written.
        """


class Subscriber(Protocol):
    """A node that receives changes for one subscription: of the tables that are ready, or of one
    table that is being synchronized.
    """

    @property
    def state(self) -> SubscriberState:
        """Return the state of the subscription."""

    @property
    def copies(self) -> Copies:
        """Return the interface for its copies."""

    @property
    def changes(self) -> Changes:
        """Return the interface for applying changes."""

    def of_table(self, relation: SubscriptionRelation) -> Subscriber:
        """Return the same node, for the synchronization of one table."""
