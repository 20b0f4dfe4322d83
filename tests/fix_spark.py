"""The only Spark session of all tests, at SPARK_REMOTE or started here."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import pytest
from java_options import TEST_OPTIONS
from query_facts import check_facts

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.spark import (
    ServerConf,
    SparkConf,
    SparkQuery,
    attach_server,
    open_engine,
    start_server,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from replctl.spark.engine import Engine

_MASTER = "local[2]"
#: No test reads the tables of an earlier one, so Delta need not cache the logs of many tables.
#: They would fill the heap, and the garbage collector would take more and more time.
PROPERTIES = {
    "spark.driver.extraJavaOptions": TEST_OPTIONS,
    "spark.databricks.delta.delta.log.cacheSize": "64",
}
_REMOTE = os.environ.get("SPARK_REMOTE")  # read before other fixtures remove it


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Return the engine of all tests, which stops with the process."""
    return opened_engine()


def opened_engine() -> Engine:
    """Return the engine of the fixture, which checks that queries know the tables that they
    read."""
    conf = SparkConf(master=_MASTER, properties=tuple(PROPERTIES.items()))
    engine = open_engine(SparkConf(remote=_REMOTE) if _REMOTE else conf)
    _check_queries()
    return engine


@cache
def _check_queries() -> None:
    from replctl.spark.engine import Engine

    sql = Engine.sql

    def checked(self: Engine, query: SparkQuery | str, *, has_few_rows: bool = False) -> DataFrame:
        if isinstance(query, SparkQuery):  # a text is a statement of a test
            check_facts(query, self.query_size.large_views)
        return sql(self, query, has_few_rows=has_few_rows)

    Engine.sql = checked  # type: ignore[method-assign]


def spark_options() -> list[str]:
    """Open the fixture's engine, and return the options with which the command uses it.

    The command must run in this process.
    """
    opened_engine()
    if _REMOTE:
        return ["--remote", _REMOTE]
    properties = [item for pair in PROPERTIES.items() for item in ("--conf", "=".join(pair))]
    return ["--master", _MASTER, *properties]


@pytest.fixture
def spark_session(cluster: Cluster, engine: Engine) -> Session:
    """Return a session in a fresh cluster, with Spark."""
    return Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a Spark Connect server: SPARK_REMOTE's, or one that starts here.

    All processes of the run share the server that starts here.  It ends soon after the last of
    them.
    """
    if _REMOTE:
        return _REMOTE
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "spark_server"
    folder.mkdir(exist_ok=True)
    conf = ServerConf(
        _MASTER,
        (*PROPERTIES.items(), ("spark.driver.memory", "3g")),
        idle_timeout=5.0,
    )
    server = None
    while server is None:  # a server may end before it is attached
        start_server(folder, conf)
        server = attach_server(folder)
    return server.remote
