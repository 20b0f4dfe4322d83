"""Check that a Spark Connect server answers, even while Spark is busy.

A server speaks HTTP/2 (RFC 9113, section 3.4): after the client's preface, both sides send a
SETTINGS frame.  The server's network threads send it, so long jobs do not delay it.  A process
that is suspended, or collects garbage for minutes, does not send it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4  # the type of a SETTINGS frame, which is its fourth byte
_INTERVAL = 5.0  # seconds between two checks
_PATIENCE = 10.0  # seconds for an answer

#: Number of successive checks that a server may fail.  It is not a time, because the checking
#: process may have been suspended together with the server.
_CHANCES = 4

#: Seconds after which replctl kills a server that does not answer, for messages and documentation.
LIMIT = _CHANCES * (_INTERVAL + _PATIENCE)


def answers(port: int, patience: float = _PATIENCE) -> bool:
    """Return whether a server on this machine answers within `patience` seconds."""
    try:
        with socket.create_connection(("127.0.0.1", port), patience) as connection:
            connection.sendall(_PREFACE + _EMPTY_SETTINGS)
            header = connection.recv(4)
    except OSError:  # no process listens, or it does not answer
        return False
    return len(header) == 4 and header[3] == _SETTINGS


class Liveness:
    """Checks repeatedly whether a server answers.

    Args:
        ask: returns whether the server answers.
        clock: returns seconds.
    """

    def __init__(
        self, ask: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._clock = ask, clock
        self._next = clock() + _INTERVAL
        self._chances = _CHANCES

    def has_ended(self) -> bool:
        """Return whether the server has failed too many successive checks.  Check it again unless
        the last check was just now.
        """
        if self._clock() >= self._next:
            self._chances = _CHANCES if self._ask() else self._chances - 1
            self._next = self._clock() + _INTERVAL
        return self._chances <= 0
