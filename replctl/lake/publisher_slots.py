"""Give subscribers the end of a database's log, and its slots."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from replctl.catalog.commit_digest import LogPosition, digest_at, is_in_log
from replctl.catalog.pg_class import relation_names
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_replication_slots import (
    advance_slot,
    alter_slot,
    check_database,
    delete_slot,
    find_slot,
    get_slot,
    note_publications,
)
from replctl.catalog.slot_requirements import check_decoding_requirements, create_slot_at_end
from replctl.catalog.slotsync import (
    check_alterable,
    check_creatable,
    check_droppable,
    check_not_synced,
)
from replctl.catalog.standby_slots import sendable_lsn
from replctl.catalog.transaction import insert_lsn
from replctl.catalog.wal_availability import check_not_invalidated
from replctl.catalog.worker import (
    Walsender,
    check_inactive,
    claim_walsender,
    dismiss_walsender,
    end_own_hold,
    release_walsender,
    report_walsender,
)
from replctl.lake.retention import check_slot, slot_retention
from replctl.lake.table_read import enter_foreign_versions
from replctl.relation_name import RelationName
from replctl.replication.node import TableRetention
from replctl.session import Session
from replctl.types.guc import clean_ascii


class PublisherSlots:
    """The end of the log of a session's database, and the slots of this log
    (replication.node.Slots)."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def current_lsn(self, needed: Collection[RelationName] = ()) -> int:
        """Return the end of the log.  First record the commits of other writers, without Spark.

        Raises:
            PostgresError: a table in `needed` cannot be read.
        """
        broken = enter_foreign_versions(self._session)
        if broken and needed:
            with self._session.read() as catalog:
                trees = {oid: {oid, *ancestors_of(catalog, oid)} for oid in broken}
                names = relation_names(catalog, set().union(*trees.values()))
            for oid, error in broken.items():
                if any(names.get(member) in needed for member in trees[oid]):
                    raise error
        with self._session.cluster.begin(write=False) as connection:
            return insert_lsn(connection)

    def digest_at(self, lsn: int) -> str | None:
        """Return the digest of the newest commit at or before an LSN (catalog/commit_digest.py)."""
        with self._session.cluster.begin(write=False) as connection:
            return digest_at(connection, lsn)

    def has_position(self, position: LogPosition) -> bool:
        """Return whether a recorded position of a subscription belongs to this log."""
        with self._session.cluster.begin(write=False) as connection:
            return is_in_log(connection, position)

    def applied_lsn(self, slot_name: str) -> int | None:
        """Return the LSN that the subscription of a slot reported last: 0 if it reported none, None
        if there is no slot.

        Raises:
            SlotInvalidated: the slot was invalidated (55000).
        """
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
        if slot is None:
            return None
        check_not_invalidated(slot, has_subscription=True)
        return slot.applied_lsn

    def sendable_lsn(self, slot_name: str, needed: Collection[RelationName] = ()) -> int:
        """Return the end of the log.  For a failover slot, return the position that all standbys in
        synchronized_standby_slots have reached.  Print a WARNING if one does not follow.
        """
        end = self.current_lsn(needed)
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
            if slot is None or not slot.failover or read_control(connection).is_in_recovery:
                return end
            names = self._session.setting("synchronized_standby_slots")
            position, waiting = sendable_lsn(self._session.cluster, connection, names, end)
        if waiting is not None:
            self._session.notice(
                waiting.message, severity="WARNING", detail=waiting.detail, hint=waiting.hint
            )
        return position

    def create(
        self, name: str, *, two_phase: bool, failover: bool, publications: Sequence[str]
    ) -> int:
        """Create a slot at the end of the log for a subscription to some publications.  Replace an
        invalidated slot with this name.

        Raises:
            DuplicateObject: there already is a slot with this name (42710).
            FeatureNotSupported: a standby cannot create a failover slot.
            ObjectNotInPrerequisiteState, ConfigurationLimitExceeded: wal_level or
                max_replication_slots is too low for another slot.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            check_creatable(connection, failover=failover)
            former = find_slot(connection, name)
            if former is not None and former.invalidation_reason is not None:
                delete_slot(connection, name)
            slot = create_slot_at_end(
                connection,
                self._session.setting,
                name,
                "pgoutput",
                self._session.database_oid,
                two_phase=two_phase,
                failover=failover,
            )
            note_publications(connection, name, publications)
        return slot.confirmed_flush_lsn

    def alter(
        self, name: str, *, failover: bool | None = None, two_phase: bool | None = None
    ) -> None:
        """Change properties of a slot; None keeps a property.

        Raises:
            UndefinedObject: there is no such slot (42704).
            ObjectNotInPrerequisiteState, FeatureNotSupported: the slot belongs to a standby.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            check_alterable(connection, get_slot(connection, name), failover=bool(failover))
            alter_slot(connection, name, failover=failover, two_phase=two_phase)

    def drop(self, name: str) -> None:
        """Drop a slot that this process does not read now.

        Raises:
            UndefinedObject: there is no such slot (42704).
            ObjectInUse: another process reads the slot, or a process waits to read it (55006).
            ObjectNotInPrerequisiteState: a standby has copied the slot from its primary.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            end_own_hold(self._session.cluster, connection, name)
            check_inactive(self._session.cluster, connection, name)
            check_droppable(connection, get_slot(connection, name))
            delete_slot(connection, name)

    def start_replication(
        self, slot_name: str, client: str, application_name: str, publications: Sequence[str]
    ) -> None:
        """Acquire a slot for a subscription to some publications.

        Args:
            client: identifies the subscription.

        Raises:
            ObjectInUse: another process holds the slot (55006).
            TooManyConnections: max_wal_senders other processes hold slots (53300).
        """
        role = self._session.role_oid
        name = clean_ascii(application_name)
        sender = Walsender(slot_name, client, name, role)
        maximum = int(self._session.setting("max_wal_senders"))
        claim_walsender(self._session.cluster, sender, maximum=maximum)
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            note_publications(connection, slot_name, publications)

    def report_end(self, slot_name: str) -> None:
        """Record that the subscription that holds a slot has reached the end of the log."""
        report_walsender(self._session.cluster, slot_name)

    def end_replication(self, slot_name: str, *, stays: bool) -> None:
        """Release a slot.

        Args:
            stays: the process stays connected.  Views still show it at the slot, but other
                processes may acquire the slot.
        """
        release_walsender(self._session.cluster, slot_name, stays=stays)

    def dismiss(self, slot_name: str, client: str) -> None:
        """Remove the record that a process reads a slot for the subscription `client`."""
        dismiss_walsender(self._session.cluster, slot_name, client)

    def position(self, name: str) -> int:
        """Return the confirmed LSN of a slot.

        Raises:
            UndefinedObject: there is no such slot (42704).
            ObjectInUse: the slot belongs to another database.
            ObjectNotInPrerequisiteState: wal_level is too low, the slot was invalidated, or a
                standby has copied it from its primary.
        """
        check_decoding_requirements(self._session.setting)
        with self._session.cluster.begin(write=False) as connection:
            slot = get_slot(connection, name)
            check_database(slot, self._session.database_oid)
            check_not_synced(connection, slot)
        check_not_invalidated(check_slot(self._session, slot), has_subscription=True)
        return slot.confirmed_flush_lsn

    def retention(self, slot_name: str) -> list[TableRetention]:
        """Return the adopted tables whose owners have removed, or may remove, versions that a slot
        needs.
        """
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
        return [] if slot is None else slot_retention(self._session, slot)

    def advance(self, name: str, lsn: int) -> None:
        """Confirm changes up to `lsn`."""
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            advance_slot(connection, name, lsn, is_applied=True)
