"""Interrupt a statement that takes longer than statement_timeout."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from replctl.ctrl_c import end_work
from replctl.errors import FeatureNotSupported, QueryCanceled

#: Seconds before the next interrupt of a statement if a finalizer has swallowed the first one.
_AGAIN = 0.05


class _TimedOut(KeyboardInterrupt):
    """Raised if a statement has timed out; handled like Ctrl-C."""


@contextmanager
def statement_timeout(milliseconds: int) -> Iterator[None]:
    """Interrupt the statement in the `with` block when its time is over, as Ctrl-C does.  0 means
    no limit.

    Raises:
        QueryCanceled: the statement timed out (57014).
        FeatureNotSupported: this is not the main thread, which alone receives signals.
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
        end_work()
        raise _TimedOut

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        """Interrupt again if the interrupt happened in a finalizer, where it was swallowed."""
        if issubclass(found.exc_type, _TimedOut):
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
