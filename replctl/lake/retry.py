"""Retry a write if another writer of the same Delta table commits first.  The retry starts from the
new version.  Other modules leave such retries to this one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from replctl.errors import SerializationFailure

T = TypeVar("T")

_ATTEMPTS = 6
_FIRST_PAUSE = 0.05  # seconds; each pause is about twice the previous one


def repeated(action: Callable[[], T]) -> T:
    """Retry an action while it fails with SerializationFailure.

    Args:
        action: must leave nothing behind if it fails in this way.

    Raises:
        SerializationFailure: other writers committed first each time (40001).
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return action()
        except SerializationFailure:  # other programs wrote the table meanwhile
            time.sleep(_FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))
    return action()
