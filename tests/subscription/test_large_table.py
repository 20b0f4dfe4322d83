"""For few changes of a large table, replctl reads only the affected rows."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.lake.delta_log import latest_version
from replctl.spark import query_size

pytestmark = pytest.mark.spark

_ROWS = "SELECT a, b, v, own, twice FROM t ORDER BY a, b"


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_size, "_SMALL_TABLE", -1)


@pytest.fixture(autouse=True)
def table(publisher: Database, subscriber: Database) -> None:
    columns = "a int, b text, v int, PRIMARY KEY (a, b)"
    publisher.run(
        f"CREATE TABLE t ({columns});"
        " INSERT INTO t SELECT g, 'k' || g % 3, g * 10 FROM generate_series(1, 30) g;"
        " CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run(
        f"CREATE TABLE t ({columns}, own text DEFAULT 'mine',"
        " twice int GENERATED ALWAYS AS (v * 2) STORED)"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
    )
    assert subscriber.sync() == []
    subscriber.run("UPDATE t SET own = 'kept' WHERE a <= 10")


def _expected(publisher: Database) -> list[tuple[str | None, ...]]:
    return publisher.rows(
        "SELECT a, b, v, CASE WHEN a <= 10 THEN 'kept' ELSE 'mine' END, v * 2 FROM t ORDER BY a, b"
    )


def test_changes_of_all_kinds(publisher: Database, subscriber: Database) -> None:
    publisher.run("UPDATE t SET v = v + 1 WHERE a IN (3, 5, 20)")
    publisher.run("DELETE FROM t WHERE a IN (5, 6); INSERT INTO t VALUES (100, 'new', NULL)")
    publisher.run("UPDATE t SET v = v WHERE a IN (7, 21)")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == _expected(publisher)
    publisher.run("UPDATE t SET b = b || '!' WHERE a IN (7, 22); UPDATE t SET v = 0 WHERE a = 7")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == _expected(publisher)


def test_a_row_that_is_what_it_shall_be_is_not_written(
    publisher: Database, subscriber: Database
) -> None:
    ((location,),) = subscriber.rows("SELECT pg_relation_filepath('t')")
    assert location is not None
    before = latest_version(location)
    publisher.run("UPDATE t SET v = v WHERE a < 9")
    assert subscriber.sync() == []
    assert latest_version(location) == before
    subscriber.run("UPDATE t SET v = -1 WHERE a = 8")
    publisher.run("UPDATE t SET v = v WHERE a < 9")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == _expected(publisher)


def test_a_row_that_was_written_here_is_written_over(
    publisher: Database, subscriber: Database
) -> None:
    subscriber.run("UPDATE t SET v = 5 WHERE a = 1; UPDATE t SET v = 6 WHERE a = 2")
    publisher.run("UPDATE t SET v = 5 WHERE a IN (1, 2)")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == _expected(publisher)


def test_conflicts_and_missing_rows(publisher: Database, subscriber: Database) -> None:
    subscriber.run("DELETE FROM t WHERE a = 4; INSERT INTO t VALUES (50, 'k', 1)")
    publisher.run("UPDATE t SET v = 1 WHERE a = 4; INSERT INTO t VALUES (50, 'k', 2)")
    (failure,) = subscriber.sync()
    assert failure.error.detail == "Key (a, b)=(50, k) already exists."
    subscriber.run("DELETE FROM t WHERE a = 50")
    assert subscriber.sync() == []
    missing = "SELECT confl_update_missing FROM pg_stat_subscription_conflicts"
    assert subscriber.rows(missing) == [("1",)]
    assert subscriber.rows("SELECT v FROM t WHERE a = 50") == [("2",)]
    assert subscriber.rows("SELECT count(*) FROM t WHERE a = 4") == [("0",)]
