"""Two processes apply at the same time, and a signal interrupts a batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text);"
_SETUP = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_TABLE}
INSERT INTO t VALUES (1, 'one'), (2, 'two');
CREATE PUBLICATION p FOR TABLE t;
\c test_sub
{_TABLE}
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
\sync
SELECT worker_type, pid = active_pid FROM pg_stat_subscription, pg_replication_slots;
\c test_pub
INSERT INTO t VALUES (3, 'three');
UPDATE t SET id = id + 10;
INSERT INTO t VALUES (4, 'four');
"""
_ROWS = ("-A", "-t", "-c", "SELECT * FROM t ORDER BY id")


@pytest.mark.slow(1)
def test_a_second_applier_and_a_signal(tmp_path: Path, connect_server: str) -> None:
    """An update of keys is applied by itself, so there are three batches.  The first applier stops
    after it has written the first table."""
    environment = {
        **os.environ,
        "REPLCTL_HOME": str(tmp_path / "cluster"),
        "SPARK_REMOTE": connect_server,
    }
    command = [sys.executable, "-m", "replctl"]

    def run(*arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            input=script,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    built = run("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", script=_SETUP)
    assert (built.returncode, built.stdout) == (0, "apply|t\n"), built.stderr
    applier = subprocess.Popen(
        [*command, "sync", "--watch"],
        env={**environment, "REPLCTL_INJECTION_POINT": "apply.after-first-table:stop"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _pid, status = os.waitpid(applier.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        second = run("sync")
        assert second.returncode == 1
        active = f'ERROR:  replication slot "s" is active for PID {applier.pid}'
        assert second.stderr.splitlines()[0] == active
        assert run("-d", "test_sub", *_ROWS).stdout == "1|one\n2|two\n"
        applier.send_signal(signal.SIGTERM)
        applier.send_signal(signal.SIGCONT)
        _, errors = applier.communicate(timeout=PATIENCE)
        assert errors == ""
        assert applier.returncode == 0
    finally:
        applier.kill()
    assert run("-d", "test_sub", *_ROWS).stdout == "1|one\n2|two\n3|three\n"
    (found,) = json.loads(run("status", "--json").stdout)
    assert (found["state"], found["lag"]["transactions"]) == ("inactive", 2)
    rows = run("-X", "-q", "-d", "test_sub", "-c", "\\sync", *_ROWS)
    assert (rows.returncode, rows.stdout) == (0, "4|four\n11|one\n12|two\n13|three\n")
