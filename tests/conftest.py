"""Fixtures for all tests, their order, and what makes them faster."""

import gc
import os

import pytest
from fix_clock import clock
from fix_cluster import cluster, new_catalog, session
from fix_lake import lake
from fix_lock import stopped
from fix_open_folder import open_folder
from fix_postgres import postgres_server
from fix_psql import fresh_home, psql
from fix_recursion import deep_recursion
from fix_replication import publisher, shared_cluster, source, subscriber, target
from fix_s3 import s3, s3_server
from fix_spark import connect_server, engine, spark_session
from fix_standby import primary, standby
from hypothesis import HealthCheck, settings
from long_tests import leave_out_long
from order import dealt

from replctl.catalog import catalog_engine

# The time of an example depends on how busy the machine is
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
#: New objects after which the garbage collector looks for cycles.
_GARBAGE = 20_000


def pytest_configure() -> None:
    """Do not wait for the disk in this process: no test cuts the power, and the pages that a killed
    process wrote are not lost."""
    os.fsync = lambda fd: None
    catalog_engine._SYNCHRONOUS = "OFF"


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what lives until the end, such as thousands of tests."""
    gc.freeze()
    gc.set_threshold(_GARBAGE)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests.  Let each worker of pytest-xdist begin with its share of the slow
    ones."""
    leave_out_long(config, items)
    items[:] = dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


__all__ = [
    "clock",
    "cluster",
    "connect_server",
    "deep_recursion",
    "engine",
    "fresh_home",
    "lake",
    "new_catalog",
    "open_folder",
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
