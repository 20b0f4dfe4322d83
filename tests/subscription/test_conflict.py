"""Conflicts: the one of several that is reported, and their counts."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.spark import staging

pytestmark = pytest.mark.spark

_COUNTS = (
    "SELECT confl_insert_exists, confl_update_exists, confl_update_missing, confl_delete_missing,"
    " confl_multiple_unique_conflicts FROM pg_stat_subscription_conflicts"
)


def test_the_earliest_of_several_is_reported_and_all_are_counted(
    publisher: Database, subscriber: Database
) -> None:
    tables = (
        "CREATE TABLE a (id int PRIMARY KEY, x int, y int);"
        "CREATE TABLE b (id int PRIMARY KEY, x int);"
        "CREATE TABLE n (x int, y int)"
    )
    publisher.run(
        f"{tables}; ALTER TABLE n REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR ALL TABLES"
    )
    subscriber.run(tables)
    subscriber.run(
        "CREATE UNIQUE INDEX a_x ON a (x); CREATE UNIQUE INDEX a_y ON a (y);"
        "ALTER TABLE b ADD CHECK (x > 0)"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
        " WITH (copy_data = false)"
    )
    subscriber.run("INSERT INTO a VALUES (1, 1, 1)")
    publisher.run("INSERT INTO a VALUES (5, 5, 5); INSERT INTO n VALUES (1, 1)")
    subscriber.sync()
    subscriber.run("DELETE FROM a WHERE id = 5; DELETE FROM n")
    publisher.run("UPDATE a SET x = 6 WHERE id = 5; UPDATE a SET x = 7 WHERE id = 5")
    publisher.run("DELETE FROM a WHERE id = 5; UPDATE n SET y = 2; DELETE FROM n")
    publisher.run("BEGIN; INSERT INTO b VALUES (1, -1); INSERT INTO a VALUES (1, 1, 1); COMMIT")
    (failure,) = subscriber.sync()
    assert 'relation "b" violates check constraint' in failure.error.message
    assert subscriber.rows(_COUNTS) == [("0", "0", "3", "2", "0")]
    subscriber.run("ALTER TABLE b DROP CONSTRAINT b_x_check")
    (failure,) = subscriber.sync()
    assert 'unique constraint "a_pkey"' in failure.error.message
    assert subscriber.rows(_COUNTS) == [("0", "0", "3", "2", "1")]
    subscriber.run("UPDATE a SET x = 2, y = 2; SELECT pg_stat_reset_subscription_stats(NULL)")
    (failure,) = subscriber.sync()
    assert 'unique constraint "a_pkey"' in failure.error.message
    assert subscriber.rows(_COUNTS) == [("1", "0", "0", "0", "0")]
    assert subscriber.rows(
        "SELECT apply_error_count, stats_reset IS NULL FROM pg_stat_subscription_stats"
    ) == [("1", "f")]
    subscriber.run("DELETE FROM a")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM a") == [("1", "1", "1")]


def test_a_partial_unique_index_holds_for_its_rows(
    publisher: Database, subscriber: Database
) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TABLE t (id int PRIMARY KEY, a int, is_live bool)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (1, 1, true)")
    subscriber.run("CREATE UNIQUE INDEX live_a ON t (a) WHERE is_live")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (2, 1, false), (3, 1, NULL)")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET is_live = true WHERE id = 2")
    (failure,) = subscriber.sync()
    assert 'unique constraint "live_a"' in failure.error.message
    publisher.run("UPDATE t SET a = 2 WHERE id = 1")
    assert subscriber.sync() == []  # a later change of the run has ended the conflict
    rows = "SELECT id, a, is_live FROM t ORDER BY id"
    assert subscriber.rows(rows) == publisher.rows(rows)


def test_a_delete_after_an_update_that_misses_its_row_misses_it_too(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run(
        "CREATE TABLE t (id int PRIMARY KEY, code text); ALTER TABLE t REPLICA IDENTITY FULL;"
        " CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (1, 'a'), (2, 'b')"
    )
    subscriber.run("CREATE TABLE t (id int, code text PRIMARY KEY)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("DELETE FROM t WHERE code = 'a'")
    publisher.run(  # the second DELETE finds no row, because the UPDATE finds none
        "BEGIN; DELETE FROM t WHERE code = 'b'; UPDATE t SET code = 'b' WHERE code = 'a';"
        " DELETE FROM t WHERE code = 'b'; COMMIT; INSERT INTO t VALUES (3, 'c'), (4, 'd')"
    )
    assert subscriber.sync() == []
    assert subscriber.rows(_COUNTS) == [("0", "0", "1", "1", "0")]
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == [("3", "c"), ("4", "d")]


def test_one_statement_may_change_several_rows_with_one_key_of_the_target(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run(
        "CREATE TABLE t (id int PRIMARY KEY, code text); ALTER TABLE t REPLICA IDENTITY FULL;"
        " CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b')"
    )
    subscriber.run("CREATE TABLE t (id int, code text PRIMARY KEY)")
    subscriber.run("INSERT INTO t VALUES (1, 'a'), (3, 'b')")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false)"
    )
    publisher.run("UPDATE t SET code = code || id")
    assert subscriber.sync() == []
    assert subscriber.rows(_COUNTS) == [("0", "0", "1", "0", "0")]
    rows = subscriber.rows("SELECT * FROM t ORDER BY code DESC")
    assert rows in ([("3", "b3"), ("1", "a1")], [("3", "b3"), ("2", "a2")])

    publisher.run("UPDATE t SET code = 'x'")
    for updates, small in enumerate((staging.SMALL, 0), start=1):
        monkeypatch.setattr(staging, "SMALL", small)  # 0: no change stays in this process
        (failure,) = subscriber.sync()
        error = failure.error
        assert error.message == 'duplicate key value violates unique constraint "t_pkey"'
        assert (error.detail or "").startswith("Key (code)=(x) already exists.")
        assert 'message type "UPDATE"' in (error.context or "")
        assert subscriber.rows(_COUNTS) == [("0", str(updates), "1", "0", "0")]
    assert subscriber.rows("SELECT * FROM t ORDER BY code DESC") == rows
