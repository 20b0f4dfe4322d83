"""An S3 server for tests: moto's, as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from faulty_proxy import Proxy, proxy_to
from patience import wait_until

#: The account of the tests; moto lets everybody in.
ACCOUNT = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret"}
#: With HTTP/1.0 each file that Spark writes would wait for "100 Continue" for seconds.
_PROGRAM = """
import sys
from werkzeug.serving import WSGIRequestHandler
WSGIRequestHandler.protocol_version = "HTTP/1.1"
from moto.server import main
main(sys.argv[1:])
"""
_numbers = count()


@dataclass(frozen=True)
class S3:
    """A bucket of a server.

    Attributes:
        proxy: the proxy to the server, which can inject faults.
    """

    bucket: str
    proxy: Proxy

    @property
    def endpoint(self) -> str:
        """Return the address of the proxy to the server."""
        return f"http://127.0.0.1:{self.proxy.port}"

    def location(self, name: str, scheme: str = "s3") -> str:
        """Return the location of a table."""
        return f"{scheme}://{self.bucket}/{name}"

    def write(self, name: str, ids: Sequence[int], values: Sequence[str]) -> None:
        """Append rows (id int, v text) to a table with a change data feed, as its owner does."""
        import pyarrow as pa
        from deltalake import write_deltalake

        write_deltalake(
            self.location(name),
            pa.table({"id": pa.array(ids, pa.int32()), "v": values}),
            mode="append",
            storage_options=self.options,
            configuration={"delta.enableChangeDataFeed": "true"},
        )

    def files(self) -> Any:
        """Return pyarrow's file system, with the account of the bucket's owner."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key=ACCOUNT["AWS_ACCESS_KEY_ID"],
            secret_key=ACCOUNT["AWS_SECRET_ACCESS_KEY"],
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    @property
    def options(self) -> dict[str, str]:
        """Return the options with which delta-rs reaches the server."""
        return {"aws_endpoint": self.endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Yield a proxy to a new server.  The proxy can inject faults.

    All tests share it, because Spark keeps the address of the first server.
    """
    log = tmp_path_factory.mktemp("s3") / "log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "-H", "127.0.0.1", "-p", str(port)],
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: _answers(port))
        with proxy_to(port) as proxy:
            yield proxy
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def s3(s3_server: Proxy, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return a new bucket, and put its account into the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    found = made_bucket(s3_server)
    for name, value in {**ACCOUNT, "AWS_ENDPOINT_URL": found.endpoint}.items():
        monkeypatch.setenv(name, value)
    return found


def made_bucket(server: Proxy) -> S3:
    """Return a new bucket."""
    found = S3(f"lake{next(_numbers)}", server)
    found.files().create_dir(found.bucket)
    return found
