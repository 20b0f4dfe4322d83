"""Transactions in which a row is changed several times, keys change, or there is no key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

#: One transaction has statements for different rows, because each sync takes some time.
_BLOCKS = (
    "DELETE FROM k WHERE id = 6; INSERT INTO k VALUES (6, 'again');"
    " UPDATE k SET v = 'last' WHERE id = 6; UPDATE k SET id = id + 1000 WHERE id = 12;"
    " UPDATE k SET id = 30 WHERE id = 8; UPDATE k SET v = 'moved' WHERE id = 30;"
    " UPDATE k SET id = 31 WHERE id = 30; INSERT INTO k VALUES (8, 'new');"
    " INSERT INTO l VALUES (1, 'x'); DELETE FROM l WHERE a = 1",
    "UPDATE k SET id = 7 WHERE id = 6; DELETE FROM k WHERE id = 7;"
    " INSERT INTO k VALUES (50, 'x'); DELETE FROM k WHERE id = 50;"
    " UPDATE k SET id = 51 WHERE id = 31;"
    " INSERT INTO l VALUES (2, 'x'), (2, 'x'); UPDATE l SET b = 'y' WHERE a = 2;"
    " UPDATE l SET a = 3 WHERE a = 2; INSERT INTO l VALUES (2, 'z')",
    "INSERT INTO k VALUES (40, 'x'); UPDATE k SET id = 41 WHERE id = 40;"
    " UPDATE k SET id = 100 - id WHERE id < 20;"
    " DELETE FROM l WHERE a = 3; INSERT INTO l VALUES (3, NULL); UPDATE l SET a = 4 WHERE a = 3",
)


def test_spark_reads_no_small_table_to_pair_rows(
    publisher: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run("CREATE TABLE k (id int PRIMARY KEY, v text); CREATE TABLE l (a int, b text)")
    publisher.run("ALTER TABLE l REPLICA IDENTITY FULL")
    publisher.run("SELECT pg_create_logical_replication_slot('d', 'test_decoding')")
    for table in ("k", "l"):
        publisher.run(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    publisher.run("UPDATE k SET id = 3 - id WHERE id < 3; UPDATE l SET a = 9; DELETE FROM k")
    texts, query = list[str](), type(engine).sql

    def noted(self, text, *, has_few_rows=False):  # type: ignore[no-untyped-def]
        texts.append(str(text))
        return query(self, text, has_few_rows=has_few_rows)

    monkeypatch.setattr(type(engine), "sql", noted)
    changes = "SELECT data FROM pg_logical_slot_get_changes('d', NULL, NULL)"
    shown = [text for (text,) in publisher.rows(changes) if text and text.startswith("table")]
    kinds = Counter(text.split(": ")[1] for text in shown)
    assert kinds == {"INSERT": 6, "UPDATE": 5, "DELETE": 3}
    assert sorted(text for text in shown if " UPDATE: " in text) == [
        "table public.k: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 v[text]:'x'",
        "table public.k: UPDATE: old-key: id[integer]:2 new-tuple: id[integer]:1 v[text]:'y'",
        *(
            f"table public.l: UPDATE: old-key: a[integer]:{a} b[text]:'{b}'"
            f" new-tuple: a[integer]:9 b[text]:'{b}'"
            for a, b in ((1, "x"), (2, "y"), (3, "z"))
        ),
    ]
    assert texts
    assert not [text for text in texts if "delta" in text]


@pytest.mark.slow(1)
def test_rows_are_followed_through_a_block(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE k (id int PRIMARY KEY, v text); CREATE TABLE l (a int, b text)")
    publisher.run("ALTER TABLE l REPLICA IDENTITY FULL")
    subscriber.run("CREATE TABLE k (id int PRIMARY KEY, v text, own int DEFAULT 1)")
    subscriber.run("CREATE TABLE l (a int, b text, own int DEFAULT 1)")
    publisher.run("INSERT INTO k VALUES (6, 'six'), (8, 'eight'), (12, 'twelve')")
    publisher.run("INSERT INTO l VALUES (1, 'x'), (2, 'x')")
    publisher.run("CREATE PUBLICATION p FOR TABLE k, l")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("UPDATE k SET own = id")
    for block in _BLOCKS:
        publisher.run(f"BEGIN; {block}; COMMIT")
        assert [failure.error.message for failure in subscriber.sync()] == []
        for query in ("SELECT id, v FROM k ORDER BY id", "SELECT a, b FROM l ORDER BY a, b"):
            assert subscriber.rows(query) == publisher.rows(query), block
    assert subscriber.rows("SELECT id, own FROM k WHERE own > 1 ORDER BY id") == [
        ("51", "8"),
        ("1012", "12"),
    ]


def test_a_moved_row_meets_a_row_of_the_subscriber(
    publisher: Database, subscriber: Database
) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TABLE k (id int PRIMARY KEY, v text)")
    publisher.run("INSERT INTO k VALUES (1, 'one'), (2, 'two'); CREATE PUBLICATION p FOR TABLE k")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO k VALUES (9, 'own')")
    publisher.run(
        "BEGIN; UPDATE k SET id = 8 WHERE id = 1; UPDATE k SET id = 9 WHERE id = 8; COMMIT"
    )
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23505"
    assert subscriber.rows("SELECT id FROM k ORDER BY id") == [("1",), ("2",), ("9",)]
    subscriber.run("DELETE FROM k WHERE id = 9")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM k ORDER BY id") == [("2",), ("9",)]
