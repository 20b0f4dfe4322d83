"""A primary and its standby, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.standby import create_standby
from replctl.session import Session

#: Shows whether the slots sub1 and sub2 of a standby can replace those of the primary.
READY = (
    "SELECT slot_name, (synced AND NOT temporary AND NOT conflicting) AS failover_ready"
    " FROM pg_replication_slots WHERE slot_name IN ('sub1', 'sub2') ORDER BY 1"
)


def database_of(cluster: Cluster) -> Database:
    """Return the database postgres of a cluster."""
    return Database(Session.connect(cluster, "postgres", "postgres"))


@pytest.fixture
def primary(cluster: Cluster) -> Database:
    """Return a primary with a table, a sequence, a publication and a failover slot."""
    database = database_of(cluster)
    database.run("CREATE TABLE t (a int PRIMARY KEY); CREATE SEQUENCE s; CREATE PUBLICATION p")
    make_slot(database, "sub1", failover=True)
    return database


@pytest.fixture
def standby(primary: Database, tmp_path: Path) -> Iterator[Database]:
    """Yield the standby of `primary`."""
    create_standby(primary.session.cluster.path, tmp_path / "standby", "standby1")
    cluster = open_cluster(tmp_path / "standby")
    yield database_of(cluster)
    cluster.close()


def make_slot(database: Database, name: str, *, failover: bool) -> None:
    """Create a logical slot."""
    database.rows(
        "SELECT pg_create_logical_replication_slot"
        f"('{name}', 'pgoutput', false, false, {str(failover).lower()})"
    )


def stored_rows(database: Database) -> list[tuple[object, ...]]:
    """Return all rows except those of slots and of pg_control."""
    found: list[tuple[object, ...]] = []
    with database.session.cluster.begin(write=False) as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (name,) in tables.all():
            if name not in ("pg_replication_slots", "pg_stat_replication_slots", "pg_control"):
                rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"')
                found += [(name, *row) for row in rows]
    return sorted(found, key=str)
