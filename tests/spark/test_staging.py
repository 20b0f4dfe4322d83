"""Rows that replctl keeps for several jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from replctl import spark
from replctl.spark.spark_query import Query, query, reading, union
from replctl.spark.staged import StagedColumn
from replctl.spark.staging import staged

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_COLUMNS = [StagedColumn("n", "int8"), StagedColumn("t", "text")]


def _many() -> Query:
    """Return 6,000 rows of a query whose inner steps have the names of outer ones."""
    inner = query(
        "SELECT id * 2 AS id FROM numbers", numbers="SELECT id FROM numbers WHERE id >= 0"
    )
    return query(
        "SELECT id AS n, CAST(id AS STRING) AS t FROM both",
        numbers="SELECT id FROM range(3000)",
        doubled=inner,
        both=union([Query("SELECT id FROM numbers"), Query("SELECT id FROM doubled")]),
    )


def test_kept_rows_are_found_next_to_with(engine: Engine) -> None:
    with staged(engine, _many(), _COLUMNS) as rows:
        assert rows.rows is None
        text = (
            f"WITH one AS (SELECT 1 AS one), kept AS (SELECT * FROM {rows.view})"
            " SELECT n, t FROM kept JOIN one"
        )
        assert spark.jobs.count_rows(engine, reading(text, rows.query)) == 6000
        ((plan,),) = engine.run(f"EXPLAIN {text}")
        assert "InMemoryTableScan" in plan
        assert engine.rows(f"SELECT sum(n) FROM ({text})") == [(3000 * 2999 // 2 * 3,)]
    assert engine.run("SHOW VIEWS") == []


def test_rows_behind_an_empty_piece_reach_spark(engine: Engine) -> None:
    rows = spark.LocalRows(_COLUMNS)
    for piece in ([], [["1", "a"]], [], [["2", None]]):
        rows.add(piece)
    with rows.view(engine) as view:
        assert sorted(engine.rows(f"SELECT * FROM {view}")) == [(1, "a"), (2, None)]
