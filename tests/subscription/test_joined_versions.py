"""Of several versions without a change feed, replctl compares only the first and the last.  This
has one effect: a row that was inserted and deleted in between cannot conflict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


class Tables:
    """Tables of others without a feed, each published and copied by a subscription of its name.

    Attributes:
        source, target: the two databases.
    """

    def __init__(self, cluster: Cluster, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self.source = connect(cluster, "source", engine)
        self.target = connect(cluster, "target", engine)

    def make(
        self,
        name: str,
        columns: str = "id int PRIMARY KEY, v text",
        *,
        where: str = "",
    ) -> None:
        """Make a table of rows 1 to 4, adopt and publish it."""
        self.write(
            name,
            "CREATE TABLE {t} (id INT, v STRING) USING delta"
            " TBLPROPERTIES (delta.enableDeletionVectors = true)",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'old' FROM range(1, 5)",
        )
        self.source.run(
            f"CREATE TABLE {name} (PRIMARY KEY (id)) USING delta LOCATION '{self._folder / name}';"
            f"CREATE PUBLICATION {name} FOR TABLE {name}{where}"
        )
        self.target.run(f"CREATE TABLE {name} ({columns})")
        self.target.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'host=localhost dbname=source'"
            f" PUBLICATION {name}"
        )

    def write(self, name: str, *statements: str) -> None:
        """Write a table as somebody who does not know replctl.  Each statement makes a version."""
        for statement in statements:
            self._engine.run(statement.format(t=f"delta.`{self._folder / name}`"))

    def remove_added_file(self, name: str, version: int) -> None:
        """Remove the only data file that a version has added."""
        from replctl.lake.delta_log import read_actions

        folder = self._folder / name
        (path,) = [a["add"]["path"] for a in read_actions(str(folder), version) if "add" in a]
        (folder / path).unlink()

    def failures(self) -> dict[str, str]:
        """Return the errors that stop subscriptions in a sync, by the names of the
        subscriptions."""
        return {
            failure.subscription: f"{failure.error.message}; {failure.error.context}"
            for failure in self.target.sync()
        }

    def rows(self, name: str) -> list[tuple[str | None, ...]]:
        return self.target.rows(f"SELECT * FROM {name} ORDER BY id")


@pytest.fixture
def tables(cluster: Cluster, engine: Engine, tmp_path: Path) -> Tables:
    return Tables(cluster, engine, tmp_path)


def test_only_the_ends_are_compared(tables: Tables) -> None:
    tables.make("plain")
    tables.make("filtered", where=" WHERE (id > 0)")
    tables.make("own", "id int PRIMARY KEY, v text, note text DEFAULT 'by default'")
    assert tables.failures() == {}

    for name in ("plain", "filtered"):
        tables.target.run(f"INSERT INTO {name} VALUES (8, 'local')")
        tables.write(
            name,
            "UPDATE {t} SET v = 'new' WHERE id = 1",
            "INSERT INTO {t} VALUES (8, 'x')",
            "DELETE FROM {t} WHERE id = 8",
            "INSERT INTO {t} VALUES (9, 'new')",
        )
    tables.remove_added_file("plain", 3)  # replctl does not read it
    tables.target.run("UPDATE own SET note = 'mine'")  # this value is lost with its row
    tables.write("own", "DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (1, 'new')")

    def conflict(name: str) -> str:
        return (
            f'duplicate key value violates unique constraint "{name}_pkey"; processing remote data'
            f' for replication origin "'
        )

    failures = tables.failures()
    assert [name for name, text in failures.items() if text.startswith(conflict(name))] == [
        "filtered"
    ]
    olds = [(str(number), "old") for number in range(2, 5)]
    assert tables.rows("plain") == [("1", "new"), *olds, ("8", "local"), ("9", "new")]
    assert tables.rows("filtered") == [("1", "new"), *olds, ("8", "local")]
    assert tables.rows("own")[:2] == [("1", "new", "by default"), ("2", "old", "mine")]

    # of joined transactions, replctl applies those before the failing one
    tables.write("plain", "INSERT INTO {t} VALUES (7, 'new')", "INSERT INTO {t} VALUES (8, 'new')")
    assert tables.failures()["plain"].startswith(conflict("plain"))
    assert ("7", "new") in tables.rows("plain")
    assert ("8", "local") in tables.rows("plain")
