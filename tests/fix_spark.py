"""Spark for tests: one session for all of them, at SPARK_REMOTE or started here."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.spark import SparkConf, jvm, open_engine

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine; it is stopped with the process."""
    return opened_engine()


def opened_engine() -> Engine:
    """As the fixture."""
    remote = os.environ.get("SPARK_REMOTE")
    return open_engine(SparkConf(remote=remote) if remote else SparkConf(master="local[2]"))


@pytest.fixture
def spark_session(cluster: Cluster, engine: Engine) -> Session:
    """A session in a fresh cluster that has Spark."""
    return Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server: SPARK_REMOTE's, or one that is started here."""
    remote = os.environ.get("SPARK_REMOTE")
    if remote:
        yield remote
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    properties = {"spark.master": "local[2]", "spark.driver.memory": "3g"}
    argv = jvm.connect_server_command(jvm.find_java(), port, properties)
    log = tmp_path_factory.mktemp("connect") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, env=jvm.environment())
    try:
        _wait_for_port(process, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the Spark Connect server did not answer")
