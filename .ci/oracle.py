#!/usr/bin/env python3
"""Run the oracle's cases that replctl has reached, with one warm Spark Connect server for all.

    oracle.py FOLDER

The names of the cases are in reached_cases.txt; the run fails when one of them does not pass.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replctl.spark import jvm

_REACHED = Path(__file__).with_name("reached_cases.txt")
_START_TIMEOUT = 120.0  # seconds


def main(folder: Path) -> int:
    """Run the cases; the exit code."""
    reached = [line for line in _REACHED.read_text("utf-8").split() if line]
    there = [name for name in reached if (folder / f"{name}.sql").exists()]
    for name in set(reached).difference(there):
        print(f"{name} is not in the oracle here")
    pattern = "|".join(f"/{re.escape(name)}\\.sql$" for name in there)
    server, address = _start_server()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.json"
            subprocess.run(
                [sys.executable, str(folder / "compare.py"), "--jobs", "2", "--filter", pattern,
                 "--json", str(report), "--show", "3"],
                env={**os.environ, "SPARK_REMOTE": address},
                check=False,
            )  # fmt: skip
            cases = json.loads(report.read_text("utf-8"))
    finally:
        server.terminate()
        server.wait(60)
    passed = {Path(case["case"]).stem for case in cases["results"] if case["passed"]}
    fallen = [name for name in there if Path(name).name not in passed]
    for name in fallen:
        print(f"{name} passed before and does not any more")
    print(f"oracle: {len(there) - len(fallen)} of {len(there)} reached cases pass")
    return 1 if fallen or not there else 0


def _start_server() -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    properties = {"spark.master": "local[2]", "spark.driver.memory": "4g"}
    argv = jvm.connect_server_command(jvm.find_java(), port, properties)
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the server
    process = subprocess.Popen(argv, stdout=log, stderr=log, env=jvm.environment())
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"sc://127.0.0.1:{port}"
        time.sleep(0.2)
    process.kill()
    log.seek(0)
    sys.exit("no Spark Connect server: " + log.read().decode(errors="replace")[-2000:])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
