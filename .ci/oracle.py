#!/usr/bin/env python3
"""Run the oracle's cases that replctl has reached, with one warm Spark Connect server for all.

    oracle.py FOLDER

The names of the cases are in reached_cases.txt; the run fails when one of them does not pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from replctl.spark import temporary_server

_REACHED = Path(__file__).with_name("reached_cases.txt")
_MESSAGE = re.compile(r"^(?:ERROR|FATAL|DETAIL|HINT|CONTEXT|WARNING):.*$", re.MULTILINE)


def main(folder: Path) -> int:
    """Run the cases; the exit code."""
    reached = [line for line in _REACHED.read_text("utf-8").split() if line]
    there = [name for name in reached if (folder / f"{name}.sql").exists()]
    for name in set(reached).difference(there):
        print(f"{name} is not in the oracle here")
    pattern = "|".join(f"/{re.escape(name)}\\.sql$" for name in there)
    with temporary_server("4g", is_brief=True) as address, tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        subprocess.run(
            [sys.executable, str(folder / "compare.py"), "--jobs", "2", "--filter", pattern,
             "--json", str(report), "--show", "3", "--keep", scratch, "--timeout", "900"],
            env={**os.environ, "SPARK_REMOTE": address},
            check=False,
        )  # fmt: skip
        cases = json.loads(report.read_text("utf-8"))
        outputs = {
            case: _output(Path(scratch), case)
            for case in (Path(case["case"]).stem for case in cases["results"] if not case["passed"])
        }
    for case, output in outputs.items():
        print(f"---- {case}\n{output}")
    passed = {Path(case["case"]).stem for case in cases["results"] if case["passed"]}
    fallen = [name for name in there if Path(name).name not in passed]
    for name in fallen:
        print(f"{name} passed before and does not any more")
        # Here again, as a long log may be shown without its middle
        print("\n".join(_MESSAGE.findall(outputs.get(Path(name).name, ""))[-20:]))
    print(f"oracle: {len(there) - len(fallen)} of {len(there)} reached cases pass")
    return 1 if fallen or not there else 0


def _output(kept: Path, case: str) -> str:
    """All that a case has printed: its errors' details say why it does not pass."""
    return "\n".join(path.read_text("utf-8") for path in kept.glob(f"*__{case}.actual"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
