"""Tables of others may store small integers as TINYINT, which PostgreSQL shows as smallint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from long_tests import LONG

from replctl.errors import NumericValueOutOfRange

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


def _adopt(engine: Engine, database: Database, place: Path) -> str:
    """Adopt a table with a row as table t; return its name in Spark."""
    table = f"delta.`{place}`"
    engine.run(f"CREATE TABLE {table} (id INT, b TINYINT, bs ARRAY<TINYINT>) USING delta")
    engine.run(f"INSERT INTO {table} VALUES (1, 1, array(1, NULL))")
    database.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
    return table


@pytest.mark.parametrize("most", ["1000", pytest.param("0", marks=LONG)])
def test_statements_write_tinyints(
    engine: Engine, source: Database, tmp_path: Path, most: str
) -> None:
    source.run(f"SET replctl.small_table_rows = {most}")
    table = _adopt(engine, source, tmp_path / "t")
    source.run("INSERT INTO t VALUES (2, -128, '{127}'), (3, NULL, NULL)")
    source.run("UPDATE t SET b = 8, bs = '{8}' WHERE id = 1")
    source.run("UPDATE t SET id = 4 WHERE id = 3")
    with pytest.raises(NumericValueOutOfRange, match="tinyint out of range"):
        source.run("INSERT INTO t VALUES (5, 128, NULL)")
    with pytest.raises(NumericValueOutOfRange, match="tinyint out of range"):
        source.run("UPDATE t SET b = 300 WHERE id = 2")
    with pytest.raises(NumericValueOutOfRange, match="tinyint out of range"):
        source.run("UPDATE t SET bs = '{300}' WHERE id = 2")
    rows = engine.rows(f"SELECT id, b, bs, typeof(b), typeof(bs) FROM {table} ORDER BY id")
    types = ("tinyint", "array<tinyint>")
    assert rows == [(1, 8, [8], *types), (2, -128, [127], *types), (4, None, None, *types)]
    shown = [("1", "8", "{8}"), ("2", "-128", "{127}"), ("4", None, None)]
    assert source.rows("SELECT * FROM t ORDER BY id") == shown


def test_a_copy_and_changes_are_written_to_tinyints(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, b smallint, bs smallint[])")
    source.run("INSERT INTO t VALUES (1, 1, '{1}'), (2, 2, '{2}')")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    table = _adopt(engine, target, tmp_path / "t")
    engine.run(f"DELETE FROM {table}")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    source.run("UPDATE t SET b = 7, bs = '{7}' WHERE id = 1; DELETE FROM t WHERE id = 2")
    source.run("INSERT INTO t VALUES (3, NULL, '{NULL}')")
    assert target.sync() == []
    rows = engine.rows(f"SELECT id, b, bs FROM {table} ORDER BY id")
    assert rows == [(1, 7, [7]), (3, None, [None])]
    source.run("INSERT INTO t VALUES (4, 1000, NULL)")
    (failure,) = target.sync()
    assert failure.error.message == "tinyint out of range"
