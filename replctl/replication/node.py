"""The two ends of a subscription, and what they exchange.

A database of a cluster is a node of both kinds (replctl.lake); a PostgreSQL server will be another.
 Rows stay where they are computed: what passes between the nodes is a handle (`Rows`) that only the
 engine knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NewType, Protocol

from replctl.catalog.pg_subscription import ApplyBatch, SubscriptionRelation

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

    `replica_identity` are the names of the columns that identify old rows, None for FULL.
    """

    schema: str
    name: str
    columns: tuple[RemoteColumn, ...]
    replica_identity: tuple[str, ...] | None

    @property
    def qualified_name(self) -> str:
        return f"{self.schema}.{self.name}"


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
    commits.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RelationChanges:
    """The changes of one published relation in a batch.

    Attributes:
        relation: as the publisher describes it.
        rows: position, action, old and new values of its columns.
        positions: where it may have changes.
    """

    relation: RemoteRelation
    rows: Rows
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The changes of a range of the publisher's log: everything committed in (from_lsn, to_lsn]."""

    from_lsn: int
    to_lsn: int
    transactions: tuple[RemoteTransaction, ...]
    changes: tuple[RelationChanges, ...]
    truncations: tuple[Truncation, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a relation that a copy reads: its LSN, and what the publisher needs to find it
    again."""

    lsn: int
    state: dict[str, Any] = field(hash=False)


class Publisher(Protocol):
    """A node that changes are read from."""

    def current_lsn(self) -> int:
        """The end of the log, with everything that others have committed to published tables
        entered."""

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Those of the publications that do not exist."""

    def published_relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """The relations of the publications, by name."""

    def create_slot(self, name: str, *, two_phase: bool, failover: bool) -> int:
        """Make a slot; the LSN that changes are sent from."""

    def drop_slot(self, name: str) -> None:
        """Drop a slot."""

    def slot_position(self, name: str) -> int:
        """The LSN that a slot has confirmed."""

    def advance_slot(self, name: str, lsn: int) -> None:
        """Confirm that changes up to an LSN are written."""

    def snapshot(self, schema: str, name: str) -> Snapshot:
        """Fix a state of a relation to copy."""

    def copy(
        self, publications: Sequence[str], schema: str, name: str, snapshot: Snapshot
    ) -> tuple[RemoteRelation, Rows]:
        """The rows to copy of a relation at a snapshot."""

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """The LSNs in (from_lsn, to_lsn) at which what is published changes, in order."""

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """The LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""

    def changes(
        self,
        publications: Sequence[str],
        from_lsn: int,
        to_lsn: int,
        starts: dict[tuple[str, str], int],
        origin: str,
    ) -> AbstractContextManager[ChangeBatch]:
        """The changes of a range in which definitions do not change.

        Args:
            starts: the relations that are wanted, by (schema, name), each with the LSN after which
                its changes count.
            origin: any, or none for what was not replicated to the publisher.
        """


class Subscriber(Protocol):
    """A node that changes are written into, for one subscription."""

    def relations(self) -> dict[tuple[str, str], SubscriptionRelation]:
        """The tables of the subscription, by (schema, name)."""

    def put_state(self, relation: SubscriptionRelation) -> None:
        """Note a table's new state."""

    def begin_copy(
        self, relation: SubscriptionRelation, snapshot: Snapshot
    ) -> SubscriptionRelation:
        """Note what a copy reads: state d."""

    def copy(self, relation: SubscriptionRelation, remote: RemoteRelation, rows: Rows) -> None:
        """Write the rows of a copy, once: state f."""

    def progress(self) -> int:
        """The LSN of the publisher up to which changes are in."""

    def advance(self, to_lsn: int) -> None:
        """Note progress over changes that write nothing."""

    def clear_skip(self) -> None:
        """The transaction to skip has been skipped."""

    def unfinished_batch(self) -> ApplyBatch | None:
        """What a crash has left half written."""

    def isolated_positions(self, batch: ChangeBatch) -> set[int]:
        """The changes that cannot be composed with those of other transactions."""

    def apply(self, batch: ChangeBatch, first: int, last: int, from_lsn: int, to_lsn: int) -> None:
        """Write the changes at positions from `first` to `last`, once; progress is then `to_lsn`.

        Raises:
            ReplicationConflict: one of them does not fit; none is written.
        """
