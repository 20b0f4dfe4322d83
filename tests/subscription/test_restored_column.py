"""Another program drops and restores a column of a published table without a key.

Subscribers find the rows of such a table by all columns, but old rows lack the values of the
column.  So the subscription stops, and the statement of its HINT makes the copy equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from follow_hint import follow_hint

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


@pytest.mark.parametrize("has_row_ids", [True, False])
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
