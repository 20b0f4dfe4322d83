"""Transaction blocks: the common state of the statements between BEGIN and COMMIT (xact.c)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime

from replctl.catalog.transaction import BlockXids
from replctl.errors import ActiveSqlTransaction


@dataclass
class Savepoint:
    """A savepoint of a block.

    Attributes:
        name: may occur several times; the newest counts.
        log_lsn: the end of the log when the savepoint was set.
        settings: the values that SET had given before the savepoint.
        versions: the versions of the tables that the block had written.
    """

    name: str
    log_lsn: int
    settings: dict[str, str]
    versions: dict[int, int]


@dataclass
class TransactionBlock:
    """The state of BEGIN ... COMMIT (lake.block implements the statements).

    Attributes:
        start: the result of now() in the block.
        settings: the values that SET gave before the block, by name.
        is_implicit: the block has the statements of one query string, without BEGIN.
        is_of_function: the block has a statement that calls a function, and the function's
            statements.
        is_read_only: the block may not change anything.
        has_failed: a statement failed; other statements are refused until ROLLBACK or ROLLBACK TO.
        changes_definitions: the block changes definitions that decoding reads.
        local_settings: settings changed by SET LOCAL, with the previous values (None: the default).
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
    has_failed: bool = False
    changes_definitions: bool = False
    local_settings: dict[str, str | None] = field(default_factory=dict)
    xids: BlockXids = field(default_factory=BlockXids)
    savepoints: list[Savepoint] = field(default_factory=list)
    locked: set[int] = field(default_factory=set)
    locks: ExitStack = field(default_factory=ExitStack)
    located: set[int] = field(default_factory=set)


def prevent_in_block(block: TransactionBlock | None, what: str) -> None:
    """Refuse a statement in a block that cannot be rolled back (PreventInTransactionBlock).

    Raises:
        ActiveSqlTransaction: a transaction block is open, or a function runs (25001).
    """
    if block is not None and block.is_of_function:
        raise ActiveSqlTransaction(f"{what} cannot be executed from a function")
    if block is not None:
        raise ActiveSqlTransaction(f"{what} cannot run inside a transaction block")
