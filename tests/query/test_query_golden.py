"""Queries and changes of rows have the answers of a PostgreSQL 17 server (data/*.out)."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_script import differences
from long_tests import LONG

from replctl.session import Session

DATA = Path(__file__).parent / "data"


#: Scripts that read no table, or only small ones.
WITHOUT_SPARK = (
    "abbreviated_network",
    "select_values",
    "catalog_place",
    "composite_formats",
    "distinct_aggregate",
    "dropped_in_block",
    "enum_array_values",
    "enum_concatenation",
    "enum_groups",
    "exists",
    "explain_options",
    "hidden_tables",
    "operator",
    "having",
    "literal_errors",
    "outer_aggregates",
    "project_set",
    "recursion",
    "series",
    "set_row",
    "target_name",
    "text_search_names",
    "ungrouped_columns",
    "unsortable",
    "value_sets",
    "window_counts",
    "wrong_targets",
)

#: Long scripts whose subject has other scripts or tests.
_LONG = {
    "array_assignment",
    "composite_rows",
    "decoding_of_tables",
    "enum_array",
    "enum_cast",
    "numeric_ranges",
    "on_conflict_decoded",
    "on_conflict_keys",
    "on_conflict_rights",
    "on_conflict_rules",
    "on_conflict_wrong",
    "project_set_rows",
    "update_default",
}


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_answers_without_spark(name: str, session: Session) -> None:
    assert differences(session, DATA / f"{name}.out") == []


@pytest.mark.spark
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[LONG] if path.stem in _LONG else [], id=path.stem)
        for path in sorted(DATA.glob("*.out"))
        if path.stem not in WITHOUT_SPARK
    ],
)
def test_answers_as_postgresql_does(path: Path, spark_session: Session) -> None:
    assert differences(spark_session, path) == []
