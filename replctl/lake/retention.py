"""Detect slots that lose versions that they need.  max_slot_wal_keep_size may invalidate a slot.
If the owner of an adopted table removes versions, the subscriptions of that table stop until it is
copied again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import ReplicationSlot, list_slots, note_retention
from replctl.catalog.pg_wal import BREAK, entries_between
from replctl.catalog.transaction import Catalog, insert_lsn
from replctl.catalog.vacuum_horizon import has_adopted_tables, oldest_adopted_changes
from replctl.catalog.wal_availability import (
    WalLimits,
    excess_detail,
    invalidate_obsolete_slots,
    wal_availability,
)
from replctl.catalog.worker import held_slots
from replctl.errors import FeatureNotSupported
from replctl.lake.delta_log import UNREADABLE
from replctl.lake.retention_outlook import Outlook, outlook, shown
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import TableRetention
from replctl.replication.published_relation import PublicationSet
from replctl.session import Session


@dataclass(frozen=True, slots=True)
class _TableOutlook:
    """A table with changes that a slot must still send, the relation under whose name it is
    published, and how long the changes stay readable.
    """

    relation: Relation
    published_as: Relation
    outlook: Outlook


#: The fraction of a table's retention after which a slot that does not advance causes a warning.
_ALARM = 0.8


def invalidate_slots(session: Session) -> None:
    """Invalidate slots that keep more than max_slot_wal_keep_size, with a WARNING for each.  Also
    warn of slots that are close to the limit.
    """
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
                hint="Synchronize its subscription first.",
            )


def check_slot(session: Session, slot: ReplicationSlot) -> ReplicationSlot:
    """Warn if a slot is about to lose versions that it needs.  Record whether owners of adopted
    tables have removed such versions.  Return the slot's new state.
    """
    if slot.invalidation_reason is not None:
        return slot
    with session.cluster.begin(write=False) as connection:
        availability = wal_availability(connection, slot, WalLimits.of(session.setting))
    if availability.excess:
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
    """Call `check_slot` for each slot of the database."""
    with session.read() as catalog:
        slots = list_slots(catalog.connection)
    for slot in slots:
        if slot.database_oid == session.database_oid:
            check_slot(session, slot)


def update_slots(session: Session) -> None:
    """Record for each slot whether owners of adopted tables have removed versions that it needs.
    wal_status shows this.
    """
    with session.cluster.begin(write=False) as connection:
        slots = [slot for slot in list_slots(connection) if slot.is_logical]
        if not slots or not has_adopted_tables(connection):
            return
    for slot in slots:
        if slot.invalidation_reason is None:
            own = session.in_database(slot.database_oid)
            now = time.time()
            _note(own, slot, [item.outlook for item in _outlooks(own, slot, now)], now)


def _check_adopted_tables(session: Session, slot: ReplicationSlot) -> ReplicationSlot:
    now = time.time()
    found = _outlooks(session, slot, now)
    for item in found:
        relation, view = item.relation, item.outlook
        if not view.is_lost and view.is_near(now, _ALARM):
            until = datetime.fromtimestamp(view.until or 0, UTC)
            session.notice(
                f'retention of table "{relation.qualified_name}" is about to remove changes that'
                f' replication slot "{slot.name}" needs',
                severity="WARNING",
                sqlstate="01000",
                detail=f"{view.setting} ({shown(view.retention)}) keeps them until"
                f" {until:%Y-%m-%d %H:%M:%S}+00.",
                hint="Synchronize the subscription of the slot, or ask the table's owner to extend"
                " its retention.",
            )
    return _note(session, slot, [item.outlook for item in found], now)


def _note(
    session: Session, slot: ReplicationSlot, outlooks: Sequence[Outlook], now: float
) -> ReplicationSlot:
    status = _status(outlooks, now)
    if status != slot.retention and session.cluster.refusal is None:
        with session.cluster.begin(write=True, in_recovery=True) as connection:
            note_retention(connection, slot.name, status)
    return replace(slot, retention=status)


def _status(outlooks: Sequence[Outlook], now: float) -> str | None:
    """Return the wal_status of a slot according to the retention of adopted tables; None if the
    retention has no effect on it.
    """
    if any(outlook.is_lost for outlook in outlooks):
        return "lost"
    return "unreserved" if any(outlook.is_over(now) for outlook in outlooks) else None


def slot_retention(session: Session, slot: ReplicationSlot) -> list[TableRetention]:
    """Return the adopted tables whose owners have removed, or may remove, versions that a slot
    needs.  There is one entry for each published table.
    """
    if slot.invalidation_reason is not None:
        return []
    found: dict[RelationName, Outlook] = {}
    for item in _outlooks(session, slot, time.time()):
        name = item.published_as.relation_name
        if item.outlook.until is None and not item.outlook.is_lost:
            continue
        if name not in found or item.outlook.is_before(found[name]):
            found[name] = item.outlook
    return [
        TableRetention(
            *name,
            view.is_lost,
            None if view.until is None else int(view.until * 1_000_000),
            view.setting,
            view.retention,
        )
        for name, view in sorted(found.items())
    ]


def _outlooks(session: Session, slot: ReplicationSlot, now: float) -> list[_TableOutlook]:
    """Return the adopted tables whose changes a slot must still send, and how long these changes
    stay readable.  Omit unreadable tables: they stop the statements that need them.
    """
    with session.read() as catalog:
        published = _published(catalog, slot)
        broken = entries_between(
            catalog, slot.restart_lsn, insert_lsn(catalog.connection), (BREAK,)
        )
        cleaned = {entry.relid for entry in broken if "cleaned" in entry.detail}
        found = [
            _TableOutlook(relation, root, Outlook(True))
            for relation in load_relations(catalog, cleaned).values()
            if (root := published(relation)) is not None
        ]
        changes = [
            (change, root)
            for change in oldest_adopted_changes(catalog, slot.restart_lsn)
            if change.relation.oid not in cleaned
            and (root := published(change.relation)) is not None
        ]
    for change, root in changes:
        assert change.relation.storage is not None
        location, began = change.relation.storage.location, min(change.time / 1_000_000, now)
        try:
            view = outlook(location, change.version, began, now)
        except UNREADABLE:  # a sync reports it, and this is only a warning
            continue
        found.append(_TableOutlook(change.relation, root, view))
    return found


def _published(catalog: Catalog, slot: ReplicationSlot) -> Callable[[Relation], Relation | None]:
    """Return a function from a table to the relation under whose name a slot sends the table's
    changes.  It returns None for a table without such changes.  If the slot's publications are
    unknown, it returns every table itself.
    """
    if slot.publications is None:
        return lambda relation: relation
    publications = PublicationSet.of_names(catalog, slot.publications)

    def published_as(relation: Relation) -> Relation | None:
        try:
            found = publications.changes_of(relation)
        except FeatureNotSupported:  # the publications list different columns
            return relation
        return None if found is None else found.published_as

    return published_as
