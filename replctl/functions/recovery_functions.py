"""PostgreSQL's functions about recovery, by their names in pg_proc.prosrc (xlogfuncs.c).

The functions show whether this cluster is a standby, and which positions the standby has received
and replayed.  They also promote the standby, and synchronize its slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from replctl.catalog import state_schema
from replctl.catalog.pg_control import check_recovers, read_control
from replctl.catalog.promotion import WAIT_SECONDS, promote
from replctl.catalog.slotsync import pg_sync_replication_slots
from replctl.catalog.state_schema import is_committed
from replctl.errors import NumericValueOutOfRange
from replctl.functions.replication_functions import check_slot_permissions

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext


def _is_in_recovery(context: FunctionContext) -> int:
    return int(read_control(context.catalog.connection).is_in_recovery)


def _received_lsn(context: FunctionContext) -> int | None:
    """Return the LSN that the standby has received, and also replayed; None on a primary."""
    control = read_control(context.catalog.connection)
    return control.insert_lsn if control.is_in_recovery else None


def _replay_timestamp(context: FunctionContext) -> int | None:
    connection = context.catalog.connection
    if not read_control(connection).is_in_recovery:
        return None
    xact = state_schema.pg_xact
    newest = select(xact.c.commit_time).where(is_committed(xact))
    newest = newest.order_by(xact.c.commit_lsn.desc()).limit(1)
    time: int | None = connection.execute(newest).scalar_one_or_none()
    return time


def _is_paused(context: FunctionContext) -> int:
    check_recovers(context.catalog.connection)
    return 0


def _pause_state(context: FunctionContext) -> str:
    check_recovers(context.catalog.connection)
    return "not paused"


def _sync_slots(context: FunctionContext) -> str:
    check_slot_permissions(context)
    pg_sync_replication_slots(context.cluster)
    return ""


def _promote(context: FunctionContext, wait: int = 1, wait_seconds: int = WAIT_SECONDS) -> int:
    check_recovers(context.catalog.connection)
    if wait_seconds <= 0:
        raise NumericValueOutOfRange('"wait_seconds" must not be negative or zero')
    promote(context.cluster, wait_seconds if wait else 0)
    return 1


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_is_in_recovery": _is_in_recovery,
    "pg_last_wal_receive_lsn": _received_lsn,
    "pg_last_wal_replay_lsn": _received_lsn,
    "pg_last_xact_replay_timestamp": _replay_timestamp,
    "pg_is_wal_replay_paused": _is_paused,
    "pg_get_wal_replay_pause_state": _pause_state,
    "pg_promote": _promote,
    "pg_sync_replication_slots": _sync_slots,
}
