"""Two clusters have adopted one Delta table, and write it in transactions.  Each sees the commits
of the other, and both targets equal the source at the end.

REPLCTL_TEST_TWO_CLUSTERS is the number of statements of each cluster (default: 6).
REPLCTL_TEST_SEED changes them.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_replication import connect

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import SerializationFailure

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_STEPS = int(os.environ.get("REPLCTL_TEST_TWO_CLUSTERS", "6"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))
_ROWS = "SELECT id, v FROM t ORDER BY id, v"


class Writer:
    """A cluster that writes the table, with a target of its own."""

    def __init__(self, cluster: Cluster, engine: Engine, location: Path, first_id: int) -> None:
        self.source = connect(cluster, "source", engine)
        self.target = connect(cluster, "target", engine)
        self._next_id, self._is_in_block = first_id, False
        self.log: list[str] = []
        self.source.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{location}'")
        self.source.run("CREATE PUBLICATION p FOR TABLE t")
        self.target.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
        self.target.run(
            "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=source' PUBLICATION p"
        )

    def step(self, random: Random) -> None:
        """Run a statement.  A transaction may begin before it, and end after it."""
        if not self._is_in_block and random.random() < 0.7:
            self._run("BEGIN")
            self._is_in_block = True
        try:
            self._run(self._statement(random))
        except SerializationFailure:
            self.end("ROLLBACK")
        if random.random() < 0.45:
            self.end(random.choice(["COMMIT", "ROLLBACK"]))

    def end(self, how: str) -> None:
        """End the open transaction, if there is one."""
        if self._is_in_block:
            self._is_in_block = False
            self._run(how)

    def _statement(self, random: Random) -> str:
        match random.choice("iiiuuudt"):
            case "i":
                self._next_id += 2
                return f"INSERT INTO t VALUES ({self._next_id - 1}, 'new'), ({self._next_id}, 'x')"
            case "u":
                part = random.randrange(3)
                return f"UPDATE t SET v = v || '{random.randrange(9)}' WHERE id % 3 = {part}"
            case "d":
                return f"DELETE FROM t WHERE id % 4 = {random.randrange(4)}"
            case _:
                return "TRUNCATE t"

    def _run(self, statement: str) -> None:
        self.log.append(statement)
        self.source.run(statement)


def sync(writers: list[Writer]) -> None:
    for writer in writers:
        assert writer.target.sync() == []


def test_both_targets_equal_the_source(tmp_path: Path, engine: Engine) -> None:
    location = tmp_path / "t"
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]})
    properties = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(location), rows, configuration=properties)
    random = Random(_SEED)
    clusters = [open_cluster(tmp_path / name) for name in ("a", "b")]
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.close)
        writers = [
            Writer(cluster, engine, location, 1000 * number)
            for number, cluster in enumerate(clusters, start=1)
        ]
        sync(writers)
        order = [0, 1] * _STEPS
        random.shuffle(order)
        for number, chosen in enumerate(order, start=1):
            writers[chosen].step(random)
            if number % 20 == 0:
                sync(writers)
        for writer in writers:
            writer.end("COMMIT")
        for _ in range(2):
            sync(writers)
        expected = writers[0].source.rows(_ROWS)
        told = [writer.log for writer in writers]
        assert writers[1].source.rows(_ROWS) == expected, told
        assert len({id_ for id_, _v in expected}) == len(expected), told
        for writer in writers:
            assert writer.target.rows(_ROWS) == expected, told
