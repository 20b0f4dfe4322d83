"""Ctrl-C while others than Python work for a statement: SQLite, or Spark."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def on_ctrl_c(act: Callable[[], None]) -> Iterator[None]:
    """Around work that ends only when it is told to: Ctrl-C does so, before it raises
    KeyboardInterrupt; if it means what it means in Python, and this is the thread that sees it.

    Args:
        act: is called between any two instructions of this thread.
    """

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        act()
        raise KeyboardInterrupt

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
