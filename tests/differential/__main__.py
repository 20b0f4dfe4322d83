"""A long run in batches, each with rows of its own.

    python -m tests.differential --expressions 10000 --seed 1

REPLCTL_TEST_POSTGRES names the server.  Without it, the program starts one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))  # where pytest finds the fixtures

from fix_postgres import postgres
from fix_spark import opened_engine

from .comparison import Comparison
from .drawing import drawn_expressions, drawn_table
from .select_values import SelectValues, scratch_session
from .server import connected
from .spark_values import spark_values

_BATCH = 500


def main() -> int:
    """Run the command.

    Returns:
        the exit code: 1 if there is a difference.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--expressions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-spark", dest="spark", action="store_false")
    options = parser.parse_args()
    start = time.monotonic()
    runs: list[Comparison] = []
    engine = opened_engine() if options.spark else None
    with (
        postgres() as conninfo,
        connected(conninfo) as server,
        scratch_session() as session,
    ):
        for number in range(-(-options.expressions // _BATCH)):
            size = min(_BATCH, options.expressions - number * _BATCH)
            seed = options.seed * 1000 + number
            run = Comparison(server, server.store(drawn_table(seed)))
            items = run.supported(run.texts(drawn_expressions(size, seed)))
            run.values_in_python(items)
            SelectValues(session, run).compare(items)
            if engine is not None:
                with spark_values(engine, run) as values:
                    values.compare(items)
            for difference in run.differences:
                print(f"{seed}: {difference}", flush=True)
            runs.append(run)
    refused = Counter(reason for run in runs for reason in run.refused.values())
    for reason, count in refused.most_common():
        print(f"{count:5} {reason}")
    differences = sum(len(run.differences) for run in runs)
    print(
        f"{sum(run.compared for run in runs)} expressions compared,"
        f" {sum(run.evaluated for run in runs)} of them evaluated, {refused.total()} refused;"
        f" {differences} differences; {time.monotonic() - start:.0f} s"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
