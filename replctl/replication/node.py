"""Define the interfaces of a subscription's two ends, publisher and subscriber, and the data that
they exchange.

A database of a cluster implements both interfaces (replctl.lake).  A PostgreSQL server could
implement them, too.  Rows stay where they are computed: the two ends exchange a handle (`Rows`)
that only the engine understands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, NewType, Protocol

from replctl.catalog.apply_batch import ApplyBatch
from replctl.catalog.column_origin import ColumnOrigin
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_subscription import SubscriptionRelation
from replctl.catalog.table_copy import EVERY_ROW, AppliedFilter, CopiedDefinition
from replctl.errors import Notice
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.replaced_column import ForeignColumns, OriginChange
from replctl.replication.table_definition import SchemaChange, TableDefinition
from replctl.replication.update_transformation import Action
from replctl.session_thread import CALLING_THREAD, SessionThread
from replctl.types.named_relation import NamedRelation

if TYPE_CHECKING:
    from replctl.replication.conflict_type import ConflictType

#: A handle for rows in the engine.  This package does not look into it.
Rows = NewType("Rows", object)


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A published column: its name, and its type at the publisher.

    Attributes:
        origin: identifies the column of an adopted table; None for other tables.
    """

    name: str
    type: str
    typmod: int
    origin: ColumnOrigin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RemoteRelation(NamedRelation):
    """The publisher's description of a published relation.

    Attributes:
        replica_identity: the names of the columns that identify old rows; None for FULL.
        filters: the row filters.  The publisher sends a row if it satisfies one of them.
        actions: the published actions.
        has_other_writers: programs that do not enforce the relation's key may write it.
        zone: the TimeZone by which the publisher shows values as text.
    """

    schema: str
    name: str
    columns: tuple[RemoteColumn, ...]
    replica_identity: tuple[str, ...] | None
    filters: tuple[AppliedFilter, ...] = (EVERY_ROW,)
    actions: frozenset[Action] = frozenset(Action)
    has_other_writers: bool = False
    zone: str = "UTC"

    @property
    def definition(self) -> CopiedDefinition:
        """Return the definition that a copy records.  Later runs compare it to detect changes."""
        return CopiedDefinition(
            frozenset(self.filters), tuple(column.name for column in self.columns)
        )


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE of published relations, given by schema and name."""

    position: int
    relations: tuple[RelationName, ...]
    cascade: bool = False
    restart_identity: bool = False


@dataclass(frozen=True, slots=True)
class RemoteTransaction:
    """A transaction of the publisher with changes for the subscription.

    Its changes have the positions from `first` to `last` in the batch, which follow the order of
    commits.  `origin` is the origin from which the changes were replicated to the publisher; None
    for the publisher's own changes.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    first: int
    last: int
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of rows that a write changes in a subscriber's tables.  Several changes of a row
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
        rows: the changed rows: position, action, old and new values of the relation's columns.
        positions: the positions in the batch at which the relation may have changes.
        thread: the thread in which the engine works with these rows.
    """

    relation: RemoteRelation
    rows: Rows
    positions: tuple[int, ...]
    thread: SessionThread = CALLING_THREAD


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The changes that the publisher committed in (from_lsn, to_lsn].

    Attributes:
        is_joined: for some transactions only their net effect is known.  It has the position of the
            last one of these transactions.  The batch must be applied as a whole.
    """

    from_lsn: int
    to_lsn: int
    transactions: tuple[RemoteTransaction, ...]
    changes: tuple[RelationChanges, ...]
    truncations: tuple[Truncation, ...]
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a relation that a copy reads: its LSN, the data with which the publisher finds
    the state again, and the digest of the publisher's commit there.
    """

    lsn: int
    state: dict[str, Any] = field(hash=False)
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """A summary of a relation's changes that the publisher has committed, but the subscriber has
    not applied.

    Attributes:
        rows: the number of rows that the transactions change, not counting row filters; None if
            unknown.
        oldest_commit_time: microseconds since 1970.
        size: the number of bytes that decoding must read.
    """

    transactions: int
    rows: int | None
    oldest_commit_time: int
    size: int


@dataclass(frozen=True, slots=True)
class TableRetention(NamedRelation):
    """The limits that a published table's retention sets for changes that a slot must still send.

    Attributes:
        schema, name: the names of the published table.
        is_lost: some of these changes were removed.
        until: the time after which the first of these changes may be removed, in microseconds
            since 1970; None if there is none.
        setting: the property of the Delta table that sets the limit.
        retention: the value of this property, in seconds.
    """

    schema: str
    name: str
    is_lost: bool
    until: int | None
    setting: str
    retention: float


class Slots(Protocol):
    """The interface to a publisher's log and slots."""

    def current_lsn(self, needed: Collection[RelationName] = ()) -> int:
        """Log the commits of other programs, and return the end of the log.

        Args:
            needed: tables, by schema and name, that must be readable.  If another table cannot be
                read, this is no error.
        """

    def digest_at(self, lsn: int) -> str | None:
        """Return the digest of the newest commit at or before an LSN; None if it is no longer
        known.  The digest covers all earlier commits.
        """

    def has_position(self, position: LogPosition) -> bool:
        """Return whether the log contains a position: its end is at or after the position, and its
        commits up to there are the same.
        """

    def applied_lsn(self, slot_name: str) -> int | None:
        """Return the LSN up to which a slot's subscription has reported changes as applied.

        Returns:
            the LSN, which is 0 before the first report; None if there is no slot.

        Raises:
            SlotInvalidated: required changes may be gone (55000).
        """

    def sendable_lsn(self, slot_name: str, needed: Collection[RelationName] = ()) -> int:
        """Return the end of the log.  For a failover slot, return the LSN that all standbys in
        synchronized_standby_slots have reached.

        `needed` is as in `current_lsn`.
        """

    def create(
        self, name: str, *, two_phase: bool, failover: bool, publications: Sequence[str]
    ) -> int:
        """Create a slot for a subscription to these publications, and return the LSN after which
        changes are sent.  An invalidated slot of this name is replaced.
        """

    def alter(
        self, name: str, *, failover: bool | None = None, two_phase: bool | None = None
    ) -> None:
        """Change properties of a slot.  None keeps a property."""

    def drop(self, name: str) -> None:
        """Drop a slot."""

    def start_replication(
        self, slot_name: str, client: str, application_name: str, publications: Sequence[str]
    ) -> None:
        """Acquire a slot for a subscription to these publications.  `client` is the subscription's
        name (`client_name`).

        Raises:
            ObjectInUse: another process holds the slot (55006).
        """

    def report_end(self, slot_name: str) -> None:
        """Record that the reader of a slot has reached the end of the log."""

    def end_replication(self, slot_name: str, *, stays: bool) -> None:
        """Release a slot.  If the process stays connected (`stays`), it is still shown as the
        slot's reader, but other processes may acquire the slot.
        """

    def dismiss(self, slot_name: str, client: str) -> None:
        """Remove the record that a process reads a slot for the subscription `client`."""

    def position(self, name: str) -> int:
        """Return the confirmed LSN of a slot."""

    def retention(self, slot_name: str) -> list[TableRetention]:
        """Return the tables whose owners have removed, or may remove, changes that a slot must
        still send.  If the slot does not exist, the list is empty.
        """

    def advance(self, name: str, lsn: int) -> None:
        """Confirm to a slot that all changes up to an LSN are written."""


class PublishedTables(Protocol):
    """The interface to the tables that a publisher publishes, and to snapshots of them."""

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Return the names of those publications that do not exist."""

    def publications_from_elsewhere(
        self, names: Sequence[str], known: Collection[RelationName]
    ) -> list[str]:
        """Return the names of those publications that have a table into which a subscription of the
        publisher writes.

        Args:
            known: tables, by schema and name, that are ignored.
        """

    def relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """Return the relations of the publications, sorted by name."""

    def definitions(self, names: Sequence[str], lsn: int | None = None) -> list[TableDefinition]:
        """Return the definitions with which a subscriber can create the published tables, sorted by
        name.

        Args:
            lsn: the position in the log at which they were valid; None for now.
        """

    def schema_changes(
        self, names: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[SchemaChange]:
        """Return the changes of published tables' definitions in (from_lsn, to_lsn], in order."""

    def origin_change(self, log: LogRange) -> OriginChange | None:
        """Return the origins of published columns at the ends of a range; None if no definition
        changed in it.
        """

    def snapshot(self, name: RelationName) -> Snapshot:
        """Take a snapshot of a relation to copy."""

    def copy(
        self, publications: Sequence[str], name: RelationName, snapshot: Snapshot
    ) -> AbstractContextManager[tuple[RemoteRelation, Rows]]:
        """Yield a relation's description at a snapshot, and its rows to copy.  Only this thread may
        read the rows."""

    def past_snapshot(self, name: RelationName, lsn: int) -> Snapshot:
        """Return the state of a relation at an LSN, for a comparison."""

    def relation_size(self, name: RelationName) -> int:
        """Return the size of a relation's rows in bytes."""


class Decoding(Protocol):
    """The interface to the changes in a publisher's log."""

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn] at which published definitions change, in order."""

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""

    def batch_ends(self, log: LogRange, max_changes: int) -> list[int]:
        """Return the ends of the batches of a range in which definitions do not change.

        Each batch ends with a transaction, the last batch with the range.  A batch has at most
        about `max_changes` changes, unless it is a single transaction.

        Args:
            max_changes: 0 for a single batch.
        """

    def changes(
        self,
        log: LogRange,
        has_target: Callable[[RemoteRelation], bool],
        max_parallel: int,
        joins: Callable[[RemoteRelation], bool] | None = None,
    ) -> AbstractContextManager[ChangeBatch]:
        """Return the changes of a range of the log in which definitions do not change.

        Args:
            has_target: returns whether the subscriber has a table for a relation's changes.
                Without a table the changes are sent, too, so that the subscriber reports the
                missing table.
            max_parallel: the maximum number of relations whose changes are decoded and applied in
                parallel.
            joins: returns whether the net effect of several transactions suffices for a relation's
                target.  None if it suffices for no relation.
        """

    def pending(self, log: LogRange) -> dict[RelationName, PendingChanges]:
        """Return summaries of a range's changes, by schema and name of the published relation,
        without decoding.
        """


class Publisher(Protocol):
    """The end of a subscription from which changes are read."""

    @property
    def slots(self) -> Slots:
        """Return the interface to the log and the slots."""

    @property
    def tables(self) -> PublishedTables:
        """Return the interface to the published tables."""

    @property
    def decoding(self) -> Decoding:
        """Return the interface to the changes in the log."""


class SubscriberState(Protocol):
    """The interface to the state of a subscription."""

    @property
    def origin_name(self) -> str:
        """Return the name of the replication origin that records the progress."""

    @property
    def synchronization_id(self) -> int:
        """Return the number by which the publisher identifies the subscriber."""

    @property
    def max_batch_changes(self) -> int:
        """Return the approximate maximum number of changes in a batch; 0 for no limit."""

    @property
    def max_parallel_tables(self) -> int:
        """Return the maximum number of tables that are written in parallel."""

    def applied_positions(self) -> dict[RelationName, int]:
        """Return the published tables whose changes are applied, by schema and name, each with the
        LSN after which its changes are required.
        """

    def relations(self) -> dict[RelationName, SubscriptionRelation]:
        """Return the tables of the subscription, by schema and name of the published table."""

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Record the new state of a table."""

    def check_targets(self) -> None:
        """Check that no other program has replaced rows that the subscription has applied.

        Raises:
            ObjectNotInPrerequisiteState: another program has replaced the rows of a table (55000).
            PostgresError: a table cannot be read.
        """

    def position(self) -> LogPosition:
        """Return the LSN in the publisher's log up to which changes are applied, with the digest of
        the publisher's commit there.
        """

    def advance(self, to: LogPosition) -> None:
        """Record progress up to `to`, after changes that write nothing."""

    def followed_lsn(self) -> int:
        """Return the LSN in the publisher's log up to which changes of definitions are repeated.

        It can be ahead of `position` by the one commit that has changed definitions and rows.
        """

    def restart(self, position: LogPosition) -> None:
        """Continue from a position of another log.  Undo a partly written batch of the old log.
        The caller must have made sure that no table depends on the old position.
        """

    def enable_two_phase(self) -> None:
        """Change the state of two-phase commit from pending to enabled."""

    def clear_skip(self, skipped: LogPosition | None) -> None:
        """Clear the LSN of the transaction to skip.

        Args:
            skipped: the position of the skipped transaction, which becomes the progress; None if
                none was skipped.
        """

    def count_conflicts(self, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts that have stopped the subscription."""

    def report(self, notice: Notice) -> None:
        """Report an event as an apply worker would log it."""

    def unfinished_batch(self) -> ApplyBatch | None:
        """Return the batch that an earlier process has not finished; None if there is none."""


class Copies(Protocol):
    """The interface for initial copies and reconciles of a subscription's tables."""

    def begin(self, relation: SubscriptionRelation, snapshot: Snapshot) -> SubscriptionRelation:
        """Record the snapshot that a copy of a table reads, and set the table's state to d."""

    def write(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Write the rows of a copy, or only the differences, exactly once.  Set the table's state
        to f, and return the number of written rows.
        """

    def give_up(self, relation: SubscriptionRelation) -> None:
        """Discard a failed copy, if no part of it is written."""

    def abandon(self) -> None:
        """Undo the partly written copy of the table."""


class Changes(Protocol):
    """The interface for applying changes to the tables of a subscription."""

    def has_target(self, remote: RemoteRelation) -> bool:
        """Return whether a local table can receive changes of `remote`."""

    def joins(self, remote: RemoteRelation) -> bool:
        """Return whether changes of several transactions may be composed before they are written.
        This requires that the publisher sends all columns of the target.
        """

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """Return the positions of changes whose transactions must be applied separately."""

    def apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Write the changes at positions from `first` to `last` exactly once, and set the progress
        to `to`.  Return the number of changed rows.

        Raises:
            ReplicationConflict: a change conflicts with the table's data.  No change is written.
        """


class ColumnOrigins(Protocol):
    """The interface to the origins of the values in the columns of a subscription's tables."""

    def follow(
        self, change: OriginChange, *, is_followed: bool
    ) -> dict[RelationName, ForeignColumns]:
        """Return the columns of published tables whose values the targets lack, because other
        programs have replaced or restored them.  If there are none, record the new origins.

        Args:
            is_followed: see `OriginChange.lacking`.
        """

    def is_own(self, target: RelationName) -> bool:
        """Return whether the Delta tables of a target are not adopted, so that ALTER TABLE can
        change the types of its columns.
        """

    def adding_statements(self, remote: RemoteRelation) -> str:
        """Return the statements that add published columns that their table lacks; "" for none."""


class Subscriber(Protocol):
    """The end of a subscription that receives changes: for all tables that are ready, or for one
    table that is being synchronized.
    """

    @property
    def state(self) -> SubscriberState:
        """Return the interface to the state of the subscription."""

    @property
    def copies(self) -> Copies:
        """Return the interface for copies."""

    @property
    def changes(self) -> Changes:
        """Return the interface for applying changes."""

    @property
    def origins(self) -> ColumnOrigins:
        """Return the interface to the origins of columns."""

    def change_columns(self) -> None:
        """Give the tables that apply writes the columns that ALTER TABLE has given them, for other
        programs to see.
        """

    def of_table(self, relation: SubscriptionRelation) -> Subscriber:
        """Return the same subscriber for the synchronization of one table."""
