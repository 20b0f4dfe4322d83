"""Queries of Spark SQL, which know their steps and the tables that they read."""

import pytest

from replctl.spark.delta_table import scan
from replctl.spark.spark_query import Query, query, reading, selected, union, union_text
from replctl.spark.staged import Staged
from replctl.spark.values import TableColumn, TableSource

_COLUMNS = (TableColumn(1, "int4", -1, "id"), TableColumn(2, "text", -1, "name"))
_SOURCE = TableSource("/lake/t", _COLUMNS, 7)


def test_steps_become_with_names() -> None:
    found = query("SELECT id FROM kept", rows="SELECT 1 AS id", kept="SELECT id FROM rows")
    assert found.sql == (
        "WITH rows AS (\nSELECT 1 AS id\n),\nkept AS (\nSELECT id FROM rows\n)\nSELECT id FROM kept"
    )


def test_a_query_knows_the_tables_that_its_steps_read() -> None:
    found = query("SELECT * FROM t", t=union([scan(_SOURCE), scan(_SOURCE)]))
    assert found.tables == {"/lake/t"}
    assert "VERSION AS OF 7" in found.sql


def test_a_table_without_storage_is_not_read() -> None:
    assert scan(TableSource(None, _COLUMNS)).tables == frozenset()


def test_a_query_knows_the_tables_and_views_of_its_parts() -> None:
    feed = Query("SELECT 1", tables=frozenset({"/lake/f"}), feeds=frozenset({"/lake/f"}))
    kept = Staged("kept", (), None)
    found = reading("SELECT 2", union_text([scan(_SOURCE), feed]), kept.query, table="/lake/u")
    assert found.tables == {"/lake/t", "/lake/f", "/lake/u"}
    assert found.feeds == {"/lake/f"}
    assert found.views == {"kept"}
    # the rows of a query that was not computed are those of its tables
    again = Staged(found, (), None)
    assert again.query == reading("SELECT * FROM (SELECT 2)", found)
    assert again.view == "(SELECT 2)"


def test_a_union_of_one_is_the_query_itself() -> None:
    one = Query("SELECT 1 AS c1")
    assert union([one]) is one


def test_names_of_steps_are_words_in_lower_case() -> None:
    with pytest.raises(ValueError, match="Rows"):
        query("SELECT 1", Rows="SELECT 1")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ([("c1 + 1", "new_1"), ("c2", "c2")], "c1 + 1 AS new_1, c2"),
        ([], "1 AS nothing"),
    ],
)
def test_selected_columns(columns: list[tuple[str, str]], shown: str) -> None:
    assert selected(columns) == shown
