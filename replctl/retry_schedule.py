"""Remember failed work, and decide when to retry it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

from replctl.errors import LockWait, PostgresError
from replctl.record import dataclass

_Key = TypeVar("_Key", bound=Hashable)


def never(failures: int) -> float:
    """Return the delay of work that is not retried."""
    return math.inf


@dataclass(frozen=True, slots=True)
class _Failure:
    """The last failure of some work.

    Attributes:
        failures: the number of successive failures.
        due: the time of the next attempt.
    """

    failures: int
    due: float
    error: PostgresError


class RetrySchedule(Generic[_Key]):
    """The failed subscriptions of a process, or the failed copies of a subscription, each by its
    key.

    Args:
        delay: returns the seconds before the next attempt for a number of successive failures.
    """

    def __init__(self, delay: Callable[[int], float] = never) -> None:
        self._delay = delay
        self._failed: dict[_Key, _Failure] = {}

    def failed(self, key: _Key, error: PostgresError) -> None:
        """Note a failure.  A wait for other processes does not make the next delay longer."""
        failures = 1
        if key in self._failed and not isinstance(error, LockWait):
            failures += self._failed[key].failures
        self._failed[key] = _Failure(failures, time.monotonic() + self._delay(failures), error)

    def succeeded(self, key: _Key) -> None:
        """Forget the failures of a key."""
        self._failed.pop(key, None)

    def keep(self, keys: Collection[_Key]) -> None:
        """Forget the failures of all other keys."""
        self._failed = {key: found for key, found in self._failed.items() if key in keys}

    def is_due(self, key: _Key) -> bool:
        """Return whether an attempt may begin now."""
        return key not in self._failed or self._failed[key].due <= time.monotonic()

    def has_due(self) -> bool:
        """Return whether something that failed must be retried now."""
        return any(map(self.is_due, tuple(self._failed)))

    def error(self) -> PostgresError | None:
        """Return the error of something that still fails; None if nothing does.  A wait is returned
        only if nothing else fails.
        """
        errors = [found.error for found in tuple(self._failed.values())]
        return min(errors, key=lambda error: isinstance(error, LockWait), default=None)

    def waits_for(self, key: _Key) -> frozenset[int]:
        """Return the open transactions for which some work has waited."""
        found = self._failed.get(key)
        return found.error.xids if found and isinstance(found.error, LockWait) else frozenset()
