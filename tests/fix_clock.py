"""A clock for the delays of `replctl sync --watch`."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from replctl import retry_schedule, watch


@dataclass
class Clock:
    """A clock that only the test moves."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (watch, retry_schedule):
        monkeypatch.setattr(module, "time", clock)
    return clock
