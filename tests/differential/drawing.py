"""Draws examples of Hypothesis strategies outside of a test, by a seed."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from .expressions import expressions
from .rows import tables

_TOGETHER = (
    20  # expressions of one example: Hypothesis repeats expressions that it draws one by one
)


def drawn_table(number: int) -> list[list[str | None]]:
    """Return rows.  The same number gives the same rows."""
    return list(_drawn(tables(), 3, number)[-1])  # the first example is the simplest one


def drawn_expressions(count: int, number: int) -> list[str]:
    """Return `count` different expressions.  The same number gives the same expressions."""
    lists = st.lists(expressions(), min_size=_TOGETHER, max_size=_TOGETHER, unique=True)
    examples = _drawn(lists, 2 * count // _TOGETHER, number)
    return list(dict.fromkeys(item for example in examples for item in example))[:count]


def _drawn(strategy: st.SearchStrategy[Any], count: int, number: int) -> list[Any]:
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found
