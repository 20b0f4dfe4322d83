"""A Spark Connect server ends a session during a sync, as after a jump of the clock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

#: A separate process: PySpark uses the newest session of a process for all engines.
_PROGRAM = """
import sys
from replctl import apply_worker, launcher
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.session import Session
from replctl.spark import SparkConf, open_engine
engine = open_engine(SparkConf(remote=sys.argv[2]))
cluster = open_cluster(sys.argv[1])

def run(database, statements):
    session = Session.connect(cluster, database, "postgres", engine=lambda: engine)
    return [tuple(row) for result in execute(session, statements) for row in result.rows]

def ending(step):
    ends = [True]
    def ended(*arguments):
        if ends:
            ends.clear()
            engine.session.client.release_session()
            engine.rows("SELECT 1")
        return step(*arguments)
    return ended

steps = {name: getattr(apply_worker, name) for name in ("synchronize", "apply_changes")}

def sync():
    for name, step in steps.items():
        setattr(apply_worker, name, ending(step))
    session = Session.connect(cluster, "postgres", "postgres", engine=lambda: engine)
    assert launcher.sync(session) == []

run("postgres", "CREATE DATABASE pub")
run("pub", "CREATE TABLE t (a numeric PRIMARY KEY); INSERT INTO t VALUES (1)")
run("pub", "CREATE PUBLICATION p FOR TABLE t WHERE (a / 3 < 1)")
run("postgres", "CREATE TABLE t (a numeric PRIMARY KEY)")
run("postgres", "CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p")
sync()
run("pub", "INSERT INTO t VALUES (2.5), (3)")
sync()
print(sorted(run("postgres", "SELECT a FROM t")))
print(run("postgres", "SELECT apply_error_count FROM pg_stat_subscription_stats"))
engine.stop()
"""


def test_a_sync_continues_in_another_session(tmp_path: Path, connect_server: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "home"), connect_server],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["[('1',), ('2.5',)]", "[('0',)]"], done.stderr
