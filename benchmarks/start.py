#!/usr/bin/env python3
"""How long a catalog command takes as a whole process, as seconds and against a bare Python.

start.py [RUNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds(argv: list[str], environment: dict[str, str], runs: int) -> float:
    """The median wall time of a command."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(argv, env=environment, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(runs: int) -> None:
    """Measure, and print a line for each command."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "REPLCTL_HOME": home}
        replctl = [sys.executable, "-m", "replctl", "-X"]
        setup = (
            "CREATE TABLE t (a int, c text);"
            " CREATE PUBLICATION p FOR TABLE t WHERE (a > 5 AND c = 'NSW')"
        )
        subprocess.run([*replctl, "-q", "-c", setup], env=environment, check=True)
        bare = seconds([sys.executable, "-c", "pass"], environment, runs)
        print(f"python -c pass                          {bare:5.2f} s")
        for command in (
            r"\dRp+",
            r"\d t",
            "SELECT * FROM pg_publication_tables",
            "SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel",
            "CREATE SCHEMA IF NOT EXISTS s",
        ):
            taken = seconds([*replctl, "-c", command], environment, runs)
            print(f"{command[:38]:38s}  {taken:5.2f} s  {taken / bare:5.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
