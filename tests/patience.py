"""The maximum time that a test waits, long enough for a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0  # seconds


def wait_until(condition: Callable[[], bool], interval: float = 0.1) -> None:
    """Return once a condition holds.

    Raises:
        TimeoutError: the condition does not hold in time.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not happen within {PATIENCE:g} seconds")
        time.sleep(interval)
