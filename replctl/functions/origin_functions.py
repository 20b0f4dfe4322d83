"""PostgreSQL's functions about replication origins, by their names in pg_proc.prosrc (origin.c).

The functions take effect immediately, and ROLLBACK does not undo them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replctl.catalog import pg_replication_slots as origins
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_replication_slots import SessionOrigin
from replctl.catalog.worker import origin_pid
from replctl.errors import (
    ObjectInUse,
    ObjectNotInPrerequisiteState,
    ReadOnlySqlTransaction,
    ReservedName,
    UniqueViolation,
)
from replctl.lsn import INVALID_LSN

#: Ends of the names of functions that only read, and therefore may run on a standby.
_READING = ("_oid", "_progress", "_is_setup", "_status")

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from replctl.functions.function_context import FunctionContext


def _create(context: FunctionContext, name: str) -> int:
    if name.startswith("pg_") or name.lower() in ("any", "none"):
        raise ReservedName(
            f'replication origin name "{name}" is reserved',
            detail='Origin names "any", "none", and names starting with "pg_" are reserved.',
        )
    with context.cluster.begin(write=True) as connection:
        if origins.find_origin(connection, name) is not None:
            raise UniqueViolation(
                "duplicate key value violates unique constraint"
                ' "pg_replication_origin_roname_index"',
                detail=f"Key (roname)=({name}) already exists.",
            )
        origins.create_origin(connection, name, LogPosition(INVALID_LSN))
        return origins.get_origin(connection, name)


def _drop(context: FunctionContext, name: str) -> str:
    with context.cluster.begin(write=True) as connection:
        oid = origins.get_origin(connection, name)
        pid = _active_pid(context, connection, name)
        if pid is not None:
            raise ObjectInUse(
                f"could not drop replication origin with ID {oid}, in use by PID {pid}"
            )
        origins.drop_origin(connection, name)
    return ""


def _advance(context: FunctionContext, name: str, lsn: int) -> str:
    with context.cluster.begin(write=True) as connection:
        _check_free(context, connection, name)
        origins.put_origin(connection, name, LogPosition(lsn), None)
    return ""


def _check_free(context: FunctionContext, connection: Connection, name: str) -> None:
    """Check that no session has set up the origin, and that no worker applies changes for it."""
    oid = origins.get_origin(connection, name)
    pid = _active_pid(context, connection, name)
    if pid is not None:
        raise ObjectInUse(f"replication origin with ID {oid} is already active for PID {pid}")


def _active_pid(context: FunctionContext, connection: Connection, name: str) -> int | None:
    owner = origins.origin_owner(context.cluster, connection, name)
    if owner is not None:
        return origins.owner_pid(owner)
    return origin_pid(context.cluster, connection, name)


def _oid(context: FunctionContext, name: str) -> int | None:
    return origins.find_origin(context.catalog.connection, name)


def _progress(context: FunctionContext, name: str, flush: int) -> int | None:
    origins.get_origin(context.catalog.connection, name)
    return origins.origin_progress(context.catalog.connection, name) or None


# -- the origin of a session


def _session_setup(context: FunctionContext, name: str) -> str:
    with context.cluster.begin(write=True) as connection:
        origins.get_origin(connection, name)
        if context.session.origin is not None:
            raise ObjectNotInPrerequisiteState(
                "cannot setup replication origin when one is already setup"
            )
        _check_free(context, connection, name)
        origins.own_origin(connection, name, context.session.key)
    context.session.origin = SessionOrigin(name)
    return ""


def _session_is_setup(context: FunctionContext) -> int:
    return int(context.session.origin is not None)


def _session_origin(context: FunctionContext) -> SessionOrigin:
    origin = context.session.origin
    if origin is None:
        raise ObjectNotInPrerequisiteState("no replication origin is configured")
    return origin


def _session_reset(context: FunctionContext) -> str:
    origin = _session_origin(context)
    with context.cluster.begin(write=True) as connection:
        origins.own_origin(connection, origin.name, None)
    context.session.origin = None
    return ""


def _session_progress(context: FunctionContext, flush: int) -> int | None:
    return _progress(context, _session_origin(context).name, flush)


def _xact_setup(context: FunctionContext, lsn: int, timestamp: int) -> str:
    origin = _session_origin(context)
    origin.lsn, origin.timestamp = lsn, timestamp
    return ""


def _xact_reset(context: FunctionContext) -> str:
    if context.session.origin is not None:
        context.session.origin = SessionOrigin(context.session.origin.name)
    return ""


def _show_status(context: FunctionContext) -> list[tuple[Any, ...]]:
    return origins.origin_status(context.catalog.connection)


def _outside_recovery(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, refused on a standby unless it only reads."""

    def call(context: FunctionContext, *args: Any) -> Any:
        if context.cluster.is_in_recovery and not name.endswith(_READING):
            raise ReadOnlySqlTransaction("cannot manipulate replication origins during recovery")
        return function(context, *args)

    return call


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_replication_origin_create": _create,
    "pg_replication_origin_drop": _drop,
    "pg_replication_origin_advance": _advance,
    "pg_replication_origin_oid": _oid,
    "pg_replication_origin_progress": _progress,
    "pg_replication_origin_session_setup": _session_setup,
    "pg_replication_origin_session_reset": _session_reset,
    "pg_replication_origin_session_is_setup": _session_is_setup,
    "pg_replication_origin_session_progress": _session_progress,
    "pg_replication_origin_xact_setup": _xact_setup,
    "pg_replication_origin_xact_reset": _xact_reset,
}
_SET_FUNCTIONS: dict[str, Callable[..., Any]] = {"pg_show_replication_origin_status": _show_status}

#: The functions by their names in pg_proc.prosrc.
FUNCTIONS = {name: _outside_recovery(name, function) for name, function in _FUNCTIONS.items()}

#: Functions that return a set, by their names in pg_proc.prosrc.
SET_FUNCTIONS = {
    name: _outside_recovery(name, function) for name, function in _SET_FUNCTIONS.items()
}
