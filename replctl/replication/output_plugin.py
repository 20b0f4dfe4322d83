"""Define the input of output plugins of logical decoding: transactions with their changes, and
messages.

PostgreSQL's reorderbuffer.h and output_plugin.h.  Values are canonical texts; None is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from replctl.record import dataclass
from replctl.replication.update_transformation import Action
from replctl.types.named_relation import NamedRelation

Values: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DecodedColumn:
    """A column with its storage type and its declared type.

    Attributes:
        type, typmod: the storage type; for a domain, the base type.
        type_name: the declared type as messages show it, such as `integer`.
        is_domain: the declared type is a domain.  Plugins treat it as its base type.
    """

    name: str
    type: str
    type_name: str
    type_oid: int
    typmod: int
    is_domain: bool = False

    @property
    def declared_typmod(self) -> int:
        """Return the modifier of the declared type."""
        return -1 if self.is_domain else self.typmod


@dataclass(frozen=True, slots=True)
class DecodedRelation(NamedRelation):
    """A table's description at the commit of a transaction.

    Attributes:
        replica_identity: d(efault), n(othing), f(ull), i(ndex).
        identity: the indexes (from 0) of the columns that identify a row; None for all columns
            (FULL).
    """

    oid: int
    schema: str
    name: str
    columns: tuple[DecodedColumn, ...]
    replica_identity: str
    identity: frozenset[int] | None


@dataclass(frozen=True, slots=True)
class RowChange:
    """An insertion, update or deletion of a row."""

    lsn: int
    relation: DecodedRelation
    action: Action
    old: Values | None
    new: Values | None

    @property
    def old_key(self) -> Values | None:
        """Return the old row with its known values and NULL in other columns; None if it is not
        logged.  PostgreSQL logs the identity of a deleted row, and of an updated row if the
        identity changes (ExtractReplicaIdentity).
        """
        identity = self.relation.identity
        if self.old is None or identity is None:
            return self.old
        key = tuple(value if i in identity else None for i, value in enumerate(self.old))
        is_same = self.new is not None and all(self.old[i] == self.new[i] for i in identity)
        return None if is_same or not identity else key


@dataclass(frozen=True, slots=True)
class TruncateChange:
    """The tables that one TRUNCATE has emptied."""

    lsn: int
    relations: tuple[DecodedRelation, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A message of pg_logical_emit_message().  A message that is not transactional belongs to no
    transaction, but may have an origin.
    """

    lsn: int
    prefix: str
    content: bytes
    is_transactional: bool
    origin: str | None = None

    @property
    def end_lsn(self) -> int:
        """Return the LSN that a reader has reached after the message."""
        return self.lsn


Change: TypeAlias = RowChange | TruncateChange | Message


@dataclass(frozen=True, slots=True)
class DecodedTransaction:
    """A committed transaction.  It has no changes if it has only changed definitions.

    Attributes:
        commit_time: microseconds since 1970.
        origin, origin_lsn: the replication origin of a replicated transaction, and its LSN there.
    """

    xid: int
    commit_lsn: int
    commit_time: int
    origin: str | None
    origin_lsn: int | None
    changes: tuple[Change, ...]

    @property
    def end_lsn(self) -> int:
        """Return the LSN that a reader has reached with the transaction."""
        return self.commit_lsn


class OutputRow(NamedTuple):
    """A piece of output with its LSN and the number of its transaction."""

    lsn: int
    xid: int
    data: bytes


class OutputPlugin(Protocol):
    """Converts transactions to output.

    Attributes:
        is_binary: the output is not text.
        publications: the plugin needs only the changes that these publications publish; None for
            all changes.
    """

    @property
    def is_binary(self) -> bool: ...

    @property
    def publications(self) -> tuple[str, ...] | None: ...

    def output(self, decoded: DecodedTransaction | Message) -> Sequence[OutputRow]:
        """Return the output for a transaction, or for a message outside of transactions."""
        ...
