"""Replication slots, which hold back a publisher's log, and origins, which hold a subscriber's
progress."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from replctl.catalog import schema
from replctl.errors import DuplicateObject, InvalidName, ObjectInUse, UndefinedObject

_SLOT_NAME = re.compile(r"[a-z0-9_]+")
_MAX_NAME = 63  # bytes


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
    """A row of pg_replication_slots: changes after `confirmed_flush_lsn` are still to be sent."""

    name: str
    plugin: str
    database_oid: int
    restart_lsn: int
    confirmed_flush_lsn: int
    temporary: bool = False
    two_phase: bool = False
    failover: bool = False
    invalidation_reason: str | None = None


def validate_slot_name(name: str) -> None:
    """Whether a slot may have that name (ReplicationSlotValidateName).

    Raises:
        InvalidName: it may not.
    """
    if not name:
        raise InvalidName(f'replication slot name "{name}" is too short')
    if len(name.encode()) > _MAX_NAME:
        raise InvalidName(f'replication slot name "{name}" is too long')
    if not _SLOT_NAME.fullmatch(name):
        raise InvalidName(
            f'replication slot name "{name}" contains invalid character',
            hint="Replication slot names may only contain lower case letters, numbers, and the"
            " underscore character.",
        )


def get_slot(connection: Connection, name: str) -> ReplicationSlot:
    """The slot of that name.

    Raises:
        UndefinedObject: there is none (42704).
    """
    slot = find_slot(connection, name)
    if slot is None:
        raise UndefinedObject(f'replication slot "{name}" does not exist')
    return slot


def check_database(slot: ReplicationSlot, database_oid: int) -> None:
    """Whether changes of a slot can be read in a database.

    Raises:
        ObjectInUse: it is another's (55006).
    """
    if slot.database_oid != database_oid:
        raise ObjectInUse(f'replication slot "{slot.name}" was not created in this database')


def find_slot(connection: Connection, name: str) -> ReplicationSlot | None:
    """The slot of that name; names are the cluster's."""
    table = schema.pg_replication_slots
    row = connection.execute(select(table).where(table.c.slot_name == name)).first()
    return None if row is None else _slot(row)


def list_slots(connection: Connection) -> list[ReplicationSlot]:
    """All slots, by name."""
    table = schema.pg_replication_slots
    return [_slot(row) for row in connection.execute(select(table).order_by(table.c.slot_name))]


def create_slot(connection: Connection, slot: ReplicationSlot) -> None:
    """Add a slot.

    Raises:
        DuplicateObject: there is one of its name (42710).
    """
    if find_slot(connection, slot.name) is not None:
        raise DuplicateObject(f'replication slot "{slot.name}" already exists')
    connection.execute(
        insert(schema.pg_replication_slots).values(
            slot_name=slot.name,
            plugin=slot.plugin,
            datoid=slot.database_oid,
            temporary=slot.temporary,
            restart_lsn=slot.restart_lsn,
            confirmed_flush_lsn=slot.confirmed_flush_lsn,
            two_phase=slot.two_phase,
            failover=slot.failover,
            inactive_since=time.time_ns() // 1000,
        )
    )


def advance_slot(connection: Connection, name: str, lsn: int) -> None:
    """The subscriber has all changes up to `lsn`; a slot never moves back."""
    table = schema.pg_replication_slots
    connection.execute(
        update(table)
        .where(table.c.slot_name == name, table.c.confirmed_flush_lsn < lsn)
        .values(confirmed_flush_lsn=lsn, restart_lsn=lsn)
    )


def delete_slot(connection: Connection, name: str) -> None:
    """Drop a slot."""
    connection.execute(
        delete(schema.pg_replication_slots).where(schema.pg_replication_slots.c.slot_name == name)
    )


def find_origin(connection: Connection, name: str) -> int | None:
    """The OID of an origin."""
    table = schema.pg_replication_origin
    query = select(table.c.roident).where(table.c.roname == name)
    return connection.execute(query).scalar_one_or_none()


def get_origin(connection: Connection, name: str) -> int:
    """The OID of an origin.

    Raises:
        UndefinedObject: there is none of that name (42704).
    """
    oid = find_origin(connection, name)
    if oid is None:
        raise UndefinedObject(f'replication origin "{name}" does not exist')
    return oid


def origin_progress(connection: Connection, name: str) -> int | None:
    """How far an origin has come in the remote log; None if there is no such origin."""
    table = schema.pg_replication_origin
    lsn = connection.execute(
        select(table.c.remote_lsn).where(table.c.roname == name)
    ).scalar_one_or_none()
    return None if lsn is None else int(lsn)


def create_origin(connection: Connection, name: str, remote_lsn: int) -> None:
    """Add an origin."""
    connection.execute(
        insert(schema.pg_replication_origin).values(roname=name, remote_lsn=remote_lsn)
    )


def advance_origin(connection: Connection, name: str, remote_lsn: int, local_lsn: int) -> None:
    """Note progress: changes up to `remote_lsn` are in, by the local commit at `local_lsn`."""
    table = schema.pg_replication_origin
    connection.execute(
        update(table)
        .where(table.c.roname == name)
        .values(remote_lsn=remote_lsn, local_lsn=local_lsn)
    )


def drop_origin(connection: Connection, name: str) -> None:
    """Forget an origin."""
    connection.execute(
        delete(schema.pg_replication_origin).where(schema.pg_replication_origin.c.roname == name)
    )


def _slot(row: Any) -> ReplicationSlot:
    return ReplicationSlot(
        name=str(row.slot_name),
        plugin=str(row.plugin),
        database_oid=int(row.datoid),
        restart_lsn=int(row.restart_lsn),
        confirmed_flush_lsn=int(row.confirmed_flush_lsn),
        temporary=bool(row.temporary),
        two_phase=bool(row.two_phase),
        failover=bool(row.failover),
        invalidation_reason=row.invalidation_reason,
    )
