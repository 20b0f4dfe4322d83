"""What the owner of a published table does besides DML: the copy ends equal, without help.

Read ACTIONS as a table: each row is done to a table of its own, with a change feed or without, in
turn.  With REPLCTL_TEST_ALL_ACTIONS=1 each is done with a feed and without.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_FEED = "delta.enableChangeDataFeed"
_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('%s' = '%s')"
_WITH_VECTORS = _PROPERTY % ("delta.enableDeletionVectors", "true")


@dataclass(frozen=True)
class Action:
    """What is done to a table.

    Attributes:
        statements: of Spark; {t} is the table.
        cleans_log: Delta's log is cleaned first, up to a checkpoint of the newest version.
    """

    name: str
    statements: tuple[str, ...] = ()
    cleans_log: bool = False

    @property
    def word(self) -> str:
        return self.name.replace(" ", "_")


ACTIONS = [
    Action("insert", ("INSERT INTO {t} VALUES (100, 'new', 1)",)),
    Action("update", ("UPDATE {t} SET v = 'changed' WHERE id % 3 = 0",)),
    Action("delete", ("DELETE FROM {t} WHERE id % 3 = 0",)),
    Action(
        "merge",
        (
            "MERGE INTO {t} t USING (SELECT id + 5 AS id FROM {t}) s ON t.id = s.id"
            " WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET v = 'merged'"
            " WHEN MATCHED THEN DELETE"
            " WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, 'more', 0)",
        ),
    ),
    Action("overwrite", ("INSERT OVERWRITE {t} SELECT id + 3, v, n FROM {t}",)),
    Action(
        "replace where",
        ("INSERT INTO {t} REPLACE WHERE id > 6 SELECT id + 4, 'r', n FROM {t} WHERE id > 6",),
    ),
    Action("optimize", ("OPTIMIZE {t}",)),
    Action("zorder", ("OPTIMIZE {t} ZORDER BY (n)",)),
    Action(
        "reorg",
        (_WITH_VECTORS, "DELETE FROM {t} WHERE id = 2", "REORG TABLE {t} APPLY (PURGE)"),
    ),
    Action("clustering changed", ("ALTER TABLE {t} CLUSTER BY (id)", "OPTIMIZE {t}")),
    Action("vacuum", ("DELETE FROM {t} WHERE id = 2", "VACUUM {t}")),
    Action("vacuum lite", ("DELETE FROM {t} WHERE id = 2", "VACUUM {t} LITE")),
    Action("restore", ("DELETE FROM {t} WHERE id < 7", "RESTORE TABLE {t} TO VERSION AS OF 0")),
    Action(
        "create or replace",
        (
            "CREATE OR REPLACE TABLE {t} USING delta"
            " AS SELECT id, 'again' AS v, n FROM {t} WHERE id > 2",
        ),
    ),
    Action(
        "feed switched off and on",
        (
            _PROPERTY % (_FEED, "true"),
            "UPDATE {t} SET v = 'on' WHERE id = 1",
            _PROPERTY % (_FEED, "false"),
            "UPDATE {t} SET v = 'off' WHERE id < 3",
            "DELETE FROM {t} WHERE id = 5",
            _PROPERTY % (_FEED, "true"),
            "UPDATE {t} SET v = 'on again' WHERE id > 8",
        ),
    ),
    Action(
        "row tracking",
        (_PROPERTY % ("delta.enableRowTracking", "true"), "UPDATE {t} SET v = 'r' WHERE id = 4"),
    ),
    Action("deletion vectors", (_WITH_VECTORS, "DELETE FROM {t} WHERE id IN (1, 9)")),
    Action(
        "column mapping",
        (_PROPERTY % ("delta.columnMapping.mode", "name"), "UPDATE {t} SET v = 'm' WHERE id = 4"),
    ),
    Action("drop not null", ("ALTER TABLE {t} ALTER COLUMN n DROP NOT NULL",)),
    Action(
        "nullable column added",
        ("ALTER TABLE {t} ADD COLUMNS (extra STRING)", "UPDATE {t} SET extra = 'x' WHERE id = 3"),
    ),
    Action("log cleaned", cleans_log=True),
    Action(
        "drop feature",
        (
            _WITH_VECTORS,
            "DELETE FROM {t} WHERE id = 3",
            "ALTER TABLE {t} DROP FEATURE deletionVectors",
        ),
    ),
]


@dataclass(frozen=True)
class Lake:
    """Tables of an owner, one for each action and state of the feed, and a copy of all of them."""

    source: Database
    target: Database
    folder: Path
    engine: Engine

    def path(self, table: str) -> Path:
        return self.folder / table

    def make(self, table: str, *, has_feed: bool) -> None:
        """Write a table of ten rows in three files, and adopt it."""
        schema = pa.schema(
            [
                pa.field("id", pa.int32(), nullable=False),
                pa.field("v", pa.string()),
                pa.field("n", pa.int32(), nullable=False),
            ]
        )
        for ids in ([1, 2, 3, 4], [5, 6, 7], [8, 9, 10]):
            rows = pa.table([ids, [f"row {i}" for i in ids], [i % 3 for i in ids]], schema=schema)
            write_deltalake(
                str(self.path(table)),
                rows,
                mode="append",
                configuration={_FEED: str(has_feed).lower()} if ids[0] == 1 else None,
            )
        self.source.run(
            f"CREATE TABLE {table} (PRIMARY KEY (id) NOT ENFORCED) USING delta"
            f" LOCATION '{self.path(table)}'"
        )
        self.target.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v text, n int, extra text)")

    def act(self, action: Action, table: str) -> None:
        """Do as the owner does, and write a row afterwards."""
        shown = f"delta.`{self.path(table)}`"
        if action.cleans_log:
            DeltaTable(str(self.path(table))).create_checkpoint()
            for commit in sorted((self.path(table) / "_delta_log").glob("*.json"))[:-1]:
                commit.unlink()
        for statement in action.statements:
            self.engine.run(statement.replace("{t}", shown))
        self.engine.run(f"UPDATE {shown} SET n = 7 WHERE id IN (4, 7)")

    def owners_rows(self, table: str) -> list[tuple[str | None, ...]]:
        """Return the rows that plain Spark reads."""
        shown = f"delta.`{self.path(table)}`"
        found = self.engine.rows(f"SELECT CAST(id AS STRING), v, CAST(n AS STRING) FROM {shown}")
        return sorted(found)

    def copied_rows(self, table: str) -> list[tuple[str | None, ...]]:
        return sorted(self.target.rows(f"SELECT id, v, n FROM {table}"))


def _tables() -> list[tuple[Action, bool, str]]:
    in_turn = "REPLCTL_TEST_ALL_ACTIONS" not in os.environ
    return [
        (action, has_feed, f"{action.word}_{'on' if has_feed else 'off'}")
        for number, action in enumerate(ACTIONS)
        for has_feed in (True, False)
        if not in_turn or has_feed == (number % 2 == 0)
    ]


@pytest.fixture(scope="module")
def lake(shared_cluster: Cluster, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All actions done, and one sync after them."""
    source, target = (connect(shared_cluster, name, engine) for name in ("source", "target"))
    made = Lake(source, target, tmp_path_factory.mktemp("lake"), engine)
    names = [name for _action, _has_feed, name in _tables()]
    for _action, has_feed, name in _tables():
        made.make(name, has_feed=has_feed)
    source.run(f"CREATE PUBLICATION p FOR TABLE {', '.join(names)}")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    for action, _has_feed, name in _tables():
        made.act(action, name)
    assert target.sync() == []
    return made


@pytest.mark.parametrize(
    ("action", "has_feed", "table"), _tables(), ids=[name for *_rest, name in _tables()]
)
def test_a_copy_ends_equal_without_help(
    lake: Lake, action: Action, has_feed: bool, table: str
) -> None:
    assert lake.copied_rows(table) == lake.owners_rows(table)
