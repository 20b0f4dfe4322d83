"""Spark for tests: one session for all of them, at SPARK_REMOTE or started here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.spark import ServerConf, SparkConf, attach_server, jvm, open_engine, start_server

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_MASTER = "local[2]"
_REMOTE = os.environ.get("SPARK_REMOTE")  # before other fixtures hide it


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine; it is stopped with the process."""
    return opened_engine()


def opened_engine() -> Engine:
    """As the fixture.  Its code is compiled once: the second compiler takes more of a short life
    than it gives back."""
    conf = SparkConf(remote=_REMOTE) if _REMOTE else SparkConf(master=_MASTER, is_brief=True)
    return open_engine(conf)


def spark_options() -> list[str]:
    """Arguments of the command with which it has the fixture's engine, when it runs in this
    process; the engine is opened here, so that it is the one for all."""
    opened_engine()
    return ["--remote", _REMOTE] if _REMOTE else ["--master", _MASTER]


@pytest.fixture
def spark_session(cluster: Cluster, engine: Engine) -> Session:
    """A session in a fresh cluster that has Spark."""
    return Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a Spark Connect server: SPARK_REMOTE's, or one that is started here, for all
    processes of the run; it ends soon after the last of them."""
    if _REMOTE:
        return _REMOTE
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "spark_server"
    folder.mkdir(exist_ok=True)
    properties = {
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": jvm.BRIEF_OPTIONS,
    }
    conf = ServerConf(_MASTER, tuple(properties.items()), idle_timeout=5.0)
    server = None
    while server is None:  # one may end before it is held
        start_server(folder, conf)
        server = attach_server(folder)
    return server.remote
