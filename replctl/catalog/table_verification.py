"""Record the tables that `replctl verify` has found equal to the published tables."""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from replctl.catalog import state_schema
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Verification:
    """A comparison that found no difference.

    Attributes:
        time: microseconds since 1970.
        lsn: the table's position in the publisher's log.
    """

    time: int
    lsn: int


def verifications(connection: Connection, subscription_oid: int) -> dict[int, Verification]:
    """Return the last verification of each table of a subscription, by the table's OID."""
    table = state_schema.table_verification
    rows = connection.execute(select(table).where(table.c.subid == subscription_oid))
    return {int(row.relid): Verification(int(row.time), int(row.lsn)) for row in rows}


def put_verification(connection: Connection, subscription_oid: int, relid: int, lsn: int) -> None:
    """Record that a table is equal now to the published table at `lsn`."""
    noted = {"time": time.time_ns() // 1000, "lsn": lsn}
    statement = insert(state_schema.table_verification).values(
        subid=subscription_oid, relid=relid, **noted
    )
    connection.execute(
        statement.on_conflict_do_update(index_elements=["subid", "relid"], set_=noted)
    )


def delete_verification(connection: Connection, subscription_oid: int, relid: int) -> None:
    """Remove the record of a table's last verification."""
    table = state_schema.table_verification
    connection.execute(
        delete(table).where(table.c.subid == subscription_oid, table.c.relid == relid)
    )
