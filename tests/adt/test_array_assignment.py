"""Assignments to elements and slices of arrays have the results of `SET a[...] = ...` in PostgreSQL
17.  This includes arrays of several dimensions, which tables of replctl cannot hold."""

from __future__ import annotations

import pytest

from replctl.adt.arrayfuncs import with_element, with_slice
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.types.array_ import BoundedArray

_RANGE = "array subscript out of range"
_NUMBER = "wrong number of array subscripts"
_SMALL = "source array too small"
_SIZE = "array size exceeds the maximum allowed (134217727)"
_ONE = "arrays that do not begin at 1 are not supported"


@pytest.mark.parametrize(
    ("value", "indexes", "expected"),
    [
        ([], [1], [9]),
        ([], [1, 1], [[9]]),
        ([1, 2], [2], [1, 9]),
        ([1, 2], [3], [1, 2, 9]),
        ([1, 2], [5], [1, 2, None, None, 9]),
        ([[1, 2], [3, 4]], [1, 2], [[1, 9], [3, 4]]),
        ([[1, 2], [3, 4]], [3, 2], _RANGE),
        ([[1, 2], [3, 4]], [1, 0], _RANGE),
        ([[1, 2], [3, 4]], [1], _NUMBER),
        ([1, 2], [1, 1], _NUMBER),
        ([1, 2], [1000000000], _SIZE),
        ([1, 2], [-(2**31)], _SIZE),
        ([], [3], _ONE),
        ([], [1, 2], _ONE),
        ([1, 2], [0], _ONE),
        (BoundedArray("[0:1]={1,2}"), [1], _ONE),
    ],
)
def test_element(value: object, indexes: list[int], expected: object) -> None:
    if isinstance(expected, list):
        assert with_element(value, indexes, 9) == expected
        return
    with pytest.raises(PostgresError) as raised:
        with_element(value, indexes, 9)
    assert raised.value.message == expected
    assert isinstance(raised.value, FeatureNotSupported) == (expected == _ONE)


@pytest.mark.parametrize(
    ("value", "lower", "upper", "new", "expected"),
    [
        ([1, 2, 3], [2], [3], [7, 8, 9], [1, 7, 8]),
        ([1, 2, 3], [2], [3], [7], _SMALL),
        ([1, 2, 3], [3], [2], [7], "upper bound cannot be less than lower bound"),
        ([1, 2, 3], [None], [2], [7, 8], [7, 8, 3]),
        ([1, 2, 3], [2], [None], [7, 8], [1, 7, 8]),
        ([1, 2, 3], [6], [7], [7, 8], [1, 2, 3, None, None, 7, 8]),
        ([1, 2, 3], [0], [1], [7, 8], _ONE),
        ([1, 2, 3], [2], [3], None, [1, 2, 3]),
        ([1, 2, 3], [1, 1], [1, 2], [7, 8], _NUMBER),
        ([1, 2, 3], [1], [2**31 - 1], [7], _SIZE),
        ([], [1], [2], None, []),
        ([], [2], [1], [], []),
        ([], [3], [1], [], _SIZE),
        ([], [1], [2], [[5, 6], [7, 8]], [5, 6]),
        ([], [1, 1], [2, 2], [5, 6, 7, 8, 9], [[5, 6], [7, 8]]),
        ([], [1], [5], [5, 6], _SMALL),
        ([], [2], [3], [5, 6], _ONE),
        ([], [None], [2], [5, 6], "array slice subscript must provide both boundaries"),
        ([[1, 2], [3, 4]], [1, 1], [1, 2], [8, 9], [[8, 9], [3, 4]]),
        ([[1, 2], [3, 4]], [1], [2], [8, 9], _SMALL),
        ([[1, 2], [3, 4]], [2], [2], [8, 9], [[1, 2], [8, 9]]),
        ([[1, 2], [3, 4]], [2], [3], [8, 9, 10, 11], _RANGE),
    ],
)
def test_slice(
    value: object,
    lower: list[int | None],
    upper: list[int | None],
    new: object,
    expected: object,
) -> None:
    if isinstance(expected, list):
        assert with_slice(value, lower, upper, new) == expected
        return
    with pytest.raises(PostgresError) as raised:
        with_slice(value, lower, upper, new)
    assert raised.value.message == expected
