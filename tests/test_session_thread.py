"""Threads that run in parallel."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from functools import partial
from threading import Event, get_ident

import pytest
from patience import PATIENCE

from replctl.errors import QueryCanceled
from replctl.session_thread import CALLING_THREAD, in_parallel, session_threads


def test_work_of_a_thread_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    with session_threads(5, 2) as chosen:
        first = in_parallel([(thread, get_ident) for thread in chosen], lambda: None)
        again = in_parallel(
            [(thread, partial(thread.run, get_ident)) for thread in chosen], lambda: None
        )
    assert len(set(first)) == 2
    assert get_ident() not in first
    assert again[0] == again[-1]
    assert set(again) <= set(first)


@pytest.mark.parametrize(("count", "limit"), [(1, 4), (3, 1), (3, 0)])
def test_one_at_a_time_is_done_here(count: int, limit: int) -> None:
    with session_threads(count, limit) as chosen:
        assert chosen == [CALLING_THREAD] * count
        assert in_parallel([(thread, get_ident) for thread in chosen], lambda: None) == (
            [get_ident()] * count
        )


def test_all_end_before_the_first_failure_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    has_ended = Event()

    def fail() -> None:
        raise ValueError("first")

    def end() -> None:
        has_ended.wait(0.1)
        has_ended.set()

    with session_threads(2, 2) as (one, other), pytest.raises(ValueError, match="first"):
        in_parallel([(one, fail), (other, end)], lambda: None)
    assert has_ended.is_set()


def test_ctrl_c_cancels_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    is_cancelled, begun = Event(), threading.Barrier(3)

    def work() -> bool:
        begun.wait(PATIENCE)
        return is_cancelled.wait(PATIENCE)

    def interrupt() -> None:
        begun.wait(PATIENCE)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup ignores it
    threading.Thread(target=interrupt).start()
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGINT, handler)
        with session_threads(2, 2) as chosen, pytest.raises(QueryCanceled):
            in_parallel([(thread, work) for thread in chosen], is_cancelled.set)
