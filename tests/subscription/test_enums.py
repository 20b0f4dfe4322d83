"""Enums are replicated by label.  Publisher and subscriber each have their own OIDs and order of
values."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"


def test_an_enum_is_replicated_by_label(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    publisher.run("CREATE TABLE t (id int, m mood, PRIMARY KEY (id, m))")
    publisher.run("INSERT INTO t VALUES (1, 'sad'), (2, 'happy')")
    subscriber.run("CREATE TYPE other AS ENUM ('x')")
    subscriber.run("CREATE TYPE mood AS ENUM ('happy', 'ok', 'sad')")
    subscriber.run(
        "CREATE TABLE t (id int, m mood CHECK (m > 'happy' OR id > 1), PRIMARY KEY (id, m))"
    )
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET m = 'ok' WHERE m < 'ok'")
    publisher.run("DELETE FROM t WHERE m > 'ok'")
    publisher.run("INSERT INTO t VALUES (3, 'ok'), (4, 'happy')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY m, id") == [
        ("4", "happy"), ("1", "ok"), ("3", "ok"),
    ]  # fmt: skip
    publisher.run("ALTER TYPE mood ADD VALUE 'best' AFTER 'happy'")
    publisher.run("INSERT INTO t VALUES (5, 'best')")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'invalid input value for enum public.mood: "best"'
    subscriber.run("ALTER TYPE mood ADD VALUE 'best' BEFORE 'ok'")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM t WHERE m <= 'best' ORDER BY m") == [("4",), ("5",)]
    publisher.run("INSERT INTO t VALUES (1, 'happy')")
    (failure,) = subscriber.sync()
    assert "violates check constraint" in failure.error.message
