"""One line says why a JVM has not started."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from replctl.errors import ConnectionFailure
from replctl.spark import Server, ServerConf, attach_server
from replctl.spark.server import _Folder
from replctl.spark.start_failure import cause, ending, reason, start_hint

_TRACE = """Picked up JAVA_TOOL_OPTIONS: -Da=b
WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.util.Utils$.x(Utils.scala:1)
Caused by: org.apache.spark.SparkException: it failed
\tat org.apache.spark.util.Utils$.y(Utils.scala:2)
Caused by: java.net.UnknownHostException: no-such-host: Name or service not known
\tat java.base/java.net.InetAddress.z(InetAddress.java:3)
\t... 22 more
"""
_MASTER = 'Exception in thread "main" org.apache.spark.SparkException: No master\n\tat x\n'
_HEAP = """Error occurred during initialization of VM
Could not reserve enough space for 4194304KB object heap
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
_OPTION = """Unrecognized option: --no-such-option
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
_LOG = """26/11/26 10:00:00 WARN Utils: Your hostname resolves to a loopback address
26/11/26 10:01:00 ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.
26/11/26 10:01:00 WARN StandaloneSchedulerBackend: Application ID is not initialized yet.
"""


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        (_TRACE, 1, "UnknownHostException: no-such-host: Name or service not known"),
        (_MASTER, 1, "No master"),
        (_HEAP, 1, "Could not reserve enough space for 4194304KB object heap"),
        (_OPTION, 1, "Unrecognized option: --no-such-option"),
        (_LOG, 1, "All masters are unresponsive! Giving up."),
        (_TRACE, -9, "The JVM was killed (signal 9), as the system does where memory is short."),
        ("", 3, "The JVM has ended with exit code 3."),
        ("", None, "The JVM did not answer."),
    ],
)
def test_reason(output: str, code: int | None, expected: str) -> None:
    assert reason(output, code) == expected


def test_cause() -> None:
    stopped = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
    assert cause(stopped, _LOG) == "All masters are unresponsive! Giving up."
    ignored = "26/11/26 10:01:02 ERROR Inbox: Ignoring error\n"
    assert cause(stopped, _LOG + ignored) == "All masters are unresponsive! Giving up."
    assert cause(stopped, "") is None
    assert cause(_TRACE, _LOG) == "UnknownHostException: no-such-host: Name or service not known"


def test_a_jvm_that_was_killed() -> None:
    assert "spark.driver.memory" in (start_hint(-9) or "")
    assert ending(-15) == "The JVM was ended by signal 15 (Terminated)."


@pytest.mark.parametrize(
    ("limits", "hint"),
    [
        ({}, None),
        ({resource.RLIMIT_NOFILE: 1024}, None),
        (
            {resource.RLIMIT_NOFILE: 64},
            "Raise the limit of open files, which is 64: ulimit -n 4096.",
        ),
        (
            {resource.RLIMIT_AS: 2 << 30},
            "Raise the limit of address space, which is 2147483648: ulimit -v unlimited.",
        ),
    ],
)
def test_a_start_under_limits(
    limits: dict[int, int], hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit(which: int) -> tuple[int, int]:
        hard = limits.get(which, resource.RLIM_INFINITY)
        return hard, hard

    monkeypatch.setattr(resource, "getrlimit", limit)
    assert start_hint(1) == start_hint(None) == hint


def test_a_server_that_was_killed_is_told_of_once(tmp_path: Path) -> None:
    folder = _Folder(tmp_path)
    folder.path.mkdir()
    server = Server(1, 2, 3, "t", "2026-01-01T00:00:00+00:00", str(folder.log), ServerConf())
    folder.write(server)
    folder.note_ending(ending(-9))
    with pytest.raises(ConnectionFailure) as caught:
        attach_server(tmp_path)
    assert caught.value.detail == f'{ending(-9)} Its log is "{folder.log}".'
    assert attach_server(tmp_path) is None
    folder.write(server)
    with pytest.raises(ConnectionFailure) as caught:
        attach_server(tmp_path)
    assert caught.value.detail == f'Its log is "{folder.log}".'
