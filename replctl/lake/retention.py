"""Slots that lose what they need: to max_slot_wal_keep_size, or to the retention of tables whose
owners clean them."""

from __future__ import annotations

import re
import time

from replctl.catalog.horizon import oldest_adopted_changes
from replctl.catalog.pg_replication_slots import ReplicationSlot, list_slots
from replctl.catalog.wal_availability import (
    WAL_REMOVED,
    WalLimits,
    excess_detail,
    invalidate_obsolete_slots,
    invalidate_slot,
    wal_availability,
)
from replctl.catalog.worker import held_slots
from replctl.lake.delta_files import has_changes
from replctl.lake.delta_log import is_in_log, table_properties
from replctl.session import Session

#: The part of a table's retention after which a slot that has not moved is warned of.
_ALARM = 0.8
_RETENTIONS = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 1 week",
}
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_INTERVAL = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)


def invalidate_slots(session: Session) -> None:
    """Invalidate slots that hold back more than max_slot_wal_keep_size, with a WARNING for each;
    another for those that are close to it."""
    limits = WalLimits.of(session.setting)
    with session.cluster.begin(write=True) as connection:
        held = held_slots(session.cluster, connection)
        lost = invalidate_obsolete_slots(connection, limits, held)
        left = [
            (slot, wal_availability(connection, slot, limits)) for slot in list_slots(connection)
        ]
    for slot, availability in lost:
        session.notice(
            f'invalidating obsolete replication slot "{slot.name}"',
            severity="WARNING",
            sqlstate="01000",
            detail=excess_detail(slot, availability),
            hint='You might need to increase "max_slot_wal_keep_size".',
        )
    for slot, availability in left:
        if availability.is_close:
            session.notice(
                f'replication slot "{slot.name}" is close to "max_slot_wal_keep_size"',
                severity="WARNING",
                sqlstate="01000",
                detail=f"It is going to be invalidated when the log has grown by"
                f" {availability.safe_size} bytes more.",
                hint="Synchronize its subscription before.",
            )


def check_slot(session: Session, slot: ReplicationSlot) -> ReplicationSlot:
    """Say that a slot is about to lose what it needs, or note that it has lost it; the slot as it
    is then."""
    if slot.invalidation_reason is not None:
        return slot
    with session.cluster.begin(write=False) as connection:
        availability = wal_availability(connection, slot, WalLimits.of(session.setting))
    if availability.status == "unreserved":
        session.notice(
            f'replication slot "{slot.name}" is going to be invalidated by the next VACUUM or'
            " CHECKPOINT",
            severity="WARNING",
            sqlstate="01000",
            detail=excess_detail(slot, availability),
            hint='You might need to increase "max_slot_wal_keep_size".',
        )
    return _check_adopted_tables(session, slot)


def check_slots(session: Session) -> None:
    """As `check_slot`, for all slots of the database."""
    with session.read() as catalog:
        slots = list_slots(catalog.connection)
    for slot in slots:
        if slot.database_oid == session.database_oid:
            check_slot(session, slot)


def _check_adopted_tables(session: Session, slot: ReplicationSlot) -> ReplicationSlot:
    with session.read() as catalog:
        changes = oldest_adopted_changes(catalog, slot.restart_lsn)
    for change in changes:
        storage = change.relation.storage
        assert storage is not None
        name, retention = _shortest_retention(storage.location)
        age = time.time() - change.time / 1_000_000
        is_old = age > _ALARM * retention
        is_logged = is_in_log(storage.location, change.version)
        if not (is_logged and has_changes(storage.location, change.version)):
            session.notice(
                f'invalidating obsolete replication slot "{slot.name}"',
                severity="WARNING",
                sqlstate="01000",
                detail=f'Changes of table "{change.relation.qualified_name}" that it needs have'
                " been removed by the table's own retention.",
            )
            with session.cluster.begin(write=True) as connection:
                return invalidate_slot(connection, slot, WAL_REMOVED)
        if is_old:
            session.notice(
                f'retention of table "{change.relation.qualified_name}" is about to remove changes'
                f' that replication slot "{slot.name}" needs',
                severity="WARNING",
                sqlstate="01000",
                detail=f"The oldest of them is {_shown(age)} old, and {name} is"
                f" {_shown(retention)}.",
                hint="Synchronize the subscription of the slot, or let the table's owner prolong"
                " its retention.",
            )
    return slot


def _shortest_retention(location: str) -> tuple[str, float]:
    """The property of a table that bounds for how long its changes can be read, and its seconds."""
    properties = table_properties(location)
    found = {name: _seconds(properties.get(name, default)) for name, default in _RETENTIONS.items()}
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        del found["delta.logRetentionDuration"]
    return min(found.items(), key=lambda item: item[1])


def _seconds(interval: str) -> float:
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in _INTERVAL.findall(interval))


def _shown(seconds: float) -> str:
    """A length of time in its largest unit that fits."""
    for unit in ("day", "hour", "minute", "second"):
        amount = int(seconds // _UNITS[unit])
        if amount:
            return f"{amount} {unit}" if amount == 1 else f"{amount} {unit}s"
    return "0 seconds"
