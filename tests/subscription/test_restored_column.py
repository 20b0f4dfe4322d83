"""Another program drops and restores a column of a published table.

The subscription stops, and the statement of its HINT makes the copy equal, in two cases.  If the
table has no key, subscribers find its rows by all columns, but old rows lack the values of the
column.  If the table was copied in between, the copy lacks these values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from follow_hint import follow_hint
from long_tests import LONG

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_RESTORE = "RESTORE TABLE {t} TO VERSION AS OF 1"
#: What happens between the removal and the restoration, and the options of the publication.
_CASES = {
    "updated": ("UPDATE {t} SET v = 'x' WHERE id = 2", ""),
    "deleted": ("DELETE FROM {t} WHERE id = 2", ""),
    "unpublished": ("UPDATE {t} SET v = 'x' WHERE id = 2", "(id, v)"),
}


@pytest.mark.parametrize("has_row_ids", [True, pytest.param(False, marks=LONG)])
def test_the_hint_makes_the_copy_equal(
    engine: Engine, source: Database, target: Database, tmp_path: Path, has_row_ids: bool
) -> None:
    tables = {name: f"delta.`{tmp_path / name}`" for name in _CASES}
    for name, (_statement, columns) in _CASES.items():
        engine.run(
            f"CREATE TABLE {tables[name]} (id INT, v STRING, n INT) USING delta TBLPROPERTIES"
            " (delta.columnMapping.mode = 'name', delta.enableDeletionVectors = false,"
            f" delta.enableRowTracking = {str(has_row_ids).lower()})"
        )
        engine.run(f"INSERT INTO {tables[name]} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        source.run(
            f"CREATE TABLE {name} USING delta LOCATION '{tmp_path / name}';"
            f" ALTER TABLE {name} REPLICA IDENTITY FULL;"
            f" CREATE PUBLICATION {name} FOR TABLE {name} {columns}"
        )
        target.run(f"CREATE TABLE {name} (id int, v text, n int)")
        target.run(f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}")
    assert target.sync() == []
    for name, (statement, _columns) in _CASES.items():
        for text in ("ALTER TABLE {t} DROP COLUMN n", statement, _RESTORE):
            engine.run(text.format(t=tables[name]))
    failures = {failure.subscription: failure.error for failure in target.sync()}
    assert failures.keys() == {"updated", "deleted"}
    for name, error in failures.items():
        shown = f'column "n" of table "public.{name}" was dropped and restored by another program'
        assert (error.sqlstate, error.message) == ("55000", shown)
        follow_hint(error.hint, target, {"source": source}.__getitem__)
    assert target.sync() == []
    for name in _CASES:
        shown = "id, v" if name == "unpublished" else "*"
        rows = [sorted(side.rows(f"SELECT {shown} FROM {name}")) for side in (source, target)]
        assert rows[0] == rows[1], name


def test_a_copy_that_was_made_without_the_values(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    """RESTORE changes no row here, but the rows have their values again."""
    names = ("keyed", "keyless", "followed", "adopted_late", "added_again")
    tables = {name: f"delta.`{tmp_path / name}`" for name in names}

    def adopt(name: str) -> None:
        key = "" if name == "keyless" else "(PRIMARY KEY (id) NOT ENFORCED)"
        source.run(f"CREATE TABLE {name} {key} USING delta LOCATION '{tmp_path / name}'")
        if not key:
            source.run(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        source.run(f"CREATE PUBLICATION {name} FOR TABLE {name}")

    for name, table in tables.items():
        engine.run(
            f"CREATE TABLE {table} (id INT, v STRING, n INT) USING delta"
            " TBLPROPERTIES (delta.columnMapping.mode = 'name')"
        )
        engine.run(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        if name not in ("adopted_late", "added_again"):
            adopt(name)
        engine.run(f"ALTER TABLE {table} DROP COLUMN n")
    engine.run(f"ALTER TABLE {tables['added_again']} ADD COLUMN n INT")
    adopt("adopted_late")
    adopt("added_again")
    target.run("CREATE TABLE keyed (id int PRIMARY KEY, v text, n int)")
    target.run("CREATE TABLE keyless (id int, v text, n int)")
    target.run("CREATE TABLE adopted_late (id int PRIMARY KEY, v text, n int)")
    target.run("CREATE TABLE added_again (id int PRIMARY KEY, v text, n int)")
    for name in names:
        options = " WITH (create_tables, follow_schema)" if name == "followed" else ""
        target.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}{options}"
        )
    assert target.sync() == []
    for table in tables.values():
        engine.run(_RESTORE.format(t=table))
    failures = {failure.subscription: failure.error for failure in target.sync()}
    what = "was dropped and restored by another program"
    shown = {name: f'column "n" of published table "public.{name}" {what}' for name in names}
    shown["followed"] = 'column "n" of table "public.followed" cannot follow the published column'
    shown["added_again"] = shown["added_again"].replace("dropped and restored", "replaced")
    assert {name: error.message for name, error in failures.items()} == shown
    for error in failures.values():
        follow_hint(error.hint, target, {"source": source}.__getitem__)
    assert target.sync() == []
    for name in names:
        rows = [sorted(side.rows(f"SELECT id, v, n FROM {name}")) for side in (source, target)]
        assert rows[0] == rows[1] == [("1", "a", "1"), ("2", "b", "2"), ("3", "c", "3")], name


def test_a_copy_that_was_reconciled_without_the_values(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    """The reconcile adds a row while the column is not there."""
    table = f"delta.`{tmp_path / 't'}`"
    engine.run(
        f"CREATE TABLE {table} (id INT, v STRING, n INT) USING delta"
        " TBLPROPERTIES (delta.columnMapping.mode = 'name')"
    )
    engine.run(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)")
    source.run(
        f"CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{tmp_path / 't'}';"
        " CREATE PUBLICATION p FOR TABLE t"
    )
    target.run("CREATE TABLE t (id int PRIMARY KEY, v text, n int)")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    engine.run(f"ALTER TABLE {table} DROP COLUMN n")
    target.run("DELETE FROM t WHERE id = 2")
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    assert target.sync() == []
    assert sorted(target.rows("SELECT id, n FROM t")) == [("1", "1"), ("2", None)]
    engine.run(_RESTORE.format(t=table))
    (failure,) = target.sync()
    what = 'column "n" of published table "public.t" was dropped and restored by another program'
    assert failure.error.message == what
    follow_hint(failure.error.hint, target, {"source": source}.__getitem__)
    assert target.sync() == []
    assert sorted(target.rows("SELECT id, n FROM t")) == [("1", "1"), ("2", "2")]
