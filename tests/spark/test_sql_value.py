"""Translated expressions know the size of their type, and what their SQL calls."""

from collections.abc import Sequence

import pytest

from replctl.errors import FeatureNotSupported
from replctl.spark import SqlValue, storage_type
from replctl.spark.python_calls import python_calls
from replctl.spark.sql_value import bound, check_lambda
from replctl.types.character import TYPMOD_HEADER


@pytest.mark.parametrize("size", [(1, 0), (10, 2), (38, 0), (38, 38)])
def test_a_numeric_that_fits_is_a_decimal(size: tuple[int, int]) -> None:
    precision, scale = size
    typmod = (precision << 16) + scale + TYPMOD_HEADER
    assert SqlValue("c1", "numeric", storage_type("numeric", typmod)).decimal == size


@pytest.mark.parametrize("spark", ["STRING", "BIGINT", "ARRAY<DECIMAL(10,2)>"])
def test_other_values_are_no_decimals(spark: str) -> None:
    assert SqlValue("c1", "numeric", spark).decimal is None


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        ("replctl_numeric_key(c1)", {"replctl_numeric_key"}),
        ("concat('replctl_numeric_key(', `replctl_row(`)", set()),
        ("concat('it\\'s replctl_row(', replctl_out_date(c1))", {"replctl_out_date"}),
        ("replctl_in_date(`it's`, 'x') + replctl_row(`a``'`)", {"replctl_in_date", "replctl_row"}),
    ],
)
def test_texts_and_names_of_users_are_no_calls_of_python(sql: str, calls: set[str]) -> None:
    assert python_calls(sql) == calls


@pytest.mark.parametrize("text", ["bound_ and more", "replctl_row(", "(SELECT "])
def test_a_long_value_may_contain_any_text(text: str) -> None:
    long = SqlValue(f"concat(c1, '{text}', '{'x' * 60}')", "text", "STRING")
    found = bound([long, SqlValue(f"'{text}'", "text", "STRING")], _repeated)
    assert found.startswith("get(transform(")


def test_a_quoted_name_hides_no_subquery() -> None:
    with pytest.raises(FeatureNotSupported, match="subqueries"):
        check_lambda("`it's` + (SELECT max(c1) FROM t) || 'x'")


def _repeated(args: Sequence[SqlValue]) -> str:
    return f"{args[0].text} || {args[0].text} || {args[1].text}"
