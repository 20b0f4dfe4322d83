"""The chain of digests of a cluster's commits."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_digest import (
    LogPosition,
    broken_link,
    digest_at,
    is_in_log,
)
from replctl.catalog.transaction import (
    begin_transaction,
    commit_transaction,
    insert_lsn,
    next_lsn,
)
from replctl.catalog.vacuum_horizon import Horizon, trim
from replctl.execute import execute
from replctl.session import Session

_LATER = 2**60  # microseconds: no commit is kept for its age


def commits(cluster: Cluster, count: int) -> list[LogPosition]:
    """Commit `count` transactions, and return the end of the log after each."""
    positions = []
    for _number in range(count):
        with cluster.begin(write=True) as connection:
            xid = begin_transaction(connection, 5, cluster.backend)
            lsn = commit_transaction(connection, xid, changes_catalog=False)
            positions.append(LogPosition(lsn, digest_at(connection, lsn)))
    return positions


def statement(connection: Connection, sql: str) -> None:
    connection.exec_driver_sql(sql)


def test_each_commit_has_a_digest_of_its_own(cluster: Cluster) -> None:
    first, second, third = commits(cluster, 3)
    assert len({first.digest, second.digest, third.digest, None}) == 4
    with cluster.begin(write=True) as connection:
        next_lsn(
            connection
        )  # entries that are not commits have the digest of the commit before them
        end = insert_lsn(connection)
        assert digest_at(connection, end) == third.digest
        assert digest_at(connection, third.lsn - 1) == second.digest
        assert broken_link(connection) is None


@pytest.mark.parametrize("change", ["xid = xid + 100", "digest = 'x' || substr(digest, 2)"])
def test_a_changed_commit_breaks_the_chain(cluster: Cluster, change: str) -> None:
    first, second, third = commits(cluster, 3)
    with cluster.begin(write=True) as connection:
        statement(connection, f"UPDATE pg_xact SET {change} WHERE commit_lsn = {second.lsn}")
        assert broken_link(connection) == second.lsn
        statement(connection, f"DELETE FROM pg_xact WHERE commit_lsn = {first.lsn}")
        statement(connection, f"DELETE FROM pg_xact WHERE commit_lsn = {second.lsn}")
        assert broken_link(connection) == third.lsn


def test_positions_of_another_log_are_told_from_those_of_this_one(cluster: Cluster) -> None:
    first, second = commits(cluster, 2)
    with cluster.begin(write=True) as connection:
        assert is_in_log(connection, first)
        assert is_in_log(connection, LogPosition(second.lsn - 1, first.digest))
        assert not is_in_log(connection, LogPosition(second.lsn, first.digest))
        assert not is_in_log(connection, LogPosition(first.lsn, second.digest))
        assert not is_in_log(connection, LogPosition(first.lsn, "another"))
        assert is_in_log(connection, LogPosition(first.lsn))  # no digest to compare
        assert not is_in_log(connection, LogPosition(second.lsn + 1, second.digest))
        next_lsn(connection)
        assert is_in_log(connection, LogPosition(second.lsn + 1, second.digest))


def test_trimming_keeps_the_proof_of_what_is_still_read(cluster: Cluster) -> None:
    first, second, third, last = commits(cluster, 4)
    with cluster.begin(write=True) as connection:
        trim(connection, Horizon(third.lsn + 1, _LATER))
        assert is_in_log(connection, third)
        assert is_in_log(connection, LogPosition(third.lsn + 1, third.digest))
        assert not is_in_log(connection, LogPosition(third.lsn + 1, second.digest))
        assert not is_in_log(connection, LogPosition(last.lsn, third.digest))
        assert is_in_log(connection, first)  # trimmed: a slot that needs it is lost in any case
        assert digest_at(connection, first.lsn) is None
        assert broken_link(connection) is None
        trim(connection, Horizon(last.lsn, _LATER))
        assert is_in_log(connection, last)
        rows = connection.exec_driver_sql("SELECT count(*) FROM pg_xact").scalar_one()
        assert rows == 1
    (after,) = commits(cluster, 1)
    with cluster.begin(write=False) as connection:
        assert is_in_log(connection, after)
        assert broken_link(connection) is None


def test_blocks_with_savepoints_are_links_of_the_chain(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    for statement in (
        "BEGIN", "SAVEPOINT a", "CREATE TABLE t (x int)", "SAVEPOINT b", "CREATE TABLE u (x int)",
        "RELEASE b", "SAVEPOINT c", "CREATE TABLE v (x int)", "ROLLBACK TO c", "COMMIT",
        "BEGIN", "SAVEPOINT a", "CREATE TABLE w (x int)", "ROLLBACK", "CREATE TABLE y (x int)",
        "BEGIN", "CREATE TABLE z (x int)", "SAVEPOINT a", "DROP TABLE z", "COMMIT",
    ):  # fmt: skip
        list(execute(session, statement))
    with cluster.begin(write=False) as connection:
        assert broken_link(connection) is None
        commits = connection.exec_driver_sql("SELECT count(DISTINCT digest) FROM pg_xact")
        assert commits.scalar_one() == 3
