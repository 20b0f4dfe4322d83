"""The lake for the measurements: a temporary cluster, Spark, tables of ten columns, and changes of
their rows."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import delta_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replctl.spark.engine import Engine

#: The columns of the tables, about 55 bytes a row in Parquet: PostgreSQL's type, Spark's, and
#: Spark's value for a key.
_COLUMNS = {
    "id": ("bigint", "BIGINT", "{id}"),
    "quantity": ("int", "INT", "CAST(pmod({id}, 1000) AS INT)"),
    "region": ("text", "STRING", "concat('r', lpad(pmod(hash({id}), 20), 2, '0'))"),
    "customer": ("text", "STRING", "concat('customer ', pmod(hash({id}, 1), 10000))"),
    "note": ("text", "STRING", "substr(md5(CAST({id} AS STRING)), 1, 12)"),
    "amount": (
        "numeric(12,2)",
        "DECIMAL(12,2)",
        "CAST(pmod(hash({id}, 2), 1000000) / 100 AS DECIMAL(12,2))",
    ),
    "created_at": ("timestamptz", "TIMESTAMP", "timestamp_seconds(1700000000 + {id})"),
    "updated_at": ("timestamptz", "TIMESTAMP", "timestamp_seconds(1700000060 + {id})"),
    "paid": ("boolean", "BOOLEAN", "pmod({id}, 3) = 0"),
    "score": ("double precision", "DOUBLE", "pmod(hash({id}, 3), 1000) / 8D"),
}
COLUMN_NAMES = tuple(_COLUMNS)
_DEFINITIONS = ", ".join(f"{name} {types[0]}" for name, types in _COLUMNS.items())
DEFINITIONS = _DEFINITIONS.replace("id bigint", "id bigint PRIMARY KEY", 1)
STORED = ", ".join(f"{name} {types[1]}" for name, types in _COLUMNS.items())
#: Row filters with the same meaning in PostgreSQL and Spark.
TENTH = "region IN ('r00', 'r01')"
NINE_TENTHS = "region <> 'r00' AND region <> 'r01'"
#: Properties that replctl gives its tables.  Bare tables in comparisons have the same properties.
TABLE_PROPERTIES = delta_table.TABLE_PROPERTIES | {"delta.enableDeletionVectors": "true"}
#: Spark's own defaults of settings that replctl changes.
_DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.sql.inMemoryColumnarStorage.batchSize": "10000",
    "spark.sql.inMemoryColumnarStorage.compressed": "true",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "0",
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "false",
    "spark.sql.datetime.java8API.enabled": "false",
}
_ROWS_OF_A_FILE = 500_000
_COMMIT = re.compile(r"(\d{20})\.json")


class DifferentResults(Exception):
    """Two variants have not done the same work."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Keys to change in one commit.  Half of the rows are updated, a quarter deleted, and a quarter
    inserted.
    """

    updated: Sequence[int]
    deleted: Sequence[int]
    inserted: Sequence[int]


class Keys:
    """The keys of a table, and the keys to change next.  The first keys are 2, 4, ..., 2n."""

    def __init__(self, rows: int, seed: int = 1) -> None:
        self._rows = rows
        self._random = random.Random(seed)
        self._gone: set[int] = set()
        self._added: set[int] = set()
        self._top = 2 * rows

    def pick(self, count: int, *, recent: bool) -> Changes:
        """Choose keys anywhere in the table, or near its end and after it."""
        inserted_count = (count + 2) // 4 if count < 100 else count // 4
        deleted_count = count // 4
        changed_count = count - inserted_count
        window = min(self._rows, max(10 * count, self._rows // 100)) if recent else self._rows
        lowest = self._rows - window + 1
        changed: list[int] = []
        seen: set[int] = set()
        while len(changed) < changed_count:
            key = 2 * self._random.randint(lowest, self._rows)
            if key not in seen and key not in self._gone:
                seen.add(key)
                changed.append(key)
        inserted: list[int] = []
        while len(inserted) < inserted_count:
            if recent:
                self._top += 2
                inserted.append(self._top)
                continue
            key = 2 * self._random.randint(1, self._rows) - 1
            if key not in self._added:
                self._added.add(key)
                inserted.append(key)
        deleted = changed[:deleted_count]
        self._gone.update(deleted)
        return Changes(changed[deleted_count:], deleted, inserted)


class Lake:
    """A cluster in a scratch folder, with bare Delta tables next to it.

    Attributes:
        home: the cluster's directory.
        bare: the folder of the bare tables.
        engine: replctl's engine.
    """

    def __init__(self, folder: Path, engine: Engine, remote: str | None = None) -> None:
        self._folder = folder
        self.home, self.bare = folder / "home", folder / "bare"
        self.bare.mkdir(parents=True)
        self.engine, self._remote = engine, remote
        self.cluster = open_cluster(self.home)
        self._commits = itertools.count(1)
        self.run("postgres", "ALTER SYSTEM SET max_replication_slots = 1000")

    # -- replctl

    def session(self, database: str) -> Session:
        return Session.connect(self.cluster, database, "postgres", engine=lambda: self.engine)

    def run(self, database: str, statements: str) -> list[tuple[Any, ...]]:
        """Run statements, and return their rows."""
        results = execute(self.session(database), statements)
        return [tuple(row) for result in results for row in result.rows]

    def create_databases(self, *names: str) -> None:
        for name in names:
            self.run("postgres", f"CREATE DATABASE {name}")

    def sync(self, *names: str) -> None:
        """Apply subscriptions; without names, all of them.

        Raises:
            PostgresError: a subscription has failed.
        """
        for failure in sync(self.session("postgres"), names):
            raise failure.error

    def location(self, database: str, table: str = "t") -> str:
        ((path,),) = self.run(database, f"SELECT pg_relation_filepath('{table}')")
        return str(path)

    def publish(
        self,
        database: str,
        rows: int,
        table: str = "t",
        properties: Mapping[str, str] | None = None,
    ) -> str:
        """Write a table with Spark, adopt it as a relation, and return its location.

        Args:
            properties: properties of Delta, which replace or extend replctl's.
        """
        location = str(self.bare / f"{database}-{table}")
        self.write_table(location, rows, TABLE_PROPERTIES | dict(properties or {}))
        self.run(
            database,
            f"CREATE TABLE {table} (PRIMARY KEY (id)) USING delta LOCATION '{location}';"
            f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        )
        return location

    def subscribe(self, database: str, publication: str, publisher: str = "pub") -> None:
        """Make a subscription with the name of its database."""
        self.run(
            database,
            f"CREATE SUBSCRIPTION {database} CONNECTION 'dbname={publisher}'"
            f" PUBLICATION {publication}",
        )

    # -- Spark

    @cached_property
    def plain(self) -> SparkSession:
        """Return a session with Spark's own settings."""
        return self._session_with_defaults()

    @cached_property
    def lean(self) -> SparkSession:
        """Return a session with Spark's own settings, except for two settings of replctl that make
        small jobs cheap.
        """
        session = self._session_with_defaults()
        for name in ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"):
            session.conf.set(name, str(self.engine.session.conf.get(name)))
        return session

    def _session_with_defaults(self) -> SparkSession:
        session = self.engine.new_session()
        for name, value in _DEFAULTS.items():
            session.conf.set(name, value)
        return session

    def job_count(self) -> int | None:
        """Return the number of Spark jobs that this process has run so far; None for a Connect
        server.
        """
        if self._remote is not None:
            return None
        context = self.engine.session.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())

    def write_table(
        self, location: str, rows: int, properties: Mapping[str, str] = TABLE_PROPERTIES
    ) -> None:
        """Make a Delta table with rows in the order of their keys."""
        files = max(1, -(-rows // _ROWS_OF_A_FILE))
        self.create_table(location, properties)
        values = [f"{types[2].format(id='id')} AS {name}" for name, types in _COLUMNS.items()]
        frame = self.lean.range(2, 2 * rows + 1, 2, files).selectExpr(*values)
        frame.write.format("delta").mode("append").save(location)

    def create_table(
        self,
        location: str,
        properties: Mapping[str, str] = TABLE_PROPERTIES,
        columns: str = STORED,
    ) -> None:
        """Make an empty Delta table, with replctl's properties or others."""
        shown = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        chosen = f" TBLPROPERTIES ({shown})" if shown else ""
        self.lean.sql(f"CREATE TABLE delta.`{location}` ({columns}) USING delta{chosen}")

    def commit(self, location: str, changes: Changes) -> None:
        """Change rows of a table with one MERGE, as another program does.  Updated rows may move to
        another region, and so into a filter or out of it.
        """
        number = next(self._commits)
        view = f"changes_{number}"
        ids = [*changes.updated, *changes.deleted, *changes.inserted]
        ops = "U" * len(changes.updated) + "D" * len(changes.deleted) + "I" * len(changes.inserted)
        table = pa.table({"id": pa.array(ids, pa.int64()), "op": pa.array(list(ops))})
        self.lean.createDataFrame(table).createOrReplaceTempView(view)
        values = ", ".join(types[2].format(id="s.id") for types in _COLUMNS.values())
        self.lean.sql(
            f"MERGE INTO delta.`{location}` t USING {view} s ON t.id = s.id"
            " WHEN MATCHED AND s.op = 'D' THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET quantity = t.quantity + 1, region ="
            f" concat('r', lpad(pmod(hash(t.id, {number}), 20), 2, '0')),"
            f" updated_at = timestamp_seconds(1800000000 + {number})"
            f" WHEN NOT MATCHED THEN INSERT ({', '.join(COLUMN_NAMES)}) VALUES ({values})"
        )
        self.lean.catalog.dropTempView(view)

    # -- results

    def check_equal(self, tables: Mapping[str, str]) -> None:
        """Check that queries, given by the names of their variants, have the same rows.

        Raises:
            DifferentResults: the rows differ.
        """
        sums = {name: self.checksum(query) for name, query in tables.items()}
        if len(set(sums.values())) == 1:
            return
        first, *others = tables
        for other in others:
            for one, two in ((first, other), (other, first)):
                rows = self.lean.sql(f"{tables[one]} EXCEPT ALL {tables[two]}").limit(3).collect()
                if rows:
                    shown = "\n  ".join(str(tuple(row)) for row in rows)
                    raise DifferentResults(f"{one} has rows that {two} has not, as\n  {shown}")
        raise DifferentResults(f"checksums differ: {sums}")

    def checksum(self, query: str) -> tuple[Any, ...]:
        """Return the number of rows of a query, and a value that depends on their content."""
        row = self.lean.sql(
            "SELECT count(*), bit_xor(h), sum(CAST(h AS DECIMAL(38, 0)))"
            f" FROM (SELECT xxhash64(*) AS h FROM ({query}))"
        ).collect()[0]
        return tuple(row)

    def versions(self) -> dict[Path, int]:
        """Return the newest version of each table, by its log's folder."""
        return {log: _latest(log) for log in self._folder.rglob("_delta_log")}

    def bytes_written_since(self, versions: Mapping[Path, int]) -> int | None:
        """Return the bytes that commits have written since `versions`; None if there were no
        commits.
        """
        written, has_commits = 0, False
        for log, latest in self.versions().items():
            for version in range(versions.get(log, -1) + 1, latest + 1):
                has_commits = True
                written += _written(log, version)
        return written if has_commits else None


def rows_of(location: str, condition: str = "TRUE") -> str:
    """Return a query of a Delta table's rows."""
    return f"SELECT {', '.join(COLUMN_NAMES)} FROM delta.`{location}` WHERE {condition}"


def files_of(location: str) -> tuple[int, int, int]:
    """Return the number of a table's files, their bytes, and the columns for which the first file
    has statistics.
    """
    from_log = [
        action["add"]
        for version in range(_latest(Path(location) / "_delta_log") + 1)
        for action in _actions(Path(location) / "_delta_log", version)
        if "add" in action
    ]
    statistics = json.loads(from_log[0].get("stats") or "{}")
    return (
        len(from_log),
        sum(int(add["size"]) for add in from_log),
        len(statistics.get("minValues", {})),
    )


def _latest(log: Path) -> int:
    found = (_COMMIT.fullmatch(name.name) for name in log.iterdir())
    return max((int(match[1]) for match in found if match), default=-1)


def _actions(log: Path, version: int) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):  # VACUUM may have removed it
        content = (log / f"{version:020d}.json").read_text("utf-8")
        return [json.loads(line) for line in content.splitlines()]
    return []


def _written(log: Path, version: int) -> int:
    """Return the bytes of a commit's data files, change files and deletion vectors.  If a file only
    gets a new deletion vector, the log lists it again, but its bytes do not count.
    """
    actions = _actions(log, version)
    kept = {action["remove"]["path"] for action in actions if "remove" in action}
    total = 0
    for action in actions:
        if "cdc" in action:
            total += int(action["cdc"]["size"])
        if "add" in action:
            added = action["add"]
            if added["path"] not in kept:
                total += int(added["size"])
            if added.get("deletionVector"):
                total += int(added["deletionVector"].get("sizeInBytes", 0))
    return total
