"""Tables of an owner, and copies at locations that other programs know, in two databases of a
cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fix_replication import Database, connect
from long_tests import RUNS_ALL
from owner_actions import Action, OwnedTable, write_rows

from replctl.catalog.cluster import Cluster
from replctl.launcher import SyncFailure

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

Row: TypeAlias = tuple[str | None, ...]

#: Limits to raise, so that each table can have a subscription of its own.
_LIMITS = (
    "max_logical_replication_workers",
    "max_replication_slots",
    "max_wal_senders",
    "max_worker_processes",
)
#: Spark plans wide unions slowly.
_READ_AT_ONCE = 8
_FILES = ([1, 2, 3, 4], [5, 6, 7], [8, 9, 10])


@dataclass(frozen=True)
class CopiedTable:
    """A published table and its copy, of the same name."""

    name: str
    source: OwnedTable
    target: OwnedTable


class OwnedLake:
    """Published tables with ten rows in three files, and their copies, all made by delta-rs."""

    def __init__(self, cluster: Cluster, engine: Engine, folder: Path) -> None:
        self._cluster, self._engine, self._folder = cluster, engine, folder
        self.source, self.target = self.database("source"), self.database("target")
        for limit in _LIMITS:
            self.target.run(f"ALTER SYSTEM SET {limit} = 1000")
        self.target.run("SELECT pg_reload_conf()")

    def database(self, name: str) -> Database:
        return connect(self._cluster, name, self._engine)

    def make(self, name: str, *, has_feed: bool) -> CopiedTable:
        """Make a table and its copy, with the same rows.

        Args:
            has_feed: both have a change data feed.
        """
        owned = []
        for kind, database in (("source", self.source), ("target", self.target)):
            place = self._folder / kind / name
            for ids in _FILES:
                write_rows(place, ids, has_feed=has_feed if ids is _FILES[0] else None)
            database.run(
                f"CREATE TABLE {name} (PRIMARY KEY (id) NOT ENFORCED) USING delta"
                f" LOCATION '{place}'"
            )
            owned.append(OwnedTable(self._engine, place, is_target=kind == "target"))
        return CopiedTable(name, *owned)

    def subscribe(self, name: str, tables: Sequence[CopiedTable]) -> None:
        """Create a publication of tables and a subscription to it, with the same name."""
        self.source.run(f"CREATE PUBLICATION {name} FOR TABLE {', '.join(t.name for t in tables)}")
        self.target.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}"
            " WITH (copy_data = false)"
        )

    def sync(self) -> dict[str, SyncFailure]:
        """Bring all subscriptions up to date, and return the failures by name."""
        return {failure.subscription: failure for failure in self.target.sync()}

    def rows(self, tables: Iterable[OwnedTable]) -> dict[Path, list[Row]]:
        """Return the rows that plain Spark reads from tables, by their locations."""
        found: dict[Path, list[Row]] = {table.location: [] for table in tables}
        queries = [
            f"SELECT '{place}', CAST(id AS STRING), v, CAST(n AS STRING) FROM delta.`{place}`"
            for place in found
        ]
        for first in range(0, len(queries), _READ_AT_ONCE):
            query = " UNION ALL ".join(queries[first : first + _READ_AT_ONCE])
            for place, *row in self._engine.rows(query):
                found[Path(place)].append(tuple(row))
        return {place: sorted(rows, key=str) for place, rows in found.items()}


def with_feeds(actions: Iterable[Action]) -> Iterator[tuple[str, Action, bool]]:
    """Yield a table name, an action, and whether the table has a change feed.

    Every other action has a table with a feed.  With REPLCTL_TEST_ALL, each action has a
    table with a feed and one without.
    """
    for number, action in enumerate(actions):
        for has_feed in (True, False):
            if RUNS_ALL or has_feed == (number % 2 == 0):
                yield f"{action.word}_{'on' if has_feed else 'off'}", action, has_feed
