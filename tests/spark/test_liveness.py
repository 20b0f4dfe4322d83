"""replctl recognises servers that do not answer, and kills their JVM."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replctl.spark import server as servers
from replctl.spark.liveness import Liveness, answers

#: The first bytes of an HTTP/2 server: the header of an empty SETTINGS frame.
_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@contextmanager
def _listening(reply: bytes | None) -> Iterator[int]:
    """Yield a port that sends `reply` to its client, and closes.  If `reply` is None, it accepts no
    client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(reply or b"")

        if reply is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (_SETTINGS, True),
        (b"HTTP/1.1 400 Bad Request\r\n", False),
        (b"", False),
        (None, False),  # the process is stopped; only the system has accepted the connection
    ],
)
def test_what_answers(reply: bytes | None, expected: bool) -> None:
    with _listening(reply) as port:
        assert answers(port, patience=0.2) == expected


def test_a_port_where_nobody_listens() -> None:
    with _listening(None) as port:
        pass
    assert not answers(port)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("yyyyyyyy", [False] * 8),
        ("nnnn", [False, False, False, True]),
        ("nnnynnnn", [False] * 7 + [True]),
        ("nynynyny", [False] * 8),
    ],
)
def test_several_questions_in_a_row_have_no_answer(given: str, expected: list[bool]) -> None:
    replies = iter(given)
    now = 0.0
    liveness = Liveness(lambda: next(replies) == "y", lambda: now)
    assert not liveness.has_ended()  # it does not check at once
    found = []
    for _ in given:
        now += 1000  # a long pause of this process itself counts as a single check
        found.append(liveness.has_ended())
    assert found == expected


def test_a_jvm_that_does_not_answer_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Liveness, "has_ended", lambda _: True)
    monkeypatch.setattr(servers, "_POLL_INTERVAL", 0.01)
    folder = servers._Folder(tmp_path)
    folder.path.mkdir()
    conf = servers.ServerConf()
    with subprocess.Popen(["sleep", "1000"]) as process:
        folder.write(servers.Server(1, process.pid, 1, "", "", "", conf))
        servers._watch(folder, conf, process)
    assert process.returncode == -9
    assert folder.read_ending() == "It did not answer for 60 seconds, and was killed. "
