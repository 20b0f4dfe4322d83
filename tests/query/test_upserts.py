"""ON CONFLICT DO UPDATE beyond the golden scripts: refused forms, the way of writing, and the rows
of a subscriber."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_replication import Database

from replctl.errors import FeatureNotSupported

pytestmark = pytest.mark.spark

_MOVED = "that changes the key of a row is not supported if another proposed row has the old or"


@pytest.mark.parametrize(
    ("rows", "assignments"),
    [
        ("(1, 'moves'), (5, 'has the new key')", "id = t.id + 4"),
        ("(5, 'has the new key'), (1, 'moves')", "id = t.id + 4"),
        ("(1, 'moves'), (1, 'has the old key')", "id = 9"),
        ("(1, 'moves'), (3, 'has the new key')", "id = 3"),
    ],
)
def test_a_row_whose_key_moves_to_that_of_another_is_refused(
    publisher: Database, rows: str, assignments: str
) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')")
    statement = f"INSERT INTO t VALUES {rows} ON CONFLICT (id) DO UPDATE SET {assignments}"
    with pytest.raises(FeatureNotSupported, match=_MOVED):
        publisher.run(statement)
    assert publisher.rows("SELECT * FROM t") == [("1", "x")]


def test_new_and_changed_rows_are_one_commit(publisher: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')")
    ((path,),) = publisher.rows("SELECT pg_relation_filepath('t')")
    log = Path(publisher.session.cluster.path, str(path), "_delta_log")
    before = len(list(log.glob("*.json")))
    publisher.run(
        "INSERT INTO t VALUES (1, 'a'), (2, 'b') ON CONFLICT (id) DO UPDATE SET v = excluded.v"
    )
    assert len(list(log.glob("*.json"))) == before + 1


def test_many_rows(publisher: Database) -> None:
    publisher.run(
        "CREATE TABLE t (id int PRIMARY KEY, v int);"
        "INSERT INTO t SELECT x, 0 FROM generate_series(1, 3000) x"
    )
    tags = publisher.run(
        "INSERT INTO t SELECT x, 1 FROM generate_series(2001, 6000) x"
        " ON CONFLICT (id) DO UPDATE SET v = excluded.v + t.id WHERE t.id > 2500"
    )
    assert tags == ["INSERT 0 3500"]
    assert publisher.rows("SELECT count(*), sum(v) FROM t") == [
        ("6000", str(sum(x + 1 for x in range(2501, 3001)) + 3000))
    ]


def test_a_subscriber_gets_new_and_changed_rows(publisher: Database, subscriber: Database) -> None:
    table = "CREATE TABLE t (id int PRIMARY KEY, v int)"
    publisher.run(f"{table}; CREATE PUBLICATION p FOR TABLE t WHERE (id < 10)")
    publisher.run("INSERT INTO t VALUES (1, 1), (2, 2), (20, 20)")
    subscriber.run(table)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for rows, assignment in (
        ("(1, 10), (3, 3), (20, 21)", "v = excluded.v"),
        ("(2, 0)", "id = 30"),  # moves out of the filter
        ("(20, 0), (1, 11)", "id = t.id / 4 + 1, v = excluded.v"),  # one moves into it
    ):
        publisher.run(f"INSERT INTO t VALUES {rows} ON CONFLICT (id) DO UPDATE SET {assignment}")
    assert subscriber.sync() == []
    wanted = publisher.rows("SELECT * FROM t WHERE id < 10 ORDER BY id")
    assert wanted == [("1", "11"), ("3", "3"), ("6", "0")]
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == wanted
