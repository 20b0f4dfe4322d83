"""Measure variants of the same work in turn, and compare them.

The speed of a machine varies from run to run.  Therefore all variants run in turn within one run,
the first rounds do not count, and goals are about medians and their ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from benchmarks.lake import Lake
    from replctl.spark.engine import Engine

T = TypeVar("T")
#: Rounds of short work: the number of uncounted rounds, and the minimum number of counted rounds.
#: The JVM needs about twenty rounds to compile a sync.
_SHORT_WARM_UP, _SHORT_ROUNDS = 11, 7
#: The variant that the others are compared with.
REPLCTL = "replctl"
#: The imports that every process needs to read a catalog.  Catalog commands are compared with them.
IMPORTS = "import sqlalchemy, lark"


@dataclass(frozen=True, slots=True)
class Sample:
    """A run of one piece of work.

    Attributes:
        seconds: the elapsed time.
        cpu: the processor seconds of this process and its children, mainly of the JVM.  On a busy
            machine they are more reliable than the elapsed time.
        jobs: the number of Spark jobs; None if they cannot be counted.
        written: the bytes that its commits wrote into tables; None without commits.
        peak: the peak memory in bytes; None if it is not measured.
    """

    seconds: float
    jobs: int | None = None
    written: int | None = None
    peak: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times and the work of a variant in the counted rounds of a case."""

    group: str
    case: str
    variant: str
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """Return the median time."""
        return statistics.median(sample.seconds for sample in self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        """Return the shortest and the longest time, in seconds."""
        times = [sample.seconds for sample in self.samples]
        return min(times), max(times)

    @property
    def cpu(self) -> float | None:
        """Return the median of processor seconds."""
        known = [sample.cpu for sample in self.samples if sample.cpu is not None]
        return statistics.median(known) if known else None

    @property
    def jobs(self) -> int | None:
        return _median([sample.jobs for sample in self.samples])

    @property
    def written(self) -> int | None:
        return _median([sample.written for sample in self.samples])

    @property
    def peak(self) -> int | None:
        return _median([sample.peak for sample in self.samples])


def short(number: int) -> str:
    """Format a number: 10, 1e3, 1e7."""
    return str(number) if number < 1000 else f"{number:.0e}".replace("e+0", "e")


def _median(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known)) if known else None


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio or figure that a run has to reach.

    Attributes:
        key: the name that groups of benchmarks use.
        text: a description of the figure.
        limit: the largest figure that meets the goal.
        unit: x (a ratio), s (seconds), ms, % or columns.
    """

    key: str
    text: str
    limit: float
    unit: str


GOALS = (
    Goal("catalog", "catalog command, against import sqlalchemy, lark", 2.0, "x"),
    Goal("filter", "one row filter: parsed, checked, stored and printed", 5.0, "ms"),
    Goal("filters-1000", "a publication of 1,000 filtered tables, whole process", 10.0, "s"),
    Goal("describe-1000", r"\dRp+ of it, whole process", 1.0, "s"),
    Goal("noop", "no-op sync over 100 tables, whole process, no JVM", 0.6, "s"),
    Goal("copy", "initial copy of 1e7 rows, against the bare Spark job", 1.15, "x"),
    Goal("copy-files", "its files, against the bare job's", 1.0, "x"),
    Goal("copy-statistics", "columns with statistics that it lacks", 0.0, "columns"),
    Goal("merge", "1e3 random changes in 1e7 rows, against a plain MERGE, defaults", 1 / 6, "x"),
    Goal("recipe", "the same, against the bare replaceWhere recipe", 1.5, "x"),
    Goal("growth", "the same, against 1e3 random changes in 1e5 rows", 2.0, "x"),
    Goal("by-hand", "1e3 random changes in 1e6 rows, against feed, row_number, MERGE", 0.5, "x"),
    Goal("lean", "1e5 random changes in 1e6 rows, against the lean job by hand", 1.6, "x"),
    Goal("small", "10 changes in one table, warm", 1.5, "s"),
    Goal("small-connect", "the same through Spark Connect", 1.5, "s"),
    Goal("tables", "100 tables with 10 changes each, against 100 single syncs", 0.6, "x"),
    Goal("subscriptions", "10 filtered subscriptions, 1e6 rows, 1e4 changes, against 1", 6.0, "x"),
    Goal("watch", "one row, from commit to visible, sync --watch --interval 0", 2.0, "s"),
    Goal("cold", "cold sync of a small table, against a plain PySpark script", 0.75, "x"),
    Goal("reconcile", "reconcile with 1e3 differences, against join and write by hand", 1.0, "x"),
    Goal("reconcile-bytes", "bytes that it writes, of those of a copy", 5.0, "%"),
    Goal("verify", "verify of equal sides, against SQL that counts and hashes both", 1.3, "x"),
    Goal("feedless-small", "sync without a feed, deletion vectors, against one with it", 1.5, "x"),
    Goal("feedless-whole", "sync of a rewritten table, against join and write by hand", 1.2, "x"),
    Goal("memory", "driver's memory with 1e6 changed rows, against 1e4", 1.25, "x"),
)  # fmt: skip


@dataclass
class Run:
    """A run of the benchmark: its parameters and its results.

    Attributes:
        size: small, medium or full.
        rounds: the number of rounds that count.
        warm_up: the number of rounds before them.
        open_engine: starts Spark at the first call.
        scratch: a folder for tables.
        cases: run only the cases with one of these texts in their names; () for all.
        postgres: the connection string of a PostgreSQL server that is also measured, or None.
        remote: the address of the Connect server that the engine uses; None without one.
        master: the master for sessions of separate processes.
        reached: the figures of the goals by their keys.
    """

    size: str
    rounds: int
    warm_up: int
    open_engine: Callable[[], Engine]
    scratch: Path
    cases: Sequence[str] = ()
    postgres: str | None = None
    remote: str | None = None
    master: str = "local[2]"
    measurements: list[Measurement] = field(default_factory=list)
    reached: dict[str, float] = field(default_factory=dict)

    def say(self, line: str) -> None:
        """Print the current step."""
        print(line, flush=True)

    def wants(self, case: str) -> bool:
        """Return whether to measure a case."""
        return not self.cases or any(part in case for part in self.cases)

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """Yield a fresh lake."""
        from benchmarks.lake import Lake

        with tempfile.TemporaryDirectory(dir=self.scratch, ignore_cleanup_errors=True) as folder:
            lake = Lake(Path(folder), self.open_engine(), self.remote)
            try:
                yield lake
            finally:
                lake.cluster.close()

    def at(self, small: T, medium: T, full: T) -> T:
        """Return the value for the size of the run."""
        return {"small": small, "medium": medium, "full": full}[self.size]

    def compare(
        self,
        group: str,
        cases: Mapping[str, Mapping[str, Callable[[], object]]],
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
        lake: Lake | None = None,
        is_short: bool = False,
        has_jvm: bool = False,
    ) -> dict[str, dict[str, Measurement]]:
        """Measure the variants of cases in turn.  Each round begins with another variant.

        Args:
            cases: the work, by the names of the case and of the variant.
            before: prepares a round; it is not measured.
            after: checks a round; it raises DifferentResults.
            lake: counts jobs and bytes.
            is_short: the work is so short that it needs more rounds, also for the warm-up.
            has_jvm: processes start JVMs, whose processor seconds this process cannot measure.
        """
        if not cases:
            return {}
        turns = [(case, variant) for case, variants in cases.items() for variant in variants]
        taken: dict[tuple[str, str], list[Sample]] = {turn: [] for turn in turns}
        uncounted = self.warm_up + (_SHORT_WARM_UP if is_short else 0)
        counted = max(self.rounds, _SHORT_ROUNDS) if is_short else self.rounds
        for number in range(uncounted + counted):
            before()
            first = number % len(turns)
            for case, variant in turns[first:] + turns[:first]:
                sample = sampled(cases[case][variant], lake)
                if has_jvm:
                    sample = replace(sample, cpu=None)
                if number >= uncounted:
                    taken[case, variant].append(sample)
            after()
        found: dict[str, dict[str, Measurement]] = {case: {} for case in cases}
        for (case, variant), samples in taken.items():
            found[case][variant] = self.note(group, case, variant, samples)
        return found

    def note(self, group: str, case: str, variant: str, samples: Sequence[Sample]) -> Measurement:
        """Record a measurement of a variant."""
        found = Measurement(group, case, variant, tuple(samples))
        self.measurements.append(found)
        low, high = found.spread
        self.say(
            f"  {case:38s} {variant:34s} {found.seconds:8.3f} s  ({low:.3f} .. {high:.3f})"
            + ("" if found.jobs is None else f"  {found.jobs} jobs")
        )
        return found

    def reach(self, key: str, value: float) -> None:
        """Record the figure of a goal.  Of several figures, the worst counts."""
        assert any(goal.key == key for goal in GOALS), key
        self.reached[key] = max(value, self.reached.get(key, value))


def sampled(work: Callable[[], object], lake: Lake | None = None) -> Sample:
    """Do a piece of work, and return its measurements."""
    versions = {} if lake is None else lake.versions()
    jobs = None if lake is None else lake.job_count()
    cpu, start = _cpu_seconds(), time.perf_counter()
    work()
    seconds, cpu = time.perf_counter() - start, _cpu_seconds() - cpu
    jobs_after = None if lake is None else lake.job_count()
    return Sample(
        seconds,
        None if jobs is None or jobs_after is None else jobs_after - jobs,
        None if lake is None else lake.bytes_written_since(versions),
        cpu=cpu,
    )


def _cpu_seconds() -> float:
    """Return the processor seconds that this process and its children have used so far."""
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in children_of(os.getpid()).values())
    return sum(os.times()[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> dict[int, list[str]]:
    """Return the running children of a process by pid: the fields of proc_pid_stat(5) from the
    third one.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[1]) == pid:
            found[int(folder.name)] = fields
    return found


def process_environment(home: Path | str) -> dict[str, str]:
    """Return the environment for a command on a cluster.  It is that of this process, except that
    Python compiles modules only once, and that no Connect server is used.
    """
    left_out = ("PYTHONDONTWRITEBYTECODE", "SPARK_REMOTE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "REPLCTL_HOME": str(home)}


def process_work(argv: Sequence[str], environment: Mapping[str, str]) -> Callable[[], object]:
    """Return a function that runs a command.  A failure of the command ends the benchmark.

    Raises:
        RuntimeError: the command has failed.
    """

    def work() -> None:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")

    return work
