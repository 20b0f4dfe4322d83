"""Several tables of one subscription, and several subscriptions, are applied in parallel."""

from __future__ import annotations

import pytest
from fix_replication import Database, connect

from replctl.session import Session

pytestmark = pytest.mark.spark

_NUMBERS = range(3)


def _connection(options: str = "") -> str:
    return f"CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p{options}"


def _tables(key: str = "PRIMARY KEY") -> str:
    return ";".join(f"CREATE TABLE t{n} (id int {key}, x text)" for n in _NUMBERS)


def _all_rows(database: Database) -> list[list[tuple[str | None, ...]]]:
    return [database.rows(f"SELECT * FROM t{n} ORDER BY id") for n in _NUMBERS]


def test_what_one_table_refuses_no_table_has(publisher: Database, subscriber: Database) -> None:
    publisher.run(f"{_tables()}; CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(_tables())
    subscriber.run(f"CREATE SUBSCRIPTION s {_connection(' WITH (copy_data = false)')}")
    everywhere = ";".join(f"INSERT INTO t{n} VALUES (1, 'a'), (2, 'b')" for n in _NUMBERS)
    publisher.run(f"BEGIN; {everywhere}; COMMIT")
    changed = ";".join(f"UPDATE t{n} SET x = 'c' WHERE id = 2" for n in _NUMBERS)
    publisher.run(f"BEGIN; {changed}; INSERT INTO t2 VALUES (7, 'own'); COMMIT")
    subscriber.run("INSERT INTO t2 VALUES (7, 'mine')")
    (failure,) = subscriber.sync()
    assert 'unique constraint "t2_pkey"' in failure.error.message
    before = [("1", "a"), ("2", "b")]
    assert _all_rows(subscriber) == [
        [*before, ("7", "mine")] if n == 2 else before for n in _NUMBERS
    ]
    subscriber.run("DELETE FROM t2 WHERE id = 7")
    assert subscriber.sync() == []
    assert _all_rows(subscriber) == _all_rows(publisher)


def test_one_subscription_fails_and_others_continue(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run(f"{_tables()}; CREATE PUBLICATION p FOR ALL TABLES")
    session: Session = subscriber.session
    others = [connect(session.cluster, f"other{n}", session.engine()) for n in range(2)]
    for number, database in enumerate([subscriber, *others]):
        database.run(_tables())
        database.run(f"CREATE SUBSCRIPTION s{number} {_connection()}")
    publisher.run(";".join(f"INSERT INTO t{n} VALUES ({n}, 'a')" for n in _NUMBERS))
    assert subscriber.sync() == []
    others[1].run("INSERT INTO t0 VALUES (9, 'mine')")
    publisher.run("INSERT INTO t0 VALUES (9, 'b'); UPDATE t1 SET x = 'c'")
    (failure,) = subscriber.sync()
    assert (failure.subscription, failure.database) == ("s2", "other1")
    for database in (subscriber, others[0]):
        assert _all_rows(database) == _all_rows(publisher)
    others[1].run("DELETE FROM t0 WHERE id = 9")
    assert subscriber.sync() == []
    assert _all_rows(others[1]) == _all_rows(publisher)
