"""Sessions of threads, and sessions that a Connect server has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, cast

import pytest

from replctl.spark.session_pool import SessionPool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sessions:
    """A pool with texts instead of sessions, and with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = self.time_of_day = 0.0
        self.made = 0
        self.server_is_away = False
        self.ended: set[str] = set()
        self.asked: list[str] = []
        self.closed: list[str] = []
        self.pool = SessionPool(
            self._make(),
            self._make,
            self._is_open,
            lambda session: self.closed.append(str(session)),
            (lambda: self.now, lambda: self.time_of_day),
        )

    def _make(self) -> SparkSession:
        if self.server_is_away:
            raise ConnectionError
        self.made += 1
        return cast("SparkSession", f"session {self.made}")

    def _is_open(self, session: SparkSession) -> bool:
        self.asked.append(str(session))
        return str(session) not in self.ended

    def current(self) -> str:
        return str(self.pool.current())

    def all(self) -> list[str]:
        return [str(session) for session in self.pool.all()]

    def in_thread(self) -> str:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(self.current()))
        thread.start()
        thread.join()
        return found[0]


def test_each_thread_has_its_own() -> None:
    sessions = Sessions()
    assert sessions.current() == sessions.current() == "session 1"
    assert sessions.in_thread() == "session 2"
    assert sessions.in_thread() == "session 2"  # the session of the ended thread
    assert sessions.all() == ["session 1", "session 2"]
    sessions.pool.clear()
    assert sessions.all() == []


def test_one_that_has_rested_is_asked_for() -> None:
    sessions = Sessions()
    sessions.now = 59
    sessions.current()
    sessions.now = 110
    sessions.current()
    assert sessions.asked == []
    sessions.now = 200
    assert sessions.current() == "session 1"
    assert sessions.asked == ["session 1"]
    sessions.ended = {"session 1"}
    assert sessions.closed == []
    sessions.now = 300
    assert sessions.current() == "session 2"
    assert sessions.closed == ["session 1"]
    assert sessions.current() == "session 2"
    assert sessions.all() == ["session 2"]


@pytest.mark.parametrize("time_of_day", [86400, -86400])
def test_one_is_asked_for_after_a_jump_of_the_clock(time_of_day: float) -> None:
    sessions = Sessions()
    sessions.time_of_day = time_of_day
    sessions.current()
    assert sessions.asked == ["session 1"]
    sessions.current()
    assert sessions.asked == ["session 1"]


def test_one_that_ended_in_use_is_dropped() -> None:
    sessions = Sessions()
    sessions.pool.drop()
    assert sessions.current() == "session 2"
    assert sessions.all() == ["session 2"]
    sessions.pool.drop()
    sessions.pool.drop()
    assert sessions.all() == []


def test_one_that_has_ended_is_closed_although_there_is_no_other() -> None:
    sessions = Sessions()
    sessions.ended, sessions.now = {"session 1"}, 100
    sessions.server_is_away = True
    with pytest.raises(ConnectionError):
        sessions.current()
    assert (sessions.closed, sessions.all()) == (["session 1"], [])
    sessions.server_is_away = False
    assert sessions.current() == "session 2"
    assert sessions.closed == ["session 1"]


_ENDED = """
import sys
from replctl.errors import ConnectionFailure
from replctl.spark import SparkConf, open_engine, session_pool
conf = SparkConf(remote=sys.argv[1])
engine = open_engine(conf)
engine.session.client.release_session()
try:
    engine.rows("SELECT 1")
except ConnectionFailure as error:
    print(error.message)
print(engine.rows("SELECT 2"), engine is open_engine(conf))
session_pool._IDLE = -1.0
engine = open_engine(conf)
ended = engine.session.client
ended.release_session()
print(engine.rows("SELECT 3"), ended.is_closed, engine.session.client.is_closed)
engine.stop()
"""


@pytest.mark.spark
def test_a_session_that_the_server_has_ended(connect_server: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ENDED, connect_server],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        "the Spark Connect server has ended the session",
        "[(2,)] True",
        "[(3,)] True False",
    ], done.stderr
