"""A publisher and a subscriber: two databases of a fresh cluster, with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.launcher import SyncFailure, sync
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@dataclass
class Database:
    """A database, through one session."""

    session: Session

    def run(self, sql: str) -> list[str]:
        """Run statements, and return their command tags."""
        return [result.tag for result in execute(self.session, sql)]

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query, as texts."""
        (result,) = execute(self.session, query)
        return [tuple(row) for row in result.rows]

    def location(self, table: str = "t") -> str:
        """Return the directory of a table's Delta table."""
        ((location,),) = self.rows(f"SELECT pg_relation_filepath('{table}')")
        assert location is not None
        return f"{self.session.cluster.path}/{location}" if location[0] != "/" else location

    def sync(self) -> list[SyncFailure]:
        """Bring all subscriptions of the cluster up to date, and return the failures."""
        return sync(self.session)


def connect(cluster: Cluster, name: str, engine: Engine) -> Database:
    """Return a database of a cluster.  Create it if it does not exist."""
    session = Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)
    if (name,) not in Database(session).rows("SELECT datname FROM pg_database"):
        Database(session).run(f"CREATE DATABASE {name}")
    return Database(Session.connect(cluster, name, "postgres", engine=lambda: engine))


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster for all tests of a module.  Each test uses tables and names of its own."""
    path: Path = tmp_path_factory.mktemp("shared")
    opened = open_cluster(path / "cluster")
    yield opened
    opened.close()


@pytest.fixture
def publisher(cluster: Cluster, engine: Engine) -> Database:
    """Return database test_pub of the test's cluster."""
    return connect(cluster, "test_pub", engine)


@pytest.fixture
def subscriber(cluster: Cluster, engine: Engine) -> Database:
    """Return database test_sub of the test's cluster."""
    return connect(cluster, "test_sub", engine)


@pytest.fixture
def source(cluster: Cluster, engine: Engine) -> Database:
    """Return database source of the test's cluster."""
    return connect(cluster, "source", engine)


@pytest.fixture
def target(cluster: Cluster, engine: Engine) -> Database:
    """Return database target of the test's cluster."""
    return connect(cluster, "target", engine)
