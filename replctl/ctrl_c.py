"""Handle Ctrl-C while SQLite or Spark works for a statement."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: Functions that end the current work.
_acts: list[Callable[[], None]] = []


@contextmanager
def on_ctrl_c(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` on Ctrl-C, or at the end of `statement_timeout`, then raise KeyboardInterrupt.

    Use it around work in SQLite or Spark that `act` can cancel.  It has no effect outside of the
    main thread, or inside of another `on_ctrl_c`.  It leaves another handler of Ctrl-C in place.

    Args:
        act: may be called between any two instructions of this thread.
    """

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        act()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or _acts:
        yield
        return
    takes_ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _acts.append(act)
    if takes_ctrl_c:
        signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        _acts.clear()
        if takes_ctrl_c:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end_work() -> None:
    """End the work that the surrounding `on_ctrl_c` can cancel.  Signal handlers call this."""
    for act in _acts:
        act()
