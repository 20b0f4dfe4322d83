"""Other programs write single partitions of a published table, or of a target, and do not know the
partitioned table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fix_replication import Database

from replctl.errors import FeatureNotSupported, SerializationFailure

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLE = """
    CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);
    CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20);
"""
_ROWS = [("1", "a"), ("2", "b"), ("11", "c")]


def _subscribe(publisher: Database, subscriber: Database, target: str) -> None:
    publisher.run(f"{_TABLE} INSERT INTO t VALUES (1, 'a'), (2, 'b'), (11, 'c')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root)")
    subscriber.run(target)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == _ROWS


def test_a_partition_that_another_program_empties(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    _subscribe(publisher, subscriber, "CREATE TABLE t (id int PRIMARY KEY, v text)")
    publisher.rows("SELECT pg_create_logical_replication_slot('l', 'pgoutput')")
    publisher.rows("SELECT pg_create_logical_replication_slot('d', 'test_decoding')")
    engine.run(f"TRUNCATE TABLE delta.`{publisher.location('low')}`")
    assert subscriber.sync() == []
    assert subscriber.rows("TABLE t") == publisher.rows("TABLE t") == [("11", "c")]
    options = "'proto_version', '1', 'publication_names', 'p'"
    sent = publisher.rows(
        "SELECT chr(get_byte(data, 0)) FROM"
        f" pg_logical_slot_get_binary_changes('l', NULL, NULL, {options})"
    )
    assert [letter for (letter,) in sent] == ["B", "R", "D", "D", "C"]
    # This plugin knows no publications
    changes = publisher.rows("SELECT data FROM pg_logical_slot_get_changes('d', NULL, NULL)")
    assert ("table public.low: TRUNCATE: (no-flags)",) in changes

    # As in PostgreSQL, TRUNCATE of a partition is not sent
    publisher.run("TRUNCATE high")
    assert subscriber.sync() == []
    assert subscriber.rows("TABLE t") == [("11", "c")]


def test_a_column_that_another_program_adds_to_a_partition(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    _subscribe(publisher, subscriber, _TABLE)
    for database in (publisher, subscriber):
        location = database.location("low")
        engine.run(f"ALTER TABLE delta.`{location}` ADD COLUMNS (extra STRING)")
        engine.run(f"UPDATE delta.`{location}` SET extra = 'x' WHERE id = 1")
    publisher.run("INSERT INTO t VALUES (3, 'd'); UPDATE t SET v = 'z' WHERE id < 3")
    assert subscriber.sync() == []
    rows = [("1", "z"), ("2", "z"), ("3", "d"), ("11", "c")]
    for database in (publisher, subscriber):
        assert database.rows("SELECT * FROM t ORDER BY id") == rows
        extra = database.rows("SELECT extra FROM low ORDER BY id")
        assert extra == [("x",), (None,), (None,)]

    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (replace = true)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == rows
    assert subscriber.rows("SELECT DISTINCT extra FROM low") == [(None,)]


def test_values_of_such_a_column_are_not_lost(source: Database, engine: Engine) -> None:
    """The table has no key, so changed rows are deleted and inserted again."""
    source.run(
        "CREATE TABLE t (id int, v text) PARTITION BY RANGE (id);"
        " CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);"
        " CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20);"
        " INSERT INTO t VALUES (1, 'a'), (11, 'c')"
    )
    location = source.location("low")
    engine.run(f"ALTER TABLE delta.`{location}` ADD COLUMNS (extra VARCHAR(9))")
    engine.run(f"UPDATE delta.`{location}` SET extra = 'x'")
    move = "UPDATE t SET id = id + 10 WHERE id = 1"
    with pytest.raises(FeatureNotSupported) as caught:
        source.run(move)
    assert caught.value.detail == 'The values of column "extra" would be lost.'
    hint = caught.value.hint
    assert hint is not None
    assert hint.startswith("Use ALTER TABLE public.t ADD COLUMN extra ")
    source.run(hint.removeprefix("Use "))
    source.run(move)
    assert source.rows("SELECT * FROM t ORDER BY v") == [("11", "a", "x"), ("11", "c", None)]


def test_a_block_that_has_changed_columns_gives_way(source: Database, engine: Engine) -> None:
    source.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    source.run("BEGIN; ALTER TABLE t ADD COLUMN own int")
    engine.run(f"ALTER TABLE delta.`{source.location()}` ADD COLUMNS (extra STRING)")
    with pytest.raises(SerializationFailure):
        source.run("INSERT INTO t VALUES (2)")
    source.run("ROLLBACK")
    source.run("ALTER TABLE t ADD COLUMN own int; INSERT INTO t VALUES (3, 'x', 3)")
    assert source.rows("SELECT * FROM t ORDER BY id") == [("1", None, None), ("3", "x", "3")]


def test_a_savepoint_takes_back_only_the_columns_of_the_block(
    source: Database, engine: Engine
) -> None:
    source.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    source.run("BEGIN; SAVEPOINT s; ALTER TABLE t ADD COLUMN own int; INSERT INTO t VALUES (2, 2)")
    engine.run(f"ALTER TABLE delta.`{source.location()}` ADD COLUMNS (extra STRING)")
    source.run("ROLLBACK TO s; INSERT INTO t VALUES (3); COMMIT")
    assert source.rows("SELECT * FROM t ORDER BY id") == [("1", None), ("3", None)]
    source.run("INSERT INTO t VALUES (4, 'x')")
    assert source.rows("SELECT id FROM t WHERE extra = 'x'") == [("4",)]


def test_a_column_that_is_added_during_a_block(source: Database, engine: Engine) -> None:
    source.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    source.run("BEGIN; INSERT INTO t VALUES (2)")
    engine.run(f"ALTER TABLE delta.`{source.location()}` ADD COLUMNS (extra STRING)")
    source.run("INSERT INTO t VALUES (3); COMMIT")
    assert source.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("3",)]
    source.run("INSERT INTO t VALUES (4, 'x')")
    assert source.rows("SELECT extra FROM t WHERE id > 2 ORDER BY id") == [(None,), ("x",)]
