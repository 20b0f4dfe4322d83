"""An attacker writes the log of a table.  Then the rows are correct, or an error names the table,
and only its subscription stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database, connect
from golden_script import answer_of

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_ROWS = "SELECT id FROM t ORDER BY id"
_FORGED = json.dumps({"replctl": {"xid": 1, "silent": True, "signature": "0" * 64}})
_MARKS: list[object] = [7, {"a": [[[[1]]]]}, [None], _FORGED.replace(" ", ""), "x" * 200_000]


def _append(location: Path, ids: list[int]) -> Path:
    """Append rows as another program does, and return the file of the commit."""
    properties = {"delta.enableChangeDataFeed": "true"}
    rows = pa.table({"id": pa.array(ids, pa.int32())})
    write_deltalake(
        str(location), rows, mode="append", configuration=properties, schema_mode="merge"
    )
    return max((location / "_delta_log").glob("*.json"))


def _marked(commit: Path, mark: object) -> None:
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("commitInfo", {})["userMetadata"] = mark
    commit.write_text("\n".join(map(json.dumps, lines)))


def _publish(source: Database, target: Database, table: str) -> None:
    source.run(f"CREATE PUBLICATION {table} FOR TABLE {table} (id)")
    target.run(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    target.run(
        f"CREATE SUBSCRIPTION {table} CONNECTION 'host=localhost dbname=source' PUBLICATION {table}"
    )


def test_a_broken_table_stops_its_subscription_alone(
    cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    source, target = (connect(cluster, name, engine) for name in ("source", "target"))
    location = tmp_path / "t"
    _append(location, [1])
    source.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{location}'")
    source.run("CREATE TABLE ok (id int PRIMARY KEY)")
    for table in ("t", "ok"):
        _publish(source, target, table)
    assert target.sync() == []
    for number, mark in enumerate(_MARKS, start=2):
        _marked(_append(location, [number]), mark)
    DeltaTable(location).delete("id = 2")
    _marked(max((location / "_delta_log").glob("*.json")), {"unreadable": "for Delta's feed"})
    _append(location, [50])
    rows = pa.table({"id": pa.array([51], pa.int32()), "more": ["x"]})
    write_deltalake(str(location), rows, mode="append", schema_mode="merge")
    _marked(max((location / "_delta_log").glob("*.json")), ["with a new column"])
    expected: list[tuple[str | None, ...]] = [
        (str(number),) for number in [1, *range(3, len(_MARKS) + 2), 50, 51]
    ]
    assert source.rows(_ROWS) == expected
    assert target.sync() == []
    assert target.rows(_ROWS) == expected
    torn = _append(location, [99])
    torn.write_bytes(torn.read_bytes()[:-30])
    source.run("INSERT INTO ok VALUES (1)")
    for statement in (_ROWS, "INSERT INTO t VALUES (100)", "DELETE FROM t", "TRUNCATE t"):
        answer = answer_of(source.session, statement)
        assert answer[0].startswith("ERROR XX001: the log of the Delta table"), (statement, answer)
        assert 'Table "public.t"' in answer[1]
    (failure,) = target.sync()
    assert failure.subscription == "t"
    assert "is broken" in str(failure.error)
    assert target.rows("SELECT * FROM ok") == [("1",)]
    assert target.rows(_ROWS) == expected
    assert source.run("DROP TABLE t") == ["DROP TABLE"]
    assert torn.exists()
