"""Changes, copies and recoveries work after Delta's retention, as long as their files exist."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from long_tests import LONG

from replctl import injection_point
from replctl.errors import InternalError

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

Age = Callable[[], None]


@pytest.fixture(params=[pytest.param(10, marks=LONG), 400], ids=["10 days", "400 days"])
def age(request: pytest.FixtureRequest, tmp_path: Path) -> Age:
    """Return a function that makes all files of tables in the test's folder a number of days
    old."""

    def make_older() -> None:
        moment = time.time() - request.param * 86400
        for path in tmp_path.rglob("*"):
            if {"_delta_log", "base", "lake"}.intersection(path.parts):
                os.utime(path, (moment, moment))

    return make_older


def fail_at(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Let the next visit of an injection point fail."""
    injection_point._visits.clear()
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", f"{point}:error")


#: Queries of the published rows, and of the replicated rows.
_PUBLISHED, _REPLICATED = (
    f"SELECT 'keyed', id, a FROM keyed{condition} UNION ALL SELECT 'loose', a, NULL FROM loose"
    " UNION ALL SELECT 'owned', id, NULL FROM owned ORDER BY 1, 2"
    for condition in (" WHERE a > 3", "")
)


def make_tables(publisher: Database, subscriber: Database, folder: Path) -> None:
    """Make a table of each kind at both ends, with rows.  `owned` is a Delta table at a place of
    its owner."""
    for database, end in ((publisher, "source"), (subscriber, "target")):
        database.run(
            "CREATE TABLE keyed (id int PRIMARY KEY, a int);"
            " ALTER TABLE keyed REPLICA IDENTITY FULL;"
            " CREATE TABLE loose (a int); ALTER TABLE loose REPLICA IDENTITY FULL;"
            f" CREATE TABLE owned (id int PRIMARY KEY) USING delta LOCATION '{folder / end}'"
        )
    publisher.run(
        "INSERT INTO keyed SELECT g, g FROM generate_series(1, 9) g;"
        " INSERT INTO loose VALUES (1), (1), (2); INSERT INTO owned VALUES (1), (2), (3);"
        " CREATE PUBLICATION p FOR TABLE keyed WHERE (a > 3), loose, owned"
    )
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")


def change(publisher: Database, engine: Engine, folder: Path, step: int) -> None:
    """Move rows into and out of the filter, change keys, empty a table, and write as an owner.

    Args:
        step: 1, then 2: each changes other rows.
    """
    publisher.run(
        f"UPDATE keyed SET a = CASE id WHEN {step} THEN 100 ELSE 1 END"
        f" WHERE id IN ({step}, {step + 4}); UPDATE keyed SET id = id + 10 WHERE id > 7;"
        " DELETE FROM loose WHERE a < 2; TRUNCATE loose;"
        f" INSERT INTO loose VALUES ({step}), ({step}), (7)"
    )
    engine.run(f"INSERT INTO delta.`{folder / 'source'}` VALUES ({step + 3})")
    engine.run(f"DELETE FROM delta.`{folder / 'source'}` WHERE id = {step}")


def check_equal(publisher: Database, subscriber: Database) -> None:
    """Check that the target has exactly the published rows of the source."""
    expected = publisher.rows(_PUBLISHED)
    assert subscriber.rows(_REPLICATED) == expected
    assert {row[0] for row in expected} == {"keyed", "loose", "owned"}


def test_old_versions_are_copied_and_decoded_and_written_again(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    tmp_path: Path,
    age: Age,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "lake"
    make_tables(publisher, subscriber, folder)
    publisher.run("SELECT pg_create_logical_replication_slot('d', 'test_decoding')")

    # An interrupted copy reads its old snapshot.  Then old changes are applied to it
    fail_at(monkeypatch, "tablesync.after-copy")
    assert subscriber.sync() != []
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    change(publisher, engine, folder, 1)
    age()
    assert subscriber.sync() == []
    check_equal(publisher, subscriber)

    # An interrupted batch is repeated over old targets
    change(publisher, engine, folder, 2)
    age()
    fail_at(monkeypatch, "apply.after-first-table")
    assert subscriber.sync() != []
    age()
    before = subscriber.rows("SELECT * FROM keyed ORDER BY id")  # the batch is not finished
    assert before == [("1", "100"), ("4", "4"), ("6", "6"), ("7", "7"), ("18", "8"), ("19", "9")]
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    assert subscriber.sync() == []
    check_equal(publisher, subscriber)

    # A slot decodes all these changes.  REFRESH TABLE compares a table with its old source
    age()
    changes = publisher.rows("SELECT data FROM pg_logical_slot_get_changes('d', NULL, NULL)")
    assert changes.count(("table public.loose: TRUNCATE: (no-flags)",)) == 2
    assert ("table public.owned: INSERT: id[integer]:4",) in changes
    assert ("table public.owned: INSERT: id[integer]:5",) in changes
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE keyed")
    age()
    assert subscriber.sync() == []
    keyed = "SELECT * FROM keyed WHERE a > 3 ORDER BY id"
    assert subscriber.rows(keyed) == publisher.rows(keyed)


def test_an_old_block_is_undone_and_not_seen(
    publisher: Database, age: Age, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    age()
    reader = Database(publisher.session.in_database(publisher.session.database_oid))
    publisher.run("BEGIN; INSERT INTO t VALUES (3); DELETE FROM t WHERE id = 1")
    age()
    assert reader.rows("SELECT * FROM t ORDER BY id") == [("1",), ("2",)]
    publisher.run("ROLLBACK")
    assert reader.rows("SELECT * FROM t ORDER BY id") == [("1",), ("2",)]
    fail_at(monkeypatch, "write.before-log")
    with suppress(InternalError):
        publisher.run("INSERT INTO t VALUES (4)")
    age()
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    publisher.run("INSERT INTO t VALUES (5)")
    assert publisher.rows("SELECT * FROM t ORDER BY id") == [("1",), ("2",), ("5",)]
