#!/usr/bin/env python3
"""Run the oracle's cases that replctl passes, with one warm Spark Connect server for all of them.

    oracle.py FOLDER

The names of the cases are in reached_cases.txt.  The run fails if one of them does not pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from replctl.spark import temporary_server

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from java_options import TEST_OPTIONS

from benchmarks.server_memory import FEW_CACHES, server_memory

_REACHED = Path(__file__).with_name("reached_cases.txt")
_MESSAGE = re.compile(r"^(?:ERROR|FATAL|DETAIL|HINT|CONTEXT|WARNING):.*$", re.MULTILINE)
_JAVA = "spark.driver.extraJavaOptions"
_PROPERTIES = FEW_CACHES | {_JAVA: f"{FEW_CACHES[_JAVA]} {TEST_OPTIONS}"}
#: One of this number of cases runs before the others.  The memory that the server uses then is the
#: baseline for its memory at the end.
_SETTLING = 3


def main(folder: Path) -> int:
    """Run the cases, and return the exit code."""
    reached = [line for line in _REACHED.read_text("utf-8").split() if line]
    there = [name for name in reached if (folder / f"{name}.sql").exists()]
    for name in set(reached).difference(there):
        print(f"{name} is not in the oracle here")
    with tempfile.TemporaryDirectory() as name:
        scratch, server = Path(name), Path(name) / "server"
        server.mkdir()
        with temporary_server("4g", properties=_PROPERTIES, folder=server) as address:
            passed, outputs = _run(folder, there[::_SETTLING], address, scratch)
            settled = server_memory(server)
            others = [name for name in there if name not in set(there[::_SETTLING])]
            more_passed, more_outputs = _run(folder, others, address, scratch)
            memory = server_memory(server)
    passed, outputs = passed | more_passed, outputs | more_outputs
    for case, output in outputs.items():
        print(f"---- {case}\n{output}")
    fallen = [name for name in there if Path(name).name not in passed]
    for name in fallen:
        print(f"{name} passed before and now fails")
        # Print the errors at the end again, because a viewer may omit the middle of a long log
        print("\n".join(_MESSAGE.findall(outputs.get(Path(name).name, ""))[-20:]))
    syncs = sum((folder / f"{name}.sql").read_text("utf-8").count("\\sync") for name in there)
    print(f"the server after a third of {syncs} syncs: {settled}; after all: {memory}")
    growth = memory.growth(settled)
    print("\n".join(growth), end="\n" if growth else "")
    print(f"oracle: {len(there) - len(fallen)} of {len(there)} reached cases pass")
    return 1 if fallen or growth or not there else 0


def _run(
    folder: Path, names: Sequence[str], address: str, scratch: Path
) -> tuple[set[str], dict[str, str]]:
    """Run cases on a server.  Return the cases that passed, and the output of the others."""
    report = scratch / "report.json"
    pattern = "|".join(f"/{re.escape(name)}\\.sql$" for name in names)
    subprocess.run(
        [sys.executable, str(folder / "compare.py"), "--jobs", "3", "--filter", pattern,
         "--json", str(report), "--show", "3", "--keep", str(scratch), "--timeout", "900"],
        env={**os.environ, "SPARK_REMOTE": address},
        check=False,
    )  # fmt: skip
    cases = {
        Path(case["case"]).stem: case for case in json.loads(report.read_text("utf-8"))["results"]
    }
    passed = {name for name, case in cases.items() if case["passed"]}
    return passed, {name: _output(scratch, name) for name in cases.keys() - passed}


def _output(kept: Path, case: str) -> str:
    """Return the whole output of a case, because the details of its errors say why it fails."""
    return "\n".join(path.read_text("utf-8") for path in kept.glob(f"*__{case}.actual"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
