"""Spark for tests: one session for all of them, at SPARK_REMOTE or started here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.spark import SparkConf, open_engine

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine; it is stopped with the process."""
    remote = os.environ.get("SPARK_REMOTE")
    return open_engine(SparkConf(remote=remote) if remote else SparkConf(master="local[2]"))


@pytest.fixture
def spark_session(cluster: Cluster, engine: Engine) -> Session:
    """A session in a fresh cluster that has Spark."""
    return Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)
