"""PostgreSQL's functions about replication slots, by their names in pg_proc.prosrc (slotfuncs.c,
logicalfuncs.c).

The functions take effect immediately, and ROLLBACK does not undo them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from replctl.catalog import pg_replication_slots as slots
from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_replication_slots import ReplicationSlot
from replctl.catalog.pg_stat_subscription_stats import reset_statistics
from replctl.catalog.pg_wal import NO_XID, enter_message
from replctl.catalog.slot_requirements import (
    check_decoding_requirements,
    create_slot_at_end,
    create_slot_within_limits,
)
from replctl.catalog.slotsync import check_creatable, check_droppable, check_not_synced
from replctl.catalog.transaction import insert_lsn
from replctl.catalog.worker import check_inactive
from replctl.errors import (
    ActiveSqlTransaction,
    FeatureNotSupported,
    InsufficientPrivilege,
    InternalError,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    UndefinedFile,
)
from replctl.lsn import INVALID_LSN, format_lsn

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from replctl.functions.function_context import FunctionContext
    from replctl.session import Session

_PLUGINS = ("pgoutput", "test_decoding")


def _create_slot(
    context: FunctionContext,
    name: str,
    plugin: str,
    temporary: int = 0,
    two_phase: int = 0,
    failover: int = 0,
) -> tuple[str, int]:
    check_slot_permissions(context)
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        check_creatable(connection, failover=bool(failover))
        slot = create_slot_at_end(
            connection,
            context.session.setting,
            name,
            plugin,
            context.catalog.database_oid,
            two_phase=bool(two_phase),
            failover=bool(failover),
            owner=_owner(context, temporary),
        )
        _check_creation(context, slot)
    return name, slot.confirmed_flush_lsn


def _owner(context: FunctionContext, is_temporary: int) -> str | None:
    """Return the key of the session that owns a new temporary slot; None for a permanent slot."""
    if not is_temporary:
        return None
    context.session.has_temporary_slots = True
    return context.session.key


def _check_creation(context: FunctionContext, slot: ReplicationSlot) -> None:
    """Raise the errors that PostgreSQL finds only after it has created a slot
    (CreateInitDecodingContext).
    """
    if slot.plugin not in _PLUGINS:
        raise UndefinedFile(f'could not access file "{slot.plugin}": No such file or directory')
    if context.catalog.xids.top is not None:
        raise ActiveSqlTransaction(
            "cannot create logical replication slot in transaction that has performed writes"
        )


def _copy_slot(
    context: FunctionContext,
    source: str,
    name: str,
    temporary: int | None = None,
    plugin: str | None = None,
) -> tuple[str, int]:
    check_slot_permissions(context)
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        check_decoding_requirements(context.session.setting)
        old = slots.get_slot(connection, source)
        if not old.is_logical:
            raise FeatureNotSupported(
                f'cannot copy logical replication slot "{source}" as a physical replication slot'
            )
        if old.restart_lsn == INVALID_LSN:
            raise ObjectNotInPrerequisiteState(
                "cannot copy a replication slot that doesn't reserve WAL"
            )
        copied = replace(
            old,
            name=name,
            plugin=plugin or old.plugin,
            database_oid=context.catalog.database_oid,
            two_phase=False,
            failover=False,
            synced=False,
            owner=_owner(context, old.temporary if temporary is None else temporary),
        )
        create_slot_within_limits(connection, copied, context.session.setting)
        _check_creation(context, copied)
    return name, copied.confirmed_flush_lsn


def _create_physical_slot(
    context: FunctionContext, name: str, immediately_reserve: int = 0, temporary: int = 0
) -> tuple[str, int | None]:
    """Create a physical slot, which a standby can use (replctl standby create --slot)."""
    check_slot_permissions(context)
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        lsn = insert_lsn(connection) if immediately_reserve else INVALID_LSN
        owner = _owner(context, temporary)
        slot = ReplicationSlot(name, "", 0, lsn, lsn, type="physical", owner=owner)
        create_slot_within_limits(connection, slot, context.session.setting)
    return name, lsn or None


def _copy_physical_slot(
    context: FunctionContext, source: str, name: str, temporary: int | None = None
) -> tuple[str, int | None]:
    check_slot_permissions(context)
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        old = slots.get_slot(connection, source)
        if old.is_logical:
            raise FeatureNotSupported(
                f'cannot copy physical replication slot "{source}" as a logical replication slot'
            )
        if old.restart_lsn == INVALID_LSN:
            raise ObjectNotInPrerequisiteState(
                "cannot copy a replication slot that doesn't reserve WAL"
            )
        owner = _owner(context, old.temporary if temporary is None else temporary)
        copied = replace(old, name=name, standby_home=None, owner=owner)
        create_slot_within_limits(connection, copied, context.session.setting)
    return name, None


def _drop_slot(context: FunctionContext, name: str) -> str:
    check_slot_permissions(context)
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        check_droppable(connection, acquired_slot(context.session, connection, name))
        slots.delete_slot(connection, name)
    return ""


def acquired_slot(session: Session, connection: Connection, name: str) -> ReplicationSlot:
    """Return a slot, and check that no other process uses it (ReplicationSlotAcquire).

    Raises:
        UndefinedObject: there is no slot of that name (42704).
        ObjectInUse: another process reads the slot, or another session owns it (55006).
        ObjectNotInPrerequisiteState: see `check_decoding_requirements`.
    """
    check_decoding_requirements(session.setting)
    slot = slots.get_slot(connection, name)
    check_inactive(session.cluster, connection, name)
    slots.check_not_owned(slot, session.key)
    return slot


def _advance_slot(context: FunctionContext, name: str, lsn: int) -> tuple[str, int]:
    check_slot_permissions(context)
    if lsn == INVALID_LSN:
        raise InternalError("invalid target WAL LSN")
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        slot = acquired_slot(context.session, connection, name)
        check_not_synced(connection, slot)
        if slot.restart_lsn == INVALID_LSN:
            raise ObjectNotInPrerequisiteState(
                f'replication slot "{name}" cannot be advanced',
                detail="This slot has never previously reserved WAL, or it has been invalidated.",
            )
        goal = min(lsn, insert_lsn(connection))
        if goal < slot.confirmed_flush_lsn:
            raise ObjectNotInPrerequisiteState(
                f"cannot advance replication slot to {format_lsn(goal)}, minimum is"
                f" {format_lsn(slot.confirmed_flush_lsn)}"
            )
        slots.advance_slot(connection, name, goal)
        slots.note_inactive(connection, name)
    return name, goal


def check_slot_permissions(context: FunctionContext) -> None:
    """Check that the role may use slots (CheckSlotPermissions).

    Raises:
        InsufficientPrivilege: the role may not use slots (42501).
    """
    role = find_role(context.catalog, context.role_name)
    if role is None or not (role.is_superuser or role.can_replicate):
        raise InsufficientPrivilege(
            "permission denied to use replication slots",
            detail="Only roles with the REPLICATION attribute may use replication slots.",
        )


def _reset_statistics(context: FunctionContext, name: str | None) -> str:
    with context.cluster.begin(write=True, in_recovery=True) as connection:
        if name is not None and slots.find_slot(connection, name) is None:
            raise InvalidParameterValue(f'replication slot "{name}" does not exist')
        slots.reset_statistics(connection, name)
    return ""


def _emit_message(
    context: FunctionContext, is_transactional: int, prefix: str, message: str, flush: int = 0
) -> int:
    return _logged_message(context, is_transactional, prefix, message.encode())


def _emit_bytes(
    context: FunctionContext, is_transactional: int, prefix: str, message: str, flush: int = 0
) -> int:
    content = bytes.fromhex(message.removeprefix("\\x"))
    return _logged_message(context, is_transactional, prefix, content)


def _logged_message(
    context: FunctionContext, is_transactional: int, prefix: str, content: bytes
) -> int:
    with context.session.write(changes_definitions=False) as catalog:
        xid = catalog.top_xid if is_transactional else NO_XID
        at = context.session.origin
        origin = None if at is None else at.name
        return enter_message(catalog, prefix, content, xid=xid, origin=origin)


def _reset_subscription_stats(context: FunctionContext, oid: int | None) -> str:
    if oid == 0:
        raise InvalidParameterValue(f"invalid subscription OID {oid}")
    with context.cluster.write(context.catalog.database_oid) as catalog:
        reset_statistics(catalog, oid)
    return ""


#: Functions that return a row, by their names in pg_proc.prosrc.
ROW_FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "pg_create_logical_replication_slot": _create_slot,
    "pg_copy_logical_replication_slot_a": _copy_slot,
    "pg_copy_logical_replication_slot_b": _copy_slot,
    "pg_copy_logical_replication_slot_c": _copy_slot,
    "pg_create_physical_replication_slot": _create_physical_slot,
    "pg_copy_physical_replication_slot_a": _copy_physical_slot,
    "pg_copy_physical_replication_slot_b": _copy_physical_slot,
    "pg_replication_slot_advance": _advance_slot,
}

#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_drop_replication_slot": _drop_slot,
    "pg_stat_reset_replication_slot": _reset_statistics,
    "pg_logical_emit_message_text": _emit_message,
    "pg_logical_emit_message_bytea": _emit_bytes,
    "pg_stat_reset_subscription_stats": _reset_subscription_stats,
}
