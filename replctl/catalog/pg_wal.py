"""Read and write the commit log: the effect of each transaction on the Delta versions of
relations.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from sqlalchemy import Connection, and_, case, delete, func, insert, or_, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.state_schema import is_committed
from replctl.catalog.table_home import TableHome
from replctl.catalog.transaction import (
    Catalog,
    begin_transaction,
    commit_transaction,
    insert_lsn,
    next_lsn,
)
from replctl.record import dataclass

#: The effect of a log entry on rows.  `change`: the version's change feed has the changes.
#: `truncate`: a TRUNCATE has removed all rows.  `none`: no row has changed.  `break`: the table has
#: lost its earlier versions, so the changes are unknown.  `adopt`: the table was adopted with the
#: rows that others had written.  `message`: the entry comes from pg_logical_emit_message(), and has
#: no relation.
CHANGE, TRUNCATE, NONE, BREAK, MESSAGE = "change", "truncate", "none", "break", "message"
ADOPT = "adopt"
#: The entries that subscribers must handle.
_ROW_ACTIONS = (CHANGE, TRUNCATE, BREAK)
#: The transaction number of messages outside of transactions.
NO_XID = 0


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A row of the log, with the commit of its transaction.

    `origin` is None without an origin, and for a commit of another program within a transaction.
    """

    lsn: int
    xid: int
    commit_lsn: int
    commit_time: int
    origin: str | None
    relid: int
    version: int | None
    action: str
    detail: dict[str, object]

    @property
    def statement(self) -> tuple[int, str, object] | None:
        """Return what the entries of one statement have in common: those of a TRUNCATE, or of a
        change of rows in several tables.  None for other entries.
        """
        number = self.detail.get("statement")
        return None if number is None else (self.xid, self.action, number)


def numbered(
    entries: Iterable[LogEntry], sent_as: Callable[[LogEntry], int] = lambda entry: 0
) -> Iterator[tuple[int, LogEntry]]:
    """Number entries from 1, in the order of commits.

    The entries of one statement have one number, so a row that moves to another partition can be
    deleted before it is inserted, whatever the order of the partitions.  If the statement has
    several entries of a table, as many numbers follow.

    Args:
        sent_as: returns a number of the published relation.  Entries of several ones share nothing.
    """
    last = 0
    statement: object = None
    shared: dict[tuple[int, int], int] = {}
    counts: Counter[int] = Counter()
    for entry in entries:
        if entry.statement is not None and entry.statement != statement:
            statement, shared, counts = entry.statement, {}, Counter()
        place = (sent_as(entry), counts[entry.relid])
        if entry.statement is None or place not in shared:
            last += 1
            position = last
        else:
            position = shared[place]
        if entry.statement is not None:
            shared[place] = position
            counts[entry.relid] += 1
        yield position, entry


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed transaction; `commit_time` is in microseconds since 1970."""

    xid: int
    commit_lsn: int
    commit_time: int
    origin: str | None
    origin_lsn: int | None
    changes_catalog: bool
    is_internal: bool
    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """The location of a table, and its newest Delta version in the log.

    `digest` is the digest of the version's file in Delta's log.  `file_state` has the file's
    number, size and time when replctl read it (DeltaCommit.file_state).
    """

    relid: int
    location: str
    version: int | None
    digest: str | None
    file_state: str | None = None


@dataclass(frozen=True, slots=True)
class EnteredVersion:
    """A version of a relation in the log: the digest of its file, and the mark of replctl's commit;
    None for a commit of another program.
    """

    digest: str | None
    mark: str | None


def last_logged_version(connection: Connection, relid: int) -> int | None:
    """Return the newest Delta version of a relation in the log; None if there is none."""
    return last_entered_version(connection, relid, "").version


def logged_tables(catalog: Catalog, relids: Collection[int] | None = None) -> list[LoggedTable]:
    """Return the relations with existing Delta tables: all tables of the database, or those among
    `relids`.
    """
    pg_class, storage, wal = schema.pg_class, state_schema.storage_table, state_schema.pg_wal
    of_table = wal.alias()
    newest = (
        select(of_table.c.lsn)
        .where(of_table.c.relid == storage.c.relid, of_table.c.version.is_not(None))
        .order_by(of_table.c.version.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(storage.c.relid, storage.c.location, wal.c.version, wal.c.digest, wal.c.file_state)
        .select_from(storage)
        .join(pg_class, pg_class.c.oid == storage.c.relid)
        .join(wal, wal.c.lsn == newest, isouter=True)
        .where(storage.c.is_made, catalog.visible(pg_class))
        .order_by(storage.c.relid)
    )
    wanted = pg_class.c.relkind == RelKind.TABLE if relids is None else storage.c.relid.in_(relids)
    rows = catalog.connection.execute(query.where(wanted))
    home = TableHome(catalog.connection)
    return [
        LoggedTable(
            int(row.relid),
            home.located(str(row.location)),
            row.version,
            row.digest,
            row.file_state,
        )
        for row in rows
    ]


def last_committed_version(catalog: Catalog, relid: int) -> int | None:
    """Return the newest committed Delta version of a relation; None if there is none."""
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    return catalog.connection.execute(
        select(func.max(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(wal.c.relid == relid, is_committed(xact))
    ).scalar_one_or_none()


def version_at(catalog: Catalog, relid: int, lsn: int) -> int | None:
    """Return the Delta version of a relation at an LSN; None if it had no table then.

    This is the version before the first one that was committed after the LSN. The entry of the
    version itself may be gone, because VACUUM removes entries that are no longer needed.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    later = (
        select(func.min(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(wal.c.relid == relid, or_(~is_committed(xact), xact.c.commit_lsn > lsn))
    )
    first = catalog.connection.execute(later).scalar_one()
    if first is None:
        return last_logged_version(catalog.connection, relid)
    return int(first) - 1 if first else None


def has_forgotten_changes(catalog: Catalog, relid: int, origins: Collection[str]) -> bool:
    """Return whether the catalog has lost the transaction of a relation's newest changes from these
    origins.  The changes were found in the table, but the applied position in the origin is
    unknown.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    newest = (
        select(xact.c.origin_lsn)
        .join(wal, wal.c.xid == xact.c.xid)
        .where(wal.c.relid == relid, wal.c.action == CHANGE, xact.c.origin.in_(origins))
        .order_by(wal.c.version.desc())
        .limit(1)
    )
    row = catalog.connection.execute(newest).first()
    return row is not None and row.origin_lsn is None


def acknowledge_changes(
    catalog: Catalog, relids: Collection[int], origins: Collection[str], origin_lsn: int
) -> None:
    """Record that the changes of these origins up to `origin_lsn` are applied to the tables.

    The catalog has lost their transactions.  The caller has reconciled the tables with the state
    of the origins at this LSN.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    xids = select(wal.c.xid).where(wal.c.relid.in_(relids), wal.c.action == CHANGE)
    forgotten = update(xact).where(
        xact.c.xid.in_(xids), xact.c.origin.in_(origins), xact.c.origin_lsn.is_(None)
    )
    catalog.connection.execute(forgotten.values(origin_lsn=origin_lsn))


def known_origin_lsn(catalog: Catalog, xid: int) -> int | None:
    """Return the origin's position after a committed transaction; None if the position is unknown,
    or the transaction has no origin.
    """
    xact = state_schema.pg_xact
    query = select(xact.c.origin_lsn).where(xact.c.xid == xid, is_committed(xact))
    return catalog.connection.execute(query).scalar_one_or_none()


def is_logged_in_progress(catalog: Catalog, relid: int, but: int | None) -> bool:
    """Return whether an open transaction other than `but` has logged versions of a relation."""
    others = catalog.snapshot.in_progress.difference([but])
    wal = state_schema.pg_wal
    query = select(wal.c.lsn).where(wal.c.relid == relid, wal.c.xid.in_(sorted(others))).limit(1)
    return bool(others) and catalog.connection.execute(query).first() is not None


def take_back(catalog: Catalog, xid: int, since_lsn: int = 0, *, relid: int | None = None) -> None:
    """Record that the changes of a transaction are undone: the versions that it has logged since an
    LSN now have no effect on rows.

    If the transaction has also logged versions of other programs, these keep their effect.  But a
    TRUNCATE of another program becomes a change, because it did not remove the rows that the undo
    restores.

    Args:
        relid: affect only this relation.
    """
    wal = state_schema.pg_wal
    mine = [wal.c.xid == xid, wal.c.lsn > since_lsn]
    mine += [] if relid is None else [wal.c.relid == relid]
    catalog.connection.execute(delete(wal).where(*mine, wal.c.version.is_(None)))
    own = update(wal).where(*mine, wal.c.mark.is_not(None))
    catalog.connection.execute(own.values(action=NONE))
    foreign = update(wal).where(*mine, wal.c.mark.is_(None), wal.c.action == TRUNCATE)
    catalog.connection.execute(foreign.values(action=CHANGE))


def move_to_new_transaction(catalog: Catalog, xid: int, *, relid: int | None = None) -> None:
    """Move the log entries of an undone transaction to a new transaction that does nothing else.
    Then the undone transaction can be removed, while its versions stay in the log.

    Args:
        relid: move only entries of this relation.
    """
    wal = state_schema.pg_wal
    mine = [wal.c.xid == xid] + ([] if relid is None else [wal.c.relid == relid])
    if catalog.connection.execute(select(wal.c.lsn).where(*mine).limit(1)).first():
        heir = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
        catalog.connection.execute(update(wal).where(*mine).values(xid=heir))
        commit_transaction(catalog.connection, heir, changes_catalog=False)


def enter(
    catalog: Catalog,
    xid: int,
    relid: int,
    version: int | None,
    action: str,
    detail: dict[str, object] | None = None,
    *,
    digest: str | None = None,
    file_state: str | None = None,
    mark: str | None = None,
) -> int:
    """Add an entry to the log, and return the entry's LSN.

    Args:
        digest: the digest of the version's file in Delta's log.
        file_state: the number, size and time of that file.
        mark: the nonce and number of replctl's commit; None for a commit of another program.
    """
    lsn = next_lsn(catalog.connection)
    catalog.connection.execute(
        insert(state_schema.pg_wal).values(
            lsn=lsn,
            xid=xid,
            dbid=catalog.database_oid,
            relid=relid,
            version=version,
            action=action,
            detail=json.dumps(detail) if detail else None,
            digest=digest,
            file_state=file_state,
            mark=mark,
        )
    )
    return lsn


def entered_versions(connection: Connection, relid: int, after: int) -> dict[int, EnteredVersion]:
    """Return the log's versions of a relation that are newer than `after`, by number."""
    wal = state_schema.pg_wal
    query = select(wal.c.version, wal.c.digest, wal.c.mark).where(
        wal.c.relid == relid, wal.c.version > after
    )
    return {
        int(row.version): EnteredVersion(row.digest, row.mark) for row in connection.execute(query)
    }


def last_entered_version(connection: Connection, relid: int, location: str) -> LoggedTable:
    """Return a relation with its newest version in the log.

    Args:
        location: the location of the relation's table.
    """
    wal = state_schema.pg_wal
    row = connection.execute(
        select(wal.c.version, wal.c.digest, wal.c.file_state)
        .where(wal.c.relid == relid, wal.c.version.is_not(None))
        .order_by(wal.c.version.desc())
        .limit(1)
    ).first()
    if row is None:
        return LoggedTable(relid, location, None, None)
    return LoggedTable(relid, location, int(row.version), row.digest, row.file_state)


def last_action(connection: Connection, relid: int) -> str | None:
    """Return the effect of a relation's newest log entry on rows; None if there is no entry."""
    wal = state_schema.pg_wal
    query = select(wal.c.action).where(wal.c.relid == relid).order_by(wal.c.lsn.desc()).limit(1)
    return connection.execute(query).scalar_one_or_none()


def forget_versions(connection: Connection, relid: int, after: int) -> None:
    """Remove the log entries of a relation's versions that are newer than `after`, because the
    table no longer has these versions.
    """
    wal = state_schema.pg_wal
    connection.execute(delete(wal).where(wal.c.relid == relid, wal.c.version > after))


def has_entered(connection: Connection, relid: int, xid: int) -> bool:
    """Return whether a transaction has logged versions of a relation."""
    wal = state_schema.pg_wal
    query = select(wal.c.lsn).where(wal.c.relid == relid, wal.c.xid == xid).limit(1)
    return connection.execute(query).first() is not None


def broken_since(catalog: Catalog, relids: Collection[int], lsn: int) -> list[int]:
    """Return the relations in `relids` for which a `break` entry was committed after an
    LSN.
    """
    entries = entries_between(catalog, lsn, insert_lsn(catalog.connection), (BREAK,))
    return sorted({entry.relid for entry in entries}.intersection(relids))


def entered_marks(connection: Connection, relid: int, marks: Collection[str]) -> set[str]:
    """Return the marks in `marks` that belong to versions of a relation in the log."""
    wal = state_schema.pg_wal
    query = select(wal.c.mark).where(wal.c.relid == relid, wal.c.mark.in_(list(marks)))
    return set(map(str, connection.execute(query).scalars()))


def entries_between(
    catalog: Catalog, from_lsn: int, to_lsn: int, actions: Collection[str] = _ROW_ACTIONS
) -> list[LogEntry]:
    """Return the entries of transactions committed in (from_lsn, to_lsn], sorted by commit and then
    by LSN.  Commits of other programs within a transaction of replctl do not have its origin.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    is_foreign = and_(wal.c.version.is_not(None), wal.c.mark.is_(None))
    origin = case((is_foreign, None), else_=xact.c.origin).label("origin")
    query = (
        select(wal, xact.c.commit_lsn, xact.c.commit_time, origin)
        .join(xact, xact.c.xid == wal.c.xid)
        .where(
            wal.c.dbid == catalog.database_oid,
            wal.c.action.in_(actions),
            is_committed(xact),
            xact.c.commit_lsn > from_lsn,
            xact.c.commit_lsn <= to_lsn,
        )
        .order_by(xact.c.commit_lsn, wal.c.lsn)
    )
    return [
        LogEntry(
            int(row.lsn),
            int(row.xid),
            int(row.commit_lsn),
            int(row.commit_time),
            row.origin,
            int(row.relid),
            row.version,
            str(row.action),
            json.loads(row.detail) if row.detail else {},
        )
        for row in catalog.connection.execute(query)
    ]


def commits_between(catalog: Catalog, from_lsn: int, to_lsn: int) -> list[Commit]:
    """Return the transactions committed in (from_lsn, to_lsn] with their entries, in the order of
    commits.
    """
    entries: dict[int, list[LogEntry]] = defaultdict(list)
    for entry in entries_between(catalog, from_lsn, to_lsn, (*_ROW_ACTIONS, MESSAGE)):
        entries[entry.xid].append(entry)
    xact = state_schema.pg_xact
    query = (
        select(xact)
        .where(
            xact.c.dbid == catalog.database_oid,
            is_committed(xact),
            or_(xact.c.block_xid.is_(None), xact.c.block_xid == xact.c.xid),  # no savepoints
            xact.c.commit_lsn > from_lsn,
            xact.c.commit_lsn <= to_lsn,
        )
        .order_by(xact.c.commit_lsn)
    )
    return [
        Commit(
            int(row.xid),
            int(row.commit_lsn),
            int(row.commit_time),
            row.origin,
            row.origin_lsn,
            bool(row.changes_catalog),
            bool(row.is_internal),
            tuple(entries[int(row.xid)]),
        )
        for row in catalog.connection.execute(query)
    ]


def enter_message(
    catalog: Catalog, prefix: str, content: bytes, *, xid: int = NO_XID, origin: str | None = None
) -> int:
    """Add a message to the log, in a transaction or outside of transactions (NO_XID), and return
    its LSN.

    Args:
        origin: the name of the replication origin of the session.
    """
    detail: dict[str, object] = {"prefix": prefix, "content": content.hex(), "origin": origin}
    return enter(catalog, xid, 0, None, MESSAGE, detail)


def messages_between(
    catalog: Catalog, from_lsn: int, to_lsn: int
) -> list[tuple[int, str, bytes, str | None]]:
    """Return LSN, prefix, content and origin of the messages in (from_lsn, to_lsn] outside of
    transactions.
    """
    wal = state_schema.pg_wal
    query = (
        select(wal.c.lsn, wal.c.detail)
        .where(
            wal.c.dbid == catalog.database_oid,
            wal.c.xid == NO_XID,
            wal.c.lsn > from_lsn,
            wal.c.lsn <= to_lsn,
        )
        .order_by(wal.c.lsn)
    )
    found = [(int(lsn), json.loads(text)) for lsn, text in catalog.connection.execute(query)]
    return [(lsn, d["prefix"], bytes.fromhex(d["content"]), d.get("origin")) for lsn, d in found]
