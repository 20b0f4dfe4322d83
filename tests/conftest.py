"""Fixtures for all tests."""

from fix_cluster import cluster, session
from fix_lake import lake
from fix_postgres import postgres_server
from fix_psql import fresh_home, psql
from fix_replication import publisher, shared_cluster, subscriber
from fix_spark import connect_server, engine, spark_session

__all__ = [
    "cluster",
    "connect_server",
    "engine",
    "fresh_home",
    "lake",
    "postgres_server",
    "psql",
    "publisher",
    "session",
    "shared_cluster",
    "spark_session",
    "subscriber",
]
