"""PostgreSQL's functions of replication slots and origins, by their names in pg_proc.prosrc
(slotfuncs.c, origin.c).

They take effect at once, whatever becomes of the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from replctl.catalog import pg_replication_slots as slots
from replctl.catalog.pg_replication_slots import ReplicationSlot
from replctl.catalog.transaction import insert_lsn
from replctl.errors import (
    FeatureNotSupported,
    InternalError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    ReservedName,
    UndefinedFile,
    UniqueViolation,
)
from replctl.lsn import INVALID_LSN, format_lsn

if TYPE_CHECKING:
    from replctl.catalog.functions import FunctionContext

_PLUGINS = ("pgoutput", "test_decoding")


def _create_slot(
    context: FunctionContext,
    name: str,
    plugin: str,
    temporary: int = 0,
    two_phase: int = 0,
    failover: int = 0,
) -> tuple[str, int]:
    slots.validate_slot_name(name)
    if temporary:
        raise FeatureNotSupported("temporary replication slots are not supported")
    with context.cluster.begin(write=True) as connection:
        lsn = insert_lsn(connection)
        slot = ReplicationSlot(
            name,
            plugin,
            context.catalog.database_oid,
            lsn,
            lsn,
            two_phase=bool(two_phase),
            failover=bool(failover),
        )
        if slots.find_slot(connection, name) is None and plugin not in _PLUGINS:
            raise UndefinedFile(f'could not access file "{plugin}": No such file or directory')
        slots.create_slot(connection, slot)
    return name, lsn


def _copy_slot(
    context: FunctionContext,
    source: str,
    name: str,
    temporary: int = 0,
    plugin: str | None = None,
) -> tuple[str, int]:
    slots.validate_slot_name(name)
    if temporary:
        raise FeatureNotSupported("temporary replication slots are not supported")
    with context.cluster.begin(write=True) as connection:
        old = slots.get_slot(connection, source)
        copied = replace(old, name=name, plugin=plugin or old.plugin, failover=False)
        slots.create_slot(connection, copied)
    return name, copied.confirmed_flush_lsn


def _drop_slot(context: FunctionContext, name: str) -> str:
    with context.cluster.begin(write=True) as connection:
        slots.get_slot(connection, name)
        slots.delete_slot(connection, name)
    return ""


def _advance_slot(context: FunctionContext, name: str, lsn: int) -> tuple[str, int]:
    if lsn == INVALID_LSN:
        raise InternalError("invalid target WAL LSN")
    with context.cluster.begin(write=True) as connection:
        slot = slots.get_slot(connection, name)
        slots.check_database(slot, context.catalog.database_oid)
        goal = min(lsn, insert_lsn(connection))
        if goal < slot.confirmed_flush_lsn:
            raise ObjectNotInPrerequisiteState(
                f"cannot advance replication slot to {format_lsn(goal)}, minimum is"
                f" {format_lsn(slot.confirmed_flush_lsn)}"
            )
        slots.advance_slot(connection, name, goal)
    return name, goal


def _create_origin(context: FunctionContext, name: str) -> int:
    if name.startswith("pg_") or name.lower() in ("any", "none"):
        raise _reserved(name)
    with context.cluster.begin(write=True) as connection:
        if slots.find_origin(connection, name) is not None:
            raise UniqueViolation(
                "duplicate key value violates unique constraint"
                ' "pg_replication_origin_roname_index"',
                detail=f"Key (roname)=({name}) already exists.",
            )
        slots.create_origin(connection, name, INVALID_LSN)
        return slots.get_origin(connection, name)


def _drop_origin(context: FunctionContext, name: str) -> str:
    with context.cluster.begin(write=True) as connection:
        slots.get_origin(connection, name)
        slots.drop_origin(connection, name)
    return ""


def _advance_origin(context: FunctionContext, name: str, lsn: int) -> str:
    with context.cluster.begin(write=True) as connection:
        slots.get_origin(connection, name)
        slots.advance_origin(connection, name, lsn, INVALID_LSN)
    return ""


def _origin_oid(context: FunctionContext, name: str) -> int | None:
    return slots.find_origin(context.catalog.connection, name)


def _origin_progress(context: FunctionContext, name: str, flush: int) -> int | None:
    slots.get_origin(context.catalog.connection, name)
    return slots.origin_progress(context.catalog.connection, name) or None


def _reserved(name: str) -> PostgresError:
    return ReservedName(
        f'replication origin name "{name}" is reserved',
        detail='Origin names "any", "none", and names starting with "pg_" are reserved.',
    )


#: prosrc -> function that returns a row.
ROW_FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "pg_create_logical_replication_slot": _create_slot,
    "pg_copy_logical_replication_slot_a": _copy_slot,
    "pg_copy_logical_replication_slot_b": _copy_slot,
    "pg_copy_logical_replication_slot_c": _copy_slot,
    "pg_replication_slot_advance": _advance_slot,
}

#: prosrc -> function.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_drop_replication_slot": _drop_slot,
    "pg_replication_origin_create": _create_origin,
    "pg_replication_origin_drop": _drop_origin,
    "pg_replication_origin_advance": _advance_origin,
    "pg_replication_origin_oid": _origin_oid,
    "pg_replication_origin_progress": _origin_progress,
}
