"""A fresh cluster, and a session in it without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_class import Relation, get_relation
from replctl.session import Session


def relation_of(session: Session, name: str = "t") -> Relation:
    """Return a relation that a session finds by its search path."""
    with session.read() as catalog:
        oid = session.environment(catalog).relation_oid(None, name)
        assert oid is not None
        found = get_relation(catalog, oid)
    assert found is not None
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Yield a fresh cluster."""
    opened = open_cluster(tmp_path / "cluster")
    yield opened
    opened.close()


@pytest.fixture
def session(cluster: Cluster) -> Session:
    """Return a session in database postgres.  Statements that need Spark fail in it."""
    return Session.connect(cluster, "postgres", "postgres")
