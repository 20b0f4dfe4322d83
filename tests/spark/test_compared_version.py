"""Rows of two sides of a version, paired by row id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from replctl.errors import DataCorrupted
from replctl.expr.nodes import Expr, NullTest, Var
from replctl.replication.update_transformation import Action
from replctl.spark import ChangeSource, FeedVersion, TableColumn, TableSource
from replctl.spark.change_data_feed import changes_sql, pairs_sql
from replctl.spark.staging import named_view

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_COLUMNS = (TableColumn(1, "int4", -1, "id"), TableColumn(2, "float8", -1, "f"))
_IS_KNOWN = NullTest(Var(2, "float8"), is_null=False)
#: A row before or after: row id, id, f.
Row = tuple[int, str, str]


def _pairs(
    engine: Engine,
    before: list[Row],
    after: list[Row],
    key: tuple[int, ...],
    columns: Sequence[TableColumn] = _COLUMNS,
    *,
    has_row_ids: bool = True,
    published: Action | None = None,
) -> list[str]:
    """Return the pairs of a version; with `published`, the changes with this action instead."""
    rows = [(-1, *row) for row in before] + [(1, *row) for row in after]
    values = ", ".join(f"(7L, {s}, {r}L, {i}, double('{f}'))" for s, r, i, f in rows)
    frame = engine.sql(f"SELECT * FROM VALUES {values} AS images(version, side, row_id, c1, c2)")
    with named_view(engine, frame) as view:
        version = FeedVersion(7, 1, is_compared=True, has_row_ids=has_row_ids, images=view)
        table, names = TableSource("/t", tuple(columns)), ("id",) * len(key)
        filters: dict[Action, tuple[Expr, ...]] = {}
        if published is not None:
            filters[published] = (_IS_KNOWN,)
        source = ChangeSource("public.t", table, (version,), key, names, (1, 2), filters)
        if published is not None:
            return [text for (text,) in engine.rows(f"SELECT action FROM ({changes_sql(source)})")]
        shown = "concat_ws(' ', kind, o.c1, o.c2, '->', n.c1, n.c2)"
        return sorted(text for (text,) in engine.rows(f"SELECT {shown} FROM ({pairs_sql(source)})"))


@pytest.mark.parametrize("key", [(1,), ()])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([(1, "1", "0")], [(1, "1", "0")], []),
        ([(1, "1", "0")], [(1, "1", "-0")], ["U 1 0.0 -> 1 -0.0"]),
        ([(1, "1", "0")], [(1, "2", "0")], ["U 1 0.0 -> 2 0.0"]),
        ([(1, "1", "0")], [(9, "1", "0")], []),  # the row was written again
        ([(1, "1", "0"), (2, "2", "0")], [(1, "2", "0"), (2, "1", "0")],
         ["U 1 0.0 -> 2 0.0", "U 2 0.0 -> 1 0.0"]),
        ([(1, "1", "0"), (2, "2", "1")], [(3, "1", "0")], ["D 2 1.0 ->"]),
        ([(1, "1", "0")], [(1, "1", "0"), (2, "NULL", "NaN")], None),
    ],
)  # fmt: skip
def test_pairs(
    engine: Engine,
    before: list[Row],
    after: list[Row],
    expected: list[str] | None,
    key: tuple[int, ...],
) -> None:
    if expected is None:  # NULL is no key
        if key:
            with pytest.raises(Exception, match="a row without a key"):
                _pairs(engine, before, after, key)
            return
        expected = ["I -> NaN"]
    assert _pairs(engine, before, after, key) == expected


@pytest.mark.parametrize(
    ("before", "after", "published", "error"),
    [
        ([(1, "1", "0"), (2, "2", "0")], [(1, "5", "0"), (2, "5", "0")], "U", "several rows with"),
        ([(1, "1", "0"), (2, "1", "0")], [(1, "1", "2"), (2, "1", "2")], "I", "several rows with"),
        ([(1, "1", "0"), (2, "1", "0")], [(1, "1", "2")], "D", "several rows with"),
        ([(1, "1", "0")], [(1, "5", "0"), (3, "5", "1")], None, "several rows with"),
        ([(1, "1", "0")], [(1, "NULL", "0")], None, "a row without a key"),
        ([(1, "NULL", "0")], [(1, "7", "0")], None, "a row without a key"),
    ],
)
def test_changed_rows_have_distinct_keys(
    engine: Engine, before: list[Row], after: list[Row], published: str | None, error: str
) -> None:
    action = None if published is None else Action(published)
    with pytest.raises(Exception, match=error):
        _pairs(engine, before, after, (1,), published=action)


@pytest.mark.parametrize("has_row_ids", [True, False])
def test_rows_that_were_written_again_need_no_key(engine: Engine, has_row_ids: bool) -> None:
    before = [(1, "1", "0"), (2, "1", "0"), (3, "NULL", "0"), (4, "2", "0")]
    after = [(5, "1", "0"), (6, "1", "0"), (7, "NULL", "0"), (4, "2", "1")]
    assert _pairs(engine, before, after, (1,), has_row_ids=has_row_ids) == ["U 2 0.0 -> 2 1.0"]


def test_rows_that_nothing_pairs_are_paired_by_key(engine: Engine) -> None:
    before, after = [(1, "1", "0")], [(9, "1", "5")]
    assert _pairs(engine, before, after, (1,)) == ["U 1 0.0 -> 1 5.0"]
    assert _pairs(engine, before, after, ()) == ["D 1 0.0 ->", "I -> 1 5.0"]


def test_a_row_id_that_rows_share_is_an_error(engine: Engine) -> None:
    with pytest.raises(DataCorrupted, match="several rows with one row ID in version 7"):
        _pairs(engine, [(1, "1", "0"), (1, "2", "0")], [(2, "1", "0")], (1,))


@pytest.mark.parametrize("has_row_ids", [True, False])
def test_rows_do_not_cancel_out_if_a_column_returns(engine: Engine, has_row_ids: bool) -> None:
    """Version 6 lacked column f.  Subscribers still have its values."""
    number, value = _COLUMNS
    returned = replace(value, names=((5, "f"), (6, None), (7, "f")))
    rows = [(1, "1", "0"), (2, "2", "0")]
    pairs = [
        _pairs(engine, rows, rows, (1,), (number, column), has_row_ids=has_row_ids)
        for column in (returned, replace(returned, since_version=7), replace(value, names=()))
    ]
    assert pairs == [["U 1 0.0 -> 1 0.0", "U 2 0.0 -> 2 0.0"], [], []]
