"""Fixtures for all tests."""

from fix_cluster import cluster, session
from fix_spark import engine, spark_session

__all__ = ["cluster", "engine", "session", "spark_session"]
