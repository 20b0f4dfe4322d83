"""The commit log: which Delta versions of which relations belong to which transaction, and in what
order.

Within a relation the order of LSNs is the order of Delta's versions, always: before anything of a
relation is entered, the versions that others made are, as they are found in Delta's own log
(without Spark).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_control import check_timeline
from replctl.catalog.pg_wal import (
    CHANGE,
    NONE,
    TRUNCATE,
    LoggedTable,
    enter,
    is_logged_in_progress,
    known_origin_lsn,
    last_logged_version,
    logged_tables,
)
from replctl.catalog.storage import note_foreign_commit
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.errors import UndefinedFile
from replctl.lake.adopt import adopt_new_columns
from replctl.lake.delta_log import DeltaCommit, commits_after, latest_version


def user_metadata(cluster: Cluster, xid: int, **noted: object) -> str:
    """What replctl writes into a Delta commit, so that the commit can be told from others'
    later."""
    timeline = cluster.control().timeline
    body = {"system_identifier": cluster.system_identifier, "xid": xid, **noted}
    if timeline > 1:
        body["timeline"] = timeline
    return json.dumps({"replctl": body}, separators=(",", ":"))


def has_unlogged_versions(
    catalog: Catalog, relation: Relation, *, may_be_missing: bool = False
) -> bool:
    """Whether Delta's log of a relation has versions that are not in ours: a listing, no more.

    Args:
        may_be_missing: a table that was made and is not there has none.

    Raises:
        UndefinedFile: it is not there (58P01).
    """
    storage = relation.storage
    if storage is None or not storage.is_made:
        return False
    if may_be_missing and latest_version(storage.location) is None:
        return False
    logged = last_logged_version(catalog, relation.oid)
    return _is_behind(catalog, LoggedTable(relation.oid, storage.location, logged))


def tables_behind(catalog: Catalog, relids: Collection[int] | None = None) -> list[int]:
    """The tables of the database, all or some, of which that is so.

    Raises:
        UndefinedFile: one is not there (58P01).
    """
    tables = logged_tables(catalog, relids)
    return [table.relid for table in tables if _is_behind(catalog, table)]


def _is_behind(catalog: Catalog, table: LoggedTable) -> bool:
    newest = latest_version(table.location)
    if newest is None:
        relation = get_relation(catalog, table.relid)
        assert relation is not None
        raise UndefinedFile(
            f'could not find the Delta table "{table.location}"',
            detail=f'Table "{relation.qualified_name}" is stored there.',
        )
    return table.version is None or newest > table.version


def unlogged_commits(catalog: Catalog, relation: Relation) -> Iterator[DeltaCommit]:
    """What Delta's log of a relation has and ours has not, oldest first."""
    if relation.storage is None:
        return iter(())
    logged = last_logged_version(catalog, relation.oid)
    return commits_after(relation.storage.location, -1 if logged is None else logged)


def enter_versions(
    catalog: Catalog,
    cluster: Cluster,
    relation: Relation,
    own_xid: int | None = None,
    undone_xid: int | None = None,
) -> None:
    """Enter what Delta's log of a relation has and ours has not, oldest first.

    Versions of `own_xid` are entered as its own, those of `undone_xid` as changing nothing, as are
    those that their transaction has taken back; each of others' becomes a transaction of its own.
    It stops before a version of a transaction that is in progress: nothing behind it may be seen.
    Columns that others have added are the relation's from their commit on.

    Raises:
        CannotConnectNow: a standby that was promoted writes the table (57P03).
    """
    storage = relation.storage
    if storage is None:
        return
    if is_logged_in_progress(catalog, relation.oid, but=own_xid or undone_xid):
        return
    commits = list(unlogged_commits(catalog, relation))
    taken_back = {version for commit in commits for version in commit.replctl.get("undoes", ())}
    for commit in commits:
        noted = commit.replctl
        is_ours = noted.get("system_identifier") == cluster.system_identifier
        xid = int(noted["xid"]) if is_ours else None
        if is_ours and "timeline" in noted:
            check_timeline(catalog.connection, int(noted["timeline"]))
        if xid is not None and xid == own_xid:
            action = NONE if commit.version in taken_back else _action(commit)
            enter(catalog, xid, relation.oid, commit.version, action, _detail(commit))
            continue
        if xid is not None and xid != undone_xid and xid in catalog.snapshot.in_progress:
            break
        if not is_ours:
            note_foreign_commit(catalog.connection, relation.oid)
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
            origin=noted.get("origin") if is_ours else None,
            origin_lsn=None if xid is None else known_origin_lsn(catalog, xid),
        )


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
