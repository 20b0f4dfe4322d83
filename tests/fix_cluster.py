"""A fresh cluster, and a session in it without Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.initdb import new_signing_key, new_system_identifier
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


@pytest.fixture(scope="session")
def new_catalog(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the catalog of a new cluster."""
    home = tmp_path_factory.mktemp("new_catalog")
    open_cluster(home).close()
    return (home / "catalog.db").read_bytes()


@pytest.fixture
def cluster(tmp_path: Path, new_catalog: bytes) -> Iterator[Cluster]:
    """Yield a fresh cluster.  Copying a catalog is faster than making its tables."""
    home = tmp_path / "cluster"
    home.mkdir(mode=0o700)
    catalog = home / "catalog.db"
    catalog.touch(mode=0o600)
    catalog.write_bytes(new_catalog)
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(
            "UPDATE pg_control SET home = ?, system_identifier = ?, signing_key = ?",
            (str(home.resolve()), new_system_identifier(), new_signing_key()),
        )
    opened = open_cluster(home)
    yield opened
    opened.close()


@pytest.fixture
def session(cluster: Cluster) -> Session:
    """Return a session in database postgres.  Statements that need Spark fail in it."""
    return Session.connect(cluster, "postgres", "postgres")
