"""Timestamps in partition columns of a published table are read as the instants that the owner
wrote.  This applies to SELECT, copies, and changes from the feed and from files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_SETTINGS = {
    "spark.sql.session.timeZone": "Europe/Zurich",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "false",
}


@contextmanager
def _in_zurich(engine: Engine) -> Iterator[None]:
    """Run the block with a session in Zurich, which writes partition values without a zone."""
    before = {name: engine.session.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        engine.session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                engine.session.conf.unset(name)
            else:
                engine.session.conf.set(name, old)


def test_partition_values_are_instants(cluster: Cluster, engine: Engine, tmp_path: Path) -> None:
    source, target = (connect(cluster, name, engine) for name in ("source", "target"))
    table = f"delta.`{tmp_path / 'theirs'}`"
    with _in_zurich(engine):
        engine.run(
            f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING delta PARTITIONED BY (at)"
            " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )
        engine.run(f"INSERT INTO {table} VALUES (1, TIMESTAMP '2024-07-01 12:00:00'), (2, NULL)")
    engine.run(f"INSERT INTO {table} VALUES (3, TIMESTAMP '2024-01-01 12:00:00Z')")
    source.run(
        f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / 'theirs'}'"
        " WITH (partition_timezone = 'Europe/Zurich');"
        " CREATE PUBLICATION p FOR TABLE t WHERE (at IS NULL OR at < '2024-07-01 11:00:00+00')"
    )
    target.run("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    rows: dict[int, str | None] = {
        1: "2024-07-01 10:00:00+00",
        2: None,
        3: "2024-01-01 12:00:00+00",
    }

    def check() -> None:
        assert target.sync() == []
        expected = [(str(number), value) for number, value in sorted(rows.items())]
        for database in (source, target):
            assert database.rows("SELECT id, at FROM t ORDER BY id") == expected

    check()
    with _in_zurich(engine):
        engine.run(f"UPDATE {table} SET id = 4 WHERE id = 1")
        engine.run(f"INSERT INTO {table} VALUES (5, TIMESTAMP '2024-02-01 12:00:00')")
        rows |= {4: rows.pop(1), 5: "2024-02-01 11:00:00+00"}
        engine.run(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
        )
        engine.run(f"DELETE FROM {table} WHERE id = 3")
        engine.run(f"INSERT INTO {table} VALUES (6, TIMESTAMP '2024-03-01 12:00:00')")
        del rows[3]
        rows[6] = "2024-03-01 11:00:00+00"
    check()
