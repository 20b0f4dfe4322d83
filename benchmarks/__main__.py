"""Compare replctl with the jobs that a good engineer would write by hand for the same work.

    python -m benchmarks [--size small|medium|full] [--group NAME ...] [--case TEXT ...]

Each case runs all its variants in turn, compares their results, and reports medians, ratios, Spark
jobs and bytes written.  The last lines say for each goal whether it is met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import fan_out, feedless, filters, memory, processes, small
from benchmarks.measure import Run
from benchmarks.report import Report, combined, described_machine, plot
from replctl.spark import SparkConf, open_engine


def _measure_copy(run: Run) -> None:
    from benchmarks import initial_copy  # loads pyspark

    initial_copy.measure(run)


def _measure_incremental(run: Run) -> None:
    from benchmarks import incremental

    incremental.measure(run)


def _measure_reconcile(run: Run) -> None:
    from benchmarks import reconcile

    reconcile.measure_reconcile(run)


def _measure_verify(run: Run) -> None:
    from benchmarks import reconcile

    reconcile.measure_verify(run)


def _measure_adoption(run: Run) -> None:
    from benchmarks import adoption  # loads deltalake

    adoption.measure(run)


#: The groups that start processes come first, because Spark stays in this process once it has
#: started here.
_GROUPS: dict[str, Callable[[Run], None]] = {
    "catalog": processes.measure_catalog,
    "connect": small.measure_connect,
    "small": small.measure,
    "cold": processes.measure_cold,
    "watch": processes.measure_watch,
    "copy": _measure_copy,
    "incremental": _measure_incremental,
    "tables": fan_out.measure_tables,
    "subscriptions": fan_out.measure_subscriptions,
    "no-op": fan_out.measure_no_op,
    "filters": filters.measure,
    "reconcile": _measure_reconcile,
    "verify": _measure_verify,
    "feedless": feedless.measure,
    "adoption": _measure_adoption,
    "memory": memory.measure,
}


def main() -> int:
    """Run the measurements, or show saved reports."""
    arguments = _arguments()
    report = combined(arguments.show) if arguments.show else _measured(arguments)
    if not report.measurements:
        print(f"no case has {' or '.join(map(repr, arguments.case))} in it", file=sys.stderr)
        return 1
    print(f"\n{report.text()}", end="")
    if arguments.json:
        Path(arguments.json).write_text(report.json(), "utf-8")
    if arguments.plot:
        plot(report, Path(arguments.plot))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--group", action="append", choices=sorted(_GROUPS), default=[])
    parser.add_argument("--case", action="append", default=[], help="only cases with this in them")
    parser.add_argument("--size", choices=("small", "medium", "full"), default="small")
    parser.add_argument("--rounds", type=int, default=3, help="that are counted")
    parser.add_argument("--warm-up", type=int, default=1, help="rounds before them")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--plot", metavar="FILE", help="write a PNG")
    parser.add_argument(
        "--show", metavar="FILE", nargs="+", type=_report, help="show what --json has written"
    )
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="4g", help="of the driver")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--remote", help="a Connect server; only the group small can use it")
    parser.add_argument("--postgres", metavar="CONNINFO", help="a server to measure, too")
    parser.add_argument("--scratch", default=tempfile.gettempdir(), help="a folder for tables")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.warm_up < 0:
        parser.error("--rounds wants 1 or more, --warm-up 0 or more")
    # Fail now, and not after an hour of work
    for name in filter(None, (arguments.json, arguments.plot)):
        if not os.access(Path(name).absolute().parent, os.W_OK):
            parser.error(f"could not write {name}")
    if not Path(arguments.scratch).is_dir():
        parser.error(f"--scratch: there is no folder {arguments.scratch}")
    if arguments.remote and arguments.group != ["small"]:
        parser.error("--remote needs --group small, and nothing else")
    return arguments


def _report(file: str) -> Report:
    try:
        return Report.read(Path(file))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _measured(arguments: argparse.Namespace) -> Report:
    load = os.getloadavg()
    properties = {"spark.driver.memory": arguments.memory}
    properties |= dict(item.split("=", 1) for item in arguments.conf)
    conf = (
        SparkConf(remote=arguments.remote)
        if arguments.remote
        else SparkConf(master=arguments.master, properties=tuple(properties.items()))
    )
    run = Run(
        arguments.size,
        arguments.rounds,
        arguments.warm_up,
        lambda: open_engine(conf),
        Path(arguments.scratch),
        tuple(arguments.case),
        arguments.postgres,
        arguments.remote,
        arguments.master,
    )
    for name, measure in _GROUPS.items():
        if arguments.group and name not in arguments.group:
            continue
        print(f"{name}:", flush=True)
        measure(run)
    machine = described_machine(run.size, run.rounds, load)
    return Report(machine, tuple(run.measurements), run.reached)


if __name__ == "__main__":
    sys.exit(main())
