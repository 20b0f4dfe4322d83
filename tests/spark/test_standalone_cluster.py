"""The executors of a Spark standalone cluster run the same commands: a master and two workers of
this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from patience import wait_until

from replctl.spark.java import find_java
from replctl.spark.java_start import BRIEF_OPTIONS

pytestmark = pytest.mark.spark

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_TABLE = "CREATE TABLE t (id int PRIMARY KEY, region text, price numeric);"
_SETUP = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_TABLE}
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t SELECT g, CASE WHEN g % 2 = 0 THEN 'north' ELSE 'south' END, g / 4.0
  FROM generate_series(1, 5000) g;
CREATE PUBLICATION p FOR TABLE t WHERE (region = 'north' AND price * 1.1 > 11);
\c test_sub
{_TABLE}
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
"""
_CHANGES = r"""
\c test_pub
UPDATE t SET region = CASE WHEN id = 100 THEN 'south' ELSE 'north' END WHERE id IN (100, 101);
UPDATE t SET price = price + 1 WHERE id > 4000;
DELETE FROM t WHERE id BETWEEN 200 AND 299;
"""
#: The test has the answer of a PostgreSQL server for the rows that pass the filter.
_QUERY = "SELECT count(*), min(id), sum(id), sum(price) FROM t"


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """Start a daemon of Spark, and yield its log.  The daemon and its starter do not live long."""
    import pyspark

    log = folder / f"{name}.log"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().resolve().parent.parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": BRIEF_OPTIONS,
        "SPARK_LAUNCHER_OPTS": BRIEF_OPTIONS,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [script, *arguments], stdout=output, stderr=output, env=environment
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(log: Path, pattern: str | re.Pattern[str]) -> re.Match[str]:
    """Wait for a message in the log of a daemon, and return it."""

    def found() -> re.Match[str] | None:
        return re.search(pattern, log.read_text("utf-8", "replace"))

    try:
        wait_until(lambda: found() is not None)
    except TimeoutError:
        raise TimeoutError(log.read_text("utf-8", "replace")[-3000:]) from None
    match = found()
    assert match is not None
    return match


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a master with two workers."""
    modules = subprocess.run(
        [find_java(), "--list-modules"], capture_output=True, text=True, check=True
    )
    if "jdk.incubator.vector" not in modules.stdout:
        pytest.skip("Spark starts executors with a module that this Java does not have")
    package = "org.apache.spark.deploy"
    local = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        log = stack.enter_context(daemon(tmp_path, "master", f"{package}.master.Master", *local))
        address = said(log, _MASTER)[1]
        size = ["--cores", "1", "--memory", "768m"]
        workers = [
            stack.enter_context(
                daemon(
                    tmp_path, f"worker{number}", f"{package}.worker.Worker", *local, *size,
                    "--work-dir", str(tmp_path / f"work{number}"), address,
                )
            )
            for number in (1, 2)
        ]  # fmt: skip
        for log in workers:
            said(log, _REGISTERED)
        yield address


@pytest.mark.slow(2)
def test_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    environment = {**os.environ, "REPLCTL_HOME": str(tmp_path / "cluster")}
    environment.pop("SPARK_REMOTE", None)
    script = f"{_SETUP}\\sync\n{_QUERY};\n{_CHANGES}\\sync\n\\c test_sub\n{_QUERY};\n"
    done = subprocess.run(
        [sys.executable, "-m", "replctl", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
         "--master", master, "--conf", "spark.executor.memory=512m",
         "--conf", f"spark.executor.extraJavaOptions={BRIEF_OPTIONS}",
         "--conf", "spark.driver.memory=1g", "--conf", "spark.driver.host=127.0.0.1"],
        input=script,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.split() == [
        "2480|42|6252080|1563020.0000000000000000",
        "2430|42|6239631|1560407.7500000000000000",
    ]
    for number in (1, 2):
        assert list((tmp_path / f"work{number}").glob("app-*/*/stderr")), "it had no executor"
