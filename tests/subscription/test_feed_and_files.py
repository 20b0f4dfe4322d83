"""A version gives the same net changes with and without a change data feed, in random histories.

REPLCTL_TEST_HISTORIES is the number of histories (default: 1).  REPLCTL_TEST_SEED changes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_HISTORIES = int(os.environ.get("REPLCTL_TEST_HISTORIES", "1"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))
_STATEMENTS = 10
_FEED = "delta.enableChangeDataFeed"
#: For tables with the same rows: whether a table has a feed at first, and whether this changes.
_TABLES = {"always": (True, False), "never": (False, False), "switched": (False, True)}


def _statement(random: Random, ids: Iterator[int]) -> str:
    low = random.randrange(40)
    rows = f"id BETWEEN {low} AND {low + random.randrange(1, 12)}"
    new = next(ids)
    return random.choice(
        [
            f"INSERT INTO {{t}} VALUES ({new}, 'new', {random.choice(['0.0', '-0.0', 'NULL'])})",
            f"UPDATE {{t}} SET v = -v WHERE {rows}",
            f"UPDATE {{t}} SET v = v, r = 'same' WHERE {rows}",
            f"UPDATE {{t}} SET id = id + {new * 100} WHERE id = {low}",
            f"DELETE FROM {{t}} WHERE {rows}",
            f"INSERT OVERWRITE {{t}} SELECT id, concat(r, '.') AS r, v FROM {{t}} WHERE NOT {rows}",
            f"MERGE INTO {{t}} t USING (SELECT id + {low} AS id FROM range(5)) s ON t.id = s.id"
            " WHEN MATCHED AND s.id % 2 = 0 THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET v = double('NaN')"
            " WHEN NOT MATCHED THEN INSERT (id, r) VALUES (s.id, NULL)",
            "OPTIMIZE {t}",
        ]
    )


def _net_changes(source: Database, table: str) -> list[list[str]]:
    """Return the changes of each transaction that changes rows of a table.  Leave out updates that
    change nothing."""
    query = f"SELECT data FROM pg_logical_slot_get_changes('{table}', NULL, NULL)"
    result: list[list[str]] = []
    for (text,) in source.rows(query):
        assert text is not None
        if text.startswith("BEGIN"):
            result.append([])
        head, _, change = text.partition(f"table public.{table}: ")
        old, _, new = change.removeprefix("UPDATE: old-key: ").partition(" new-tuple: ")
        if head == "" and old != new and change:
            result[-1].append(change)
    return [sorted(changes) for changes in result if changes]


@pytest.mark.parametrize("number", range(_HISTORIES))
def test_a_version_has_the_same_net_changes(
    cluster: Cluster, engine: Engine, tmp_path: Path, number: int
) -> None:
    random, ids = Random(f"{_SEED} {number}"), count(100)
    source = connect(cluster, "source", engine)
    folders = {table: tmp_path / table for table in _TABLES}
    has_feed = {table: feed for table, (feed, _is_switched) in _TABLES.items()}
    for table, folder in folders.items():
        vectors, feed = random.choice(["true", "false"]), str(has_feed[table]).lower()
        engine.run(
            f"CREATE TABLE delta.`{folder}` (id INT, r STRING, v DOUBLE) USING delta TBLPROPERTIES"
            f" (delta.enableDeletionVectors = {vectors}, {_FEED} = {feed})"
        )
        engine.run(f"INSERT INTO delta.`{folder}` SELECT id, 'row', id FROM range(40)")
        source.run(f"CREATE TABLE {table} (PRIMARY KEY (id)) USING delta LOCATION '{folder}'")
        source.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        source.run(f"SELECT pg_create_logical_replication_slot('{table}', 'test_decoding')")
    history = [_statement(random, ids) for _ in range(_STATEMENTS)]
    for statement in history:
        for table, folder in folders.items():
            if _TABLES[table][1] and random.random() < 0.4:
                has_feed[table] = not has_feed[table]
                feed = str(has_feed[table]).lower()
                engine.run(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({_FEED} = {feed})")
            engine.run(statement.format(t=f"delta.`{folder}`"))
    expected = _net_changes(source, "always")
    assert expected, history
    for table in _TABLES:
        if table != "always":
            assert _net_changes(source, table) == expected, (table, history)


def _log(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.json"


def _write(folder: Path, *actions: dict[str, Any]) -> None:
    """Write a version by hand."""
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {}}}
    version = DeltaTable(str(folder)).version() + 1
    _log(folder, version).write_text("\n".join(map(json.dumps, [info, *actions])))


def test_a_file_is_added_again_and_removed_twice(
    cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    source = connect(cluster, "source", engine)
    found = []
    for table, feed in (("fed", "true"), ("unfed", "false")):
        folder, rows = tmp_path / table, pa.table({"id": [1, 2], "v": ["a", "b"]})
        write_deltalake(str(folder), rows, configuration={_FEED: feed})
        source.run(f"CREATE TABLE {table} USING delta LOCATION '{folder}'")
        source.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        source.run(f"SELECT pg_create_logical_replication_slot('{table}', 'test_decoding')")
        log = map(json.loads, _log(folder, 0).read_text().splitlines())
        (add,) = (action["add"] for action in log if "add" in action)
        _write(folder, {"add": add | {"stats": '{"numRecords":2}'}})
        (folder / "new.parquet").write_bytes((folder / add["path"]).read_bytes())
        gone = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
        _write(folder, {"remove": gone})
        whole = {"extendedFileMetadata": True, "partitionValues": {}, "size": add["size"]}
        _write(folder, {"remove": gone | whole}, {"add": add | {"path": "new.parquet"}})
        found.append(_net_changes(source, table))
    deleted, inserted = (
        [f"{kind}: id[bigint]:{n} v[text]:'{v}'" for n, v in ((1, "a"), (2, "b"))]
        for kind in ("DELETE", "INSERT")
    )
    assert found == [[deleted, inserted]] * 2
