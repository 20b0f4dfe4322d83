"""Make a copy of a cluster an independent cluster (`replctl cluster identify --copied`).

First, replctl ends unfinished transactions of the original: it removes their versions from the logs
of the copy's own tables.  It changes nothing outside the copy's home.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replctl.catalog.cluster import Cluster
from replctl.catalog.identify import (
    CopiedCluster,
    HomeTable,
    check_is_copy,
    home_tables,
    make_own,
)
from replctl.errors import PostgresError
from replctl.injection_point import injection_point
from replctl.lake.commit_mark import mark_of
from replctl.lake.delta_files import remove_versions
from replctl.lake.delta_log import commits_after, latest_version


def identify_copied(cluster: Cluster) -> CopiedCluster:
    """Make a copy of a cluster an independent cluster that does not touch the original's tables.
    An interrupted attempt can be repeated.

    Raises:
        FeatureNotSupported, ObjectInUse, ObjectNotInPrerequisiteState: see `check_is_copy`.
        IoError: files cannot be removed.
    """
    check_is_copy(cluster)
    with cluster.begin(write=False) as connection:
        tables = home_tables(connection)
    for table in tables:
        first = _first_unfinished(cluster, table)
        if first is not None:
            remove_versions(table.location, first)
    injection_point("identify.before-catalog")
    return make_own(cluster, dict(_versions(tables)))


def _versions(tables: Sequence[HomeTable]) -> Iterator[tuple[int, int]]:
    """Yield the newest version of each table; -1 for a table that does not exist yet.  Skip missing
    tables: the next process that uses them gets the error.
    """
    for table in tables:
        newest = latest_version(table.location)
        if newest is not None or table.committed is None:
            yield table.relid, -1 if newest is None else newest


def _first_unfinished(cluster: Cluster, table: HomeTable) -> int | None:
    """Return the first version of a table that replctl wrote in an unfinished transaction; None if
    there is none.
    """
    committed = -1 if table.committed is None else table.committed
    try:
        commits = list(commits_after(table.location, committed))
    except PostgresError:  # the next process that uses the table gets the error
        return None
    for commit in commits:
        if mark_of(commit.user_metadata, cluster.signing_key, table.relid) is not None:
            return commit.version
    return None
