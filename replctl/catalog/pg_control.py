"""Read and check the state of a cluster: a primary, a standby, or a primary that a standby has
replaced (pg_control, standby.signal).
"""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.prepared_query import PreparedQuery
from replctl.errors import CannotConnectNow, ObjectNotInPrerequisiteState, ReadOnlySqlTransaction
from replctl.own_command import own_command
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class ControlData:
    """The row of pg_control.

    Attributes:
        signing_key: the key for the marks of commits.
        home: the recorded directory of the cluster.
        timeline: one more than the number of promotions in the cluster's history.
        is_in_recovery: the cluster is a standby.
        promoted_to: the directory of the standby that has replaced the cluster; None if none has.
        revision: the catalog's revision; None if it is unknown.
    """

    system_identifier: int
    signing_key: bytes
    home: str
    insert_lsn: int
    timeline: int
    is_in_recovery: bool
    promoted_to: str | None
    revision: str | None


@cache
def _query() -> PreparedQuery:
    return PreparedQuery(select(state_schema.pg_control))


def read_control(connection: Connection) -> ControlData:
    """Return the state of the cluster."""
    (row,) = _query().rows(connection, {})
    return _control(row)


def control_now(driver: sqlite3.Connection) -> ControlData:
    """Return the committed state of the cluster, by a connection of the driver without an open
    transaction.
    """
    (row,) = _query().driver_rows(driver, {})
    return _control(row)


def _control(row: Row[Any]) -> ControlData:
    return ControlData(
        int(row.system_identifier),
        bytes.fromhex(row.signing_key),
        row.home,
        int(row.insert_lsn),
        int(row.timeline),
        bool(row.is_in_recovery),
        row.promoted_to,
        row.revision,
    )


def check_connectable(control: ControlData) -> None:
    """Check that sessions may be opened.

    Raises:
        CannotConnectNow: a standby has replaced the cluster (57P03).
    """
    if control.promoted_to is not None:
        raise CannotConnectNow(
            "the database system is not accepting connections",
            detail=f'The standby "{control.promoted_to}" was promoted in its place.',
            hint=f"Connect to the new primary: {own_command(home=control.promoted_to)}",
        )


def check_writable(
    connection: Connection, *, in_recovery: bool, after_promotion: bool = False
) -> None:
    """Check that the catalog may be changed.  Each transaction that writes begins with this check.

    Args:
        in_recovery: standbys may make the change, too.
        after_promotion: a primary that a standby has replaced may make the change, too.

    Raises:
        ReadOnlySqlTransaction: the cluster is a standby (25006).
        CannotConnectNow: a standby has replaced the cluster, or another program has upgraded the
            catalog (57P03).
    """
    control = read_control(connection)
    if not after_promotion:
        check_connectable(control)
    if control.revision not in (None, schema.REVISION):
        raise CannotConnectNow(
            f"the catalog was upgraded to revision {control.revision} while this program had it"
            " open",
            detail=f"This program supports revision {schema.REVISION}.",
            hint="Start the program again, with the version of replctl that upgraded the catalog.",
        )
    if control.is_in_recovery and not in_recovery:
        raise ReadOnlySqlTransaction("cannot assign TransactionIds during recovery")


def check_not_in_recovery(connection: Connection, what: str) -> None:
    """Check that the cluster is not a standby, before a function changes something.

    Raises:
        ReadOnlySqlTransaction: the cluster is a standby (25006).
    """
    if read_control(connection).is_in_recovery:
        raise ReadOnlySqlTransaction(f"cannot execute {what} in a read-only transaction")


def check_writes_log(connection: Connection) -> None:
    """Check that this cluster writes a log of its own.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is a standby (55000).
    """
    if read_control(connection).is_in_recovery:
        raise ObjectNotInPrerequisiteState(
            "recovery is in progress",
            hint="WAL control functions cannot be executed during recovery.",
        )


def check_recovers(connection: Connection) -> ControlData:
    """Check that the cluster is a standby, and return its state.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby (55000).
    """
    control = read_control(connection)
    if not control.is_in_recovery:
        raise ObjectNotInPrerequisiteState(
            "recovery is not in progress",
            hint="Recovery control functions can only be executed during recovery.",
        )
    return control


def check_timeline(connection: Connection, timeline: int) -> None:
    """Check that the timeline of a commit in a table is not newer than this cluster's.

    Raises:
        CannotConnectNow: a standby has replaced the cluster (57P03).
    """
    if timeline > read_control(connection).timeline:
        raise CannotConnectNow(
            "the database system is not accepting connections",
            detail=f"A standby of it was promoted: it writes on timeline {timeline}.",
            hint="Connect to the new primary.",
        )


def replace_by(connection: Connection, home: str) -> None:
    """Record that a promoted standby has replaced this cluster.  From now on the cluster refuses
    writes.
    """
    connection.execute(update(state_schema.pg_control).values(promoted_to=home))


def end_replacement(connection: Connection, home: str) -> None:
    """Record that the promotion of a standby needs nothing more from this cluster: the standby's
    slot no longer shows that another directory may complete it (is_replaced_by).
    """
    slot = state_schema.pg_replication_slots
    connection.execute(update(slot).where(slot.c.standby_home == home).values(standby_home=None))
