"""The order of the tests: the slow tests with which each worker of pytest-xdist begins.

With `--dist worksteal` each worker gets an equal part of the list of tests, and begins at its
start.  A worker without tests takes the end of the part of another worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return tests in an order in which each worker begins with its share of the slow ones.

    A slow test that begins late would keep one worker busy while the others have no tests left.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    shares: list[list[tuple[float, list[pytest.Item]]]] = [[] for _ in range(workers)]
    for group in sorted(_groups(slow), key=lambda group: -group[0]):
        min(shares, key=lambda share: sum(minutes for minutes, _items in share)).append(group)
    order: list[pytest.Item] = []
    for number, share in enumerate(shares):
        # As pytest-xdist divides the tests
        size = (len(items) - len(order)) // (workers - number)
        first = [item for _minutes, members in share for item in members]
        rest = max(0, size - len(first))
        order += first + others[:rest]
        del others[:rest]
    return order + others


def _groups(slow: Iterable[pytest.Item]) -> Iterator[tuple[float, list[pytest.Item]]]:
    """Yield the slow tests of each module, after the minutes that they take.

    They stay together, because they may share the slow part.
    """
    for _path, group in groupby(slow, key=lambda item: item.path):
        members = list(group)
        yield max(map(_minutes, members)), members


def _minutes(item: pytest.Item) -> float:
    """Return the minutes that the marker of a slow test states."""
    mark = item.get_closest_marker("slow")
    assert mark is not None
    (minutes,) = mark.args
    return float(minutes)
