"""The rows of large copies and changes stay in Spark."""

from __future__ import annotations

import pytest
from fix_replication import Database
from long_tests import LONG

from replctl.spark import staging

pytestmark = pytest.mark.spark

_COLUMNS = "a int, b text, v double precision CHECK (v < 1000), PRIMARY KEY (a, b)"
_ROWS = "SELECT a, b, v FROM t ORDER BY a, b"


@pytest.fixture(autouse=True)
def all_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "SMALL", 0)


@pytest.fixture(autouse=True)
def tables(publisher: Database, subscriber: Database) -> None:
    publisher.run(
        f"CREATE TABLE t ({_COLUMNS.replace(' CHECK (v < 1000)', '')});"
        " INSERT INTO t SELECT g, 'k' || g % 3, g * 10 FROM generate_series(1, 30) g;"
        " CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run(f"CREATE TABLE t ({_COLUMNS})")


def _subscribe(subscriber: Database) -> None:
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
    )


def _check_synced(publisher: Database, subscriber: Database) -> None:
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == publisher.rows(_ROWS)


def _write(publisher: Database, statement: str) -> None:
    """Change the publisher's table as a writer that knows nothing of its constraints."""
    ((location,),) = publisher.rows("SELECT pg_relation_filepath('t')")
    publisher.session.engine().run(statement.format(t=f"delta.`{location}`"))


def test_keys_with_one_change_and_with_several(publisher: Database, subscriber: Database) -> None:
    _subscribe(subscriber)
    _check_synced(publisher, subscriber)
    publisher.run("UPDATE t SET v = v + 1 WHERE a < 9 AND a <> 4")
    publisher.run("DELETE FROM t WHERE a = 4; INSERT INTO t VALUES (100, 'new', NULL)")
    _check_synced(publisher, subscriber)
    publisher.run("UPDATE t SET v = v + 1 WHERE a < 9; DELETE FROM t WHERE a = 5")
    publisher.run("INSERT INTO t VALUES (5, 'k2', 55), (6, 'new', 0), (7, 'new', 0)")
    publisher.run("DELETE FROM t WHERE a = 6 AND b = 'new'; UPDATE t SET v = -1 WHERE b = 'new'")
    _check_synced(publisher, subscriber)
    publisher.run("UPDATE t SET b = b || '!' WHERE a < 3; UPDATE t SET v = 7 WHERE a < 4")
    _check_synced(publisher, subscriber)


def test_an_insert_and_an_update_of_rows_that_are_not_as_expected(
    publisher: Database, subscriber: Database
) -> None:
    _subscribe(subscriber)
    _check_synced(publisher, subscriber)
    subscriber.run("DELETE FROM t WHERE a IN (4, 5); INSERT INTO t VALUES (50, 'k', 1)")
    publisher.run("UPDATE t SET v = 1 WHERE a = 4; DELETE FROM t WHERE a = 5")
    publisher.run("INSERT INTO t VALUES (50, 'k', 2)")
    (failure,) = subscriber.sync()
    assert failure.error.detail == "Key (a, b)=(50, k) already exists."
    subscriber.run("DELETE FROM t WHERE a = 50")
    assert subscriber.sync() == []
    missing = (
        "SELECT confl_update_missing, confl_delete_missing FROM pg_stat_subscription_conflicts"
    )
    assert subscriber.rows(missing) == [("1", "1")]
    assert subscriber.rows("SELECT v FROM t WHERE a = 50") == [("2",)]


def test_a_row_that_violates_a_constraint_for_a_while(
    publisher: Database, subscriber: Database
) -> None:
    _subscribe(subscriber)
    _check_synced(publisher, subscriber)
    publisher.run("INSERT INTO t VALUES (100, 'new', 1001)")
    publisher.run("UPDATE t SET v = 1 WHERE a = 100")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23514"
    subscriber.run("ALTER TABLE t DROP CONSTRAINT t_v_check")
    _check_synced(publisher, subscriber)
    subscriber.run("ALTER TABLE t ADD CHECK (v < 1000)")
    publisher.run("UPDATE t SET b = 'a', v = 1001 WHERE a = 100")
    publisher.run("UPDATE t SET b = 'b', v = 1 WHERE a = 100")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23514"


@pytest.mark.parametrize(
    "existing", [pytest.param("", marks=LONG), "INSERT INTO t VALUES (77, 'own', 7)"]
)
def test_a_copy_of_a_key_that_is_there_twice(
    publisher: Database, subscriber: Database, existing: str
) -> None:
    _write(publisher, "INSERT INTO {t} VALUES (7, 'k1', 0)")
    if existing:
        subscriber.run(existing)
    before = subscriber.rows(_ROWS)
    _subscribe(subscriber)
    (failure,) = subscriber.sync()
    assert failure.error.message == 'duplicate key value violates unique constraint "t_pkey"'
    assert failure.error.detail == "Key (a, b)=(7, k1) already exists."
    assert subscriber.rows(_ROWS) == before
    _write(publisher, "DELETE FROM {t} WHERE a = 7 AND v = 0")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*) FROM t WHERE a <> 77") == [("30",)]


def test_a_copy_of_a_key_that_the_table_has(publisher: Database, subscriber: Database) -> None:
    subscriber.run("INSERT INTO t VALUES (7, 'k1', 7)")
    _subscribe(subscriber)
    (failure,) = subscriber.sync()
    assert failure.error.detail == "Key (a, b)=(7, k1) already exists."
    assert subscriber.rows(_ROWS) == [("7", "k1", "7")]


def test_a_copy_of_a_row_that_violates_a_constraint(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("UPDATE t SET v = 1000 WHERE a = 7")
    _subscribe(subscriber)
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23514"
    assert failure.error.detail == "Failing row contains (7, k1, 1000)."
    assert subscriber.rows("SELECT count(*) FROM t") == [("0",)]


def test_a_copy_into_partitions(publisher: Database, subscriber: Database) -> None:
    subscriber.run(
        f"DROP TABLE t; CREATE TABLE t ({_COLUMNS}) PARTITION BY RANGE (a);"
        " CREATE TABLE low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (10);"
        " CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (30)"
    )
    _subscribe(subscriber)
    (failure,) = subscriber.sync()
    assert failure.error.message == 'no partition of relation "t" found for row'
    subscriber.run("CREATE TABLE top PARTITION OF t FOR VALUES FROM (30) TO (MAXVALUE)")
    _check_synced(publisher, subscriber)
    counts = "SELECT (SELECT count(*) FROM low), (SELECT count(*) FROM high)"
    assert subscriber.rows(counts) == [("9", "20")]
