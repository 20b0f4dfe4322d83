"""The two ends of a subscription, and what they exchange.

A database of a cluster is a node of both kinds (replctl.lake); a PostgreSQL server will be another.
Rows stay where they are computed: what passes between the nodes is a handle (`Rows`) that only the
engine knows.
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
from replctl.lane import OWN_LANE, Lane
from replctl.record import dataclass
from replctl.replication.log_range import LogRange
from replctl.replication.table_definition import TableDefinition

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
    """A published relation as the publisher describes it.

    Attributes:
        replica_identity: the names of the columns that identify old rows, None for FULL.
        filters: its rows have to pass one of them to be sent, or copied.
        actions: what is published of it, of I, U, D and T.
        has_other_writers: programs write it that do not keep its key.
    """

    schema: str
    name: str
    columns: tuple[RemoteColumn, ...]
    replica_identity: tuple[str, ...] | None
    filters: tuple[AppliedFilter, ...] = (EVERY_ROW,)
    actions: frozenset[str] = frozenset("IUDT")
    has_other_writers: bool = False

    @property
    def qualified_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def definition(self) -> CopiedDefinition:
        """Return what a copy of it notes, to see later whether that has changed."""
        return CopiedDefinition(
            frozenset(self.filters), tuple(column.name for column in self.columns)
        )


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE of published relations, by (schema, name)."""

    position: int
    relations: tuple[tuple[str, str], ...]
    cascade: bool = False
    restart_identity: bool = False


@dataclass(frozen=True, slots=True)
class RemoteTransaction:
    """A transaction of the publisher that concerns the subscription.

    Its changes have the positions from `first` to `last` in the batch, which follow the order of
    commits.  `origin` is where they were replicated to the publisher from, None for its own.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    first: int
    last: int
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows of a subscriber's tables a write changes: several changes of one row that are
    written together count once."""

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
        relation: as the publisher describes it.
        rows: position, action, old and new values of its columns.
        positions: where it may have changes.
        lane: where work with its rows is done.
    """

    relation: RemoteRelation
    rows: Rows
    positions: tuple[int, ...]
    lane: Lane = OWN_LANE


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The changes of a range of the publisher's log: everything committed in (from_lsn, to_lsn].

    Attributes:
        is_joined: of some transactions only what they did together is known: it stands at the
            position of the last of them, and the batch is applied as a whole.
    """

    from_lsn: int
    to_lsn: int
    transactions: tuple[RemoteTransaction, ...]
    changes: tuple[RelationChanges, ...]
    truncations: tuple[Truncation, ...]
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a relation that a copy reads: its LSN, what the publisher needs to find it
    again, and the digest of the publisher's commit there."""

    lsn: int
    state: dict[str, Any] = field(hash=False)
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """The changes of one relation that are committed on the publisher and not applied.

    Attributes:
        rows: as many as the transactions change, row filters aside; None where that is not known.
        oldest_commit_time: microseconds since 1970.
        size: bytes that decoding them reads.
    """

    transactions: int
    rows: int | None
    oldest_commit_time: int
    size: int


@dataclass(frozen=True, slots=True)
class TableRetention:
    """The effect of the owner of a published table on changes that a slot has still to send.

    Attributes:
        schema, name: of the table as it is published.
        is_lost: some of them are gone.
        until: when the first of them may be removed, in microseconds since 1970.
        setting: the property of the table that says so.
        retention: its value, in seconds.
    """

    schema: str
    name: str
    is_lost: bool
    until: int | None
    setting: str
    retention: float


class Slots(Protocol):
    """The log of a publisher as far as its subscribers read it."""

    def current_lsn(self, needed: Collection[tuple[str, str]] = ()) -> int:
        """Return the end of the log, with everything that others have committed to tables entered.

        Args:
            needed: tables, by schema and name, that have to be readable; others only may be.
        """

    def digest_at(self, lsn: int) -> str | None:
        """Return the digest of the newest commit at or before an LSN, which covers all before it;
        None where it is not known any more."""

    def has_position(self, position: LogPosition) -> bool:
        """Return whether its log was at a position: it reaches there, and has the same commits up
        to it."""

    def applied_lsn(self, slot_name: str) -> int | None:
        """Return how far the subscription of a slot has said to be; 0, if it has not; None, if
        there is no slot.

        Raises:
            SlotInvalidated: changes that it needs may be gone (55000).
        """

    def sendable_lsn(self, slot_name: str, needed: Collection[tuple[str, str]] = ()) -> int:
        """As `current_lsn`, but by a failover slot nothing is sent that the standbys in
        synchronized_standby_slots do not have."""

    def create(
        self, name: str, *, two_phase: bool, failover: bool, publications: Sequence[str]
    ) -> int:
        """Make a slot for who subscribes to some publications, in the place of one that was
        invalidated; the LSN that changes are sent from."""

    def alter(
        self, name: str, *, failover: bool | None = None, two_phase: bool | None = None
    ) -> None:
        """Change properties of a slot; None leaves one as it is."""

    def drop(self, name: str) -> None:
        """Drop a slot."""

    def start_replication(
        self, slot_name: str, client: str, application_name: str, publications: Sequence[str]
    ) -> None:
        """Hold a slot, for the subscription that `client` names, to some publications.

        Raises:
            ObjectInUse: another process does (55006).
        """

    def report_end(self, slot_name: str) -> None:
        """The subscription that holds a slot is at the end of the log."""

    def end_replication(self, slot_name: str, *, stays: bool) -> None:
        """Let go of a slot; who stays is still seen at it, and gives way to others."""

    def dismiss(self, slot_name: str, client: str) -> None:
        """Nobody reads a slot for the subscription that `client` names any more."""

    def position(self, name: str) -> int:
        """Return the LSN that a slot has confirmed."""

    def retention(self, slot_name: str) -> list[TableRetention]:
        """Return the tables whose owners have removed changes that a slot has still to send, or may
        do so at some time; none, if there is no such slot."""

    def advance(self, name: str, lsn: int) -> None:
        """Confirm that changes up to an LSN are written."""


class PublishedTables(Protocol):
    """The tables that a publisher publishes, and snapshots of them."""

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Return those of the publications that do not exist."""

    def publications_from_elsewhere(
        self, names: Sequence[str], known: Collection[tuple[str, str]]
    ) -> list[str]:
        """Return those of the publications with tables that subscriptions of the publisher write
        into.

        Args:
            known: tables by (schema, name) that do not matter.
        """

    def relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """Return the relations of the publications, by name."""

    def definitions(self, names: Sequence[str]) -> list[TableDefinition]:
        """Return what tables like those of the publications are made of, by name."""

    def snapshot(self, schema: str, name: str) -> Snapshot:
        """Fix a state of a relation to copy."""

    def copy(
        self, publications: Sequence[str], schema: str, name: str, snapshot: Snapshot
    ) -> tuple[RemoteRelation, Rows]:
        """Return the rows to copy of a relation at a snapshot."""

    def past_snapshot(self, schema: str, name: str, lsn: int) -> Snapshot:
        """Return the state of a relation that an LSN has, to compare with."""

    def relation_size(self, schema: str, name: str) -> int:
        """Return bytes that the rows of a relation take up."""


class Decoding(Protocol):
    """The changes of a publisher's log."""

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn) at which what is published changes, in order."""

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""

    def batch_ends(self, log: LogRange, max_changes: int) -> list[int]:
        """Return where to end the batches of a range in which definitions do not change: at ends of
        transactions, so that none has many more changes than asked for unless it is a single
        transaction.  The last one is the end of the range.

        Args:
            max_changes: 0 for one batch.
        """

    def changes(
        self,
        log: LogRange,
        opens: Callable[[RemoteRelation], bool],
        max_parallel: int,
        joins: Callable[[RemoteRelation], bool] | None = None,
    ) -> AbstractContextManager[ChangeBatch]:
        """Return the changes of a range in which definitions do not change.

        Args:
            opens: whether the subscriber has a table that takes a relation's changes; if it has
                not, they are sent, for it to report that.
            max_parallel: of so many relations the changes are found, and applied, side by side.
            joins: whether for the table that takes a relation's changes only what transactions do
                together matters; None: each of them matters.
        """

    def pending(self, log: LogRange) -> dict[tuple[str, str], PendingChanges]:
        """Return what a range has, by (schema, name), of relations that are published; nothing is
        decoded."""


class Publisher(Protocol):
    """A node that changes are read from."""

    @property
    def slots(self) -> Slots:
        """Its log and slots."""

    @property
    def tables(self) -> PublishedTables:
        """Its published tables."""

    @property
    def decoding(self) -> Decoding:
        """Its changes."""


class SubscriberState(Protocol):
    """How far a subscription is."""

    @property
    def origin_name(self) -> str:
        """The name of the replication origin that holds its progress."""

    @property
    def synchronization_id(self) -> int:
        """The number by which the publisher tells subscribers apart."""

    @property
    def max_batch_changes(self) -> int:
        """How many changes it takes at once, about; 0: as many as there are."""

    @property
    def max_parallel_tables(self) -> int:
        """How many tables it writes side by side."""

    def starts(self) -> dict[tuple[str, str], int]:
        """Return the tables whose changes it takes, by (schema, name), each with the LSN after
        which they count."""

    def relations(self) -> dict[tuple[str, str], SubscriptionRelation]:
        """Return the tables of the subscription, by (schema, name)."""

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Note a table's new state."""

    def check_targets(self) -> None:
        """Check that the rows that were applied are still in the tables.

        Raises:
            ObjectNotInPrerequisiteState: another program has replaced those of a table (55000).
            PostgresError: a table cannot be read.
        """

    def progress(self) -> int:
        """Return the LSN of the publisher up to which changes are in."""

    def position(self) -> LogPosition:
        """As `progress`, with the digest of the publisher's commit there."""

    def advance(self, to: LogPosition) -> None:
        """Note progress over changes that write nothing."""

    def restart(self, position: LogPosition) -> None:
        """Go on from a position of another log: no table is where the former position was, and a
        batch of the former log is undone."""

    def enable_two_phase(self) -> None:
        """Two-phase commit is not pending any more."""

    def clear_skip(self, skipped: LogPosition | None) -> None:
        """No transaction is to be skipped any more.

        Args:
            skipped: that of the transaction that has been; it is progress.
        """

    def count_conflicts(self, counts: Mapping[ConflictType, int]) -> None:
        """Count conflicts that have stopped a transaction."""

    def report(self, notice: Notice) -> None:
        """Say what happens, in the words of an apply worker's log."""

    def unfinished_batch(self) -> ApplyBatch | None:
        """Return what a crash has left half written."""


class Copies(Protocol):
    """Initial copies and reconciles of a subscription's tables."""

    def begin(self, relation: SubscriptionRelation, snapshot: Snapshot) -> SubscriptionRelation:
        """Note what a copy reads: state d."""

    def write(
        self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows
    ) -> RowCounts:
        """Write the rows of a copy, or its differences, once, and count them: state f."""

    def give_up(self, relation: SubscriptionRelation) -> None:
        """Forget a copy that has failed, if none of it is written."""

    def abandon(self) -> None:
        """Undo what the synchronization of the one table has written in part."""


class Changes(Protocol):
    """Changes that a subscription applies to its tables."""

    def opens(self, remote: RemoteRelation) -> bool:
        """Return whether there is a table that changes of a relation fit."""

    def joins(self, remote: RemoteRelation) -> bool:
        """Return whether for the table that takes changes of a relation only what transactions do
        together matters: all that it has is sent."""

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """Return the changes that cannot be composed with those of other transactions."""

    def apply(
        self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        """Write the changes at positions from `first` to `last`, once, and count the rows; progress
        is then `to`.

        Raises:
            ReplicationConflict: one of them does not fit; none is written.
        """


class Subscriber(Protocol):
    """A node that changes are written into, for one subscription: those of the tables that are
    ready, or of one that is being synchronized."""

    @property
    def state(self) -> SubscriberState:
        """How far the subscription is."""

    @property
    def copies(self) -> Copies:
        """Its copies."""

    @property
    def changes(self) -> Changes:
        """The changes that it applies."""

    def of_table(self, relation: SubscriptionRelation) -> Subscriber:
        """Return the same node, for the synchronization of one table."""
