"""Find the version of each table that belongs to a snapshot of the catalog.

A query reads the catalog first and the tables later.  Meanwhile transactions may begin, and write
tables.  The snapshot does not know them, and cannot say whether they are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_nonce import find_nonces
from replctl.catalog.intent import intents_of
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_control import read_control
from replctl.catalog.transaction import Catalog
from replctl.lake.commit_mark import mark_of
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.unknown_mark import check_mark


def snapshot_versions(
    catalog: Catalog,
    cluster: Cluster,
    relations: Mapping[int, Relation],
    newest: Mapping[int, tuple[int, Sequence[DeltaCommit]]],
) -> dict[int, int | None]:
    """Return, for each table, the newest version before all versions of later transactions.  Later
    transactions are those that began after the catalog's snapshot.  Omit tables that the catalog's
    own transaction writes: other transactions wait for its end.

    Args:
        relations: the tables, by OID.
        newest: the newest version of each table, and the commits that the commit log lacks (see
            `commit_log.newest_versions`).

    Returns:
        the versions by OID; None if a later transaction wrote the first version.

    Raises:
        CannotConnectNow, ObjectNotInPrerequisiteState: a commit was not made with this catalog
            (check_mark).
    """
    own = catalog.xids.top
    written = set() if own is None else {i.relid for i in intents_of(catalog.connection, own)}
    versions: dict[int, int | None] = {}
    for oid, (version, unlogged) in newest.items():
        if oid not in written:
            later = _later_versions(catalog, cluster, relations[oid], unlogged)
            before = min(later) - 1 if later else version
            versions[oid] = before if before >= 0 else None
    return versions


def _later_versions(
    catalog: Catalog, cluster: Cluster, relation: Relation, unlogged: Sequence[DeltaCommit]
) -> list[int]:
    """Return the versions that replctl wrote in transactions that the snapshot does not know.

    The catalog of a read-only home may be a copy, so an unknown nonce counts as a later one there.
    On a standby the result is empty: the catalog follows the primary's with a delay.

    Raises:
        CannotConnectNow, ObjectNotInPrerequisiteState: see `snapshot_versions`.
    """
    marks = {
        commit.version: mark
        for commit in unlogged
        if (mark := mark_of(commit.user_metadata, cluster.signing_key, relation.oid)) is not None
    }
    if not marks or read_control(catalog.connection).is_in_recovery:
        return []
    nonces = {mark.nonce for mark in marks.values()}
    known = find_nonces(catalog.connection, nonces)
    later = nonces - known.keys()
    if cluster.refusal is None:
        with cluster.begin(write=False) as connection:
            later = set(find_nonces(connection, later))
    for version, mark in marks.items():
        is_known = mark.nonce in known or mark.nonce in later
        check_mark(catalog, relation, version, mark, cluster.path, is_known=is_known)
    return [version for version, mark in marks.items() if mark.nonce in later]
