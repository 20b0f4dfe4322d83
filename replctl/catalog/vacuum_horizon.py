"""Find which part of the log and of the catalogs' history is still needed, and remove the rest
(GetOldestXmin, heap freezing and RemoveOldXlogFiles in PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from replctl.catalog import schema, schema_table, state_schema
from replctl.catalog.commit_digest import newest_commit_lsn, note_trimmed
from replctl.catalog.commit_nonce import trim_nonces
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_sequence import trim_states
from replctl.catalog.pg_wal import ADOPT, BREAK, CHANGE, NO_XID, last_logged_version
from replctl.catalog.snapshot import BOOTSTRAP_XID
from replctl.catalog.state_schema import is_committed
from replctl.catalog.table_home import TableHome
from replctl.catalog.transaction import Catalog, insert_lsn, next_xid
from replctl.lsn import INVALID_LSN
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Horizon:
    """A position and a time.  History that is older than both is not needed.

    Attributes:
        lsn: the oldest position that a reader still needs.
        time: commits after this time (microseconds since 1970) are kept in any case.
        now: the current time.  Commit times after it come from clocks that were ahead.
        settled_lsn: commits below this LSN are older than `time`, even if their own times are
            after `now`.  The reason: the commit at this LSN has a time before `time`.
    """

    lsn: int
    time: int
    now: int = 2**63 - 1
    settled_lsn: int = 0

    @staticmethod
    def of(connection: Connection, lsn: int, time: int, now: int) -> Horizon:
        """Return a horizon that allows for commits whose clocks were ahead.

        Only LSNs prove the order of commits; times do not.  A commit whose clock was behind must
        not make earlier commits look old.  So replctl looks for the first commit with a time
        between `time` and `now`.  `settled_lsn` is the LSN of the commit before it.
        """
        xact = state_schema.pg_xact
        newest = connection.execute(select(func.max(xact.c.commit_time))).scalar_one()
        if newest is None or newest <= now:
            return Horizon(lsn, time, now)
        is_known = is_committed(xact) & (xact.c.commit_time <= now)
        recent = select(func.min(xact.c.commit_lsn)).where(is_known, xact.c.commit_time > time)
        first_recent = connection.execute(recent).scalar_one()
        before = select(func.max(xact.c.commit_lsn)).where(is_known)
        if first_recent is not None:
            before = before.where(xact.c.commit_lsn < first_recent)
        return Horizon(lsn, time, now, int(connection.execute(before).scalar_one() or 0))

    @property
    def is_old(self) -> ColumnElement[bool]:
        """Return the condition that a committed transaction is so old that its time does not
        protect it.
        """
        xact = state_schema.pg_xact
        is_misdated = and_(xact.c.commit_time > self.now, xact.c.commit_lsn < self.settled_lsn)
        return or_(xact.c.commit_time <= self.time, is_misdated)


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped relation that no session can see, but whose Delta table is still recorded.

    Attributes:
        is_own: replctl chose the table's directory, and no other relation uses the directory.
    """

    relid: int
    location: str
    is_own: bool


def oldest_slot_lsn(connection: Connection, databases: Collection[int] | None = None) -> int:
    """Return the oldest position that the slots of some databases (None for all databases) retain;
    without slots, the end of the log.  Slots of standbys count for each database, because standbys
    follow all databases.
    """
    slots = state_schema.pg_replication_slots
    query = select(func.min(slots.c.restart_lsn)).where(
        slots.c.invalidation_reason.is_(None), slots.c.restart_lsn != INVALID_LSN
    )
    if databases is not None:
        is_wanted = slots.c.datoid.in_(sorted(databases))
        query = query.where(or_(is_wanted, slots.c.slot_type == "physical"))
    oldest = connection.execute(query).scalar_one()
    end = insert_lsn(connection)
    return end if oldest is None else min(int(oldest), end)


def oldest_xid_behind(connection: Connection, lsn: int) -> int:
    """Return the oldest transaction that was not committed at an LSN; if there is none, the number
    of the next transaction.
    """
    xact = state_schema.pg_xact
    query = select(func.min(xact.c.xid)).where(or_(~is_committed(xact), xact.c.commit_lsn > lsn))
    oldest = connection.execute(query).scalar_one()
    return next_xid(connection) if oldest is None else int(oldest)


@dataclass(frozen=True, slots=True)
class OldestChange:
    """The oldest commit of a table that a slot must still send.

    Attributes:
        version: the Delta version.
        time: the commit time in microseconds since 1970.
    """

    relation: Relation
    version: int
    time: int


def oldest_needed_version(catalog: Catalog, relid: int, horizon: Horizon) -> int | None:
    """Return the oldest Delta version of a relation to keep: the one before the first change after
    the horizon.  None if the relation has no version.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    query = (
        select(func.min(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(
            wal.c.relid == relid,
            or_(
                ~is_committed(xact),
                xact.c.commit_lsn > horizon.lsn,
                ~horizon.is_old,
            ),
        )
    )
    first = catalog.connection.execute(query).scalar_one()
    return last_logged_version(catalog.connection, relid) if first is None else int(first) - 1


def has_adopted_tables(connection: Connection) -> bool:
    """Return whether any database has adopted tables."""
    storage = state_schema.storage_table
    query = select(storage.c.relid).where(storage.c.is_adopted).limit(1)
    return connection.execute(query).first() is not None


def oldest_adopted_changes(catalog: Catalog, lsn: int) -> list[OldestChange]:
    """Return, for each adopted table, its first change that was committed after an LSN."""
    wal, xact, storage = state_schema.pg_wal, state_schema.pg_xact, state_schema.storage_table
    # If a query has min(), SQLite takes its other columns from the row with the minimum.
    query = (
        select(wal.c.relid, func.min(wal.c.version).label("version"), xact.c.commit_time)
        .join(xact, xact.c.xid == wal.c.xid)
        .join(storage, storage.c.relid == wal.c.relid)
        .where(
            storage.c.is_adopted,
            wal.c.action == CHANGE,
            is_committed(xact),
            xact.c.commit_lsn > lsn,
        )
        .group_by(wal.c.relid)
    )
    found = {int(row.relid): row for row in catalog.connection.execute(query)}
    return [
        OldestChange(relation, int(found[oid].version), int(found[oid].commit_time))
        for oid, relation in load_relations(catalog, found).items()
    ]


def dropped_tables(connection: Connection, horizon: Horizon) -> list[DroppedTable]:
    """Return the tables that were dropped before the horizon, in all databases."""
    relation, storage = schema.pg_class, state_schema.storage_table
    other = storage.alias()
    is_there = exists().where(
        relation.c.oid == storage.c.relid, relation.c.xmax.not_in(_ended(horizon))
    )
    is_shared = exists().where(
        other.c.location == storage.c.location, other.c.relid != storage.c.relid
    )
    query = select(storage).where(~is_there)
    shared = {int(row.relid) for row in connection.execute(query.where(is_shared))}
    home = TableHome(connection)
    return [
        DroppedTable(
            int(row.relid),
            home.located(str(row.location)),
            not (row.is_adopted or row.has_location or row.is_read_only or row.relid in shared),
        )
        for row in connection.execute(query)
    ]


def recorded_oids(connection: Connection) -> set[int]:
    """Return the OIDs of all relations and subscriptions, also of dropped ones that are not yet
    forgotten.
    """
    relations, subscriptions = schema.pg_class.c.oid, schema.pg_subscription.c.oid
    stored = state_schema.storage_table.c.relid
    query = select(relations).union(select(stored), select(subscriptions))
    return set(connection.execute(query).scalars())


def forget_tables(connection: Connection, relids: Collection[int]) -> None:
    """Remove all records about Delta tables that no longer exist."""
    for table in (state_schema.storage_column, state_schema.storage_table, state_schema.pg_wal):
        connection.execute(delete(table).where(table.c.relid.in_(list(relids))))


def trim(connection: Connection, horizon: Horizon) -> None:
    """Remove history older than the horizon: log entries except the newest of each relation,
    removed row versions, and transactions that have no log entries.  Row versions that everybody
    sees get the bootstrap transaction as their creator (PostgreSQL freezes them).

    For each writer of a relation, its newest change stays, because a reconcile needs it.  The
    newest commit before the horizon also stays: a reader that continues there compares its digest,
    to recognise the same log.  The caller must have removed dropped tables before.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    old = _ended(horizon)
    newer = wal.alias()
    committed = select(xact.c.xid).where(is_committed(xact))
    is_superseded = exists().where(
        newer.c.relid == wal.c.relid,
        newer.c.version > wal.c.version,
        newer.c.xid.in_(committed),
    )
    changes_nothing = wal.c.action.not_in((ADOPT, CHANGE, BREAK))
    is_gone = or_(
        wal.c.version.is_(None), and_(is_superseded, or_(changes_nothing, _is_repeated_change()))
    )
    connection.execute(delete(wal).where(wal.c.xid.in_(old), is_gone))
    connection.execute(delete(wal).where(wal.c.xid == NO_XID, wal.c.lsn <= horizon.lsn))
    trim_nonces(connection, horizon.time)
    for table in schema_table.metadata.sorted_tables:
        if table.info.get("versioned"):
            connection.execute(delete(table).where(table.c.xmax.in_(old)))
            frozen = update(table).where(table.c.xmin.in_(old)).values(xmin=BOOTSTRAP_XID)
            connection.execute(frozen)
    trim_states(connection)
    is_traced = exists().where(wal.c.xid == xact.c.xid)
    is_newest = xact.c.commit_lsn == newest_commit_lsn(connection, horizon.lsn)
    connection.execute(delete(xact).where(xact.c.xid.in_(old), ~is_traced, ~is_newest))
    note_trimmed(connection, horizon.lsn)
    _give_back_pages(connection)


def _give_back_pages(connection: Connection) -> None:
    """Return unused pages of the catalog's file to the operating system.  Each execution frees one
    page, because Python runs only one step of the statement.
    """
    free = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    for _ in range(free):
        connection.exec_driver_sql("PRAGMA incremental_vacuum(1)")


def _is_repeated_change() -> ColumnElement[bool]:
    """Return the condition that the writer of a log entry has later changed the relation again."""
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    later, commit = wal.alias(), xact.alias()
    made_by = select(xact.c.origin).where(xact.c.xid == wal.c.xid)
    origin = made_by.correlate(wal).scalar_subquery()
    repeated = exists().where(
        later.c.relid == wal.c.relid,
        later.c.version > wal.c.version,
        later.c.action.in_((CHANGE, BREAK)),
        later.c.mark.is_(None) == wal.c.mark.is_(None),
        commit.c.xid == later.c.xid,
        is_committed(commit),
        commit.c.origin.is_not_distinct_from(origin),
    )
    return repeated.correlate(wal)


def _ended(horizon: Horizon) -> Select[int]:
    """Return a query of the transactions that were committed before the horizon."""
    xact = state_schema.pg_xact
    return select(xact.c.xid).where(
        is_committed(xact),
        xact.c.commit_lsn <= horizon.lsn,
        horizon.is_old,
    )
