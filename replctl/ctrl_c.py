"""Handle Ctrl-C and statement timeouts while SQLite or Spark works for a statement."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from replctl.errors import FeatureNotSupported, QueryCanceled

#: Functions that end the current work.
_acts: list[Callable[[], None]] = []
#: Seconds before the next interrupt of a statement if a finalizer has swallowed the first one.
_AGAIN = 0.05


class TimedOut(KeyboardInterrupt):
    """Raised if a statement has timed out; handled like Ctrl-C."""


@contextmanager
def on_ctrl_c(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` on Ctrl-C, or when `time_limit` is over, then raise KeyboardInterrupt.

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


@contextmanager
def time_limit(milliseconds: int) -> Iterator[None]:
    """Interrupt the statement in the `with` block when its time is over, as Ctrl-C does.  0 means
    no limit.

    Raises:
        QueryCanceled: the statement timed out (57014).
        FeatureNotSupported: this thread is not the main thread, which alone receives signals.
    """
    if not milliseconds:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise FeatureNotSupported("statement_timeout outside of the main thread is not supported")
    is_over = has_ended = False

    def over(number: int, frame: FrameType | None) -> None:
        nonlocal is_over
        if has_ended:
            return
        is_over = True
        for act in _acts:
            act()
        raise TimedOut

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        """Interrupt again if the interrupt happened in a finalizer, where it was swallowed."""
        if issubclass(found.exc_type, TimedOut):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            previous_hook(found)

    previous_hook, sys.unraisablehook = sys.unraisablehook, unraisable
    previous = signal.signal(signal.SIGALRM, over)
    try:
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
        try:
            yield
        finally:
            has_ended = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            sys.unraisablehook = previous_hook
    except (KeyboardInterrupt, QueryCanceled) as error:
        if is_over:
            raise QueryCanceled("canceling statement due to statement timeout") from error
        raise
