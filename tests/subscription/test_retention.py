"""VACUUM keeps the changes that a subscription has not received, because its slot needs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_replication import Database
from follow_hint import follow_hint

from replctl.errors import Notice

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"
_ROWS = "SELECT * FROM t ORDER BY id"


def _files(database: Database, end: str) -> int:
    (path,) = database.rows("SELECT pg_relation_filepath('t')")[0]
    return len([f for f in Path(str(path)).rglob(f"*{end}") if not f.name.startswith(".")])


def test_a_slot_holds_and_the_rest_goes(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replctl.commands.vacuum._MANY_FILES", 2)
    notices: list[Notice] = []
    publisher.session.on_notice = notices.append
    for database in (publisher, subscriber):
        database.run("SET replctl.vacuum_retention = 0")
        database.run("SET replctl.small_table_rows = 0")  # Spark writes checkpoints more often
        database.run(_TABLE)
    publisher.run("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 20) g")
    publisher.run("CREATE PUBLICATION p FOR TABLE t WHERE (id > 3)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("ALTER SUBSCRIPTION s DISABLE")
    for statement in (
        "UPDATE t SET v = v || '+' WHERE id < 8",
        "UPDATE t SET id = id + 30 WHERE id IN (2, 5)",
        "DELETE FROM t WHERE id = 9",
        "INSERT INTO t VALUES (50, 'new')",
        "UPDATE t SET id = 2, v = 'moved' WHERE id = 50",
        "DELETE FROM t WHERE id > 15 AND id < 18",
    ):
        publisher.run(statement)
    publisher.run("VACUUM t")
    (notice,) = notices
    assert (notice.message, notice.hint) == (
        'table "t" has many small files',
        "Use VACUUM FULL public.t;",
    )
    follow_hint(notice.hint, publisher, lambda name: publisher)
    publisher.run("VACUUM t")
    assert notices == [notice]
    publisher.run("UPDATE t SET v = 'last' WHERE id = 12")
    publisher.run("ALTER PUBLICATION p SET TABLE t WHERE (id > 4)")
    publisher.run("UPDATE t SET v = v || '!' WHERE id IN (4, 6)")
    publisher.run("VACUUM")
    subscriber.run("VACUUM")
    subscriber.run("ALTER SUBSCRIPTION s ENABLE")
    assert subscriber.sync() == []
    expected = [row for row in publisher.rows(_ROWS) if int(str(row[0])) > 3]
    found = subscriber.rows(_ROWS)
    assert found == [(a, b.removesuffix("!") if a == "4" and b else b) for a, b in expected]
    before, entries = _files(publisher, ".parquet"), _files(publisher, ".json")
    publisher.run("VACUUM FULL")
    subscriber.run("VACUUM FULL")
    assert _files(publisher, ".parquet") < before
    assert _files(publisher, ".json") < entries
    assert publisher.rows(_ROWS)[0][0] == "1"
    assert subscriber.rows(_ROWS) == found
    publisher.run("UPDATE t SET v = 'after' WHERE id = 12")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT v FROM t WHERE id = 12") == [("after",)]


def test_a_lost_slot_stops_its_subscription(publisher: Database, subscriber: Database) -> None:
    for database in (publisher, subscriber):
        database.run(_TABLE)
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("ALTER SYSTEM SET max_slot_wal_keep_size = 0")
    subscriber.run("SELECT pg_switch_wal()")
    publisher.run("INSERT INTO t VALUES (1, 'one')")
    publisher.run("SELECT pg_reload_conf()")
    publisher.run("CHECKPOINT")
    (failure,) = subscriber.sync()
    assert failure.error.message == 'can no longer get changes from replication slot "s"'
    assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    subscriber.run(failure.error.hint)
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "one")]
    publisher.run("INSERT INTO t VALUES (2, 'two')")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "one"), ("2", "two")]
