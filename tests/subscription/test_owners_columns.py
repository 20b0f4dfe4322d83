"""The owner of a published table changes its columns.  The copy is equal, or its subscription stops
and the statements of the HINT make it equal.

Read CASES as a table: each case has a table of its own.  The test runs every fifth case, and all of
them with REPLCTL_TEST_ALL=1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_replication import Database, connect
from follow_hint import follow_hint
from long_tests import sampled

from replctl.catalog.cluster import Cluster
from replctl.errors import UndefinedColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow(2.5)]

_MAPPED = "delta.columnMapping.mode = 'name'"
_FEED = "delta.enableChangeDataFeed = true"
_WIDENING = "delta.enableTypeWidening = true"


@dataclass(frozen=True)
class Case:
    """The changes of a table (id int, v text, n int).

    Attributes:
        properties: the properties of the table.
        statements: statements for Spark; {t} is the table, {copy} is the copy.
        published: the text after the table's name in its publication.
        owners, copied: the columns that must be equal, by their names in the Delta table and in
            the copy.
        sqlstate: the SQLSTATE of the error that stops the subscription; None if it continues.
        has_owned_copy: the copy is also a Delta table of others, with column mapping.
    """

    name: str
    properties: str
    statements: tuple[str, ...]
    published: str = ""
    owners: str = "id, v, n"
    copied: str = "id, v, n"
    sqlstate: str | None = None
    has_owned_copy: bool = False


CASES = [
    Case(
        "renamed",
        f"{_MAPPED}, {_FEED}",
        (
            "UPDATE {t} SET v = 'before' WHERE id = 1",
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "UPDATE {t} SET w = 'after' WHERE id = 2",
            "INSERT INTO {t} VALUES (9, 'new', 9)",
        ),
        owners="id, w, n",
        copied="id, w, n",
        sqlstate="55000",
    ),
    Case(
        "renamed_and_put_back",
        _MAPPED,
        (
            "ALTER TABLE {t} RENAME COLUMN n TO m",
            "UPDATE {t} SET m = m + 10 WHERE id = 2",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
            "UPDATE {t} SET n = n + 20 WHERE id = 3",
        ),
        published="(id, n) WHERE (n > 0)",
        owners="id, n",
        copied="id, n",
        sqlstate="55000",
    ),
    Case(
        "replaced",
        _MAPPED,
        (
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES"
            " (delta.columnMapping.mode = 'name') AS SELECT id, w, n FROM {t} WHERE id > 1",
            "DELETE FROM {t} WHERE id = 2",
        ),
        owners="id, w, n",
        copied="id, w, n",
        sqlstate="55000",
    ),
    Case(
        "dropped_and_added_at_once",
        _MAPPED,
        (
            "ALTER TABLE {t} DROP COLUMN v",
            "ALTER TABLE {t} ADD COLUMNS (v STRING)",
            "UPDATE {t} SET v = 'after' WHERE id = 2",
        ),
        sqlstate="55000",
    ),
    Case(
        "dropped_and_added_unpublished",
        _MAPPED,
        (
            "ALTER TABLE {t} DROP COLUMN v",
            "ALTER TABLE {t} ADD COLUMNS (v STRING)",
            "UPDATE {t} SET v = 'after', n = 7 WHERE id = 2",
        ),
        published="(id, n)",
        owners="id, n",
        copied="id, n",
    ),
    Case(
        "key_and_column_renamed",
        _MAPPED,
        (
            "ALTER TABLE {t} RENAME COLUMN id TO number",
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "UPDATE {t} SET w = 'after' WHERE number = 2",
            "DELETE FROM {t} WHERE number = 3",
        ),
        owners="number, w, n",
        copied="number, w, n",
        sqlstate="55000",
    ),
    Case(
        "widened",
        f"{_WIDENING}, {_FEED}",
        (
            "UPDATE {t} SET n = 7 WHERE id = 1",
            "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
            "UPDATE {t} SET n = 30000000000 WHERE id = 2",
        ),
    ),
    Case(
        "struct_added",
        "",
        (
            "ALTER TABLE {t} ADD COLUMNS (s STRUCT<a: INT>)",
            "INSERT INTO {t} VALUES (9, 'new', 9, named_struct('a', 1))",
            "UPDATE {t} SET s = named_struct('a', 2), n = 8 WHERE id = 2",
        ),
        owners="id, v, n, s.a",
        copied="id, v, n, s ->> 'a'",
        sqlstate="55000",
    ),
    Case(
        "unpublished_dropped",
        f"{_MAPPED}, {_FEED}",
        (
            "UPDATE {t} SET v = 'before' WHERE id = 1",
            "ALTER TABLE {t} DROP COLUMN n",
            "UPDATE {t} SET v = 'after' WHERE id = 2",
        ),
        published="(id, v)",
        owners="id, v",
        copied="id, v",
    ),
    Case(
        "dropped",
        f"{_MAPPED}, {_FEED}",
        (
            "UPDATE {t} SET n = 5, v = 'before' WHERE id = 1",
            "ALTER TABLE {t} DROP COLUMN n",
            "UPDATE {t} SET v = 'after' WHERE id IN (1, 2)",
            "INSERT INTO {t} VALUES (9, 'new')",
            "DELETE FROM {t} WHERE id = 3",
        ),
        owners="id, v",
        copied="id, v",
    ),
    Case(
        "dropped_and_restored",
        _MAPPED,
        (
            "UPDATE {t} SET n = if(id = 1, 5, NULL) WHERE id <> 2",
            "UPDATE {t} SET n = 6 WHERE id = 3",
            "ALTER TABLE {t} DROP COLUMN n",
            "UPDATE {t} SET v = 'lost' WHERE id = 2",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "UPDATE {t} SET n = n + 20 WHERE id = 1",
        ),
    ),
    Case(
        "dropped_by_overwriting",
        "",
        (
            "CREATE OR REPLACE TABLE {t} USING delta AS SELECT id, upper(v) AS v FROM {t}",
            "UPDATE {t} SET v = 'after' WHERE id = 2",
            "CREATE OR REPLACE TABLE {t} USING delta AS SELECT id, v, 10 * id AS n FROM {t}",
            "DELETE FROM {t} WHERE id = 3",
        ),
    ),
    Case(
        "dropped_and_added",
        _MAPPED,
        (
            "ALTER TABLE {t} DROP COLUMN n",
            "UPDATE {t} SET v = 'without' WHERE id = 2",
            "ALTER TABLE {t} ADD COLUMNS (n INT)",
            "UPDATE {t} SET n = 100 WHERE id = 3",
        ),
        published="(id, v, n)",
        owners="id, v",
        copied="id, v",
        sqlstate="42703",
    ),
    Case(
        "retyped_in_a_filter",
        _WIDENING,
        (
            "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
            "UPDATE {t} SET n = 30000000000 WHERE id = 2",
        ),
        published="WHERE (n > 0)",
        sqlstate="42804",
    ),
    Case(
        "renamed_in_the_copy",
        "",
        (
            "ALTER TABLE {copy} RENAME COLUMN v TO w",
            "UPDATE {t} SET v = 'after' WHERE id = 2",
            "DELETE FROM {t} WHERE id = 3",
        ),
        has_owned_copy=True,
    ),
    Case(
        "dropped_in_the_copy",
        "",
        ("ALTER TABLE {copy} DROP COLUMN n", "UPDATE {t} SET v = 'after' WHERE id = 2"),
        sqlstate="42703",
        has_owned_copy=True,
    ),
]


_TRIED = sampled(CASES, 5, 3)


@dataclass
class Lake:
    """A table for each case.  Each case that stops has its own subscription, and all others share
    one."""

    source: Database
    target: Database
    folder: Path
    engine: Engine
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)

    def make(self, case: Case) -> None:
        table = self.shown(case.name)
        properties = f" TBLPROPERTIES ({case.properties})" if case.properties else ""
        self.engine.run(f"CREATE TABLE {table} (id INT, v STRING, n INT) USING delta{properties}")
        self.engine.run(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        self.source.run(
            f"CREATE TABLE {case.name} (PRIMARY KEY (id) NOT ENFORCED) USING delta"
            f" LOCATION '{self.folder / case.name}'"
        )
        self.source.run(f"CREATE PUBLICATION {case.name} FOR TABLE {case.name} {case.published}")
        if case.has_owned_copy:
            copy = f"{case.name}_copy"
            columns = "id INT, v STRING, n BIGINT"
            self.engine.run(
                f"CREATE TABLE {self.shown(copy)} ({columns}) USING delta TBLPROPERTIES"
                f" ({_MAPPED}, delta.enableDeletionVectors = false)"
            )
            self.target.run(
                f"CREATE TABLE {case.name} (PRIMARY KEY (id) NOT ENFORCED) USING delta"
                f" LOCATION '{self.folder / copy}'"
            )
        else:
            self.target.run(f"CREATE TABLE {case.name} (id int PRIMARY KEY, v text, n bigint)")

    def subscribe(self, name: str, publications: Sequence[str]) -> None:
        self.target.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source'"
            f" PUBLICATION {', '.join(publications)}"
        )

    def shown(self, table: str) -> str:
        return f"delta.`{self.folder / table}`"

    def sync(self) -> None:
        """Sync, and record the errors that stop subscriptions, with SQLSTATE and HINT."""
        self.stopped = {
            failure.subscription: (failure.error.sqlstate, failure.error.hint or "")
            for failure in self.target.sync()
        }

    def follow(self, hint: str) -> None:
        follow_hint(hint, self.target, {"source": self.source}.__getitem__)

    def owners_rows(self, case: Case) -> list[tuple[str | None, ...]]:
        """Return the rows that plain Spark reads."""
        shown = ", ".join(f"CAST({name} AS STRING)" for name in case.owners.split(", "))
        return sorted(self.engine.rows(f"SELECT {shown} FROM {self.shown(case.name)}"))

    def rows(self, database: Database, case: Case) -> list[tuple[str | None, ...]]:
        return sorted(database.rows(f"SELECT {case.copied} FROM {case.name}"))


def _changed(cluster: Cluster, engine: Engine, folder: Path) -> Lake:
    """Make the lake, run all statements and one sync, and return the lake."""
    connect(cluster, "source", engine).run("ALTER SYSTEM SET max_replication_slots = 20")
    source, target = (connect(cluster, name, engine) for name in ("source", "target"))
    made = Lake(source, target, folder, engine)
    for case in _TRIED:
        made.make(case)
        if case.sqlstate is not None:
            made.subscribe(case.name, [case.name])
    made.subscribe("others", [case.name for case in _TRIED if case.sqlstate is None])
    made.sync()
    assert made.stopped == {}
    for case in _TRIED:
        for statement in case.statements:
            shown, copy = made.shown(case.name), made.shown(f"{case.name}_copy")
            engine.run(statement.replace("{t}", shown).replace("{copy}", copy))
    made.sync()
    return made


def test_copies_end_equal_without_help_or_by_their_hints(
    shared_cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    """This is one test, because each worker would need a lake of its own."""
    lake = _changed(shared_cluster, engine, tmp_path)
    stopping = [case for case in _TRIED if case.sqlstate is not None]
    stopped = {name: sqlstate for name, (sqlstate, _hint) in lake.stopped.items()}
    assert stopped == {case.name: case.sqlstate for case in stopping}

    going_on = [case for case in _TRIED if case.sqlstate is None]
    owners = {case.name: lake.owners_rows(case) for case in going_on}
    for database in (lake.source, lake.target):
        assert {case.name: lake.rows(database, case) for case in going_on} == owners

    assert lake.source.rows("SELECT v FROM unpublished_dropped WHERE id = 2") == [("after",)]
    with pytest.raises(UndefinedColumn, match="does not exist"):
        lake.source.rows("SELECT n FROM unpublished_dropped")

    for _ in range(2):  # one column was renamed twice
        for _sqlstate, hint in lake.stopped.values():
            lake.follow(hint)
        lake.sync()
    assert lake.stopped == {}
    for case in stopping:
        assert lake.rows(lake.target, case) == lake.owners_rows(case)


def test_the_publisher_may_exchange_names_itself(
    engine: Engine, publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    """ALTER TABLE changes only the catalog of an adopted table, so no value is lost."""
    place = tmp_path / "t"
    engine.run(f"CREATE TABLE delta.`{place}` (id INT, a STRING, b STRING) USING delta")
    engine.run(f"INSERT INTO delta.`{place}` VALUES (1, 'a', 'b')")
    publisher.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, a text, b text)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for database in (publisher, subscriber):
        database.run(
            "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b"
        )
    publisher.run("INSERT INTO t (id, a, b) VALUES (2, 'A', 'B')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, a, b FROM t ORDER BY id") == [
        ("1", "b", "a"),
        ("2", "A", "B"),
    ]


_IN_SEVERAL_SYNCS = {
    "dropped": (
        "ALTER TABLE {t} DROP COLUMN v",
        "ALTER TABLE {t} ADD COLUMNS (v STRING)",
    ),
    "renamed": (
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "ALTER TABLE {t} ADD COLUMNS (v STRING); UPDATE {t} SET v = 'after' WHERE id = 2",
    ),
    "fields": (
        "ALTER TABLE {t} RENAME COLUMN s.a TO c",
        "ALTER TABLE {t} RENAME COLUMN s.b TO a; ALTER TABLE {t} RENAME COLUMN s.c TO b;"
        " ALTER TABLE {t} ALTER COLUMN s.a FIRST",
    ),
}


def test_columns_that_are_replaced_in_several_syncs(
    engine: Engine, publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    """A sync sees only one half of the change.  The HINTs make the copies equal."""
    places = {name: f"delta.`{tmp_path / name}`" for name in _IN_SEVERAL_SYNCS}
    for name, place in places.items():
        engine.run(
            f"CREATE TABLE {place} (id INT, v STRING, s STRUCT<a: INT, b: INT>) USING delta"
            f" TBLPROPERTIES ({_MAPPED})"
        )
        rows = ", ".join(f"({i}, 'v{i}', named_struct('a', {i}, 'b', 10 * {i}))" for i in (1, 2))
        engine.run(f"INSERT INTO {place} VALUES {rows}")
        publisher.run(
            f"CREATE TABLE {name} (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / name}';"
            f" CREATE PUBLICATION {name} FOR TABLE {name}"
        )
        subscriber.run(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v text, s jsonb);"
            f" ALTER TABLE {name} ALTER COLUMN s SET (delta_type = 'STRUCT<a: INT, b: INT>')"
        )
        subscriber.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=test_pub' PUBLICATION {name}"
        )
    assert subscriber.sync() == []
    for number in range(2):
        for name, changes in _IN_SEVERAL_SYNCS.items():
            for statement in changes[number].split("; "):
                engine.run(statement.replace("{t}", places[name]))
        stopped = {f.subscription: f.error for f in subscriber.sync()}
        assert {name: error.sqlstate for name, error in stopped.items()} == (
            dict.fromkeys(_IN_SEVERAL_SYNCS, "55000") if number else {}
        )
        if not number:  # a copy without the column keeps its values, too
            subscriber.run("ALTER SUBSCRIPTION dropped REFRESH TABLE dropped")
            assert subscriber.sync() == []
    for error in stopped.values():
        follow_hint(error.hint, subscriber, {"test_pub": publisher}.__getitem__)
    assert subscriber.sync() == []
    for name in _IN_SEVERAL_SYNCS:
        columns = "id, v, w, s" if name == "renamed" else "id, v, s"
        query = f"SELECT {columns} FROM {name} ORDER BY id"
        assert subscriber.rows(query) == publisher.rows(query)


def test_types_that_change_together(
    publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    """Each error names one column.  Its HINT also changes the copy, while a reconcile waits."""
    place = str(tmp_path / "t")
    numbers, texts = pa.array([1, 2], pa.int32()), pa.array(["a", "b"])
    write_deltalake(place, pa.table({"id": numbers, "v": texts, "m": numbers, "n": numbers}))
    publisher.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (create_tables = true)"
    )
    assert subscriber.sync() == []
    changed = pa.table({"id": numbers, "v": numbers, "m": texts, "n": texts})
    write_deltalake(place, changed, mode="overwrite", schema_mode="overwrite")
    for column in ("v", "m", "n"):
        (failure,) = subscriber.sync()
        assert failure.error.sqlstate == "42804"
        assert f'the type of column "{column}" of table' in failure.error.message
        follow_hint(failure.error.hint, subscriber, {"test_pub": publisher}.__getitem__)
    assert subscriber.sync() == []
    query = "SELECT * FROM t ORDER BY id"
    assert subscriber.rows(query) == publisher.rows(query)
    assert subscriber.rows(query)[0] == ("1", "1", "a", "a")
