"""Fixtures for all tests, and their order."""

import pytest
from fix_clock import clock
from fix_cluster import cluster, session
from fix_lake import lake
from fix_lock import stopped
from fix_postgres import postgres_server
from fix_psql import fresh_home, psql
from fix_recursion import deep_recursion
from fix_replication import publisher, shared_cluster, source, subscriber, target
from fix_s3 import s3, s3_server
from fix_spark import connect_server, engine, spark_session
from fix_standby import primary, standby
from hypothesis import HealthCheck, settings
from order import dealt

# The time of an example depends on how busy the machine is
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each worker of pytest-xdist begin with its share of the longest tests."""
    items[:] = dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


__all__ = [
    "clock",
    "cluster",
    "connect_server",
    "deep_recursion",
    "engine",
    "fresh_home",
    "lake",
    "postgres_server",
    "primary",
    "psql",
    "publisher",
    "s3",
    "s3_server",
    "session",
    "shared_cluster",
    "source",
    "spark_session",
    "standby",
    "stopped",
    "subscriber",
    "target",
]
