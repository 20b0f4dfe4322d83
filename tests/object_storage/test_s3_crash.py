"""kill -9 at the named points with tables on S3, and processes that use S3 first with a write.

Each command is a process of its own.  It uses a Spark server with the account of the bucket.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from faulty_proxy import Proxy
from fix_s3 import ACCOUNT, S3, made_bucket
from fix_spark import PROPERTIES
from long_tests import RUNS_ALL
from s3_commands import Commands

from replctl.injection_point import POINTS
from replctl.spark import temporary_server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow(3),
    pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server has another account"),
]

#: Points at which the store has commits that the catalog does not know.
_KINDS = {
    "tablesync": ("before-finishedcopy",),
    "apply": ("after-tables",),
}


@pytest.fixture(scope="module")
def bucket(s3_server: Proxy) -> Iterator[S3]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ACCOUNT.items():
            patch.setenv(name, value)
        yield made_bucket(s3_server)


def test_copies_and_batches_on_s3_survive(tmp_path: Path, bucket: S3) -> None:
    plain = Commands(tmp_path / "cluster", bucket)
    plain.write(1, 2, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
        with temporary_server(
            "1g", properties=PROPERTIES, folder=_made(tmp_path / "server")
        ) as remote:
            _check_survival(Commands(tmp_path / "cluster", bucket, remote))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _points(kind: str) -> list[str]:
    return [point for point in POINTS if point.startswith(f"{kind}.")]


def _check_survival(commands: Commands) -> None:
    s3 = commands.s3
    source, copy = (f"USING delta LOCATION '{s3.location(name)}'" for name in ("source", "copy"))
    commands.script("postgres", "CREATE DATABASE source", "CREATE DATABASE copy")
    commands.script(
        "source",
        f"CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) {source}",
        "CREATE PUBLICATION p FOR TABLE t WHERE (id <> 2)",
    )
    commands.script(
        "copy",
        f"CREATE TABLE t (id int PRIMARY KEY, v text) {copy}",
        "ALTER DATABASE copy SET replctl.s3_single_writer = on",
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p",
    )
    for kind, points in _KINDS.items():
        for point in _points(kind) if RUNS_ALL else (f"{kind}.{point}" for point in points):
            code, told = commands.sync(point)
            assert code == -signal.SIGKILL, (point, told)
        code, told = commands.sync()
        assert code == 0, told
        table = DeltaTable(s3.location("source"), storage_options=s3.options)
        published = sorted(i for i in table.to_pyarrow_table()["id"].to_pylist() if i != 2)
        copied = commands.script("copy", "SELECT id FROM t ORDER BY id").split()
        assert copied == [str(i) for i in published]
        table.delete("id = 1")
        commands.write(4, 5)


def test_a_process_that_begins_with_a_write(tmp_path: Path, bucket: S3) -> None:
    """The Spark of the process has no connector yet."""
    commands = Commands(tmp_path / "cluster", bucket)
    place = bucket.location("made", "s3a")
    commands.script(
        "postgres",
        f"CREATE TABLE t (id int) USING delta LOCATION '{place}'",
        "SET replctl.s3_single_writer = on",
        "INSERT INTO t VALUES (7)",
    )
    assert DeltaTable(bucket.location("made"), storage_options=bucket.options).version() >= 0
