"""Each worker begins with slow tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from order import dealt


@dataclass
class _Item:
    """A test of a module; None: it is not slow."""

    path: Path
    minutes: float | None

    def get_closest_marker(self, _name: str) -> SimpleNamespace | None:
        return None if self.minutes is None else SimpleNamespace(args=(self.minutes,))


def _module(name: str, *minutes: float | None) -> list[pytest.Item]:
    return [cast(pytest.Item, _Item(Path(name), each)) for each in minutes]


def test_each_worker_begins_with_its_share_of_the_slow_tests() -> None:
    quick = _module("quick", *[None] * 8)
    short, medium, long = _module("a", 1), _module("b", None, 2, 2), _module("c", 4)
    ordered = dealt([*quick, *short, *medium, *long], 2)
    assert ordered == [*long, *quick[:5], *medium[1:], *short, *quick[5:], medium[0]]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_no_test_is_lost(workers: int) -> None:
    items = [*_module("a", None, 3, None), *_module("b", 1, None), *_module("c", 5, 5, 5, 5)]
    ordered = dealt(items, workers)
    assert sorted(map(id, ordered)) == sorted(map(id, items))
