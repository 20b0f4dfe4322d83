"""The one policy for what another writer of a Delta table has overtaken: the same again, on what
the table has then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from replctl.errors import SerializationFailure

T = TypeVar("T")

_ATTEMPTS = 6
_FIRST_PAUSE = 0.05  # seconds; each pause is about twice as long as the one before


def repeated(action: Callable[[], T]) -> T:
    """Do something that leaves nothing behind when it is overtaken, until it is not.

    Raises:
        SerializationFailure: it has been overtaken each time (40001).
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return action()
        except SerializationFailure:
            time.sleep(_FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))
    return action()
