"""The commit log: which Delta versions of which relations belong to which transaction, and in what
order.

Within a relation the order of LSNs is the order of Delta's versions, always: before anything of a
relation is entered, the versions that others made are, as they are found in Delta's own log
(without Spark).
"""

from __future__ import annotations

import json

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_wal import (
    CHANGE,
    NONE,
    TRUNCATE,
    enter,
    is_logged_in_progress,
    last_logged_version,
)
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.lake.adopt import adopt_new_columns
from replctl.lake.delta_log import DeltaCommit, commits_after, latest_version


def user_metadata(cluster: Cluster, xid: int, **noted: object) -> str:
    """What replctl writes into a Delta commit, so that the commit can be told from others'
    later."""
    body = {"system_identifier": cluster.system_identifier, "xid": xid, **noted}
    return json.dumps({"replctl": body}, separators=(",", ":"))


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
    if is_logged_in_progress(catalog, relation.oid, but=own_xid or undone_xid):
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
