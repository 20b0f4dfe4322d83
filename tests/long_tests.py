"""Tests that run only with REPLCTL_TEST_ALL=1: cases of tests whose other cases always run.

CONTRIBUTING.md has the commands, and when they last passed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

T = TypeVar("T")

#: Whether all tests run, with all their cases.
RUNS_ALL = "REPLCTL_TEST_ALL" in os.environ
#: The mark of a test or of a case that runs only then.
LONG = pytest.mark.long


def sampled(cases: Sequence[T], step: int, first: int = 0) -> Sequence[T]:
    """Return every case, or without REPLCTL_TEST_ALL each `step`-th one."""
    return cases if RUNS_ALL else cases[first::step]


def with_long(cases: Sequence[T], step: int, first: int = 0) -> list[ParameterSet]:
    """Return the cases as parameters of a test.  All but every `step`-th one are long."""
    tried = range(first, len(cases), step)
    return [
        pytest.param(case, marks=[] if number in tried else [LONG])
        for number, case in enumerate(cases)
    ]


def leave_out_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long tests, unless all tests run."""
    if RUNS_ALL:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
