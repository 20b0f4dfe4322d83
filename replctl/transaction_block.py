"""Transaction blocks: the state that the statements between BEGIN and COMMIT share (xact.c)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import field
from datetime import datetime

from replctl.catalog.transaction import BlockXids
from replctl.errors import ActiveSqlTransaction, InFailedSqlTransaction
from replctl.record import dataclass


@dataclass
class Savepoint:
    """A savepoint of a block.

    Attributes:
        name: the name.  If several savepoints have it, the newest one counts.
        log_lsn: the end of the log when the savepoint was set.
        settings: the values from SET before the savepoint.
        local_settings: see TransactionBlock.
        versions: the versions of the tables that the block had written before the savepoint.
        definitions_lsn: see TransactionBlock.
        is_read_only: the block could not change anything before the savepoint.
    """

    name: str
    log_lsn: int
    settings: dict[str, str]
    local_settings: dict[str, str | None]
    versions: dict[int, int]
    definitions_lsn: int | None
    is_read_only: bool


@dataclass
class TransactionBlock:
    """The state of BEGIN ... COMMIT (lake.block implements the statements).

    Attributes:
        start: the result of now() in the block.
        settings: the values from SET before the block, by name.
        is_implicit: the block consists of the statements of one query string, without BEGIN.
        is_of_function: the block consists of a statement that calls a function, and the function's
            statements.
        is_read_only: the block may not change anything.
        has_snapshot: a statement that needs a snapshot has run (FirstSnapshotSet in snapmgr.c).
        has_failed: a statement failed; further statements are refused until ROLLBACK or ROLLBACK
            TO.
        is_ending: COMMIT is running.  If it fails, the block ends, too.
        changes_definitions: the block changes definitions that decoding reads.
        definitions_lsn: the end of the log before the block first changed definitions; None if it
            has changed none.
        local_settings: settings whose values end with the block (SET LOCAL), with the values that
            COMMIT restores (None: the default).
        xids: the transaction numbers of the block and its savepoints.
        savepoints: the open savepoints, the innermost last.
        locked: OIDs of relations that the block locks until its end.
        locks: the locks of these relations.
        located: OIDs of new relations with LOCATION, whose Delta tables COMMIT creates.
    """

    start: datetime
    settings: dict[str, str]
    is_implicit: bool = False
    is_of_function: bool = False
    is_read_only: bool = False
    has_snapshot: bool = False
    has_failed: bool = False
    is_ending: bool = False
    changes_definitions: bool = False
    definitions_lsn: int | None = None
    local_settings: dict[str, str | None] = field(default_factory=dict)
    xids: BlockXids = field(default_factory=BlockXids)
    savepoints: list[Savepoint] = field(default_factory=list)
    locked: set[int] = field(default_factory=set)
    locks: ExitStack = field(default_factory=ExitStack)
    located: set[int] = field(default_factory=set)


def prevent_in_block(block: TransactionBlock | None, what: str) -> None:
    """Refuse a statement that cannot be rolled back if a block is open (PreventInTransactionBlock).

    Raises:
        ActiveSqlTransaction: a transaction block is open, or a function runs (25001).
    """
    if block is not None and block.is_of_function:
        raise ActiveSqlTransaction(f"{what} cannot be executed from a function")
    if block is not None:
        raise ActiveSqlTransaction(f"{what} cannot run inside a transaction block")


def check_not_failed(block: TransactionBlock | None) -> None:
    """Check that no statement of the open block has failed.

    Raises:
        InFailedSqlTransaction: the block has failed (25P02).
    """
    if block is not None and block.has_failed:
        raise InFailedSqlTransaction(
            "current transaction is aborted, commands ignored until end of transaction block"
        )
