"""A proxy in front of an HTTP server that loses, refuses and delays requests as a test demands."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


@dataclass
class Fault:
    """A fault of some requests.

    Attributes:
        pattern: a regular expression for requests, such as `PUT /bucket/key`.
        kind: "lost": the proxy closes the connection after the server has answered; "closed": it
            closes the connection before the server gets the request; "busy": it answers 503;
            "slow": it answers late.
        times: the largest number of faults.
        seconds: the delay of a slow answer.
        seen: the number of faults so far.
    """

    pattern: str
    kind: str
    times: int = 1_000_000
    seconds: float = 0.0
    seen: int = 0


@dataclass
class Proxy:
    """A running proxy.

    Attributes:
        port: the port at which it listens.
        faults: the faults to inject.  The first fault that fits a request counts.
        requests: all requests, such as `GET /bucket/key`.
        accounts: the Authorization headers of these requests.
    """

    port: int
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """Inject faults while the block runs."""
        self.faults = list(faults)
        try:
            yield
        finally:
            self.faults = []

    def note(self, request: str, account: str) -> Fault | None:
        """Record a request, and return its fault."""
        with self.lock:
            self.requests.append(request)
            self.accounts.append(account)
            for fault in self.faults:
                if fault.seen < fault.times and re.search(fault.pattern, request):
                    fault.seen += 1
                    return fault
        return None


_BUSY = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.'
    b"</Message></Error>"
)
#: Headers of one connection only.
_HOP = ("connection", "transfer-encoding", "expect", "date", "server", "content-length")


@contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """Yield a proxy to a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self._body()
            fault = proxy.note(f"{self.command} {self.path}", self.headers["Authorization"] or "")
            kind = None if fault is None else fault.kind
            if kind == "closed":
                self.close_connection = True
                return
            if kind == "busy":
                self._answer(503, {"Content-Type": "application/xml"}, _BUSY)
                return
            if fault is not None and kind == "slow":
                time.sleep(fault.seconds)
            connection = HTTPConnection("127.0.0.1", port)
            try:
                kept = {n: v for n, v in self.headers.items() if n.lower() not in _HOP}
                connection.request(self.command, self.path, body, kept)
                answer = connection.getresponse()
                content, headers = answer.read(), dict(answer.getheaders())
            finally:
                connection.close()
            if kind == "lost":
                self.close_connection = True
                return
            length = headers.get("Content-Length", headers.get("content-length"))
            self._answer(answer.status, headers, content, length)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

        def _body(self) -> bytes | None:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            length = self.headers.get("Content-Length")
            return None if length is None else self.rfile.read(int(length))

        def _answer(
            self, status: int, headers: dict[str, str], content: bytes, length: str | None = None
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            if status not in (204, 304):
                size = length if self.command == "HEAD" and length else str(len(content))
                self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD" and status not in (204, 304):
                self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = Proxy(server.server_address[1])
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
