"""A Spark Connect server that ends a session amid a sync, as after a jump of the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from replctl import launcher
from replctl.catalog.cluster import Cluster
from replctl.execute import execute
from replctl.session import Session
from replctl.spark import SparkConf, open_engine

pytestmark = pytest.mark.spark


def test_a_sync_goes_on_in_another_session(
    cluster: Cluster, connect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(SparkConf(remote=connect_server))

    def run(database: str, statements: str) -> list[tuple[Any, ...]]:
        session = Session.connect(cluster, database, "postgres", engine=lambda: engine)
        return [tuple(row) for result in execute(session, statements) for row in result.rows]

    def ending(step: Callable[..., Any]) -> Callable[..., Any]:
        """A step whose session the server ends amid it, the first time."""
        is_first = True

        def ended(*arguments: Any) -> Any:
            nonlocal is_first
            if is_first:
                is_first = False
                session: Any = engine.session  # PySpark's, of Connect
                session.client.release_session()
                engine.rows("SELECT 1")
            return step(*arguments)

        return ended

    def sync() -> None:
        for name in ("synchronize", "apply_changes"):
            monkeypatch.setattr(launcher, name, ending(getattr(launcher, name)))
        session = Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)
        assert launcher.sync(session) == []
        monkeypatch.undo()

    run("postgres", "CREATE DATABASE pub")
    run("pub", "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    run("pub", "CREATE PUBLICATION p FOR TABLE t")
    run("postgres", "CREATE TABLE t (a int PRIMARY KEY)")
    run("postgres", "CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p")
    sync()
    run("pub", "INSERT INTO t VALUES (2)")
    sync()
    assert sorted(run("postgres", "SELECT a FROM t")) == [("1",), ("2",)]
    assert run("postgres", "SELECT apply_error_count FROM pg_stat_subscription_stats") == [("0",)]
