"""Read and write replication slots, which retain a publisher's log, and replication origins, which
record a subscriber's progress.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, delete, func, insert, or_, select, update

from replctl.catalog import state_schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.transaction import commit_transaction
from replctl.errors import (
    DuplicateObject,
    InvalidName,
    NameTooLong,
    ObjectInUse,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
)
from replctl.lsn import INVALID_LSN
from replctl.record import dataclass
from replctl.types.identifier import MAX_BYTES

_SLOT_NAME = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
    """A row of pg_replication_slots.  Changes after `confirmed_flush_lsn` are not sent yet.

    A physical slot has no database and no plugin.  Its standby has received the log up to
    `confirmed_flush_lsn`, and still needs the changes after `restart_lsn`.

    Attributes:
        synced: slot synchronization has created the slot (slotsync.py); nobody may use it on a
            standby.
        standby_home: the directory of the standby that uses a physical slot.
        owner: the session (Session.key) of a temporary slot.
        publications: the publications that the slot's reader uses, if known.
        retention: the state of the slot's data in adopted tables, whose owners may remove it: lost
            (they have removed some of it), unreserved (they may remove it), or None (neither).
        applied_lsn: the position that the slot's subscription has reported as applied.
    """

    name: str
    plugin: str
    database_oid: int
    restart_lsn: int
    confirmed_flush_lsn: int
    two_phase: bool = False
    failover: bool = False
    invalidation_reason: str | None = None
    type: str = "logical"
    synced: bool = False
    standby_home: str | None = None
    inactive_since: int | None = None
    owner: str | None = None
    publications: tuple[str, ...] | None = None
    retention: str | None = None
    applied_lsn: int = INVALID_LSN

    @property
    def is_logical(self) -> bool:
        return self.type == "logical"

    @property
    def temporary(self) -> bool:
        """Return whether the slot ends with the session that created it."""
        return self.owner is not None

    @property
    def owner_pid(self) -> int | None:
        """Return the process of a temporary slot's session; None for other slots."""
        return None if self.owner is None else owner_pid(self.owner)


@dataclass
class SessionOrigin:
    """The replication origin with which a session marks its commits.

    Attributes:
        lsn: the transaction's position in the remote log.
        timestamp: the transaction's commit time there, in microseconds since 1970; None for the
            local commit time.
        schema_lsn: the position of the remote commit whose changes of definitions the session
            repeats; None if it repeats none.
    """

    name: str
    lsn: int = INVALID_LSN
    timestamp: int | None = None
    schema_lsn: int | None = None


def owner_pid(owner: str) -> int:
    """Return the process ID of the session `owner` (Session.key)."""
    return int(owner.partition("-")[0])


def is_owner_alive(cluster: Cluster, owner: str) -> bool:
    """Return whether the process of the session `owner` (Session.key) runs."""
    return cluster.is_alive(owner.partition("/")[0])


def validate_slot_name(name: str) -> None:
    """Check that a slot name is valid (ReplicationSlotValidateName).

    Raises:
        InvalidName, NameTooLong: the name is not valid.
    """
    if not name:
        raise InvalidName(f'replication slot name "{name}" is too short')
    if len(name.encode()) > MAX_BYTES:
        raise NameTooLong(f'replication slot name "{name}" is too long')
    if not _SLOT_NAME.fullmatch(name):
        raise InvalidName(
            f'replication slot name "{name}" contains invalid character',
            hint="Replication slot names may only contain lower case letters, numbers, and the"
            " underscore character.",
        )


def get_slot(connection: Connection, name: str) -> ReplicationSlot:
    """Return the slot of that name.

    Raises:
        UndefinedObject: there is no such slot (42704).
    """
    slot = find_slot(connection, name)
    if slot is None:
        raise UndefinedObject(f'replication slot "{name}" does not exist')
    return slot


def check_database(slot: ReplicationSlot, database_oid: int) -> None:
    """Check that a session in a database can read the changes of a slot.

    Raises:
        ObjectNotInPrerequisiteState: the slot belongs to another database (55000).
    """
    if slot.database_oid != database_oid:
        raise ObjectNotInPrerequisiteState(
            f'replication slot "{slot.name}" was not created in this database'
        )


def find_slot(connection: Connection, name: str) -> ReplicationSlot | None:
    """Return the slot of that name, which is unique in the cluster; None if there is none."""
    table = state_schema.pg_replication_slots
    row = connection.execute(select(table).where(table.c.slot_name == name)).first()
    return None if row is None else _slot(row)


def list_slots(connection: Connection) -> list[ReplicationSlot]:
    """Return all slots, by name."""
    table = state_schema.pg_replication_slots
    return [_slot(row) for row in connection.execute(select(table).order_by(table.c.slot_name))]


def create_slot(connection: Connection, slot: ReplicationSlot) -> None:
    """Add a slot.

    Raises:
        DuplicateObject: there is a slot of that name (42710).
    """
    if find_slot(connection, slot.name) is not None:
        raise DuplicateObject(f'replication slot "{slot.name}" already exists')
    connection.execute(
        insert(state_schema.pg_replication_slots).values(
            slot_name=slot.name,
            plugin=slot.plugin,
            slot_type=slot.type,
            datoid=slot.database_oid,
            temporary=slot.temporary,
            restart_lsn=slot.restart_lsn,
            confirmed_flush_lsn=slot.confirmed_flush_lsn,
            two_phase=slot.two_phase,
            failover=slot.failover,
            standby_home=slot.standby_home,
            inactive_since=time.time_ns() // 1000,
            owner=slot.owner,
        )
    )
    if slot.is_logical:
        connection.execute(
            insert(state_schema.pg_stat_replication_slots).values(
                slot_name=slot.name, total_txns=0, total_bytes=0
            )
        )


def advance_slot(connection: Connection, name: str, lsn: int, *, is_applied: bool = False) -> None:
    """Record that the subscriber has all changes up to `lsn`.  A slot never moves back.

    Args:
        is_applied: the subscription itself reports the position.  False if a user or another
            program has chosen it.
    """
    table = state_schema.pg_replication_slots
    applied = {"applied_lsn": lsn} if is_applied else {}
    connection.execute(
        update(table)
        .where(
            table.c.slot_name == name,
            table.c.confirmed_flush_lsn < lsn,
            table.c.invalidation_reason.is_(None),
        )
        .values(confirmed_flush_lsn=lsn, restart_lsn=lsn, **applied)
    )


def advance_standby_slot(
    connection: Connection, name: str, received_lsn: int, needed_lsn: int
) -> None:
    """Record that a standby has received the log up to `received_lsn`, and needs the changes after
    `needed_lsn`.  A slot never moves back.
    """
    table = state_schema.pg_replication_slots
    connection.execute(
        update(table)
        .where(table.c.slot_name == name)
        .values(
            confirmed_flush_lsn=func.max(table.c.confirmed_flush_lsn, received_lsn),
            restart_lsn=func.max(table.c.restart_lsn, needed_lsn),
        )
    )


def alter_slot(
    connection: Connection,
    name: str,
    *,
    failover: bool | None = None,
    two_phase: bool | None = None,
) -> None:
    """Change properties of a slot.  None keeps a property.

    Raises:
        UndefinedObject: there is no slot of that name (42704).
    """
    get_slot(connection, name)
    table = state_schema.pg_replication_slots
    given = {"failover": failover, "two_phase": two_phase}
    values = {key: value for key, value in given.items() if value is not None}
    connection.execute(update(table).where(table.c.slot_name == name).values(**values))
    note_inactive(connection, name)


def note_publications(connection: Connection, name: str, publications: Sequence[str]) -> None:
    """Record the publications that a slot's reader uses."""
    table = state_schema.pg_replication_slots
    text = json.dumps(list(publications), ensure_ascii=False)
    is_other = or_(table.c.publications.is_(None), table.c.publications != text)
    change = update(table).where(table.c.slot_name == name, is_other)
    connection.execute(change.values(publications=text))


def note_retention(connection: Connection, name: str, status: str | None) -> None:
    """Record the state of a slot's data in adopted tables (ReplicationSlot.retention)."""
    table = state_schema.pg_replication_slots
    connection.execute(update(table).where(table.c.slot_name == name).values(retention=status))


def note_inactive(connection: Connection, name: str, since: int | None = None) -> None:
    """Record the time since which no process reads a slot (ReplicationSlotRelease).

    Args:
        since: the time in microseconds since 1970; None for now.
    """
    table = state_schema.pg_replication_slots
    time_ = time.time_ns() // 1000 if since is None else since
    connection.execute(update(table).where(table.c.slot_name == name).values(inactive_since=time_))


def delete_slot(connection: Connection, name: str) -> None:
    """Drop a slot.

    Raises:
        UndefinedObject: there is no slot of that name (42704).
    """
    get_slot(connection, name)
    for table in (state_schema.pg_replication_slots, state_schema.pg_stat_replication_slots):
        connection.execute(delete(table).where(table.c.slot_name == name))


def drop_slots_of(connection: Connection, owner: str) -> None:
    """Drop the temporary slots of a session."""
    for slot in list_slots(connection):
        if slot.owner == owner:
            delete_slot(connection, slot.name)


def drop_abandoned_slots(cluster: Cluster) -> None:
    """Drop the temporary slots of sessions whose processes have died."""
    with cluster.begin(write=False) as connection:
        owners = {slot.owner for slot in list_slots(connection) if slot.owner is not None}
    dead = [owner for owner in owners if not is_owner_alive(cluster, owner)]
    if dead:
        with cluster.begin(write=True, in_recovery=True) as connection:
            for owner in dead:
                drop_slots_of(connection, owner)


def check_not_owned(slot: ReplicationSlot, session_key: str) -> None:
    """Check that a session may use a slot.  Only the session that created a temporary slot may use
    it.

    Raises:
        ObjectInUse: the slot belongs to another session (55006).
    """
    if slot.owner is not None and slot.owner != session_key:
        raise ObjectInUse(f'replication slot "{slot.name}" is active for PID {slot.owner_pid}')


def count_decoded(connection: Connection, name: str, transactions: int, size: int) -> None:
    """Add transactions and bytes of output to the statistics of a slot."""
    table = state_schema.pg_stat_replication_slots
    connection.execute(
        update(table)
        .where(table.c.slot_name == name)
        .values(
            total_txns=table.c.total_txns + transactions, total_bytes=table.c.total_bytes + size
        )
    )


def reset_statistics(connection: Connection, name: str | None) -> None:
    """Reset the statistics of a slot, or of all slots (None)."""
    table = state_schema.pg_stat_replication_slots
    change = update(table).values(total_txns=0, total_bytes=0, stats_reset=time.time_ns() // 1000)
    connection.execute(change if name is None else change.where(table.c.slot_name == name))


def find_origin(connection: Connection, name: str) -> int | None:
    """Return the OID of an origin; None if there is none."""
    table = state_schema.pg_replication_origin
    query = select(table.c.roident).where(table.c.roname == name)
    return connection.execute(query).scalar_one_or_none()


def get_origin(connection: Connection, name: str) -> int:
    """Return the OID of an origin.

    Raises:
        UndefinedObject: there is no origin of that name (42704).
    """
    oid = find_origin(connection, name)
    if oid is None:
        raise UndefinedObject(f'replication origin "{name}" does not exist')
    return oid


def origin_progress(connection: Connection, name: str) -> int | None:
    """Return an origin's position in the remote log; None if there is no such origin."""
    table = state_schema.pg_replication_origin
    lsn = connection.execute(
        select(table.c.remote_lsn).where(table.c.roname == name)
    ).scalar_one_or_none()
    return None if lsn is None else int(lsn)


def origin_position(connection: Connection, name: str) -> LogPosition | None:
    """Return `origin_progress` with the digest of the remote commit there."""
    table = state_schema.pg_replication_origin
    query = select(table.c.remote_lsn, table.c.remote_digest).where(table.c.roname == name)
    row = connection.execute(query).first()
    return None if row is None else LogPosition(int(row.remote_lsn), row.remote_digest)


def create_origin(connection: Connection, name: str, position: LogPosition) -> None:
    """Add an origin."""
    connection.execute(
        insert(state_schema.pg_replication_origin).values(
            roname=name, remote_lsn=position.lsn, remote_digest=position.digest
        )
    )


def put_origin(
    connection: Connection, name: str, position: LogPosition, local_lsn: int | None
) -> None:
    """Move an origin to a position, even backwards.

    Args:
        local_lsn: None keeps the recorded LSN.
    """
    table = state_schema.pg_replication_origin
    values: dict[str, Any] = {"remote_lsn": position.lsn, "remote_digest": position.digest}
    values |= {} if local_lsn is None else {"local_lsn": local_lsn}
    connection.execute(update(table).where(table.c.roname == name).values(values))


def advance_origin(
    connection: Connection, name: str, position: LogPosition, local_lsn: int
) -> None:
    """Record that the local commit at `local_lsn` has applied remote changes up to a position.  An
    origin that a user has moved beyond the position stays there (replorigin_session_advance).
    """
    table = state_schema.pg_replication_origin
    lsn, digest = table.c.remote_lsn, table.c.remote_digest
    connection.execute(
        update(table)
        .where(table.c.roname == name)
        .values(
            remote_lsn=func.max(lsn, position.lsn),
            remote_digest=case(
                (lsn > position.lsn, digest),
                (lsn == position.lsn, func.coalesce(position.digest, digest)),
                else_=position.digest,
            ),
            local_lsn=local_lsn,
        )
    )


def followed_lsn(connection: Connection, name: str) -> int:
    """Return the remote LSN up to which changes of definitions are repeated; 0: none."""
    table = state_schema.pg_replication_origin
    query = select(table.c.schema_lsn).where(table.c.roname == name)
    return int(connection.execute(query).scalar_one_or_none() or 0)


def put_followed_lsn(connection: Connection, name: str, lsn: int) -> None:
    """Record that changes of definitions are repeated up to a remote LSN.

    Args:
        lsn: 0 for a new log.
    """
    table = state_schema.pg_replication_origin
    connection.execute(update(table).where(table.c.roname == name).values(schema_lsn=lsn))


def commit_with_origin(
    connection: Connection,
    xid: int,
    origin: SessionOrigin | None,
    *,
    changes_catalog: bool,
    savepoints: Sequence[int] = (),
) -> int:
    """Commit a transaction, mark it with its origin, record the origin's progress, and return the
    commit's LSN.

    Args:
        changes_catalog, savepoints: see `commit_transaction`.
    """
    if origin is None:
        return commit_transaction(
            connection, xid, changes_catalog=changes_catalog, savepoints=savepoints
        )
    lsn = commit_transaction(
        connection,
        xid,
        changes_catalog=changes_catalog,
        savepoints=savepoints,
        origin=origin.name,
        origin_lsn=origin.lsn,
        commit_time=origin.timestamp,
    )
    advance_origin(connection, origin.name, LogPosition(origin.lsn), lsn)
    if origin.schema_lsn is not None:
        put_followed_lsn(connection, origin.name, origin.schema_lsn)
    return lsn


def origin_owner(cluster: Cluster, connection: Connection, name: str) -> str | None:
    """Return the session that has set up an origin, if its process lives; else None."""
    table = state_schema.pg_replication_origin
    owner = connection.execute(select(table.c.owner).where(table.c.roname == name)).scalar_one()
    return owner if owner is not None and is_owner_alive(cluster, owner) else None


def own_origin(connection: Connection, name: str, owner: str | None) -> None:
    """Record which session has set up an origin; None for no session."""
    table = state_schema.pg_replication_origin
    connection.execute(update(table).where(table.c.roname == name).values(owner=owner))


def origin_status(connection: Connection) -> list[tuple[int, str, int, int]]:
    """Return OID, name, remote LSN and local LSN of each origin that has progress or that a session
    has set up.
    """
    table = state_schema.pg_replication_origin
    query = (
        select(table.c.roident, table.c.roname, table.c.remote_lsn, table.c.local_lsn)
        .where(or_(table.c.remote_lsn != 0, table.c.local_lsn != 0, table.c.owner.is_not(None)))
        .order_by(table.c.roident)
    )
    return [(int(a), str(b), int(c), int(d)) for a, b, c, d in connection.execute(query)]


def drop_origin(connection: Connection, name: str) -> None:
    """Remove an origin."""
    connection.execute(
        delete(state_schema.pg_replication_origin).where(
            state_schema.pg_replication_origin.c.roname == name
        )
    )


def _slot(row: Any) -> ReplicationSlot:
    return ReplicationSlot(
        name=str(row.slot_name),
        plugin=str(row.plugin),
        database_oid=int(row.datoid),
        restart_lsn=int(row.restart_lsn),
        confirmed_flush_lsn=int(row.confirmed_flush_lsn),
        two_phase=bool(row.two_phase),
        failover=bool(row.failover),
        invalidation_reason=row.invalidation_reason,
        type=str(row.slot_type),
        synced=bool(row.synced),
        standby_home=row.standby_home,
        inactive_since=row.inactive_since,
        owner=row.owner,
        publications=None if row.publications is None else tuple(json.loads(row.publications)),
        retention=row.retention,
        applied_lsn=int(row.applied_lsn),
    )
