"""Translated expressions know the precision and scale of their type."""

import pytest

from replctl.spark import SqlValue, storage_type
from replctl.types.character import TYPMOD_HEADER


@pytest.mark.parametrize("size", [(1, 0), (10, 2), (38, 0), (38, 38)])
def test_a_numeric_that_fits_is_a_decimal(size: tuple[int, int]) -> None:
    precision, scale = size
    typmod = (precision << 16) + scale + TYPMOD_HEADER
    assert SqlValue("c1", "numeric", storage_type("numeric", typmod)).decimal == size


@pytest.mark.parametrize("spark", ["STRING", "BIGINT", "ARRAY<DECIMAL(10,2)>"])
def test_other_values_are_no_decimals(spark: str) -> None:
    assert SqlValue("c1", "numeric", spark).decimal is None
