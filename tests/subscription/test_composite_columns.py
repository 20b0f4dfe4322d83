"""Values of composite types are replicated as text, which the subscriber reads with its own
attributes."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def test_rows_are_read_by_the_attributes_of_the_subscriber(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    publisher.run("CREATE TYPE pair AS (a int, b text, m mood)")
    publisher.run("CREATE TYPE nested AS (p pair, n numeric)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, c pair, n nested, x text)")
    publisher.run("CREATE TABLE r (id int PRIMARY KEY, c text)")
    publisher.run(
        """INSERT INTO t VALUES (1, ROW(1, 'a "b",', 'ok'), NULL, '(1,a)'), (2, '(,,)',"""
        """ ROW(ROW(3, '', 'sad'), 1.50), NULL), (3, NULL, '(,)', '( 2,"x y")')"""
    )
    publisher.run("INSERT INTO r VALUES (1, '(1,a)')")
    subscriber.run("CREATE TYPE mood AS ENUM ('ok', 'sad')")
    subscriber.run("CREATE TYPE pair AS (a smallint, b varchar(8), m mood)")
    subscriber.run("CREATE TYPE nested AS (p pair, n numeric(5,1))")
    subscriber.run("CREATE TYPE two AS (a int, b text)")
    subscriber.run(
        "CREATE TABLE t (id int PRIMARY KEY, c pair CHECK ((c).a < 50), n nested, x two)"
    )
    subscriber.run("CREATE TABLE r (id int PRIMARY KEY, c two)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t, r")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    query = "SELECT *, (c).b, c IS NULL, (n).p IS NULL, (x).b FROM t ORDER BY id"
    assert subscriber.rows(query) == [
        ("1", '(1,"a ""b"",",ok)', None, "(1,a)", 'a "b",', "f", "t", "a"),
        ("2", "(,,)", '("(3,"""",sad)",1.5)', None, None, "t", "f", None),
        ("3", None, "(,)", '(2,"x y")', None, "t", "t", "x y"),
    ]
    publisher.run("UPDATE t SET c = ROW(4, 'new', 'sad'), n = ROW(c, 1.23) WHERE id = 1")
    publisher.run("INSERT INTO t (id, x) VALUES (4, '(7,)')")
    publisher.run("DELETE FROM t WHERE id = 3")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, c, n, x FROM t ORDER BY id") == [
        ("1", "(4,new,sad)", '("(1,""a """"b"""","",ok)",1.2)', "(1,a)"),
        ("2", "(,,)", '("(3,"""",sad)",1.5)', None),
        ("4", None, None, "(7,)"),
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("(100000,,)", 'value "100000" is out of range for type smallint'),
        ("(1,123456789,)", "value too long for type character varying(8)"),
        ("(1,a,glad)", 'invalid input value for enum public.mood: "glad"'),
        ("(99,,)", 'new row for relation "t" violates check constraint "t_c_check"'),
    ],
)
def test_what_the_attributes_refuse_stops_the_subscription(
    publisher: Database, subscriber: Database, value: str, message: str
) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')")
    publisher.run("CREATE TYPE pair AS (a int, b text, m mood)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, c pair)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TYPE mood AS ENUM ('ok', 'sad')")
    subscriber.run("CREATE TYPE pair AS (a smallint, b varchar(8), m mood)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, c pair CHECK ((c).a < 50))")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (1, '(1,a,ok)')")
    publisher.run(f"INSERT INTO t VALUES (2, '{value}')")
    (failure,) = subscriber.sync()
    assert failure.error.message == message
    assert subscriber.rows("SELECT id, c FROM t") == [("1", "(1,a,ok)")]


def test_other_numbers_of_attributes_are_refused(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TYPE pair AS (a int, b text)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, c pair)")
    publisher.run("INSERT INTO t VALUES (1, '(1,a)')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TYPE pair AS (a int)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, c pair)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'malformed record literal: "(1,a)"'
    assert failure.error.detail == "Too many columns."


def test_whole_rows_find_equal_rows(publisher: Database, subscriber: Database) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TYPE pair AS (a int, b text)")
        database.run("CREATE TYPE number AS (n numeric)")
        database.run("CREATE TABLE t (c pair, n int)")
        database.run("CREATE TABLE u (c number)")
    for table in "tu":
        publisher.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    publisher.run("INSERT INTO t VALUES ('(1,a)', 1), ('(1,)', 2), (NULL, 3), ('(1,a)', 1)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t, u")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET c = ROW(2, 'b') WHERE c IS NULL")
    publisher.run("DELETE FROM t WHERE (c).b IS NULL")
    publisher.run("UPDATE t SET n = 5 WHERE (c).b = 'a'")
    publisher.run("INSERT INTO u VALUES ('(1.0)')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT c, n FROM t ORDER BY n") == [
        ("(2,b)", "3"), ("(1,a)", "5"), ("(1,a)", "5"),
    ]  # fmt: skip
    publisher.run("DELETE FROM u")
    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'UPDATE and DELETE of the logical replication target relation "public.u" without a key are'
        ' not supported: values of the composite type of column "c" may be equal but written'
        " differently"
    )


def test_domains_with_constraints_in_rows_are_refused(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("CREATE TYPE pair AS (a int)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, c pair)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    subscriber.run("CREATE TYPE pair AS (a positive)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, c pair)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    publisher.run("INSERT INTO t VALUES (1, '(1)')")
    failures = subscriber.sync() or subscriber.sync()
    assert failures[0].error.message == (
        "replication into attributes of composite types is not supported for domain positive,"
        " which has constraints"
    )


def test_tables_with_composite_columns_are_created(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    publisher.run('CREATE TYPE pair AS (m mood, "B b" varchar(5) COLLATE "C")')
    publisher.run("CREATE TYPE nested AS (p pair, x mood[])")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, c nested DEFAULT '(,\"{ok}\")')")
    publisher.run("INSERT INTO t VALUES (1, ROW(ROW('ok', 'b'), '{sad,ok}'))")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    options = "WITH (create_tables = true, follow_schema = true)"
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p {options}")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (2)")
    publisher.run("ALTER TABLE t ADD COLUMN d pair DEFAULT '(sad,x)'")
    publisher.run("INSERT INTO t VALUES (3, NULL, '(ok,y)')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, c, d, pg_typeof(d) FROM t ORDER BY id") == [
        ("1", '("(ok,b)","{sad,ok}")', "(sad,x)", "pair"),
        ("2", "(,{ok})", "(sad,x)", "pair"),
        ("3", None, "(ok,y)", "pair"),
    ]


def test_values_follow_the_attributes_of_their_type(
    publisher: Database, subscriber: Database
) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TYPE pair AS (a int, b text)")
        database.run("CREATE TYPE nested AS (p pair, n int)")
        database.run("CREATE TABLE t (id int PRIMARY KEY, c pair, n nested)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    publisher.run("INSERT INTO t VALUES (1, '(1,x)', '(\"(2,y)\",3)'), (2, '(1,x)', NULL)")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET c = '(5,five)' WHERE id = 2")
    publisher.run("ALTER TYPE pair ADD ATTRIBUTE d date")
    publisher.run("UPDATE t SET c = '(6,six,2020-01-01)' WHERE id = 1")
    publisher.run("INSERT INTO t (id, c) VALUES (3, '(7,,)')")
    (failure,) = subscriber.sync()
    assert failure.error.message.startswith("malformed record literal: ")
    assert subscriber.rows("SELECT id, c, n FROM t ORDER BY id") == [
        ("1", "(1,x)", '("(2,y)",3)'),
        ("2", "(5,five)", None),
    ]
    subscriber.run("ALTER TYPE pair ADD ATTRIBUTE d date")
    assert subscriber.sync() == []
    expected = [
        ("1", "(6,six,2020-01-01)", '("(2,y,)",3)'),
        ("2", "(5,five,)", None),
        ("3", "(7,,)", None),
    ]
    for database in (publisher, subscriber):
        assert database.rows("SELECT id, c, n FROM t ORDER BY id") == expected
    publisher.run("ALTER TYPE pair DROP ATTRIBUTE b")
    subscriber.run("ALTER TYPE pair DROP ATTRIBUTE b")
    publisher.run("DELETE FROM t WHERE id = 2")
    assert subscriber.sync() == []
    expected = [("1", "(6,2020-01-01)", '("(2,)",3)'), ("3", "(7,)", None)]
    assert subscriber.rows("SELECT id, c, n FROM t ORDER BY id") == expected
