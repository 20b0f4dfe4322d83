"""Record the tables that transactions in progress will write, so that other processes can finish or
undo them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, func, insert, select, update

from replctl.catalog import state_schema
from replctl.catalog.state_schema import is_in_progress
from replctl.catalog.transaction import Catalog, insert_xact
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Intent:
    """A table that a transaction writes.

    Attributes:
        version: the table's Delta version before the transaction; None if there was no table.
        is_whole: the transaction consists of a single commit of rows to this table.
    """

    relid: int
    version: int | None
    is_whole: bool


def insert_intent(connection: Connection, xid: int, intent: Intent) -> None:
    """Record that a transaction will write a table."""
    connection.execute(
        insert(state_schema.intent).values(
            xid=xid,
            relid=intent.relid,
            version=intent.version,
            is_whole=intent.is_whole,
            began=time.time_ns() // 1000,
        )
    )


def insert_abandoned(catalog: Catalog, xid: int, intents: Sequence[Intent]) -> None:
    """Record a transaction that is known only by its commits to tables, in the form of a
    transaction block of a dead process.  The next process that uses its tables undoes it.
    """
    insert_xact(catalog.connection, xid, catalog.database_oid, backend="ended", block_xid=xid)
    for intent in intents:
        insert_intent(catalog.connection, xid, intent)


def move_intent(connection: Connection, xid: int, relid: int, version: int) -> None:
    """Record that the transaction's own work on a table begins after `version`."""
    intent = state_schema.intent
    connection.execute(
        update(intent).where(intent.c.xid == xid, intent.c.relid == relid).values(version=version)
    )


def intents_of(connection: Connection, xid: int) -> list[Intent]:
    """Return the tables that a transaction writes."""
    rows = connection.execute(select(state_schema.intent).where(state_schema.intent.c.xid == xid))
    return [Intent(int(row.relid), row.version, bool(row.is_whole)) for row in rows]


def writes_others(connection: Connection, xid: int, relids: Collection[int]) -> bool:
    """Return whether a transaction writes tables other than those in `relids`."""
    return not {item.relid for item in intents_of(connection, xid)}.issubset(relids)


def versions_before_blocks(catalog: Catalog) -> dict[int, int | None]:
    """Return the tables that other transaction blocks write, each with its Delta version before all
    these blocks.
    """
    xact, intent = state_schema.pg_xact, state_schema.intent
    others = sorted(catalog.snapshot.in_progress)
    query = (
        select(intent.c.relid, intent.c.version)
        .join(xact, xact.c.xid == intent.c.xid)
        .where(xact.c.xid.in_(others), xact.c.block_xid.is_not(None))
        # Blocks of several dead processes may have written a table.  The earliest comes last and
        # wins
        .order_by(intent.c.version.desc().nulls_last())
    )
    if not others:
        return {}
    return {int(relid): version for relid, version in catalog.connection.execute(query)}


def list_intents(connection: Connection) -> list[Intent]:
    """Return the tables that any transaction in progress writes."""
    rows = connection.execute(select(state_schema.intent))
    return [Intent(int(row.relid), row.version, bool(row.is_whole)) for row in rows]


def oldest_intent(connection: Connection) -> int | None:
    """Return the time of the oldest intent of the cluster, in microseconds since 1970."""
    oldest: int | None = connection.execute(
        select(func.min(state_schema.intent.c.began))
    ).scalar_one()
    return oldest


def delete_intents(connection: Connection, xid: int, relids: Collection[int] | None = None) -> None:
    """Remove the intents of a finished transaction, for all tables or for some."""
    intent = state_schema.intent
    done = delete(intent).where(intent.c.xid == xid)
    connection.execute(done if relids is None else done.where(intent.c.relid.in_(list(relids))))


def writers_of(connection: Connection, backend: str, relids: Collection[int]) -> dict[int, str]:
    """Return transactions that have intents and belong to other processes: a dict from transaction
    number to process.

    Transactions of apply workers have no intents.  Their batches or copies say how to finish them.

    Args:
        backend: this process.
        relids: return only transactions that write any of these tables.
    """
    xact, intent = state_schema.pg_xact, state_schema.intent
    touching = select(intent.c.xid).where(intent.c.relid.in_(list(relids)))
    query = select(xact.c.xid, xact.c.backend).where(
        is_in_progress(xact), xact.c.backend != backend, xact.c.xid.in_(touching)
    )
    return {int(xid): str(name) for xid, name in connection.execute(query)}


def blocks_writing(connection: Connection, relids: Collection[int]) -> dict[int, str]:
    """Return the open transaction blocks that write any of these tables: a dict from transaction
    number to process.
    """
    xact, intent = state_schema.pg_xact, state_schema.intent
    query = (
        select(xact.c.xid, xact.c.backend)
        .join(intent, intent.c.xid == xact.c.xid)
        .where(
            intent.c.relid.in_(list(relids)), is_in_progress(xact), xact.c.block_xid.is_not(None)
        )
    )
    return {int(row.xid): str(row.backend) for row in connection.execute(query)}


def mark_abandoned(connection: Connection, xid: int) -> None:
    """Mark a failed transaction of this process as abandoned.  Its changes may be in the tables, so
    the next process that uses the tables undoes it.
    """
    xact, intent = state_schema.pg_xact, state_schema.intent
    connection.execute(update(xact).where(xact.c.xid == xid).values(backend="ended"))
    connection.execute(update(intent).where(intent.c.xid == xid).values(is_whole=False))
