"""Synchronize slots: keep copies of a primary's failover slots on its standby, so that
subscriptions can continue there after a promotion (slotsync.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, Row, delete, insert, select

from replctl.catalog import state_schema
from replctl.catalog.auto_conf import read_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_replication_slots import ReplicationSlot, find_slot
from replctl.catalog.primary import open_primary, reading_primary
from replctl.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.lsn import format_lsn

_SYNCED = "This replication slot is being synchronized from the primary server."


def pg_sync_replication_slots(standby: Cluster) -> None:
    """Synchronize a standby's slots once with the primary's current slots.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby, a slot cannot be
            synchronized, or the primary lacks commits that the standby has.
        InvalidParameterValue: the standby is not configured for synchronization.
        ConnectionFailure: the primary cannot be reached.
    """
    if not standby.is_in_recovery:
        raise ObjectNotInPrerequisiteState(
            "replication slots can only be synchronized to a standby server"
        )
    settings = read_auto_conf(standby.path)
    if settings.get("hot_standby_feedback") != "on":
        raise InvalidParameterValue(
            'replication slot synchronization requires "hot_standby_feedback" to be enabled'
        )
    for name in ("primary_slot_name", "primary_conninfo"):
        if not settings.get(name):
            raise InvalidParameterValue(
                f'replication slot synchronization requires "{name}" to be set'
            )
    with open_primary(standby) as primary, reading_primary(standby, primary.path) as connection:
        problems = synchronize_slots(connection)
    if problems:
        raise problems[0]


def synchronize_slots(connection: Connection) -> list[PostgresError]:
    """Create, move and drop a standby's synchronized slots, and return the problems of skipped
    slots.  The transaction also reads the primary's catalog (Cluster.begin_with_source).

    The standby copies the whole log, so a new slot is immediately ready for failover.  There is no
    phase in which a temporary slot waits until the standby has caught up.
    """
    table = state_schema.pg_replication_slots
    remote = _failover_slots(connection)
    names = [row.slot_name for row in remote]
    connection.execute(delete(table).where(table.c.synced, table.c.slot_name.not_in(names)))
    position = read_control(connection).insert_lsn
    problems = []
    for row in remote:
        problem = _problem(find_slot(connection, row.slot_name), row, position)
        if problem is not None:
            problems.append(problem)
            continue
        connection.execute(delete(table).where(table.c.slot_name == row.slot_name))
        connection.execute(insert(table).values({**row._mapping, "synced": True}))
    return problems


def check_not_synced(connection: Connection, slot: ReplicationSlot) -> None:
    """Check that changes can be read from a slot.

    Raises:
        ObjectNotInPrerequisiteState: the slot is synchronized from the primary, and only the
            primary may read it (55000).
    """
    if slot.synced and read_control(connection).is_in_recovery:
        raise ObjectNotInPrerequisiteState(
            f'cannot use replication slot "{slot.name}" for logical decoding',
            detail=_SYNCED,
            hint="Specify another replication slot.",
        )


def check_droppable(connection: Connection, slot: ReplicationSlot) -> None:
    """Check that a slot can be dropped.

    Raises:
        ObjectNotInPrerequisiteState: the slot is synchronized, so the next synchronization would
            create it again (55000).
    """
    if slot.synced and read_control(connection).is_in_recovery:
        raise ObjectNotInPrerequisiteState(
            f'cannot drop replication slot "{slot.name}"', detail=_SYNCED
        )


def check_creatable(connection: Connection, *, failover: bool) -> None:
    """Check that a slot can be created in this cluster.

    Raises:
        FeatureNotSupported: the slot would be a failover slot on a standby (0A000).
    """
    if failover and read_control(connection).is_in_recovery:
        raise FeatureNotSupported(
            "cannot enable failover for a replication slot created on the standby"
        )


def check_alterable(connection: Connection, slot: ReplicationSlot, *, failover: bool) -> None:
    """Check that a slot can be changed (ReplicationSlotAlter).

    Args:
        failover: the change makes the slot a failover slot.

    Raises:
        ObjectNotInPrerequisiteState: the slot is synchronized, and only the primary may change it
            (55000).
        FeatureNotSupported: the slot would be a failover slot on a standby (0A000).
    """
    if not read_control(connection).is_in_recovery:
        return
    if slot.synced:
        raise ObjectNotInPrerequisiteState(
            f'cannot alter replication slot "{slot.name}"', detail=_SYNCED
        )
    if failover:
        raise FeatureNotSupported("cannot enable failover for a replication slot on the standby")


def _failover_slots(connection: Connection) -> Sequence[Row[Any]]:
    table = state_schema.pg_replication_slots.to_metadata(MetaData(), schema="source")
    query = select(table).where(table.c.failover, table.c.owner.is_(None))
    return connection.execute(query.order_by(table.c.slot_name)).all()


def _problem(
    local: ReplicationSlot | None, remote: Row[Any], position: int
) -> PostgresError | None:
    """Return the error that says why a slot of the primary cannot be synchronized now; None if it
    can.

    Args:
        position: the end of the standby's log.
    """
    if local is not None and not local.synced:
        return ObjectNotInPrerequisiteState(
            f'exiting from slot synchronization because same name slot "{local.name}" already'
            " exists on the standby"
        )
    if remote.confirmed_flush_lsn > position:
        return ObjectNotInPrerequisiteState(
            "skipping slot synchronization because the received slot sync LSN"
            f' {format_lsn(remote.confirmed_flush_lsn)} for slot "{remote.slot_name}" is ahead of'
            f" the standby position {format_lsn(position)}"
        )
    return None
