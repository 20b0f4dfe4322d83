"""Ctrl-C and statement_timeout end a statement of Spark or SQLite with a single message."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from golden_script import answer_of
from patience import PATIENCE
from py4j.clientserver import (  # type: ignore[import-untyped]  # as in spark/java_start.py
    ClientServerConnection,
    JavaParameters,
    PythonParameters,
)

from replctl.errors import QueryCanceled
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_ENDLESS = "SELECT sum(a.id % 7 * b.id) FROM range(1000000) a CROSS JOIN range(1000000) b"


CANCELED = "ERROR:  canceling statement due to user request\n"
TIMED_OUT = "ERROR 57014: canceling statement due to statement timeout"


@contextmanager
def command(home: Path, *statements: str) -> Iterator[subprocess.Popen[str]]:
    (home / "home").mkdir(exist_ok=True)
    arguments = ["--home", str(home / "home"), "-Xqt", "--master", "local[1]"]
    arguments += [part for statement in statements for part in ("-c", statement)]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "replctl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    """Interrupt a working process with Ctrl-C, and return its output, errors and exit code."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    return output.strip(), errors, process.returncode


@pytest.mark.spark
def test_a_session_continues_after_it(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup ignores it
    press = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGINT, handler)
        stack.callback(press.cancel)
        press.start()
        with pytest.raises(QueryCanceled, match="canceling statement due to user request"):
            engine.rows(_ENDLESS)
    assert caplog.records == []
    assert engine.rows("SELECT 1") == [(1,)]


@pytest.mark.spark
def test_the_next_statement_is_not_cancelled(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a statement waits for the thread that cancels its jobs."""
    has_begun, has_ended = threading.Event(), threading.Event()

    def cancel() -> None:
        has_begun.set()
        time.sleep(1)
        has_ended.set()

    def interrupted_job() -> None:
        with engine.running():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                has_begun.wait(PATIENCE)
            except KeyboardInterrupt:  # Spark's error replaces it if PySpark awaits the job's end
                assert has_begun.wait(PATIENCE)
                raise QueryCanceled("the job was cancelled") from None

    monkeypatch.setattr(engine, "cancel", cancel)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(QueryCanceled):
            interrupted_job()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert has_ended.is_set()


@pytest.mark.spark
def test_the_time_of_a_statement_ends_a_job(engine: Engine, session: Session) -> None:
    session.engine = lambda: engine
    answer_of(session, "create table t (a int); insert into t values (1)")
    slow = (
        "select a, (select sum(a.g % 7 * b.g) from generate_series(1, 1000000) a (g),"
        " generate_series(1, 1000000) b (g)) from t"
    )
    assert answer_of(session, "select a from t") == ("| 1", "SELECT 1")
    answer_of(session, "set statement_timeout = '2s'")
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup does
    try:
        assert answer_of(session, slow) == (TIMED_OUT,)
    finally:
        signal.signal(signal.SIGINT, handler)
    answer_of(session, "set statement_timeout = 0")
    assert answer_of(session, "select a from t") == ("| 1", "SELECT 1")


@pytest.mark.spark
@pytest.mark.usefixtures("engine")
def test_a_connection_that_ctrl_c_has_broken_is_closed_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = ClientServerConnection(JavaParameters(), PythonParameters(), Mock(), None, None)
    ours, peer = socket.socketpair()
    connection.init_socket_from_python_server(ours, ours.makefile("rb"))
    peer.close()
    connection.shutdown_socket(1, 2)
    connection.close()
    assert caplog.records == []


@pytest.mark.spark
def test_a_command_continues_as_psql_does(tmp_path: Path) -> None:
    slow = (
        "(SELECT sum(a.g % 7 * b.g) FROM generate_series(1, 1000000) a (g),"
        " generate_series(1, 1000000) b (g))"
    )
    statements = ["CREATE TABLE t (a int)", "INSERT INTO t SELECT 1", "SELECT a FROM t"]
    statements += [f"SELECT a, {slow} FROM t", "SELECT 2"]
    with command(tmp_path, *statements) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "1"  # Spark has started
        assert interrupted(process) == ("2", CANCELED, 0)


def test_in_a_query_of_the_catalog(tmp_path: Path) -> None:
    slow = (
        "SELECT count(*) FROM pg_proc a, pg_proc b, pg_proc c"
        " WHERE a.pronargs + b.pronargs + c.pronargs < 0"
    )
    with command(tmp_path, "SELECT 1", slow, "SELECT 2") as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "1"
        assert interrupted(process) == ("2", CANCELED, 0)
