"""Changes of tables with every kind of replica identity, by statements and by other writers."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.catalog.subscription_error import put_subscription_error
from replctl.errors import DiskFull

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def subscribe(publisher: Database, subscriber: Database, tables: str, published: str) -> None:
    """Make the same tables at both ends, publish, and copy."""
    publisher.run(tables)
    subscriber.run(tables)
    publisher.run(f"CREATE PUBLICATION p FOR TABLE {published}")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []


def test_whole_rows_are_matched_as_a_multiset(publisher: Database, subscriber: Database) -> None:
    table = "CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY FULL"
    subscribe(publisher, subscriber, table, "t")
    publisher.run("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), (2, NULL)")
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO t VALUES (1, 'x')")  # a row of the subscriber's own
    publisher.run("DELETE FROM t WHERE a = 1")
    publisher.run("UPDATE t SET b = 'y' WHERE a = 2")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a, b FROM t ORDER BY a, b") == [
        ("1", "x"),
        ("2", "y"),
        ("2", "y"),
    ]


def test_an_update_of_keys_that_exchanges_rows(publisher: Database, subscriber: Database) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)", "t")
    publisher.run("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 5) g")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET id = 6 - id")
    publisher.run("UPDATE t SET v = 'five' WHERE id = 5")
    assert subscriber.sync() == []
    expected = publisher.rows("SELECT id, v FROM t ORDER BY id")
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == expected
    assert expected[4] == ("5", "five")


def test_a_conflict_stops_before_its_transaction(publisher: Database, subscriber: Database) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)", "t")
    subscriber.run("INSERT INTO t VALUES (2, 'local')")
    publisher.run("INSERT INTO t VALUES (1, 'one')")
    publisher.run("INSERT INTO t VALUES (2, 'two'), (20, 'twenty')")
    publisher.run("INSERT INTO t VALUES (3, 'three')")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'duplicate key value violates unique constraint "t_pkey"'
    assert failure.error.detail == "Key (id)=(2) already exists."
    assert failure.error.context is not None
    assert 'for replication target relation "public.t" in transaction' in failure.error.context
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == [("1", "one"), ("2", "local")]
    assert subscriber.rows("SELECT apply_error_count FROM pg_stat_subscription_stats") == [("1",)]
    subscriber.run("DELETE FROM t WHERE id = 2")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*) FROM t") == [("4",)]


def test_a_foreign_writer_s_changes_are_replicated(
    publisher: Database, subscriber: Database
) -> None:
    table = "CREATE TABLE t (id int PRIMARY KEY, v text)"
    publisher.run(table)
    subscriber.run(table)
    publisher.run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (9, 'nine')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t WHERE (id < 5)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    ((path,),) = publisher.rows("SELECT pg_relation_filepath('t')")
    engine = publisher.session.engine()
    engine.run(f"UPDATE delta.`{path}` SET id = 4 WHERE id = 9")
    engine.run(f"DELETE FROM delta.`{path}` WHERE id = 1")
    engine.run(f"INSERT INTO delta.`{path}` VALUES (3, 'three'), (7, 'seven')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t ORDER BY id") == [
        ("2", "two"),
        ("3", "three"),
        ("4", "nine"),
    ]


def test_changes_are_decoded_under_the_definitions_of_their_time(
    publisher: Database, subscriber: Database
) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)", "t")
    publisher.run("INSERT INTO t VALUES (1, 'all')")
    publisher.run("ALTER PUBLICATION p SET TABLE t WHERE (id > 10)")
    publisher.run("INSERT INTO t VALUES (2, 'filtered'), (12, 'passes')")
    publisher.run("ALTER PUBLICATION p SET TABLE t")
    publisher.run("INSERT INTO t VALUES (3, 'all')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM t ORDER BY id") == [("1",), ("3",), ("12",)]


def test_what_follows_a_truncate_stays(publisher: Database, subscriber: Database) -> None:
    subscribe(
        publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)", "t WHERE (id > 5)"
    )
    publisher.run("INSERT INTO t VALUES (6, 'before')")
    publisher.run("TRUNCATE t")
    publisher.run("INSERT INTO t VALUES (6, 'after'), (1, 'filtered')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t") == [("6", "after")]


def test_a_loop_of_subscriptions_is_named(publisher: Database, subscriber: Database) -> None:
    table = "CREATE TABLE t (id int)"
    publisher.run(table)
    subscriber.run(table)
    notices: list[str] = []
    publisher.session.on_notice = lambda notice: notices.append(notice.message)
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE PUBLICATION q FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p WITH (copy_data = false)")
    publisher.run(
        "CREATE SUBSCRIPTION r CONNECTION 'host=localhost dbname=test_sub' PUBLICATION q"
        " WITH (copy_data = false)"
    )
    publisher.run("INSERT INTO t VALUES (1)")
    assert publisher.sync() == []
    assert any("did not come to an end" in notice for notice in notices)

    # Following the hint ends the loop
    notices.clear()
    subscriber.run("ALTER SUBSCRIPTION s SET (origin = none)")
    publisher.run("ALTER SUBSCRIPTION r SET (origin = none)")
    publisher.run("INSERT INTO t VALUES (2)")
    assert publisher.sync() == []
    assert not any("did not come to an end" in notice for notice in notices)


def test_a_sync_with_nothing_to_do_starts_no_spark(
    publisher: Database, subscriber: Database
) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)", "t")
    publisher.run("CREATE PUBLICATION unrelated")

    def no_engine() -> None:
        raise AssertionError("Spark was asked for")

    subscriber.session.engine = no_engine  # type: ignore[assignment]
    assert subscriber.sync() == []


def test_columns_of_the_subscriber_alone_count(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE k (a int PRIMARY KEY); CREATE TABLE n (a int)")
    publisher.run("INSERT INTO k VALUES (1), (2); INSERT INTO n VALUES (1), (2)")
    subscriber.run(
        "CREATE TABLE k (a int PRIMARY KEY, e int GENERATED BY DEFAULT AS IDENTITY);"
        " CREATE TABLE n (a int, id serial UNIQUE)"
    )
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO k VALUES (3), (4); UPDATE k SET a = a + 10 WHERE a = 1")
    publisher.run("INSERT INTO n VALUES (3), (4); INSERT INTO k VALUES (5)")
    assert subscriber.sync() == []
    expected = [("2", "2"), ("3", "3"), ("4", "4"), ("5", "5"), ("11", "1")]
    assert subscriber.rows("SELECT * FROM k ORDER BY a") == expected
    assert subscriber.rows("SELECT a, id FROM n ORDER BY a") == [(x, x) for x in "1234"]
    assert subscriber.rows("SELECT nextval('k_e_seq'), nextval('n_id_seq')") == [("6", "5")]


def test_each_call_in_a_default_takes_a_value(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t")
    publisher.run("INSERT INTO t VALUES (1), (2)")
    default = "nextval('q') * 100 + nextval('q')"
    subscriber.run(f"CREATE SEQUENCE q; CREATE TABLE t (a int, b int DEFAULT {default})")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (3)")
    assert subscriber.sync() == []
    expected = [("1", "102"), ("2", "304"), ("3", "506")]
    assert subscriber.rows("SELECT * FROM t ORDER BY a") == expected


def test_a_key_of_the_subscriber_alone(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t")
    publisher.run("INSERT INTO t VALUES (7); ALTER TABLE t REPLICA IDENTITY FULL")
    subscriber.run("CREATE TABLE t (a int, b serial PRIMARY KEY)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (8)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY b") == [("7", "1"), ("8", "2")]
    publisher.run("UPDATE t SET a = 9 WHERE a = 8")
    (failure,) = subscriber.sync()
    assert "publisher did not send replica identity column expected" in str(failure.error)


def test_a_publication_that_is_made_after_changes(
    publisher: Database, subscriber: Database
) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (a int PRIMARY KEY)", "t")
    for end in (publisher, subscriber):
        end.run("CREATE TABLE u (a int PRIMARY KEY)")
    publisher.run("INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)")
    publisher.run("CREATE PUBLICATION later FOR TABLE u")
    publisher.run("INSERT INTO u VALUES (2)")
    subscriber.run("ALTER SUBSCRIPTION s ADD PUBLICATION later")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT (SELECT count(*) FROM t), a FROM u ORDER BY a") == [
        ("1", "1"),
        ("1", "2"),
    ]


def test_a_publication_that_is_dropped_and_made_again(
    publisher: Database, subscriber: Database
) -> None:
    """The changes between DROP and CREATE have no definitions: PostgreSQL's error, no gap."""
    subscribe(publisher, subscriber, "CREATE TABLE t (a int PRIMARY KEY)", "t")
    publisher.run("INSERT INTO t VALUES (1)")
    publisher.run("DROP PUBLICATION p; INSERT INTO t VALUES (2)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (3)")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'publication "p" does not exist'
    assert subscriber.rows("SELECT a FROM t") == [("1",)]


def test_a_table_that_is_added_without_a_copy_after_an_error(
    publisher: Database, subscriber: Database
) -> None:
    """PostgreSQL's worker has not passed over the waiting changes, so they apply."""
    subscribe(publisher, subscriber, "CREATE TABLE t (a int PRIMARY KEY)", "t")
    publisher.run("CREATE TABLE n (a int PRIMARY KEY); INSERT INTO n VALUES (0)")
    publisher.run("ALTER PUBLICATION p ADD TABLE n; INSERT INTO n VALUES (1)")
    (failure,) = subscriber.sync()
    assert 'target relation "public.n" does not exist' in str(failure.error)
    subscriber.run("CREATE TABLE n (a int PRIMARY KEY)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (copy_data = false)")
    publisher.run("INSERT INTO n VALUES (2)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a FROM n ORDER BY a") == [("1",), ("2",)]


def test_a_table_that_is_added_without_a_copy_while_a_copy_fails(
    publisher: Database, subscriber: Database
) -> None:
    """Only the copy has stopped: the worker has passed over the changes before the statement."""
    subscribe(publisher, subscriber, "CREATE TABLE t (a int PRIMARY KEY)", "t")
    for end in (publisher, subscriber):
        end.run("CREATE TABLE n (a int)")
    (oid,) = subscriber.rows("SELECT oid FROM pg_subscription")[0]
    with subscriber.session.cluster.begin(write=True) as connection:
        put_subscription_error(connection, int(str(oid)), DiskFull("no space left"))
    publisher.run("ALTER PUBLICATION p ADD TABLE n; INSERT INTO n VALUES (1)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (copy_data = false)")
    publisher.run("INSERT INTO n VALUES (2)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a FROM n") == [("2",)]


def test_column_lists_that_differ_concern_changes_of_their_table(
    publisher: Database, subscriber: Database
) -> None:
    tables = "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE u (a int PRIMARY KEY)"
    subscribe(publisher, subscriber, tables, "t, u")
    publisher.run("CREATE PUBLICATION q FOR TABLE t (a, b)")
    subscriber.run("ALTER SUBSCRIPTION s ADD PUBLICATION q")
    assert subscriber.sync() == []
    publisher.run("ALTER PUBLICATION q SET TABLE t (a)")
    publisher.run("INSERT INTO u VALUES (1)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a FROM u") == [("1",)]
    publisher.run("INSERT INTO t VALUES (1, 1)")
    (failure,) = subscriber.sync()
    assert 'cannot use different column lists for table "public.t"' in str(failure.error)


def test_a_filter_that_fails_stops_at_its_transaction(
    publisher: Database, subscriber: Database
) -> None:
    tables = "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int PRIMARY KEY)"
    subscribe(publisher, subscriber, tables, "u, t WHERE (10 / a > 1)")
    publisher.run("INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); INSERT INTO t VALUES (2)")
    publisher.run("INSERT INTO t VALUES (0); INSERT INTO t VALUES (3); INSERT INTO u VALUES (2)")
    for _attempt in range(2):
        (failure,) = subscriber.sync()
        assert failure.error.message == "division by zero"
        assert "in the change callback, associated LSN" in (failure.error.context or "")
        assert subscriber.rows("SELECT a FROM t ORDER BY a") == [("1",), ("2",)]
        assert subscriber.rows("SELECT a FROM u") == [("1",)]


def test_a_truncate_meets_references_of_the_subscriber(
    publisher: Database, subscriber: Database
) -> None:
    subscribe(publisher, subscriber, "CREATE TABLE t (a int PRIMARY KEY)", "t")
    subscriber.run("CREATE TABLE ref (a int REFERENCES t)")
    publisher.run("INSERT INTO t VALUES (1)")
    publisher.run("TRUNCATE t")
    (failure,) = subscriber.sync()
    assert "cannot truncate a table referenced in a foreign key" in failure.error.message
    assert subscriber.rows("SELECT a FROM t") == [("1",)]
    subscriber.run("DROP TABLE ref")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*) FROM t") == [("0",)]


def test_truncate_restarts_sequences(publisher: Database, subscriber: Database) -> None:
    """Sequences of the subscriber's own columns restart with the rows after the TRUNCATE."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (7), (8)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE SEQUENCE other;"
        " CREATE TABLE t (id int PRIMARY KEY, n serial, m int DEFAULT nextval('other'))"
    )
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("TRUNCATE t RESTART IDENTITY; INSERT INTO t VALUES (1), (2), (3)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, n, m FROM t ORDER BY id") == [
        ("1", "1", "3"),
        ("2", "2", "4"),
        ("3", "3", "5"),
    ]
    assert subscriber.rows("SELECT nextval('t_n_seq'), nextval('other')") == [("4", "6")]
    publisher.run("TRUNCATE t; INSERT INTO t VALUES (1)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT n FROM t") == [("5",)]
    publisher.run("TRUNCATE t RESTART IDENTITY")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT nextval('t_n_seq')") == [("1",)]
