"""The commit log as it is stored: what each transaction did to which Delta version of which"
" relation."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select, update

from replctl.catalog import schema
from replctl.catalog.transaction import (
    Catalog,
    begin_transaction,
    commit_transaction,
    next_lsn,
)

#: What a log entry does to rows: `change` (read its change feed), `truncate`, or `none`.
CHANGE, TRUNCATE, NONE = "change", "truncate", "none"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A row of the log with its transaction's commit."""

    lsn: int
    xid: int
    commit_lsn: int
    commit_time: int
    origin: str | None
    relid: int
    version: int | None
    action: str
    detail: dict[str, object]


def last_logged_version(catalog: Catalog, relid: int) -> int | None:
    """The newest Delta version of a relation that is in the log."""
    wal = schema.pg_wal
    return catalog.connection.execute(
        select(func.max(wal.c.version)).where(wal.c.relid == relid)
    ).scalar_one_or_none()


def last_committed_version(catalog: Catalog, relid: int) -> int | None:
    """The newest Delta version of a relation that everybody may see."""
    wal, xact = schema.pg_wal, schema.pg_xact
    return catalog.connection.execute(
        select(func.max(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(wal.c.relid == relid, xact.c.status == "c")
    ).scalar_one_or_none()


def is_logged_in_progress(catalog: Catalog, relid: int, but: int | None) -> bool:
    """Whether another transaction than `but` has entered versions of a relation and is in
    progress."""
    others = catalog.snapshot.in_progress.difference([but])
    wal = schema.pg_wal
    query = select(wal.c.lsn).where(wal.c.relid == relid, wal.c.xid.in_(sorted(others))).limit(1)
    return bool(others) and catalog.connection.execute(query).first() is not None


def take_back(catalog: Catalog, xid: int, since_lsn: int = 0) -> None:
    """What a transaction has entered since an LSN was undone: its versions change nothing."""
    wal = schema.pg_wal
    mine = (wal.c.xid == xid, wal.c.lsn > since_lsn)
    catalog.connection.execute(delete(wal).where(*mine, wal.c.version.is_(None)))
    catalog.connection.execute(update(wal).where(*mine).values(action=NONE))


def bequeath(catalog: Catalog, xid: int) -> None:
    """What a transaction has entered, and taken back, becomes another's, which changes nothing: it
    can be forgotten, and its versions stay known."""
    wal = schema.pg_wal
    if catalog.connection.execute(select(wal.c.lsn).where(wal.c.xid == xid).limit(1)).first():
        heir = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
        catalog.connection.execute(update(wal).where(wal.c.xid == xid).values(xid=heir))
        commit_transaction(catalog.connection, heir, changes_catalog=False)


def enter(
    catalog: Catalog,
    xid: int,
    relid: int,
    version: int | None,
    action: str,
    detail: dict[str, object] | None = None,
) -> int:
    """Add an entry to the log; its LSN."""
    lsn = next_lsn(catalog.connection)
    catalog.connection.execute(
        insert(schema.pg_wal).values(
            lsn=lsn,
            xid=xid,
            dbid=catalog.database_oid,
            relid=relid,
            version=version,
            action=action,
            detail=json.dumps(detail) if detail else None,
        )
    )
    return lsn


def entries_between(
    catalog: Catalog, from_lsn: int, to_lsn: int, relids: Collection[int] | None = None
) -> list[LogEntry]:
    """The entries of transactions committed in (from_lsn, to_lsn], by commit and then by LSN."""
    wal, xact = schema.pg_wal, schema.pg_xact
    query = (
        select(wal, xact.c.commit_lsn, xact.c.commit_time, xact.c.origin)
        .join(xact, xact.c.xid == wal.c.xid)
        .where(
            wal.c.dbid == catalog.database_oid,
            wal.c.action != NONE,
            xact.c.status == "c",
            xact.c.commit_lsn > from_lsn,
            xact.c.commit_lsn <= to_lsn,
        )
        .order_by(xact.c.commit_lsn, wal.c.lsn)
    )
    if relids is not None:
        query = query.where(wal.c.relid.in_(sorted(relids)))
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
