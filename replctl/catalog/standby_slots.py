"""Implement synchronized_standby_slots: failover slots send only changes that the standbys already
have (StandbySlotsHaveCaughtup in slot.c).
"""

from __future__ import annotations

from sqlalchemy import Connection

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_replication_slots import find_slot
from replctl.catalog.worker import live_walsenders
from replctl.lsn import INVALID_LSN
from replctl.record import dataclass

_PARAMETER = '"synchronized_standby_slots"'


@dataclass(frozen=True, slots=True)
class Waiting:
    """The WARNING that says why changes are held back."""

    message: str
    detail: str
    hint: str


def sendable_lsn(
    cluster: Cluster, connection: Connection, setting: str, end: int
) -> tuple[int, Waiting | None]:
    """Return the position that all standbys have confirmed, and the WARNING about a standby that
    holds changes back; None if there is none.

    Args:
        setting: the names of the standbys' physical slots, separated by commas.
        end: the end of the log.
    """
    attached = live_walsenders(cluster, connection)
    position = end
    for name in (item.strip().strip('"') for item in setting.split(",")):
        if not name:
            continue
        confirmed, waiting = _confirmed(connection, name, end, is_attached=name in attached)
        if waiting is not None:
            return confirmed, waiting
        position = min(position, confirmed)
    return position, None


def _confirmed(
    connection: Connection, name: str, end: int, *, is_attached: bool
) -> tuple[int, Waiting | None]:
    slot = find_slot(connection, name)
    waits = (
        f'Logical replication is waiting on the standby associated with replication slot "{name}".'
    )
    if slot is None:
        return INVALID_LSN, Waiting(
            f'replication slot "{name}" specified in parameter {_PARAMETER} does not exist',
            waits,
            f'Create the replication slot "{name}" or amend parameter {_PARAMETER}.',
        )
    if slot.is_logical:
        return INVALID_LSN, Waiting(
            f'cannot specify logical replication slot "{name}" in parameter {_PARAMETER}',
            f'Logical replication is waiting for correction on replication slot "{name}".',
            f'Remove the logical replication slot "{name}" from parameter {_PARAMETER}.',
        )
    if slot.invalidation_reason is not None:
        return INVALID_LSN, Waiting(
            f'physical replication slot "{name}" specified in parameter {_PARAMETER} has been'
            " invalidated",
            waits,
            f'Drop and recreate the replication slot "{name}", or amend parameter {_PARAMETER}.',
        )
    if slot.confirmed_flush_lsn < end and not is_attached:
        return slot.confirmed_flush_lsn, Waiting(
            f'replication slot "{name}" specified in parameter {_PARAMETER} does not have'
            " active_pid",
            waits,
            f'Start the standby associated with the replication slot "{name}", or amend parameter'
            f" {_PARAMETER}.",
        )
    return slot.confirmed_flush_lsn, None
