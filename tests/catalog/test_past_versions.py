"""The Delta version that a table had at a position of the log."""

from __future__ import annotations

import time

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.initdb import POSTGRES_DATABASE
from replctl.catalog.pg_wal import CHANGE, NONE, enter, version_at
from replctl.catalog.transaction import begin_transaction, commit_transaction
from replctl.catalog.vacuum_horizon import Horizon, trim

_TABLE = 16400


def _committed(cluster: Cluster, *versions: int) -> int:
    """Commit versions in one transaction, and return its LSN."""
    with cluster.write(POSTGRES_DATABASE) as catalog:
        xid = begin_transaction(catalog.connection, catalog.database_oid, cluster.backend)
        for version in versions:
            enter(catalog, xid, _TABLE, version, CHANGE if version else NONE)
        return commit_transaction(catalog.connection, xid, changes_catalog=False)


def _version(cluster: Cluster, lsn: int) -> int | None:
    with cluster.read(POSTGRES_DATABASE) as catalog:
        return version_at(catalog, _TABLE, lsn)


def test_a_position_has_the_versions_committed_up_to_it(cluster: Cluster) -> None:
    assert _version(cluster, 2**62) is None
    first = _committed(cluster, 0, 1)
    second = _committed(cluster, 2, 3)
    assert _version(cluster, first - 1) is None
    assert _version(cluster, first) == 1
    assert _version(cluster, second - 1) == 1
    assert _version(cluster, second) == 3


def test_what_is_not_committed_is_later(cluster: Cluster) -> None:
    lsn = _committed(cluster, 0, 1)
    with cluster.write(POSTGRES_DATABASE) as catalog:
        xid = begin_transaction(catalog.connection, catalog.database_oid, cluster.backend)
        enter(catalog, xid, _TABLE, 2, CHANGE)
        assert version_at(catalog, _TABLE, lsn) == 1


@pytest.mark.parametrize("later", [(), (6, 7)])
def test_entries_that_were_removed_are_not_missed(cluster: Cluster, later: tuple[int, ...]) -> None:
    _committed(cluster, 0, 1)
    lsn = _committed(cluster, 2, 3, 4, 5)
    newest = _committed(cluster, *later) if later else lsn
    with cluster.write(POSTGRES_DATABASE) as catalog:
        trim(catalog.connection, Horizon(lsn, time.time_ns() // 1000 + 10**9))
    assert _version(cluster, lsn) == 5
    assert _version(cluster, newest) == (7 if later else 5)


def test_the_file_gets_smaller(cluster: Cluster) -> None:
    """SQLite returns pages without rows to the system."""
    for _ in range(5):
        lsn = _committed(cluster, *range(300))
    before = _pages(cluster)
    with cluster.write(POSTGRES_DATABASE) as catalog:
        trim(catalog.connection, Horizon(lsn, time.time_ns() // 1000 + 10**9))
    assert _pages(cluster) < before - 10


def _pages(cluster: Cluster) -> int:
    with cluster.begin(write=False) as connection:
        return int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())
