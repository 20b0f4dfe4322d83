"""A table of the actions of owners and neighbours on a Delta table, without replctl."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

FEED = "delta.enableChangeDataFeed"
_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('%s' = '%s')"
_WITH_VECTORS = _PROPERTY % ("delta.enableDeletionVectors", "true")
#: Number of tasks in which VACUUM lists a table.  The default, 10,000, takes a minute.
_FEW_TASKS = "SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2"
_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
    ]
)


def write_rows(
    location: Path, ids: Iterable[int], text: str = "row", *, has_feed: bool | None = None
) -> None:
    """Append rows to the table at a location, or create the table.

    Args:
        has_feed: the property of a new table; None: the property is not set.
    """
    numbers = list(ids)
    rows = [numbers, [f"{text} {i}" for i in numbers], [i % 3 for i in numbers]]
    feed = None if has_feed is None else {FEED: str(has_feed).lower()}
    write_deltalake(
        str(location), pa.table(rows, schema=_SCHEMA), mode="append", configuration=feed
    )


@dataclass(frozen=True)
class OwnedTable:
    """A table as a program sees it that does not know replctl.

    Attributes:
        is_target: a subscription writes the table.  New keys are then negative, since the publisher
            has no negative keys.
    """

    engine: Engine
    location: Path
    is_target: bool = False

    @property
    def shown(self) -> str:
        return f"delta.`{self.location}`"

    @property
    def log(self) -> Path:
        return self.location / "_delta_log"

    @property
    def backup(self) -> Path:
        return self.location.with_name(f"{self.location.name}.backup")

    @property
    def version(self) -> int:
        return max(int(path.stem) for path in self.log.glob("*.json"))

    def run(self, *statements: str) -> None:
        """Run statements of Spark.

        Args:
            statements: {t} is the table, {before} the version before the newest one, {sign} the
                sign of new keys, {shift} the number to add to keys, and {extra} a new column.
        """
        for statement in statements:
            text = statement.format(
                t=self.shown,
                before=self.version - 1,
                sign="-" if self.is_target else "",
                shift=0 if self.is_target else 4,
                extra="own" if self.is_target else "extra",
            )
            self.engine.run(text)

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.location))

    def update(self, value: str, rows: str) -> None:
        """Set v = value in rows, with delta-rs if it can write the table."""
        try:
            self.delta.update(updates={"v": f"'{value}'"}, predicate=rows)
        except DeltaError:
            self.run(f"UPDATE {{t}} SET v = '{value}' WHERE {rows}")

    def delete(self, rows: str) -> None:
        """Delete rows, with delta-rs if it can write the table."""
        try:
            self.delta.delete(rows)
        except DeltaError:
            self.run(f"DELETE FROM {{t}} WHERE {rows}")

    def save(self) -> None:
        """Make a backup."""
        shutil.rmtree(self.backup, ignore_errors=True)
        shutil.copytree(self.location, self.backup)

    def remove(self) -> None:
        shutil.rmtree(self.location)

    def clean_log(self) -> None:
        """Write a checkpoint of the newest version, and remove the earlier versions."""
        self.delta.create_checkpoint()
        for path in sorted(self.log.glob("*.json"))[:-1]:
            path.unlink()
            (self.log / f".{path.name}.crc").unlink(missing_ok=True)

    def remove_data(self, *, is_active: bool) -> None:
        """Remove the data files of the newest version, or all others."""
        names = {Path(name).name for name in self.delta.file_uris()}
        for path in self.location.rglob("*.parquet"):
            if path.parent != self.log and (path.name in names) == is_active:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@dataclass(frozen=True)
class Action:
    """An action on a table: `statements` of Spark, or `do`.

    Attributes:
        quick: the same action with delta-rs.
        adds_column: the action adds column `extra` to a published table.
    """

    name: str
    statements: tuple[str, ...] = ()
    do: Callable[[OwnedTable], None] | None = None
    quick: Callable[[OwnedTable], None] | None = None
    adds_column: bool = False

    @property
    def word(self) -> str:
        return self.name.replace(" ", "_")

    def act(self, table: OwnedTable, *, is_quick: bool = False) -> None:
        """Do the action on a table.

        Args:
            is_quick: use `quick` if there is one, and Spark if delta-rs cannot write the table.
        """
        if is_quick and self.quick is not None:
            try:
                self.quick(table)
            except DeltaError:
                table.run(*self.statements)
        elif self.do is not None:
            self.do(table)
        else:
            table.run(*self.statements)


def _has_extra(table: OwnedTable) -> bool:
    name = "own" if table.is_target else "extra"
    return name in {row[0] for row in table.engine.rows(f"DESCRIBE {table.shown}")}


def _add_column(table: OwnedTable) -> None:
    if not _has_extra(table):
        table.run("ALTER TABLE {t} ADD COLUMNS ({extra} STRING)")
    table.run("UPDATE {t} SET {extra} = 'x' WHERE id = 3")


def _drop_and_write(table: OwnedTable) -> None:
    table.remove()
    write_rows(table.location, [2, 3, 20], "again")
    write_rows(table.location, [21], "again")


def _move_into_place(table: OwnedTable) -> None:
    other = table.location.with_name(f"{table.location.name}.other")
    for ids in ([1, 2], [30], [31]):
        write_rows(other, ids, "moved")
    table.remove()
    other.rename(table.location)


def _put_back(table: OwnedTable) -> None:
    table.remove()
    shutil.copytree(table.backup, table.location)
    table.update("put back", "id = 1")
    table.delete("id = 6")


def _clone(table: OwnedTable) -> None:
    other = table.location.with_name(f"{table.location.name}.cloned")
    if not other.exists():
        write_rows(other, [3, 4, 40], "cloned")
    table.delete("true")
    table.run(f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE delta.`{other}`")


def _lose_log(table: OwnedTable) -> None:
    table.update("lost", "id % 2 = 0")
    table.delete("id = 7")
    table.update("lost too", "id = 1")
    table.clean_log()


def _lose_files(table: OwnedTable) -> None:
    table.update("seen", "id % 2 = 0")
    table.delete("id IN (5, 8)")
    table.update("and lost", "id % 2 = 0")
    table.remove_data(is_active=table.is_target)


def _insert(table: OwnedTable) -> None:
    ids = table.delta.to_pyarrow_table(columns=["id"])["id"].to_pylist()
    new = max(map(abs, ids), default=0) + 1
    write_rows(table.location, [-new if table.is_target else new], "new")


def _optimize(table: OwnedTable) -> None:
    table.delta.optimize.compact()


def _zorder(table: OwnedTable) -> None:
    table.delta.optimize.z_order(["n"])


def _overwrite(table: OwnedTable) -> None:
    rows = table.delta.to_pyarrow_table()
    shifted = pc.add(rows["id"], pa.scalar(3, pa.int32()))
    rows = rows.set_column(rows.schema.get_field_index("id"), rows.schema.field("id"), shifted)
    write_deltalake(str(table.location), rows, mode="overwrite")


def _restore(table: OwnedTable) -> None:
    table.delete("id < 7")
    table.delta.restore(table.version - 1)


_DML = [
    Action(
        "insert",
        (
            "INSERT INTO {t} (id, v, n)"
            " SELECT {sign}(coalesce(max(abs(id)), 0) + 1), 'new', 1 FROM {t}",
        ),
        quick=_insert,
    ),
    Action(
        "update",
        ("UPDATE {t} SET v = 'changed' WHERE id % 3 = 0",),
        quick=lambda table: table.update("changed", "id % 3 = 0"),
    ),
    Action(
        "delete",
        ("DELETE FROM {t} WHERE id % 3 = 0",),
        quick=lambda table: table.delete("id % 3 = 0"),
    ),
    Action(
        "merge",
        (
            "MERGE INTO {t} t USING (SELECT id FROM {t} WHERE id % 3 = 0"
            " UNION SELECT {sign}(abs(id) + 5) FROM {t}) s ON t.id = s.id"
            " WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET v = 'merged'"
            " WHEN MATCHED THEN DELETE"
            " WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, 'more', 0)",
        ),
    ),
    Action(
        "replace where",
        (
            "INSERT INTO {t} REPLACE WHERE id > 6 SELECT id + {shift} AS id, 'r' AS v,"
            " * EXCEPT (id, v) FROM {t} WHERE id > 6",
        ),
    ),
]
_CARE = [
    Action("optimize", ("OPTIMIZE {t}",), quick=_optimize),
    Action(
        "zorder",
        ("OPTIMIZE {t} ZORDER BY (n)",),
        quick=_zorder,
    ),
    Action(
        "reorg",
        (_WITH_VECTORS, "DELETE FROM {t} WHERE id = 2", "REORG TABLE {t} APPLY (PURGE)"),
    ),
    Action("clustering changed", ("ALTER TABLE {t} CLUSTER BY (id)", "OPTIMIZE {t}")),
    Action("vacuum", ("DELETE FROM {t} WHERE id = 2", _FEW_TASKS, "VACUUM {t}")),
    Action("vacuum lite", ("DELETE FROM {t} WHERE id = 2", "VACUUM {t} LITE")),
    Action(
        "feed switched off and on",
        (
            _PROPERTY % (FEED, "true"),
            "UPDATE {t} SET v = 'on' WHERE id = 1",
            _PROPERTY % (FEED, "false"),
            "UPDATE {t} SET v = 'off' WHERE id < 3",
            "DELETE FROM {t} WHERE id = 5",
            _PROPERTY % (FEED, "true"),
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
    Action("nullable column added", do=_add_column, adds_column=True),
    Action("log cleaned", do=OwnedTable.clean_log),
    Action(
        "drop feature",
        (
            _WITH_VECTORS,
            "DELETE FROM {t} WHERE id = 3",
            "ALTER TABLE {t} DROP FEATURE deletionVectors",
        ),
    ),
]
#: At a target, these actions stop the subscription.
_REPLACEMENTS = [
    Action(
        "overwrite",
        ("INSERT OVERWRITE {t} SELECT id + 3 AS id, * EXCEPT (id) FROM {t}",),
        quick=_overwrite,
    ),
    Action(
        "restore",
        ("DELETE FROM {t} WHERE id < 7", "RESTORE TABLE {t} TO VERSION AS OF {before}"),
        quick=_restore,
    ),
    Action(
        "create or replace",
        (
            "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {t} WHERE id > 2",
            "UPDATE {t} SET v = 'again' WHERE id < 6",
        ),
    ),
]
_BREAKS = [
    Action("dropped and written again", do=_drop_and_write),
    Action("another table moved into place", do=_move_into_place),
    Action("put back from a backup", do=_put_back),
    Action("clone into the emptied table", do=_clone),
    Action("log lost", do=_lose_log),
    Action("files lost", do=_lose_files),
]
#: Actions that change the columns of a published table.
INCOMPATIBLE = [
    Action(
        "type changed",
        (
            "CREATE OR REPLACE TABLE {t} USING delta"
            " AS SELECT id, v, CAST(n AS STRING) AS n FROM {t} WHERE id > 2",
        ),
    ),
    Action(
        "key column gone",
        ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT v, n FROM {t} WHERE id > 2",),
    ),
]

#: The actions after which a subscription continues without help, by the role of the table.
AT_A_SOURCE = [*_DML, *_CARE, *_REPLACEMENTS]
AT_A_TARGET = [*_DML, *_CARE]
#: The actions that may stop the subscription.
STOPS_AT_A_SOURCE = [*_BREAKS, *INCOMPATIBLE]
STOPS_AT_A_TARGET = [*_REPLACEMENTS, *_BREAKS]
