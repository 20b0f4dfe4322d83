"""Remember which copies of a subscription failed, and decide when each is retried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection

from replctl.errors import PostgresError
from replctl.record import dataclass
from replctl.relation_name import RelationName


@dataclass(frozen=True, slots=True)
class _FailedCopy:
    """The last failure of a table's copy.

    Attributes:
        failures: the number of successive failures.
        due: the time of the next attempt.
    """

    failures: int
    due: float
    error: PostgresError


class CopyRetries:
    """The failed copies of a subscription.  Apply of its other tables continues meanwhile.

    Args:
        delay: returns the seconds before the next attempt for a number of successive failures.
            Without it, a failed copy is not retried.
    """

    def __init__(self, delay: Callable[[int], float] = lambda failures: math.inf) -> None:
        self._delay = delay
        self._failed: dict[RelationName, _FailedCopy] = {}

    def failed(self, name: RelationName, error: PostgresError) -> None:
        """Note that a table's copy, or its hand-over to apply, has failed."""
        failures = 1 + (self._failed[name].failures if name in self._failed else 0)
        due = time.monotonic() + self._delay(failures)
        self._failed[name] = _FailedCopy(failures, due, error)

    def succeeded(self, name: RelationName) -> None:
        """Note that apply now writes a table."""
        self._failed.pop(name, None)

    def keep(self, names: Collection[RelationName]) -> None:
        """Forget the failures of all other tables: they are synchronized or no longer published."""
        self._failed = {name: copy for name, copy in self._failed.items() if name in names}

    def is_due(self, name: RelationName) -> bool:
        """Return whether a table may be copied now."""
        return name not in self._failed or self._failed[name].due <= time.monotonic()

    def has_due(self) -> bool:
        """Return whether a failed copy must be retried now."""
        return any(map(self.is_due, tuple(self._failed)))

    def error(self) -> PostgresError | None:
        """Return the error of a copy that still fails; None if there is none."""
        return next((copy.error for copy in tuple(self._failed.values())), None)
