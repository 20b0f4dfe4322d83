"""The check that a Spark Connect server answers, however busy Spark is.

A server speaks HTTP/2 (RFC 9113, section 3.4): as soon as a client has sent its preface, both send
a SETTINGS frame.  Threads of the network do that, so that long jobs do not delay it; a process
that is stopped, or that collects garbage for minutes, does not.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4  # the type of that frame, at its fourth byte
_INTERVAL = 5.0  # seconds between two questions
_PATIENCE = 10.0  # seconds for an answer

#: How often in a row a server may leave a question without an answer.  A number of questions, not
#: a time: the process that asks may have been stopped together with the server.
_CHANCES = 4

#: Seconds after which a server that does not answer is ended, for messages and documentation.
LIMIT = _CHANCES * (_INTERVAL + _PATIENCE)


def answers(port: int, patience: float = _PATIENCE) -> bool:
    """Return whether a server on this machine answers within `patience` seconds."""
    try:
        with socket.create_connection(("127.0.0.1", port), patience) as connection:
            connection.sendall(_PREFACE + _EMPTY_SETTINGS)
            header = connection.recv(4)
    except OSError:  # nobody listens, or nobody answers
        return False
    return len(header) == 4 and header[3] == _SETTINGS


class Liveness:
    """Ask a server again and again whether it answers.

    Args:
        ask: returns whether it answers.
        clock: returns seconds.
    """

    def __init__(
        self, ask: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._clock = ask, clock
        self._next = clock() + _INTERVAL
        self._chances = _CHANCES

    def has_ended(self) -> bool:
        """Return whether the server has not answered several times in a row; it is asked if the
        last question was long enough ago."""
        if self._clock() >= self._next:
            self._chances = _CHANCES if self._ask() else self._chances - 1
            self._next = self._clock() + _INTERVAL
        return self._chances <= 0
