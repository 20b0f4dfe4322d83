"""Compute how much of the log slots may retain, and invalidate slots that retain too much
(GetWALAvailability and KeepLogSeg in xlog.c, InvalidateObsoleteReplicationSlots in slot.c).

The log is measured in segments like PostgreSQL's, although it has no files.  A slot is lost when
VACUUM or CHECKPOINT finds that it exceeds the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from sqlalchemy import Connection, update

from replctl.catalog import state_schema
from replctl.catalog.pg_replication_slots import ReplicationSlot, list_slots
from replctl.catalog.transaction import insert_lsn
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lsn import INVALID_LSN, format_lsn
from replctl.record import dataclass
from replctl.types.quote import quote_literal

WAL_REMOVED = "wal_removed"
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WalLimits:
    """The settings that limit the log, in segments. max_slot_wal_keep_size is None without
    limit.
    """

    segment_size: int
    max_slot_keep: int | None
    keep: int
    max_wal: int

    @staticmethod
    def of(setting: Callable[[str], str]) -> WalLimits:
        """Return the limits that the settings give."""
        size = int(setting("wal_segment_size"))

        def segments(name: str) -> int:
            return int(setting(name)) // (size // _MEGABYTE)

        is_limited = int(setting("max_slot_wal_keep_size")) >= 0
        return WalLimits(
            size,
            segments("max_slot_wal_keep_size") if is_limited else None,
            segments("wal_keep_size"),
            segments("max_wal_size"),
        )


@dataclass(frozen=True, slots=True)
class WalAvailability:
    """The availability of the log for a slot, as in pg_replication_slots.

    Attributes:
        status: reserved, extended, unreserved (beyond the limit) or lost; None if the slot retains
            nothing.
        safe_size: bytes by which the log may grow before the slot can be lost.  None if the slot is
            lost, if there is no limit, or if owners of adopted tables decide.
        excess: bytes by which the slot exceeds the limit.
        is_close: the slot will exceed the limit with the next segment of the log.
    """

    status: str | None
    safe_size: int | None
    excess: int = 0
    is_close: bool = False


def wal_availability(
    connection: Connection, slot: ReplicationSlot, limits: WalLimits
) -> WalAvailability:
    """Return whether the log for a slot is available, and for how long."""
    if slot.invalidation_reason is not None:
        return WalAvailability("lost", None)
    if slot.restart_lsn == INVALID_LSN:  # the slot does not retain anything yet
        return WalAvailability(None, None)
    end = insert_lsn(connection)
    if slot.retention is not None:  # owners decide, so no size can be given
        return WalAvailability(slot.retention, None)
    size = limits.segment_size
    current, target = end // size, slot.restart_lsn // size
    safe = None
    if limits.max_slot_keep is not None:
        safe = (target + max(limits.max_slot_keep, limits.keep) + 1) * size - end
    oldest = oldest_kept_segment(connection, limits)
    if target < oldest:
        return WalAvailability("unreserved", safe, oldest * size - slot.restart_lsn)
    is_extended = target < max(current - limits.max_wal - 1, 1)
    is_close = safe is not None and safe < size and target < current
    return WalAvailability("extended" if is_extended else "reserved", safe, is_close=is_close)


def oldest_kept_segment(connection: Connection, limits: WalLimits) -> int:
    """Return the oldest segment of the log that wal_keep_size retains, or slots within their
    limit.
    """
    current = insert_lsn(connection) // limits.segment_size
    held = [slot.restart_lsn for slot in list_slots(connection) if slot.restart_lsn != INVALID_LSN]
    oldest = min([current, *(lsn // limits.segment_size for lsn in held)])
    if limits.max_slot_keep is not None:
        oldest = max(oldest, current - limits.max_slot_keep)
    return min(oldest, max(current - limits.keep, 1)) if limits.keep else oldest


def invalidate_slot(connection: Connection, slot: ReplicationSlot, reason: str) -> ReplicationSlot:
    """Invalidate a slot, so that it retains nothing, and return its new state."""
    table = state_schema.pg_replication_slots
    connection.execute(
        update(table)
        .where(table.c.slot_name == slot.name)
        .values(invalidation_reason=reason, restart_lsn=INVALID_LSN)
    )
    return replace(slot, invalidation_reason=reason, restart_lsn=INVALID_LSN)


def invalidate_obsolete_slots(
    connection: Connection, limits: WalLimits, held: Collection[str]
) -> list[tuple[ReplicationSlot, WalAvailability]]:
    """Invalidate the slots that retain more than they may, and return them with their availability.

    Args:
        held: names of the slots with an active reader.  They are skipped. (PostgreSQL would end
            their readers.)
    """
    lost = []
    for slot in list_slots(connection):
        found = wal_availability(connection, slot, limits)
        if found.status == "unreserved" and found.excess and slot.name not in held:
            lost.append((slot, found))
    for slot, _availability in lost:
        invalidate_slot(connection, slot, WAL_REMOVED)
    return lost


def excess_detail(slot: ReplicationSlot, availability: WalAvailability) -> str:
    """Return PostgreSQL's DETAIL that says by how much a slot exceeds the limit."""
    noun = "byte" if availability.excess == 1 else "bytes"
    return (
        f"The slot's restart_lsn {format_lsn(slot.restart_lsn)} exceeds the limit by"
        f" {availability.excess} {noun}."
    )


class SlotInvalidated(ObjectNotInPrerequisiteState):
    """Raised if changes can no longer be read from a slot, because it was invalidated."""


def check_not_invalidated(slot: ReplicationSlot, *, has_subscription: bool = False) -> None:
    """Check that changes can be read from a slot.

    Args:
        has_subscription: a subscription reads the slot.  The caller adds its own hint.

    Raises:
        SlotInvalidated: the slot was invalidated (55000).
    """
    if slot.invalidation_reason is None:
        return
    error = SlotInvalidated(
        f'can no longer get changes from replication slot "{slot.name}"',
        detail="This slot has been invalidated because it exceeded the maximum reserved size.",
    )
    name, plugin = quote_literal(slot.name), quote_literal(slot.plugin)
    if not slot.is_logical:  # a new slot suffices, because a standby copies the whole log
        error.hint = (
            f"At the primary, use SELECT pg_drop_replication_slot({name}), then SELECT"
            f" pg_create_physical_replication_slot({name})."
        )
    elif not has_subscription:
        error.hint = (
            f"Use SELECT pg_drop_replication_slot({name}), then SELECT"
            f" pg_create_logical_replication_slot({name}, {plugin}): changes before the new slot"
            " are lost."
        )
    raise error
