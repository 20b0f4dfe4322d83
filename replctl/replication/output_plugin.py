"""The input of an output plugin of logical decoding: transactions with their changes, and messages.

PostgreSQL's reorderbuffer.h and output_plugin.h.  Values are canonical texts, None is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from replctl.record import dataclass
from replctl.replication.update_transformation import Action

Values: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DecodedColumn:
    """A column: the type that its values are stored as, and the one that it is declared with.

    Attributes:
        type, typmod: as they are stored: of a domain, the base type.
        type_name: how messages call the declared type (`integer`).
        is_domain: the declared type is a domain, whose values have no type of their own to a
            plugin.
    """

    name: str
    type: str
    type_name: str
    type_oid: int
    typmod: int
    is_domain: bool = False

    @property
    def declared_typmod(self) -> int:
        """The modifier of the declared type."""
        return -1 if self.is_domain else self.typmod


@dataclass(frozen=True, slots=True)
class DecodedRelation:
    """A table as it was when a transaction was committed.

    Attributes:
        replica_identity: d(efault), n(othing), f(ull), i(ndex).
        identity: the places (from 0) of the columns that identify a row; None: all of them (FULL).
    """

    oid: int
    schema: str
    name: str
    columns: tuple[DecodedColumn, ...]
    replica_identity: str
    identity: frozenset[int] | None


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row inserted, updated or deleted."""

    lsn: int
    relation: DecodedRelation
    action: Action
    old: Values | None
    new: Values | None

    @property
    def old_key(self) -> Values | None:
        """Return what is known of the old row, NULL in what is not (ExtractReplicaIdentity): its
        identity, of an UPDATE only if that changes."""
        identity = self.relation.identity
        if self.old is None or identity is None:
            return self.old
        key = tuple(value if i in identity else None for i, value in enumerate(self.old))
        is_same = self.new is not None and all(self.old[i] == self.new[i] for i in identity)
        return None if is_same or not identity else key


@dataclass(frozen=True, slots=True)
class TruncateChange:
    """Tables emptied by one statement."""

    lsn: int
    relations: tuple[DecodedRelation, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A message of pg_logical_emit_message(); if it is not transactional, it is no
    transaction's."""

    lsn: int
    prefix: str
    content: bytes
    is_transactional: bool

    @property
    def end_lsn(self) -> int:
        """Return what a reader has seen with it."""
        return self.lsn


Change: TypeAlias = RowChange | TruncateChange | Message


@dataclass(frozen=True, slots=True)
class DecodedTransaction:
    """A committed transaction; one that only changed definitions has no changes.

    Attributes:
        commit_time: microseconds since 1970.
        origin, origin_lsn: the replication origin that it came from, if it was replicated, and
            where it was there.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    origin: str | None
    origin_lsn: int | None
    changes: tuple[Change, ...]

    @property
    def end_lsn(self) -> int:
        """Return what a reader has seen with it."""
        return self.commit_lsn


class OutputRow(NamedTuple):
    """A piece of output: where in the log, whose, and the output itself."""

    lsn: int
    xid: int
    data: bytes


class OutputPlugin(Protocol):
    """Turns what was committed into output.

    Attributes:
        is_binary: its output is not text.
        publications: it wants what these publish; None: everything.
    """

    @property
    def is_binary(self) -> bool: ...

    @property
    def publications(self) -> tuple[str, ...] | None: ...

    def output(self, decoded: DecodedTransaction | Message) -> Sequence[OutputRow]:
        """Return what is shown of a transaction, or of a message outside of one."""
        ...
