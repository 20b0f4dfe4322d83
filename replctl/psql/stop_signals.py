"""Let commands with --watch finish their work before SIGTERM or Ctrl-C ends them."""

from __future__ import annotations

import signal
import time
from typing import Any

#: Maximum delay in seconds before a signal between two rounds is noticed.
_LONGEST_SLEEP = 0.1


class StopSignals:
    """Records SIGTERM and SIGINT while the `with` block runs.  A second signal has its usual
    effect."""

    _SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._previous: dict[signal.Signals, Any] = {}
        self.has_come = False

    def __enter__(self) -> StopSignals:
        for number in self._SIGNALS:
            self._previous[number] = signal.getsignal(number)
            signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    def sleep(self, seconds: float) -> None:
        """Wait, but return early after a signal."""
        end = time.monotonic() + seconds
        while not self.has_come and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_SLEEP))

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self.has_come = True
        self._restore()
