"""`replctl sync --explain` shows the plan of a sync, and changes nothing."""

from __future__ import annotations

import json

import pytest
from fix_psql import Psql
from fix_replication import Database

from replctl.explain import SubscriptionPlan, explain_sync

_TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, region text, n int DEFAULT 0);"
    "CREATE TABLE u (id int PRIMARY KEY)"
)
#: Queries of the state that a plan must not change.
_STATE = (
    "SELECT slot_name, confirmed_flush_lsn, active FROM pg_replication_slots",
    "SELECT srsubid, srrelid, srsubstate, srsublsn FROM pg_subscription_rel",
    "SELECT local_id, remote_lsn, local_lsn FROM pg_replication_origin_status",
    "SELECT apply_error_count, sync_error_count FROM pg_stat_subscription_stats",
)


def _state(database: Database) -> list[list[tuple[str | None, ...]]]:
    return [database.rows(query) for query in _STATE]


def _plan(database: Database, *, is_repeated: bool = False) -> SubscriptionPlan:
    """Return the plan of a sync.  Check that a plan changes nothing, and that a second plan is the
    same."""
    before = _state(database)
    (plan,) = explain_sync(database.session)
    if is_repeated:
        assert explain_sync(database.session) == [plan] or plan.error is not None
    assert _state(database) == before
    return plan


def _runs(plan: SubscriptionPlan) -> dict[str, list[tuple[int, int, int, str, bool]]]:
    return {
        table.name: [
            (run.inserts, run.updates, run.deletes, run.path, run.is_estimated)
            for run in table.runs
        ]
        for table in plan.tables
    }


@pytest.mark.spark
def test_what_is_read_what_passes_and_how_it_is_written(
    publisher: Database, subscriber: Database
) -> None:
    publisher.run(
        f"{_TABLES}; ALTER TABLE t REPLICA IDENTITY FULL;"
        "CREATE PUBLICATION p FOR TABLE t WHERE (region = 'a'), u"
    )
    subscriber.run(_TABLES)
    publisher.run("INSERT INTO t SELECT i, substr('ab', 1 + i % 2, 1) FROM generate_series(1, 9) i")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
    )
    copies = _plan(subscriber, is_repeated=True)
    assert _runs(copies) == {"t": [(4, 0, 0, "copy", False)], "u": [(0, 0, 0, "copy", False)]}
    assert copies.tables[0].bytes_read > 0
    assert subscriber.sync() == []
    assert _plan(subscriber).tables == ()
    publisher.run("UPDATE t SET region = 'b' WHERE id = 2; UPDATE t SET n = 1 WHERE id < 5")
    publisher.run("INSERT INTO u SELECT i FROM generate_series(1, 5) i")
    publisher.run("UPDATE t SET id = 40 WHERE id = 4")
    publisher.run("DELETE FROM t WHERE id = 6; TRUNCATE u")
    plan = _plan(subscriber, is_repeated=True)
    assert _runs(plan) == {
        "t": [
            (0, 1, 1, "replaceWhere", False),
            (0, 1, 0, "MERGE", True),
            (0, 0, 1, "replaceWhere", True),
        ],
        "u": [(5, 0, 0, "append", False), (0, 0, 0, "TRUNCATE", True)],
    }
    (of_t, of_u) = plan.tables
    assert (of_t.transactions, of_u.transactions, of_u.rows_read) == (3, 2, 5)
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM t ORDER BY id") == [("8",), ("40",)]
    publisher.run("INSERT INTO u SELECT i FROM generate_series(1, 2100) i")
    assert subscriber.sync() == []
    publisher.run("DELETE FROM u WHERE id > 50")
    assert _runs(_plan(subscriber)) == {"u": [(0, 0, 2050, "MERGE", False)]}
    subscriber.run("DELETE FROM u WHERE id > 50")
    assert _runs(_plan(subscriber)) == {"u": [(0, 0, 2050, "nothing", False)]}


@pytest.mark.spark
def test_what_would_stop_it(publisher: Database, subscriber: Database) -> None:
    publisher.run(f"{_TABLES}; CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(_TABLES)
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
        " WITH (copy_data = false)"
    )
    publisher.run("INSERT INTO u VALUES (2)")
    publisher.run("INSERT INTO u VALUES (1)")
    subscriber.run("INSERT INTO u VALUES (1)")
    plan = _plan(subscriber, is_repeated=True)
    assert _runs(plan) == {"u": [(1, 0, 0, "append", False)]}
    assert plan.error is not None
    assert plan.error.message == 'duplicate key value violates unique constraint "u_pkey"'
    assert plan.error.context is not None
    subscriber.run("DELETE FROM u")
    assert _runs(_plan(subscriber)) == {"u": [(2, 0, 0, "append", False)]}


def test_the_command_says_what_it_finds(psql: Psql) -> None:
    script = (
        "CREATE DATABASE pub;\n\\c pub\nCREATE TABLE t (id int PRIMARY KEY);\n"
        "CREATE PUBLICATION p FOR TABLE t;\n\\c postgres\nCREATE TABLE t (id int PRIMARY KEY);\n"
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p WITH (copy_data = false);\n"
        "CREATE SUBSCRIPTION lost CONNECTION 'dbname=nowhere' PUBLICATION p"
        " WITH (connect = false, slot_name = 'x');\nALTER SUBSCRIPTION lost ENABLE;\n"
    )
    assert "ERROR" not in psql("-X", "-q", script=script).stderr
    well = psql("sync", "--explain", "s")
    assert well.exit_code == 0
    assert "nothing to do" in well.stdout
    (plan,) = json.loads(psql("sync", "--explain", "--json", "s").stdout)
    assert (plan["subscription"], plan["tables"], plan["error"]) == ("s", [], None)
    broken = psql("sync", "--explain")
    assert broken.exit_code == 1
    assert 'database "nowhere" does not exist' in broken.stderr
    assert "it cannot be combined with --watch" in psql("sync", "--explain", "--watch").stderr


@pytest.mark.spark
def test_conflicts_before_a_conflict(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, n int); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE)")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p"
    )
    assert subscriber.sync() == []
    subscriber.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    publisher.run("INSERT INTO t VALUES (5, 5)")
    publisher.run("INSERT INTO t VALUES (11, 1)")
    publisher.run("INSERT INTO t VALUES (12, 2)")
    publisher.run("UPDATE t SET n = 3 WHERE id = 11")
    error = _plan(subscriber).error
    assert error is not None
    assert (error.sqlstate, error.detail) == ("23505", "Key (n)=(1) already exists.")
    (failure,) = subscriber.sync()
    assert (failure.error.message, failure.error.detail, failure.error.context) == (
        error.message,
        error.detail,
        error.context,
    )
