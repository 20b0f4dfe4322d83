"""Check that a Spark Connect server answers, even while Spark is busy.

A server speaks HTTP/2 (RFC 9113, section 3.4): as soon as a client has sent its preface, both sides
send a SETTINGS frame.  The server's network threads send it, so that long jobs do not delay it.  A
process that is stopped, or collects garbage for minutes, does not send it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4  # the type of that frame, at its fourth byte
_INTERVAL = 5.0  # seconds between two checks
_PATIENCE = 10.0  # seconds for an answer

#: Number of successive checks that a server may fail.  A number, not a time: the checking process
#: may have been stopped together with the server.
_CHANCES = 4

#: Seconds after which a server that does not answer is killed, for messages and documentation.
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
    """Check repeatedly whether a server answers.

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
        """Return whether the server has failed several successive checks.  Check again if the last
        check is old enough.
        """
        if self._clock() >= self._next:
            self._chances = _CHANCES if self._ask() else self._chances - 1
            self._next = self._clock() + _INTERVAL
        return self._chances <= 0
