"""Arrays of enums and of domains are replicated by the text of their elements."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def test_arrays_of_enums_are_replicated_by_label(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    publisher.run("CREATE DOMAIN moods AS mood[]")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, a mood[], d moods, n text[])")
    publisher.run("CREATE TABLE k (a mood[] PRIMARY KEY, n int)")
    publisher.run("CREATE TABLE f (a mood[], n int)")
    publisher.run("ALTER TABLE f REPLICA IDENTITY FULL")
    publisher.run(
        "INSERT INTO t VALUES (1, '{sad,ok}', '{ok}', '{ok}'), (2, NULL, '{}', NULL),"
        " (3, '{happy,NULL}', NULL, '{sad,happy}')"
    )
    for table in "kf":
        publisher.run(f"INSERT INTO {table} VALUES ('{{sad}}', 1), ('{{ok,sad}}', 2)")
    subscriber.run("CREATE TYPE other AS ENUM ('x')")
    subscriber.run("CREATE TYPE mood AS ENUM ('happy', 'ok', 'sad')")
    subscriber.run(
        "CREATE TABLE t (id int PRIMARY KEY, a mood[] CHECK (a <> '{happy}'), d text[], n mood[])"
    )
    subscriber.run("CREATE TABLE k (a mood[] PRIMARY KEY, n int)")
    subscriber.run("CREATE TABLE f (a mood[], n int)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t, k, f")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY a") == [
        ("3", "{happy,NULL}", None, "{sad,happy}"),
        ("1", "{sad,ok}", "{ok}", "{ok}"),
        ("2", None, "{}", None),
    ]
    publisher.run("UPDATE t SET a = a || 'happy'::mood WHERE id = 1")
    for table in "kf":
        publisher.run(f"UPDATE {table} SET n = 3 WHERE a = '{{sad}}'")
        publisher.run(f"DELETE FROM {table} WHERE a > '{{sad}}'")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a FROM t WHERE id = 1") == [("{sad,ok,happy}",)]
    for table in "kf":
        assert subscriber.rows(f"SELECT * FROM {table}") == [("{sad}", "3")]
    publisher.run("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    assert publisher.rows("SELECT a, d FROM t WHERE id = 1") == [("{sad,fine,happy}", "{fine}")]
    publisher.run("INSERT INTO t VALUES (4, '{sad,fine}')")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'invalid input value for enum public.mood: "fine"'
    subscriber.run("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a, n FROM t ORDER BY id") == [
        ("{sad,fine,happy}", "{fine}"), (None, None),
        ("{happy,NULL}", "{sad,happy}"), ("{sad,fine}", None),
    ]  # fmt: skip
    publisher.run("INSERT INTO t VALUES (5, '{happy}')")
    (failure,) = subscriber.sync()
    assert "violates check constraint" in failure.error.message


def test_arrays_of_domains_are_checked(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, a int[], b text[])")
    publisher.run("INSERT INTO t VALUES (1, '{1,2}', '{a,b}'), (2, NULL, '{}')")
    subscriber.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    subscriber.run("CREATE DOMAIN word AS text NOT NULL")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, a positive[], b word[])")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (3, '{3,NULL}', '{c}')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == [
        ("1", "{1,2}", "{a,b}"), ("2", None, "{}"), ("3", "{3,NULL}", "{c}"),
    ]  # fmt: skip
    publisher.run("INSERT INTO t VALUES (4, '{4,-1}', '{d}')")
    (failure,) = subscriber.sync()
    message = 'value for domain public.positive violates check constraint "positive_check"'
    assert failure.error.message == message
    publisher.run("DELETE FROM t WHERE id = 4")
    subscriber.run("ALTER DOMAIN word DROP NOT NULL")
    assert subscriber.rows("SELECT count(*) FROM t") == [("3",)]


def test_tables_with_arrays_of_users_types_are_created(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    publisher.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, a mood[] DEFAULT '{ok}')")
    publisher.run("INSERT INTO t VALUES (1, '{sad}')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    options = "WITH (create_tables = true, follow_schema = true)"
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p {options}")
    assert subscriber.sync() == []
    publisher.run("CREATE TABLE u (id int PRIMARY KEY, p positive[])")
    publisher.run("ALTER PUBLICATION p ADD TABLE u")
    publisher.run("INSERT INTO u VALUES (1, '{1,2}')")
    publisher.run("INSERT INTO t VALUES (2)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (create_tables = true)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT a, pg_typeof(a) FROM t ORDER BY a") == [
        ("{sad}", "mood[]"), ("{ok}", "mood[]"),
    ]  # fmt: skip
    assert subscriber.rows("SELECT p, pg_typeof(p) FROM u") == [("{1,2}", "positive[]")]
