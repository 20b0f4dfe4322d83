"""replctl undoes only the transactions that dead processes left in progress."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_cluster import relation_of

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.transaction import abort_transaction, begin_transaction, commit_transaction
from replctl.errors import DuplicateTable, InternalError, SerializationFailure
from replctl.execute import execute
from replctl.lake.table_write import writing
from replctl.session import Session


class _Other:
    """A transaction of another process, which ends while this process checks whether it lives."""

    def __init__(self, home: Path) -> None:
        self._cluster = open_cluster(home)
        self._session = Session.connect(self._cluster, "postgres", "postgres")
        list(execute(self._session, "BEGIN; CREATE TABLE t (a int)"))

    def end(self, statement: str | None) -> None:
        """End the process, after a statement or within its transaction."""
        if statement is not None:
            list(execute(self._session, statement))
        self._cluster.close()


@pytest.fixture
def other(cluster: Cluster) -> _Other:
    return _Other(cluster.path)


@pytest.mark.parametrize("statement", ["CREATE TABLE u (a int)", "CREATE TABLE t (a int)"])
@pytest.mark.parametrize(
    ("ends_by", "expected"),
    [("COMMIT", {"t", "u"}), ("ROLLBACK", {"u"}), (None, {"u"})],
)
def test_what_a_process_ended_before_it_went_stays(
    cluster: Cluster,
    session: Session,
    other: _Other,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    ends_by: str | None,
    expected: set[str],
) -> None:
    is_alive = cluster.is_alive

    def ending(backend: str) -> bool:
        monkeypatch.undo()
        other.end(ends_by)
        return is_alive(backend)

    monkeypatch.setattr(cluster, "is_alive", ending)
    waits = statement.startswith("CREATE TABLE t")
    if waits and ends_by == "COMMIT":
        with pytest.raises(DuplicateTable, match='relation "t" already exists'):
            list(execute(session, statement))
    else:
        list(execute(session, statement))
    (result,) = execute(session, "SELECT relname FROM pg_class WHERE relkind = 'r' AND oid > 16383")
    found = {name for (name,) in result.rows}
    assert found == ({"t"} if waits else expected)


@pytest.mark.parametrize(
    "block",
    [
        "INSERT INTO kept VALUES (2); DROP TABLE kept",
        "TRUNCATE kept; INSERT INTO kept VALUES (3); DROP TABLE kept",
        "INSERT INTO kept VALUES (2); SAVEPOINT s; DROP TABLE kept; CREATE TABLE kept ()",
        "INSERT INTO kept VALUES (2); ALTER TABLE kept RENAME TO other; DROP TABLE other",
    ],
)
def test_rows_of_a_table_that_a_dead_process_has_dropped_are_undone(
    cluster: Cluster, session: Session, block: str
) -> None:
    list(execute(session, "CREATE TABLE kept (a int); INSERT INTO kept VALUES (1)"))
    dead = open_cluster(cluster.path)
    writer = Session.connect(dead, "postgres", "postgres")
    list(execute(writer, f"BEGIN; {block}"))
    assert writer.block is not None
    writer.block.locks.close()
    dead.close()
    list(execute(session, "INSERT INTO kept VALUES (9)"))
    (result,) = execute(session, "SELECT a FROM kept ORDER BY a")
    assert list(result.rows) == [["1"], ["9"]]


def test_a_failed_attempt_of_a_statement_keeps_the_rows_of_earlier_statements(
    session: Session,
) -> None:
    list(execute(session, "CREATE TABLE a (x int); CREATE TABLE b (x int)"))
    list(execute(session, "BEGIN; INSERT INTO a VALUES (1)"))
    with (
        pytest.raises(SerializationFailure),
        writing(session, [relation_of(session, "b")], is_whole=True),
    ):
        raise SerializationFailure("another writer has committed")
    list(execute(session, "COMMIT"))
    (result,) = execute(session, "SELECT x FROM a")
    assert list(result.rows) == [["1"]]


def test_a_transaction_that_is_gone_cannot_be_committed(cluster: Cluster) -> None:
    with cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, 5, cluster.backend)
        abort_transaction(connection, xid)
    with (
        pytest.raises(InternalError, match="is not in progress"),
        cluster.begin(write=True) as connection,
    ):
        commit_transaction(connection, xid, changes_catalog=True)


def test_a_committed_transaction_cannot_be_undone(cluster: Cluster) -> None:
    with cluster.begin(write=True) as connection:
        xid = begin_transaction(connection, 5, cluster.backend)
        commit_transaction(connection, xid, changes_catalog=True)
    with (
        pytest.raises(InternalError, match="is committed"),
        cluster.begin(write=True) as connection,
    ):
        abort_transaction(connection, xid)
