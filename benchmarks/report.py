"""The report of a run: as text, as JSON, and as a plot of its ratios."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import GOALS, IMPORTS, REPLCTL, Goal, Measurement, Sample


@dataclass(frozen=True)
class Report:
    """Measurements, the figures of goals by their keys, and the place and time of the run."""

    machine: dict[str, str]
    measurements: tuple[Measurement, ...]
    reached: dict[str, float] = field(default_factory=dict)

    def json(self) -> str:
        """Return the report as JSON, for `read`."""
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def read(file: Path) -> Report:
        """Return a report from its JSON.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file has no report.
        """
        found = json.loads(file.read_text("utf-8"))
        try:
            measurements = tuple(
                Measurement(
                    m["group"], m["case"], m["variant"], tuple(Sample(**s) for s in m["samples"])
                )
                for m in found["measurements"]
            )
            return Report(found["machine"], measurements, found["reached"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{file} is no report of benchmarks") from error

    def text(self) -> str:
        """Return the measurements as a table, then the goals."""
        machine = "\n".join(f"{name}: {value}" for name, value in self.machine.items())
        return f"{machine}\n\n{_table(self.measurements)}\n\n{_goals(self.reached)}\n"


def described_machine(size: str, rounds: int, load: tuple[float, float, float]) -> dict[str, str]:
    """Return a description of this machine and of the measurement.

    Args:
        load: the machine's load at the start.
    """
    cpus = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "machine": f"{len(cpus)} x {cpus[0] if cpus else platform.machine()}, {memory:.0f} GiB",
        "software": f"{platform.system()} {platform.release()}, Python"
        f" {platform.python_version()}, PySpark {version('pyspark')}, Delta"
        f" {version('delta-spark')}",
        "run": f"size {size}, {rounds} counted rounds",
        "load": f"{load[0]:.1f} at the start, {os.getloadavg()[0]:.1f} at the end (1 minute)",
    }


def combined(reports: Sequence[Report]) -> Report:
    """Join reports.  If several have a goal or a case, the last report counts."""
    machine: dict[str, str] = {}
    for report in reports:
        for name, value in report.machine.items():
            known = machine.get(name)
            machine[name] = value if known in (None, value) else f"{known}; {value}"
    rows = {(m.group, m.case, m.variant): m for report in reports for m in report.measurements}
    reached = {key: value for report in reports for key, value in report.reached.items()}
    return Report(machine, tuple(rows.values()), reached)


def compared_with(measurement: Measurement, others: Sequence[Measurement]) -> float | None:
    """Return the ratio of replctl's time to a variant's for the same case."""
    other = _of_replctl(measurement, others)
    return None if other is None else other.seconds / measurement.seconds


def _compared_cpu(measurement: Measurement, others: Sequence[Measurement]) -> float | None:
    """Return the ratio of processor seconds, like `compared_with`."""
    other = _of_replctl(measurement, others)
    if other is None or other.cpu is None or not measurement.cpu:
        return None
    return other.cpu / measurement.cpu


def _of_replctl(measurement: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    """Return replctl's measurement of the same case; None for replctl itself, or without one."""
    if measurement.variant == REPLCTL:
        return None
    here = (measurement.group, measurement.case, REPLCTL)
    return next((o for o in others if (o.group, o.case, o.variant) == here), None)


def _table(measurements: Sequence[Measurement]) -> str:
    titles = (
        "group", "case", "variant", "median s", "min .. max", "replctl is",
        "cpu s", "by cpu", "jobs", "written", "memory",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [titles]
    last: tuple[str, str] = ("", "")
    for item in sorted(measurements, key=lambda m: _order(m, measurements)):
        low, high = item.spread
        ratio = compared_with(item, measurements)
        by_cpu = _compared_cpu(item, measurements)
        here = (item.group, item.case)
        rows.append(
            (
                "" if item.group == last[0] else item.group,
                "" if here == last else item.case,
                item.variant,
                f"{item.seconds:.3f}",
                f"{low:.3f} .. {high:.3f}",
                "" if ratio is None else f"{ratio:.2f} x",
                "" if item.cpu is None else f"{item.cpu:.2f}",
                "" if by_cpu is None else f"{by_cpu:.2f} x",
                "" if item.jobs is None else str(item.jobs),
                _size(item.written),
                _size(item.peak),
            )
        )
        last = here
    widths = [max(len(row[i]) for row in rows) for i in range(len(titles))]
    rows.insert(1, tuple("-" * width for width in widths))
    left = 3
    return "\n".join(
        "  ".join(
            value.ljust(width) if i < left else value.rjust(width)
            for i, (value, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _order(item: Measurement, measurements: Sequence[Measurement]) -> tuple[int, int]:
    """Return the cases in the order in which they were measured, with replctl first."""
    cases = [(other.group, other.case) for other in measurements]
    groups = [other.group for other in measurements]
    return (
        groups.index(item.group) * len(cases) + cases.index((item.group, item.case)),
        item.variant != REPLCTL,
    )


def _size(count: int | None) -> str:
    if count is None:
        return ""
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _goals(reached: dict[str, float]) -> str:
    width = max(len(goal.text) for goal in GOALS)
    lines = [f"{'goal'.ljust(width)}   measured     at most  met", "-" * (width + 31)]
    for goal in GOALS:
        value = reached.get(goal.key)
        measured = "-" if value is None else _figure(value, goal)
        limit, met = _figure(goal.limit, goal), is_met(goal, value)
        lines.append(f"{goal.text.ljust(width)}  {measured:>9s}  {limit:>10s}  {met}")
    return "\n".join(lines)


def _figure(value: float, goal: Goal) -> str:
    return f"{value:.2f} {goal.unit}" if goal.unit != "columns" else f"{value:.0f}"


def is_met(goal: Goal, value: float | None) -> str:
    """Return yes, NO, or a note that the goal was not measured."""
    if value is None:
        return "not measured"
    return "yes" if value <= goal.limit else "NO"


def plot(report: Report, file: Path) -> None:
    """Draw each goal's figure as a part of its limit, with the limit as a line, and the ratio of
    replctl to each variant.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    goals = [goal for goal in GOALS if goal.key in report.reached and goal.limit]
    ratios = [
        (f"{item.group}: {item.case}\n{item.variant}", ratio)
        for item in report.measurements
        if item.variant != IMPORTS
        and (ratio := compared_with(item, report.measurements)) is not None
    ]
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(18, 2 + 0.3 * max(len(goals), len(ratios))), layout="constrained"
    )
    shares = [report.reached[goal.key] / goal.limit for goal in goals]
    texts = [
        f"{goal.text}\n{_figure(report.reached[goal.key], goal)} of {_figure(goal.limit, goal)}"
        for goal in goals
    ]
    for axes, names, values, title in (
        (left, texts, shares, "goals: measured / limit"),
        (right, [name for name, _ in ratios], [ratio for _, ratio in ratios], "replctl / variant"),
    ):
        colours = ["tab:green" if value <= 1 else "tab:red" for value in values]
        axes.hlines(range(len(names)), 1, values, color=colours)
        axes.scatter(values, range(len(names)), color=colours)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.invert_yaxis()
        axes.axvline(1, color="black")
        axes.set_xscale("log")
        axes.set_title(title)
    figure.suptitle(
        f"{report.machine['date']}, {report.machine['machine']}, load {report.machine['load']}",
        fontsize=9,
        wrap=True,
    )
    figure.savefig(file, dpi=100)
