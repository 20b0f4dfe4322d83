"""A process whose own JVM ends goes on with another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_psql import Psql
from fix_spark import spark_options
from patience import wait_until

pytestmark = pytest.mark.spark


def _append(place: Path, number: int) -> None:
    write_deltalake(str(place), pa.table({"id": pa.array([number], pa.int32())}), mode="append")


def _count(place: str) -> int:
    """Return the number of rows that the files of a table have; nothing deletes any."""
    actions = pa.table(DeltaTable(place).get_add_actions(flatten=True))
    return sum(actions["num_records"].to_pylist())


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def test_a_watch_starts_another_one(psql: Psql, tmp_path: Path) -> None:
    source = tmp_path / "source"
    _append(source, 1)
    made = psql(
        "-Xq",
        *spark_options(),
        script=f"""
            CREATE DATABASE test_pub;
            CREATE DATABASE test_sub;
            \\c test_pub
            CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{source}';
            CREATE PUBLICATION p FOR TABLE t;
            \\c test_sub
            CREATE TABLE t (id int PRIMARY KEY);
            CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
            \\sync
        """,
    )
    assert made.exit_code == 0, made.stderr
    place = psql("-XAtd", "test_sub", "-c", "SELECT pg_relation_filepath('t')").stdout.strip()
    watch = subprocess.Popen(
        [sys.executable, "-m", "replctl", "sync", "--watch", "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _append(source, 2)
        wait_until(lambda: _count(place) == 2)
        (jvm,) = _children(watch.pid)
        os.kill(jvm, signal.SIGKILL)
        _append(source, 3)
        wait_until(lambda: _count(place) == 3)
        assert _children(watch.pid) != [jvm]
        watch.send_signal(signal.SIGTERM)
        _output, errors = watch.communicate(timeout=60)
        assert watch.returncode == 0
        assert "the Java process that runs Spark has ended" in errors
    finally:
        watch.kill()
        watch.communicate()
