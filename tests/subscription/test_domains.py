"""Domains are replicated as texts of their base types.  Publisher and subscriber each check rules
of their own."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def test_the_subscriber_checks_its_own_domains(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE DOMAIN posint AS int CHECK (VALUE > -100)")
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, p posint, n numeric(6,2))")
    publisher.run("INSERT INTO t VALUES (1, 5, 1.5), (2, NULL, 2)")
    subscriber.run("CREATE DOMAIN posint AS int CHECK (VALUE > 0) CHECK (VALUE < 100)")
    subscriber.run("CREATE DOMAIN amount AS numeric(8,3) NOT NULL CHECK (VALUE <= 9)")
    subscriber.run("CREATE DOMAIN note AS text DEFAULT 'none'")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, p posint, n amount, note note)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET p = 7, n = 3 WHERE id = 2")
    publisher.run("DELETE FROM t WHERE id = 1")
    publisher.run("INSERT INTO t VALUES (3, 8, 4)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == [
        ("2", "7", "3.000", "none"), ("3", "8", "4.000", "none"),
    ]  # fmt: skip
    for statement, message, column in (
        ("UPDATE t SET p = -1 WHERE id = 2", 'violates check constraint "posint_check"', "p"),
        ("INSERT INTO t VALUES (4, 200, 1)", 'violates check constraint "posint_check1"', "p"),
        ("INSERT INTO t VALUES (5, 1, NULL)", "does not allow null values", "n"),
    ):
        publisher.run(statement)
        (failure,) = subscriber.sync()
        domain = "posint" if column == "p" else "amount"
        assert failure.error.message.endswith(message)
        assert f"domain public.{domain} " in failure.error.message
        assert f'column "{column}"' in (failure.error.context or "")
        table = subscriber.rows("SELECT conname FROM pg_constraint WHERE contype IN ('c', 'n')")
        publisher.run("DELETE FROM t WHERE id > 3")
        publisher.run("UPDATE t SET p = 9 WHERE id = 2")
        assert table != []
        subscriber.run("ALTER SUBSCRIPTION s SKIP (lsn = NONE)")
        lsn = failure.error.context.rpartition("finished at ")[2]  # type: ignore[union-attr]
        subscriber.run(f"ALTER SUBSCRIPTION s SKIP (lsn = '{lsn}')")
        assert subscriber.sync() == []


def test_a_copy_checks_the_subscribers_domain(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, p int)")
    publisher.run("INSERT INTO t VALUES (1, 5), (2, -5)")
    subscriber.run("CREATE DOMAIN posint AS int CHECK (VALUE > 0)")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, p posint)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    (failure,) = subscriber.sync()
    expected = 'value for domain public.posint violates check constraint "posint_check"'
    assert failure.error.message == expected
