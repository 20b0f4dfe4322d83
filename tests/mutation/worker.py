"""A process that runs scripts through the command.  It reads seeds, and prints a line of JSON for
each.

    python -m tests.mutation.worker DIRECTORY
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from replctl.catalog.open_cluster import open_cluster
from replctl.errors import ConnectionFailure
from replctl.psql import main
from replctl.psql.variables import PsqlError

from .drawing import script

#: Scripts that find what earlier ones have left in a cluster.
_SCRIPTS_OF_A_CLUSTER = 25


def _no_engine(*_: Any) -> NoReturn:
    raise ConnectionFailure("could not start Spark")


def _no_program(*_: Any, **__: Any) -> NoReturn:
    raise PsqlError("no program is run")


def work(folder: Path) -> None:
    """Run scripts until there are no more seeds; none starts Spark or another program."""
    main._Connector._engine = _no_engine  # type: ignore[method-assign, assignment]
    subprocess.Popen = os.system = os.popen = _no_program  # type: ignore[misc, assignment]
    fresh = folder / "fresh"
    if not fresh.exists():
        open_cluster(folder / "first").close()
        (folder / "first").rename(fresh)
    home, answers = folder / "home", sys.stdout
    _run(fresh, "select 1")  # otherwise the first script makes the parser's tables
    for number, line in enumerate(sys.stdin):
        if number % _SCRIPTS_OF_A_CLUSTER == 0:
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(fresh, home)
        os.chdir(folder)
        answer = _run(home, script(int(line)))
        print(json.dumps(answer), file=answers, flush=True)


def _run(home: Path, text: str) -> dict[str, Any]:
    """Run a script, and return its output, its processor time, and the memory so far in MB."""
    usual = sys.stdin, sys.stdout, sys.stderr
    out = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogateescape")))
    shown = sys.stdout = sys.stderr = io.TextIOWrapper(out, errors="surrogateescape")
    begun = time.process_time()
    try:
        main.run(["-X", "-v", "VERBOSITY=verbose", "--home", str(home)])
        shown.flush()
    except BaseException:
        out.write(traceback.format_exc().encode())
    finally:
        sys.stdin, sys.stdout, sys.stderr = usual
    return {
        "seconds": time.process_time() - begun,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "output": out.getvalue().decode("utf-8", "replace"),
    }


if __name__ == "__main__":
    work(Path(sys.argv[1]))
