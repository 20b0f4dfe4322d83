"""Run work in parallel threads.  Spark's temporary views belong to a session, and each thread has
its own session.  Therefore work that uses earlier views must continue in the same thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from replctl.errors import QueryCanceled

T = TypeVar("T")


class SessionThread:
    """A thread that runs one piece of work after the other.

    Args:
        pool: a pool of one thread; None for the calling thread.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self._pool = pool
        self._thread = None if pool is None else pool.submit(threading.get_ident).result()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Start or enqueue a piece of work.  Work submitted from the thread itself runs
        immediately.
        """
        if self._pool is not None and threading.get_ident() != self._thread:
            return self._pool.submit(work)
        done: Future[T] = Future()
        try:
            done.set_result(work())
        except Exception as error:  # Future.result() raises it, as for work of the thread
            done.set_exception(error)
        return done

    def run(self, work: Callable[[], T]) -> T:
        """Run a piece of work, and return its result."""
        return self.submit(work).result()


#: For work that does not run in parallel.
CALLING_THREAD = SessionThread()


@contextmanager
def session_threads(count: int, limit: int) -> Iterator[list[SessionThread]]:
    """Yield a thread for each of `count` pieces of work.  Pieces share threads in turn: there are
    at most `limit` threads, and at most as many as the machine has processors.
    """
    width = min(count, limit, os.cpu_count() or 1)
    if width < 2:
        yield [CALLING_THREAD] * count
        return
    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(width)]
        chosen = [SessionThread(pool) for pool in pools]
        yield [chosen[number % width] for number in range(count)]


def in_parallel(
    work: Sequence[tuple[SessionThread, Callable[[], T]]], cancel: Callable[[], None]
) -> list[T]:
    """Run pieces of work, each in its thread, and return their results when all have ended.

    Args, Raises:
        see `gathered`.
    """
    return gathered((thread.submit(piece) for thread, piece in work), cancel)


def gathered(work: Iterable[Future[T]], cancel: Callable[[], None]) -> list[T]:
    """Return the results of pieces of work when all have ended.

    Args:
        work: starts the pieces one after the other.
        cancel: cancels the Spark jobs of the pieces.

    Raises:
        QueryCanceled: Ctrl-C (57014).
        Exception: the exception of the first failed piece.
    """
    begun: list[Future[T]] = []
    try:
        for future in work:
            begun.append(future)
        wait(begun)
    except KeyboardInterrupt:
        cancel()
        for future in begun:
            future.cancel()
        wait(begun)
        raise QueryCanceled("canceling statement due to user request") from None
    return [future.result() for future in begun]
