"""replctl writes, copies and updates a table that is larger than Spark's memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_ROWS = 900_000
_BODY = " || ".join(f"md5(g::text || '{letter}')" for letter in "abcdefghijklmnopqrst")
_TABLE = "CREATE TABLE t (id int PRIMARY KEY, region text, body text);"
_SCRIPT = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_TABLE}
INSERT INTO t SELECT g, CASE WHEN g % 10 = 0 THEN 'south' ELSE 'north' END, {_BODY}
  FROM generate_series(1, {_ROWS}) g;
CREATE PUBLICATION p FOR TABLE t WHERE (id > 0);
\c test_sub
{_TABLE}
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
\sync
\c test_pub
UPDATE t SET region = 'west' WHERE id % 3 = 0;
\sync
\c test_sub
SELECT count(*), sum(length(body)), count(*) FILTER (WHERE region = 'west') FROM t;
"""


@pytest.mark.slow(4)
def test_a_table_larger_than_the_driver(tmp_path: Path) -> None:
    """The table has 576 MB of incompressible text, and the JVM has 512 MB.

    Spark runs one task at a time, because a writer of Parquet keeps a row group in memory, by
    default 128 MB.
    """
    environment = {**os.environ, "REPLCTL_HOME": str(tmp_path / "cluster")}
    environment.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        [sys.executable, "-m", "replctl", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
         "--master", "local[1]", "--conf", "spark.driver.memory=512m",
         "--conf", f"spark.hadoop.parquet.block.size={32 * 2**20}"],
        input=_SCRIPT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [f"{_ROWS}|{_ROWS * 640}|{_ROWS // 3}"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # kilobytes, of the largest child
    assert peak < 2_000_000
