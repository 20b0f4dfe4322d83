"""The commit log: which Delta versions of which relations belong to which transaction, and in what
order.

Within a relation the order of LSNs is the order of Delta's versions, always: before anything of a
relation is entered, the versions that others made are, as they are found in Delta's own log
(without Spark).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select

from replctl.catalog import schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Relation
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction, next_lsn
from replctl.lake.adopt import adopt_new_columns
from replctl.lake.delta_log import DeltaCommit, commits_after, latest_version

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


def user_metadata(cluster: Cluster, xid: int, **noted: object) -> str:
    """What replctl writes into a Delta commit, so that the commit can be told from others'
    later."""
    body = {"system_identifier": cluster.system_identifier, "xid": xid, **noted}
    return json.dumps({"replctl": body}, separators=(",", ":"))


def last_logged_version(catalog: Catalog, relid: int) -> int | None:
    """The newest Delta version of a relation that is in the log."""
    wal = schema.pg_wal
    return catalog.connection.execute(
        select(func.max(wal.c.version)).where(wal.c.relid == relid)
    ).scalar_one_or_none()


def has_unlogged_versions(catalog: Catalog, relation: Relation) -> bool:
    """Whether Delta's log of a relation has versions that are not in ours: a listing, no more."""
    storage = relation.storage
    if storage is None or not (storage.is_made or storage.is_adopted):
        return False
    newest = latest_version(storage.location)
    logged = last_logged_version(catalog, relation.oid)
    return newest is not None and newest > (-1 if logged is None else logged)


def enter_versions(
    catalog: Catalog,
    cluster: Cluster,
    relation: Relation,
    own_xid: int | None = None,
    undone_xid: int | None = None,
) -> None:
    """Enter what Delta's log of a relation has and ours has not, oldest first.

    Versions of `own_xid` are entered as its own, those of `undone_xid` as changing nothing; each of
    others' becomes a transaction of its own.  It stops before a version of a transaction that is in
    progress: nothing behind it may be seen.  Columns that others have added are the relation's from
    their commit on.
    """
    storage = relation.storage
    if storage is None:
        return
    logged = last_logged_version(catalog, relation.oid)
    for commit in commits_after(storage.location, -1 if logged is None else logged):
        noted = commit.replctl
        is_ours = noted.get("system_identifier") == cluster.system_identifier
        xid = int(noted["xid"]) if is_ours else None
        if xid is not None and xid == own_xid:
            enter(catalog, xid, relation.oid, commit.version, _action(commit), _detail(commit))
            continue
        if xid is not None and xid != undone_xid and xid in catalog.snapshot.in_progress:
            break
        if commit.changes_schema and not is_ours:
            adopt_new_columns(catalog, relation.oid, storage.location, commit.version)
        foreign_xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
        is_undone = xid is not None and xid == undone_xid
        action = NONE if is_undone else _action(commit)
        enter(catalog, foreign_xid, relation.oid, commit.version, action, _detail(commit))
        commit_transaction(
            catalog.connection,
            foreign_xid,
            changes_catalog=False,
            commit_time=commit.timestamp * 1000,
        )


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


def version_at(catalog: Catalog, relid: int, lsn: int) -> int | None:
    """The Delta version of a relation at an LSN; None where there was no table yet."""
    wal, xact = schema.pg_wal, schema.pg_xact
    query = (
        select(func.max(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(wal.c.relid == relid, xact.c.status == "c", xact.c.commit_lsn <= lsn)
    )
    return catalog.connection.execute(query).scalar_one_or_none()


def forget_relations(catalog: Catalog, relids: Iterable[int]) -> None:
    """Remove the log of relations that nobody can decode any more."""
    catalog.connection.execute(delete(schema.pg_wal).where(schema.pg_wal.c.relid.in_(list(relids))))


def _action(commit: DeltaCommit) -> str:
    noted = commit.replctl
    if not commit.changes_data or noted.get("silent") or noted.get("truncates"):
        return NONE
    return TRUNCATE if commit.operation == "TRUNCATE" and not noted else CHANGE


def _detail(commit: DeltaCommit) -> dict[str, object] | None:
    """Whether images of updates have to be paired by row id: ours say so, others' may need it."""
    noted = commit.replctl
    may_change_keys = (
        noted.get("changes_keys") if noted else commit.operation in ("UPDATE", "MERGE")
    )
    return {"changes_keys": True} if may_change_keys else None
