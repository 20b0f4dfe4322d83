"""The Spark sessions of an engine: one for each thread, because the settings of a write belong to a
session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from replctl.record import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds without use after which the server may have ended a session.  By default
#: (spark.connect.session.manager.defaultSessionTimeout) it ends sessions after an hour.
_IDLE = 60.0


@dataclass(slots=True)
class _Used:
    session: SparkSession
    at: tuple[float, ...]


class SessionPool:
    """Manages one session for each thread.  A new thread can reuse the session of an ended thread.

    Args:
        first: the session of the thread that creates the pool.
        make: creates another session.
        is_open: returns whether the server still has a session; the pool calls it after a minute
            without use.
        end: closes a session that the server no longer has.
        clocks: functions that return seconds.  One must return the time of day, by which a server
            ends idle sessions.  Other clocks stand still while the machine is asleep, and do not
            change if somebody sets the clock.
    """

    def __init__(
        self,
        first: SparkSession,
        make: Callable[[], SparkSession],
        is_open: Callable[[SparkSession], bool],
        end: Callable[[SparkSession], None],
        clocks: Sequence[Callable[[], float]] = (time.monotonic, time.time),
    ) -> None:
        self._make, self._is_open, self._end, self._clocks = make, is_open, end, clocks
        self._used = {threading.current_thread(): _Used(first, self._now())}
        self._giving = threading.Lock()  # or two threads would take the session of one that ended

    def current(self) -> SparkSession:
        """Return the session of this thread.

        Raises:
            PostgresError: a new session cannot be created.
        """
        thread = threading.current_thread()
        used = self._used.get(thread) or self._of_ended_thread()
        now = self._now()
        if used is not None and _has_rested(used, now) and not self._is_open(used.session):
            self.drop()
            self._end(used.session)
            used = None
        if used is None:
            used = _Used(self._make(), now)
        used.at = now
        with self._giving:
            self._used[thread] = used
        return used.session

    def drop(self) -> None:
        """Forget this thread's session, which the server has ended.

        The engine closes the session's connection only when the engine itself ends: until then,
        work that has begun in the session may need the connection to clean up.
        """
        with self._giving:
            self._used.pop(threading.current_thread(), None)

    def all(self) -> list[SparkSession]:
        """Return the sessions of all threads."""
        return [used.session for used in list(self._used.values())]

    def clear(self) -> None:
        """Forget all sessions."""
        self._used = {}

    def _now(self) -> tuple[float, ...]:
        return tuple(clock() for clock in self._clocks)

    def _of_ended_thread(self) -> _Used | None:
        with self._giving:
            ended = next((thread for thread in self._used if not thread.is_alive()), None)
            return None if ended is None else self._used.pop(ended)


def _has_rested(used: _Used, now: tuple[float, ...]) -> bool:
    """Return whether the server may have ended a session since its last use."""
    return any(abs(time - at) > _IDLE for time, at in zip(now, used.at, strict=True))
