"""Undo commits between those of others: which row a key means if two writers have inserted it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from replctl.spark import FeedVersion, TableColumn, TableSource
from replctl.spark.change_data_feed import without_own_sql
from replctl.spark.staging import named_view

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_OWN, _FOREIGN = (2, 4), (1, 3)
#: The values of a key's rows before and after a version.
Change = tuple[list[int], list[int]]

#: The changes of each key by version, and the change that undoes the own versions: the rule, the
#: action, the old and the new value.
_CASES: dict[int, tuple[dict[int, Change], str | None]] = {
    # one row
    1: ({2: ([], [0])}, "K D 0"),
    2: ({1: ([], [7]), 2: ([7], [0])}, "K U 0 7"),
    3: ({1: ([], [7]), 2: ([7], []), 4: ([], [0])}, "K U 0 7"),
    4: ({2: ([], [0]), 3: ([0], []), 4: ([], [1])}, "K D 1"),
    # a row of each writer
    11: ({1: ([], [7]), 2: ([], [0])}, "R D 0"),
    12: ({2: ([], [0]), 3: ([], [7])}, "R D 0"),
    13: ({1: ([], [7]), 3: ([7], [8]), 4: ([], [0])}, "R D 0"),
    14: ({2: ([5], [0]), 3: ([], [7])}, "R U 0 5"),
    15: ({1: ([], [0]), 2: ([], [0])}, "R D 0"),
    # later changes of one of them or both
    21: ({1: ([], [7]), 2: ([], [0]), 3: ([7, 0], [8, 1])}, "X"),
    22: ({1: ([], [7]), 2: ([], [0]), 3: ([0], [])}, "X"),
    23: ({1: ([], [7]), 2: ([], [0]), 3: ([7, 0], [])}, None),
    24: ({2: ([], [0]), 3: ([], [7]), 4: ([0, 7], [1, 1])}, "X"),
    25: ({2: ([5], []), 3: ([], [7]), 4: ([], [0])}, "X"),
    # not written by this transaction
    31: ({1: ([], [7]), 3: ([], [8])}, None),
}


def test_rules(engine: Engine) -> None:
    columns = (TableColumn(1, "int4", -1, "id"), TableColumn(2, "int4", -1, "v"))
    rows = [
        f"({number}L, {side}, {key}, {value})"
        for key, (changes, _expected) in _CASES.items()
        for number, both in changes.items()
        for side, values in zip((-1, 1), both, strict=True)
        for value in values
    ]
    frame = engine.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS images(version, side, c1, c2)")
    with named_view(engine, frame) as view:
        own, foreign = (
            [FeedVersion(number, 1, is_compared=True, images=view) for number in numbers]
            for numbers in (_OWN, _FOREIGN)
        )
        undone = without_own_sql(TableSource("/t", columns), (1,), own, foreign)
        found = engine.rows(
            f"SELECT o1, if(rule = 'X', rule, concat_ws(' ', rule, action, o2, n2)) FROM ({undone})"
        )
    expected = {key: text for key, (_changes, text) in _CASES.items() if text is not None}
    assert dict(map(tuple, found)) == expected
