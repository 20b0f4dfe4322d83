"""Spark converts signed integers to OIDs and back, like PostgreSQL: -5 is 4294967291."""

from __future__ import annotations

import pytest
from golden_evaluation import analyzed

from replctl.errors import FeatureNotSupported
from replctl.spark import to_sql


@pytest.mark.parametrize(
    ("expression", "sql", "spark"),
    [
        ("i4::oid", "pmod(CAST(c3 AS BIGINT), 4294967296L)", "BIGINT"),
        ("i2::oid", "pmod(CAST((CAST(c2 AS INT)) AS BIGINT), 4294967296L)", "BIGINT"),
        ("i4::regtype", "pmod(CAST(c3 AS BIGINT), 4294967296L)", "BIGINT"),
        (
            "'5'::oid::regtype::int",
            "CAST(pmod(CAST(CAST(5 AS BIGINT) AS BIGINT) + 2147483648L, 4294967296L)"
            " - 2147483648L AS INT)",
            "INT",
        ),
    ],
)
def test_casts_between_integers_and_oids(expression: str, sql: str, spark: str) -> None:
    value = to_sql(analyzed(expression), lambda var: f"c{var.attnum}")
    assert (value.text, value.spark) == (sql, spark)


@pytest.mark.parametrize("expression", ["i4::regconfig", "i2::regdictionary", "i8::regconfig"])
def test_numbers_are_no_text_search_objects(expression: str) -> None:
    expr = analyzed(expression)
    with pytest.raises(FeatureNotSupported, match=r"^casts of (int4|oid) to reg"):
        to_sql(expr, lambda var: f"c{var.attnum}")
