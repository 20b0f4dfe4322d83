"""Create standbys, and let them follow their primary (pg_basebackup, walreceiver.c).

A standby is a cluster whose catalog follows the primary's.  It reads the primary's tables in place,
each at the version in its own catalog.  It has its own slots.  Slot synchronization adds copies of
the primary's slots.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, update

from replctl.catalog import schema_table, state_schema
from replctl.catalog.auto_conf import (
    AUTO_CONF,
    check_has_one_line,
    configured_value,
    read_auto_conf,
    write_auto_conf,
)
from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_digest import note_base
from replctl.catalog.home_directory import CATALOG, check_is_outside_others
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_control import check_connectable, check_recovers
from replctl.catalog.pg_replication_slots import (
    ReplicationSlot,
    advance_standby_slot,
    create_slot,
    find_slot,
    list_slots,
    validate_slot_name,
)
from replctl.catalog.primary import (
    follow_hint,
    is_replaced_by,
    open_existing,
    open_primary,
    reading_primary,
)
from replctl.catalog.slotsync import synchronize_slots
from replctl.catalog.table_home import follow_tables
from replctl.catalog.transaction import insert_lsn
from replctl.catalog.wal_availability import check_not_invalidated
from replctl.catalog.worker import Walsender, claim_walsender, release_walsender, report_walsender
from replctl.conninfo import quote_value
from replctl.durable_file import durable_rename
from replctl.errors import (
    CannotConnectNow,
    FeatureNotSupported,
    InvalidParameterValue,
    IoError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedObject,
)
from replctl.injection_point import injection_point
from replctl.own_command import own_command
from replctl.private_file import make_private_directory, open_private
from replctl.record import dataclass
from replctl.types.quote import quote_literal

#: Tables that a standby does not copy, because they describe the standby's own processes and slots.
_OWN_TABLES = (
    "pg_control",
    "pg_replication_slots",
    "pg_stat_replication_slots",
    "walsender",
    "logical_worker",
)
#: The name of an incomplete copy of the catalog.
_BACKUP = f"unfinished-{CATALOG}"
#: Columns of pg_control that the standby copies.
_FOLLOWED = ("next_xid", "next_oid", "insert_lsn", "timeline", "trimmed_lsn")


def create_standby(primary_home: Path, home: Path, slot_name: str) -> None:
    """Create a standby in a new directory, and its physical slot at the primary.

    Raises:
        ConnectionFailure: `primary_home` has no cluster that can be used.
        FeatureNotSupported: the primary is a standby itself.
        IoError: the directory is not empty, or cannot be created.
        InvalidName, ObjectNotInPrerequisiteState: the slot cannot be created, or the directory is
            inside the directory of a cluster or of a Delta table.
        InvalidParameterValue: the path of the primary contains a newline.
    """
    validate_slot_name(slot_name)
    primary_home, home = primary_home.resolve(), home.resolve()
    conninfo = f"host={quote_value(str(primary_home))}"
    check_has_one_line(conninfo)
    if home.exists() and not all(_is_unfinished(path) for path in home.iterdir()):
        raise IoError(f'directory "{home}" exists but is not empty')
    check_is_outside_others(home)
    with open_existing(primary_home) as primary:
        if primary.is_in_recovery:
            raise FeatureNotSupported("a standby of a standby is not supported")
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_private_directory(home)
        except OSError as error:
            raise IoError(f'could not make directory "{home}": {error.strerror}') from error
        with primary.begin(write=True) as connection:
            _reserve_slot(connection, slot_name, str(home))
        write_auto_conf(
            home,
            {
                **read_auto_conf(primary.path),
                "primary_conninfo": conninfo,
                "primary_slot_name": slot_name,
                "hot_standby_feedback": "on",
                "sync_replication_slots": "on",
            },
        )
        injection_point("standby.before-backup")
        _back_up(primary, home)
        injection_point("standby.after-backup")
        with open_existing(home) as standby:
            _confirm(primary, standby, slot_name)


@dataclass(frozen=True, slots=True)
class WalReceiver:
    """A standby attached to its primary."""

    standby: Cluster
    primary: Cluster
    slot_name: str

    def receive(self) -> list[PostgresError]:
        """Copy the changes of the primary's catalog in one transaction, and confirm them to the
        primary.

        If sync_replication_slots is on, also synchronize slots, and return the problems of skipped
        slots.

        Raises:
            ObjectNotInPrerequisiteState: the cluster is no longer a standby, or the primary lacks
                commits that the standby has.
            CannotConnectNow: another standby has replaced the primary, or another program has
                replaced or overwritten a catalog.
            IoError: the primary's catalog cannot be read.
        """
        for cluster in (self.standby, self.primary):
            cluster.check_file()
        _check_is_primary(self.primary, self.standby)
        settings = read_auto_conf(self.standby.path)
        with_slots = settings.get("sync_replication_slots") == "on"
        problems = follow(self.standby, self.primary.path, with_slots=with_slots)
        injection_point("standby.before-confirmation")
        _confirm(self.primary, self.standby, self.slot_name)
        report_walsender(self.primary, self.slot_name)
        return problems


@contextmanager
def attached(standby: Cluster) -> Iterator[WalReceiver]:
    """Yield a standby that is attached to its primary.  Its slot is active until the end of the
    `with` statement.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby.
        ConnectionFailure: the primary cannot be reached.
        CannotConnectNow: another standby has replaced the primary.
        ObjectInUse: another process has attached this standby.
        TooManyConnections: max_wal_senders processes are already attached to the primary.
    """
    with standby.begin(write=False) as connection:
        check_recovers(connection)
    slot_name = read_auto_conf(standby.path).get("primary_slot_name", "")
    with open_primary(standby) as primary:
        _check_is_primary(primary, standby)
        client = Walsender(slot_name, str(standby.path), "walreceiver", BOOTSTRAP_SUPERUSER)
        maximum = int(configured_value(primary.path, "max_wal_senders"))
        claim_walsender(primary, client, maximum=maximum)
        try:
            yield WalReceiver(standby, primary, slot_name)
        finally:
            if primary.is_in_place and primary.control().promoted_to is None:
                release_walsender(primary, slot_name, stays=False)


def _check_is_primary(primary: Cluster, standby: Cluster) -> None:
    """Check that no promoted standby has replaced the primary.

    Raises:
        CannotConnectNow: a promoted standby has replaced the primary (57P03).
    """
    control = primary.control()
    try:
        check_connectable(control)
    except CannotConnectNow as error:
        error.hint = follow_hint(standby.path, control.promoted_to or "")
        if is_replaced_by(primary, standby):
            promote = own_command("standby", "promote", home=standby.path)
            error.detail = "The promotion of this standby has begun, and was interrupted."
            error.hint = f'To complete the promotion, run "{promote}".'
        raise


def receive(standby: Cluster) -> list[PostgresError]:
    """Follow the primary once (WalReceiver.receive)."""
    with attached(standby) as receiver:
        return receiver.receive()


def follow(standby: Cluster, primary_home: Path, *, with_slots: bool) -> list[PostgresError]:
    """Copy changes like `receive`, but do not confirm them to the primary.

    Args:
        with_slots: also synchronize slots.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is no longer a standby, or the primary lacks
            commits that the standby has.
    """
    with reading_primary(standby, primary_home) as connection:
        note_base(connection)
        for table in schema_table.metadata.sorted_tables:
            if table.name not in _OWN_TABLES:
                _copy_rows(connection, table.name, [column.name for column in table.columns])
        copied = ", ".join(f"{name} = (SELECT {name} FROM source.pg_control)" for name in _FOLLOWED)
        connection.exec_driver_sql(f"UPDATE main.pg_control SET {copied}")
        follow_tables(connection, str(primary_home.resolve()))
        return synchronize_slots(connection) if with_slots else []


def _copy_rows(connection: Connection, table: str, columns: list[str]) -> None:
    """Make a table equal to the primary's.  Write only the differences, and keep the rows'
    rowids.
    """
    here, there = f'main."{table}"', f'source."{table}"'
    is_same = " AND ".join(f'there."{name}" IS here."{name}"' for name in ("rowid", *columns))
    connection.exec_driver_sql(
        f"DELETE FROM {here} AS here"
        f" WHERE NOT EXISTS (SELECT 1 FROM {there} AS there WHERE {is_same})"
    )
    listed = ", ".join(f'"{name}"' for name in ("rowid", *columns))
    connection.exec_driver_sql(
        f"INSERT INTO {here} ({listed}) SELECT {listed} FROM {there} AS there"
        f" WHERE NOT EXISTS (SELECT 1 FROM {here} AS here WHERE here.rowid = there.rowid)"
    )


def _reserve_slot(connection: Connection, name: str, home: str) -> None:
    """Create the standby's slot, or use an existing slot that no other standby uses."""
    slot = find_slot(connection, name)
    if slot is None:
        lsn = insert_lsn(connection)
        create_slot(
            connection,
            ReplicationSlot(name, "", 0, lsn, lsn, type="physical", standby_home=home),
        )
        return
    if slot.is_logical:
        raise InvalidParameterValue(f'replication slot "{name}" is a logical one')
    if slot.standby_home not in (None, home):
        raise ObjectNotInPrerequisiteState(
            f'replication slot "{name}" is used by standby "{slot.standby_home}"'
        )
    check_not_invalidated(slot)
    take_slot(connection, name, home)


def take_slot(connection: Connection, name: str, home: str) -> None:
    """Record the directory of the standby that uses a slot.  Do nothing if there is no such
    slot.
    """
    table = state_schema.pg_replication_slots
    connection.execute(update(table).where(table.c.slot_name == name).values(standby_home=home))


def _is_unfinished(path: Path) -> bool:
    """Return whether a file comes from an unfinished attempt to create a standby."""
    return path.name.startswith((_BACKUP, AUTO_CONF))


def _back_up(primary: Cluster, home: Path) -> None:
    """Copy a consistent state of the primary's catalog, and turn the copy into a standby's catalog
    before others can open it.
    """
    for path in home.glob(f"{_BACKUP}*"):
        path.unlink()
    unfinished = home / _BACKUP
    open_private(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb").close()
    target = sqlite3.connect(unfinished, isolation_level=None)
    try:
        with primary.engine.connect() as connection:
            source: Any = connection.connection.driver_connection
            source.backup(target)
        target.execute("BEGIN")
        target.execute(
            "UPDATE pg_control SET is_in_recovery = 1, home = ?, table_home = ?",
            (str(home), str(primary.path)),
        )
        for table in _OWN_TABLES[1:]:
            target.execute(f"DELETE FROM {table}")
        target.execute("COMMIT")
    except sqlite3.Error as error:
        raise IoError(f'could not make standby "{home}"', detail=str(error)) from error
    finally:
        target.close()
    durable_rename(unfinished, home / CATALOG)


def _confirm(primary: Cluster, standby: Cluster, slot_name: str) -> None:
    """Report to the primary the standby's position, the position that the standby's own slots need,
    and the standby's directory.
    """
    with standby.begin(write=False) as connection:
        received = insert_lsn(connection)
        needed = min([received, *_held_positions(connection)])
    with primary.begin(write=True) as connection:
        slot = find_slot(connection, slot_name)
        if slot is None:
            raise UndefinedObject(
                f'replication slot "{slot_name}" specified by "primary_slot_name" does not exist on'
                " primary server",
                hint="At the primary, use SELECT"
                f" pg_create_physical_replication_slot({quote_literal(slot_name)}).",
            )
        check_not_invalidated(slot)
        home = str(standby.path.resolve())
        if slot.standby_home != home:
            take_slot(connection, slot_name, home)
        advance_standby_slot(connection, slot_name, received, needed)


def _held_positions(connection: Connection) -> list[int]:
    """Return the positions that a standby's own logical slots need.  The primary itself has the
    slots that are synchronized.
    """
    return [
        slot.restart_lsn
        for slot in list_slots(connection)
        if slot.is_logical and not slot.synced and slot.invalidation_reason is None
    ]
