"""Find the version of each table that belongs to a snapshot of the catalog.

A query reads the catalog first and the tables later.  Meanwhile transactions may begin, and write
tables.  The snapshot does not know them, and cannot say whether they are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_nonce import find_nonces
from replctl.catalog.intent import intents_of
from replctl.catalog.transaction import Catalog
from replctl.lake.commit_mark import mark_of
from replctl.lake.delta_commit import DeltaCommit


def snapshot_versions(
    catalog: Catalog, cluster: Cluster, newest: Mapping[int, tuple[int, Sequence[DeltaCommit]]]
) -> dict[int, int | None]:
    """Return, for each table, the newest version before all versions of later transactions.  Later
    transactions are those that began after the catalog's snapshot.  Omit tables that the catalog's
    own transaction writes: other transactions wait for its end.

    Args:
        newest: the newest version of each table, and the commits that the commit log lacks (see
            `commit_log.newest_versions`).

    Returns:
        the versions by OID; None if a later transaction wrote the first version.
    """
    own = catalog.xids.top
    written = set() if own is None else {i.relid for i in intents_of(catalog.connection, own)}
    versions: dict[int, int | None] = {}
    for oid, (version, unlogged) in newest.items():
        if oid not in written:
            later = _later_versions(catalog, cluster, oid, unlogged)
            before = min(later) - 1 if later else version
            versions[oid] = before if before >= 0 else None
    return versions


def _later_versions(
    catalog: Catalog, cluster: Cluster, oid: int, unlogged: Sequence[DeltaCommit]
) -> list[int]:
    """Return the versions that replctl wrote in transactions that the snapshot does not know."""
    nonces = {
        commit.version: mark.nonce
        for commit in unlogged
        if (mark := mark_of(commit.user_metadata, cluster.signing_key, oid)) is not None
    }
    if not nonces:
        return []
    known = find_nonces(catalog.connection, set(nonces.values()))
    # A nonce that is in no snapshot is of a lost transaction of a restored catalog
    with cluster.begin(write=False) as connection:
        found = find_nonces(connection, set(nonces.values()) - known.keys())
    return [version for version, nonce in nonces.items() if nonce in found]
