"""Record the nonces of replctl's commits to Delta tables, each before its write.

Nonces stay recorded after the end of the transaction, so that replctl also recognises a commit that
Spark finishes late.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, delete, insert, select, update

from replctl.catalog import state_schema
from replctl.catalog.state_schema import is_in_progress

_BYTES = 16


def make_nonces(connection: Connection, xid: int, relids: Collection[int]) -> dict[int, str]:
    """Record that a transaction will write some relations, and return a nonce for each of them."""
    nonces = {relid: secrets.token_hex(_BYTES) for relid in relids}
    insert_nonces(connection, ((nonce, relid, xid) for relid, nonce in nonces.items()))
    return nonces


def insert_nonces(connection: Connection, nonces: Iterable[tuple[str, int, int]]) -> None:
    """Record nonces, given as (nonce, OID of the relation, transaction)."""
    now = time.time_ns() // 1000
    rows = [
        {"nonce": nonce, "relid": relid, "xid": xid, "made": now} for nonce, relid, xid in nonces
    ]
    if rows:
        connection.execute(insert(state_schema.commit_nonce), rows)


def hand_over_nonces(connection: Connection, xid: int, to: int, relids: Collection[int]) -> None:
    """Assign a transaction's finished and pending writes into these relations to another
    transaction.
    """
    table = state_schema.commit_nonce
    mine = update(table).where(table.c.xid == xid, table.c.relid.in_(list(relids)))
    connection.execute(mine.values(xid=to))


def find_nonces(connection: Connection, nonces: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the relation and the transaction of each recorded nonce."""
    table = state_schema.commit_nonce
    query = select(table).where(table.c.nonce.in_(list(nonces)))
    return {str(row.nonce): (int(row.relid), int(row.xid)) for row in connection.execute(query)}


def trim_nonces(connection: Connection, before: int) -> None:
    """Remove the nonces of finished transactions.

    Args:
        before: remove only nonces made before this time, in microseconds since 1970.
    """
    table, xact = state_schema.commit_nonce, state_schema.pg_xact
    in_progress = select(xact.c.xid).where(is_in_progress(xact))
    connection.execute(delete(table).where(table.c.made < before, table.c.xid.not_in(in_progress)))
