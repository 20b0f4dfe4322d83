"""Expressions of Delta tables over other columns, as SQL."""

from __future__ import annotations

import pytest

from replctl.spark.stored_expression import stored_sql_of, used_columns
from replctl.spark.values import StoredExpr

_COLUMNS = (("a", 1), ("a b", 2), ("values", 3))


@pytest.mark.parametrize(
    ("text", "used", "sql"),
    [
        ("1 = 1", [], "(1 = 1)"),
        (
            "A > 0",
            [("a", 1)],
            "transform(array(named_struct('f0', w1)), `values` ->"
            " transform(array(`values`.f0), `a` -> (A > 0))[0])[0]",
        ),
        (
            "`a b` = 'x'",
            [("a", 1), ("a b", 2)],
            "transform(array(named_struct('f0', w1, 'f1', w2)), `values` ->"
            " transform(array(`values`.f1), `a b` ->"
            " transform(array(`values`.f0), `a` -> (`a b` = 'x'))[0])[0])[0]",
        ),
        (
            "values IS NULL",
            [("a", 1), ("values", 3)],
            "transform(array(named_struct('f0', w1, 'f1', w3)), `values_` ->"
            " transform(array(`values_`.f1), `values` ->"
            " transform(array(`values_`.f0), `a` -> (values IS NULL))[0])[0])[0]",
        ),
    ],
)
def test_names_of_the_text_are_bound(text: str, used: list[tuple[str, int]], sql: str) -> None:
    expr = StoredExpr(text, _COLUMNS)
    assert used_columns(expr) == used
    assert stored_sql_of(expr, lambda attnum: f"w{attnum}") == sql
