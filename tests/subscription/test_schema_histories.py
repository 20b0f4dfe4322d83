"""Random histories of changes of columns and rows, with syncs in between.  With follow_schema the
copies are equal at the end, including their columns.

Half of the published tables belong to other owners, who change them in Spark (column mapping, type
widening).  SQL changes the others.  REPLCTL_TEST_HISTORIES is the number of histories (default: 4
short ones).  REPLCTL_TEST_SEED changes them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_HISTORIES = int(os.environ.get("REPLCTL_TEST_HISTORIES", "4"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))
_BATCH = 8  # histories at once
#: Maximum number of actions between two syncs, and number of syncs.
_ACTIONS, _ROUNDS = (6, 4) if "REPLCTL_TEST_HISTORIES" in os.environ else (4, 2)

#: Few names, so that histories use dropped and former names again.
_NAMES = "abcde"
#: Types, in SQL and in Spark, each with two values.
_TYPES = {
    "int": ("INT", ("1", "-7")),
    "bigint": ("BIGINT", ("30000000000", "5")),
    "numeric(6,2)": ("DECIMAL(6,2)", ("1.25", "-9999.99")),
    "numeric(12,4)": ("DECIMAL(12,4)", ("1.2345", "12345678.9")),
    "text": ("STRING", ("'x'", "''")),
    "date": ("DATE", ("DATE '2026-01-31'", "DATE '1969-12-31'")),
}
_WIDER = {"int": "bigint", "numeric(6,2)": "numeric(12,4)"}


@dataclass
class History:
    """The changes of a published table.

    Attributes:
        columns: the types of the columns other than id, by name.
    """

    name: str
    random: Random
    run: Callable[[str], object]
    table: str
    is_owned: bool
    columns: dict[str, str] = field(default_factory=lambda: {"a": "int", "b": "text"})
    last_id: int = 4
    steps: list[str] = field(default_factory=list)

    def act(self) -> None:
        """Do a random action."""
        rows = (self.insert, self.update, self.update, self.delete)
        columns = (self.add, self.rename, self.exchange, self.widen, self.drop)
        for statement in self.random.choice([*rows, *columns])():
            text = statement.format(t=self.table)
            self.steps.append(text)
            self.run(text)

    def type(self, name: str) -> str:
        kind = self.columns[name]
        return _TYPES[kind][0] if self.is_owned else kind

    def value(self, name: str) -> str:
        return self.random.choice([*_TYPES[self.columns[name]][1], "NULL"])

    def insert(self) -> Iterator[str]:
        self.last_id += 1
        names = ", ".join(["id", *self.columns])
        values = ", ".join([str(self.last_id), *map(self.value, self.columns)])
        yield f"INSERT INTO {{t}} ({names}) VALUES ({values})"

    def update(self) -> Iterator[str]:
        if self.columns:
            name = self.random.choice(list(self.columns))
            rows = f"id % 3 = {self.random.randrange(3)}"
            yield f"UPDATE {{t}} SET {name} = {self.value(name)} WHERE {rows}"

    def delete(self) -> Iterator[str]:
        yield f"DELETE FROM {{t}} WHERE id % 5 = {self.random.randrange(5)}"

    def add(self) -> Iterator[str]:
        free = [name for name in _NAMES if name not in self.columns]
        if not free:
            return
        name = self.random.choice(free)
        self.columns[name] = self.random.choice(list(_TYPES))
        if self.is_owned:
            yield f"ALTER TABLE {{t}} ADD COLUMNS ({name} {self.type(name)})"
        else:
            default = self.random.choice(["", f" DEFAULT {self.value(name)}"])
            yield f"ALTER TABLE {{t}} ADD COLUMN {name} {self.type(name)}{default}"

    def rename(self) -> Iterator[str]:
        free = [name for name in _NAMES if name not in self.columns]
        if free and self.columns:
            yield self.renamed(self.random.choice(list(self.columns)), self.random.choice(free))

    def renamed(self, old: str, new: str) -> str:
        self.columns = {new if n == old else n: kind for n, kind in self.columns.items()}
        return f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}"

    def exchange(self) -> Iterator[str]:
        if len(self.columns) > 1:
            one, other = self.random.sample(list(self.columns), 2)
            for old, new in ((one, "between"), (other, one), ("between", other)):
                yield self.renamed(old, new)

    def widen(self) -> Iterator[str]:
        for name, kind in self.columns.items():
            if kind in _WIDER:
                self.columns[name] = _WIDER[kind]
                yield f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE {self.type(name)}"
                return

    def drop(self) -> Iterator[str]:
        if self.columns and not self.is_owned:  # a column that others drop stops the subscription
            name = self.random.choice(list(self.columns))
            del self.columns[name]
            yield f"ALTER TABLE {{t}} DROP COLUMN {name}"


class Lake:
    """The tables of histories, and their copies."""

    def __init__(self, cluster: Cluster, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._databases = {n: connect(cluster, n, engine) for n in ("source", "target")}
        self.histories: dict[str, History] = {}

    @property
    def source(self) -> Database:
        return self._databases["source"]

    @property
    def target(self) -> Database:
        return self._databases["target"]

    def make(self, number: int) -> None:
        name, is_owned = f"history_{number}", number % 2 == 0
        if is_owned:
            table = f"delta.`{self._folder / name}`"
            self._engine.run(
                f"CREATE TABLE {table} (id INT, a INT, b STRING) USING delta TBLPROPERTIES"
                " (delta.columnMapping.mode = 'name', delta.enableTypeWidening = true,"
                f" delta.enableChangeDataFeed = {str(number % 4 == 0).lower()})"
            )
            self.source.run(
                f"CREATE TABLE {name} (PRIMARY KEY (id) NOT ENFORCED) USING delta"
                f" LOCATION '{self._folder / name}'"
            )
        else:
            table = name
            self.source.run(f"CREATE TABLE {name} (id int PRIMARY KEY, a int, b text)")
        run = self._engine.run if is_owned else self.source.run
        history = History(name, Random(f"{_SEED} {number}"), run, table, is_owned)
        run(f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL), (4, 4, 'd')")
        self.source.run(f"CREATE PUBLICATION {name} FOR TABLE {name}")
        self.target.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}"
            " WITH (create_tables = true, follow_schema = true)"
        )
        self.histories[name] = history

    def sync(self) -> None:
        failures = self.target.sync()
        for history in self.histories.values():
            history.steps.append("sync")
        for failure in failures:
            steps, error = self.histories[failure.subscription].steps, failure.error
            raise AssertionError(f"{steps}: {error.message} {error.detail} {error.hint}")

    def compare(self) -> None:
        for history in self.histories.values():
            columns = (
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid"
                f" = '{history.name}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
            rows = f"SELECT * FROM {history.name} ORDER BY id"
            for query in (columns, rows):
                found, expected = self.target.rows(query), self.source.rows(query)
                assert found == expected, f"{history.steps}: {found} are not {expected}"
            assert len(expected) == self._count(history), history.steps

    def _count(self, history: History) -> int:
        if not history.is_owned:
            return len(self.source.rows(f"SELECT id FROM {history.name}"))
        return len(self._engine.rows(f"SELECT id FROM {history.table}"))


@pytest.mark.parametrize("first", range(0, _HISTORIES, _BATCH))
def test_copies_follow(shared_cluster: Cluster, engine: Engine, tmp_path: Path, first: int) -> None:
    lake = Lake(shared_cluster, engine, tmp_path)
    for number in range(first, min(first + _BATCH, _HISTORIES)):
        lake.make(number)
    lake.sync()
    for _round in range(_ROUNDS):
        for history in lake.histories.values():
            for _action in range(history.random.randint(1, _ACTIONS)):
                history.act()
        lake.sync()
        lake.compare()
    for name in lake.histories:
        lake.target.run(f"DROP SUBSCRIPTION {name}")
