"""Nonces of replctl's commits to Delta tables: each is recorded before the write that it marks.

They are kept after the transaction, so that a commit which Spark finishes late is still known.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, delete, insert, select, update

from replctl.catalog import state_schema

_BYTES = 16


def make_nonces(connection: Connection, xid: int, relids: Collection[int]) -> dict[int, str]:
    """Record that a transaction is going to write some relations; the nonce for each of them."""
    nonces = {relid: secrets.token_hex(_BYTES) for relid in relids}
    insert_nonces(connection, ((nonce, relid, xid) for relid, nonce in nonces.items()))
    return nonces


def insert_nonces(connection: Connection, nonces: Iterable[tuple[str, int, int]]) -> None:
    """Record nonces, each with its relation and transaction."""
    now = time.time_ns() // 1000
    rows = [
        {"nonce": nonce, "relid": relid, "xid": xid, "made": now} for nonce, relid, xid in nonces
    ]
    if rows:
        connection.execute(insert(state_schema.commit_nonce), rows)


def hand_over_nonces(connection: Connection, xid: int, to: int, relids: Collection[int]) -> None:
    """Let what a transaction has written, or is still going to write, into some relations belong to
    another transaction."""
    table = state_schema.commit_nonce
    mine = update(table).where(table.c.xid == xid, table.c.relid.in_(list(relids)))
    connection.execute(mine.values(xid=to))


def find_nonces(connection: Connection, nonces: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return relation and transaction of each nonce that is known."""
    table = state_schema.commit_nonce
    query = select(table).where(table.c.nonce.in_(list(nonces)))
    return {str(row.nonce): (int(row.relid), int(row.xid)) for row in connection.execute(query)}


def trim_nonces(connection: Connection, before: int) -> None:
    """Forget the nonces of transactions that are over.

    Args:
        before: only those that were made before, in microseconds since 1970.
    """
    table, xact = state_schema.commit_nonce, state_schema.pg_xact
    in_progress = select(xact.c.xid).where(xact.c.status == "i")
    connection.execute(delete(table).where(table.c.made < before, table.c.xid.not_in(in_progress)))
