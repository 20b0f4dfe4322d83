"""Apply changes of one table to a filtered target, and compare with hand-written jobs."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import bare
from benchmarks.lake import DEFINITIONS, NINE_TENTHS, Keys, Lake, rows_of
from benchmarks.measure import REPLCTL, Run, short

_GROUP = "incremental"
_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_DEFAULTS = "MERGE by hand, defaults"
_LEAN = "MERGE by hand, lean"
_RECIPE = "replaceWhere by hand"
#: Statements with more keys than this number do not contain them as literals.
_MOST_LITERALS = 2000


@dataclass(frozen=True, slots=True)
class _Case:
    rows: int
    changes: int
    recent: bool

    def __str__(self) -> str:
        keys = "recent" if self.recent else "random"
        return f"{short(self.rows)} rows, {short(self.changes)} {keys}"


def measure(run: Run) -> None:
    """Measure tables of growing size, with few and many changes, anywhere or near the end."""
    warm: dict[_Case, float] = {}
    for rows in run.at(_SIZES[:1], _SIZES[1:3], _SIZES[1:]):
        cases = [
            _Case(rows, changes, recent)
            for changes in (10, 1000, 100_000)
            for recent in (False, True)
            if changes < rows
        ]
        wanted = [case for case in cases if run.wants(str(case))]
        if wanted:
            with run.lake() as lake:
                warm |= _measure_table(run, lake, rows, wanted)
            if run.postgres is not None and rows <= 1_000_000:
                from benchmarks import postgres

                named = [(str(case), case.changes, case.recent) for case in wanted]
                postgres.measure_changes(run, _GROUP, rows, NINE_TENTHS, named)
    small, large = (warm.get(_Case(rows, 1000, False)) for rows in (100_000, 10_000_000))
    if small is not None and large is not None:
        run.reach("growth", large / small)


def _measure_table(run: Run, lake: Lake, rows: int, cases: list[_Case]) -> dict[_Case, float]:
    lake.create_databases("pub", "sub")
    source = lake.publish("pub", rows)
    lake.run("pub", f"CREATE PUBLICATION p FOR TABLE t WHERE ({NINE_TENTHS})")
    lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
    lake.subscribe("sub", "p")
    lake.sync()
    targets = {
        name: str(lake.bare / f"target{number}")
        for number, name in enumerate((_DEFAULTS, _LEAN, _RECIPE))
    }
    lake.create_table(targets[_DEFAULTS], {})
    for name in (_LEAN, _RECIPE):
        lake.create_table(targets[name])
    jobs = {}
    for name, target in targets.items():
        bare.copy(lake.plain, source, target, NINE_TENTHS)
        session = lake.plain if name == _DEFAULTS else lake.lean
        jobs[name] = bare.Job(session, source, target, NINE_TENTHS)
    target = lake.location("sub")
    keys = Keys(rows)
    warm = {}
    for case in cases:
        variants = {
            REPLCTL: lambda: lake.sync("sub"),
            _DEFAULTS: jobs[_DEFAULTS].merge,
            _LEAN: jobs[_LEAN].merge,
        }
        uses_literals = case.changes <= _MOST_LITERALS
        if uses_literals:
            variants[_RECIPE] = jobs[_RECIPE].replace

        def before(case: _Case = case) -> None:
            lake.commit(source, keys.pick(case.changes, recent=case.recent))

        def after(uses_literals: bool = uses_literals) -> None:
            if not uses_literals:
                jobs[_RECIPE].merge()
            lake.check_equal(
                {REPLCTL: rows_of(target), **{n: rows_of(path) for n, path in targets.items()}}
            )

        found = run.compare(_GROUP, {str(case): variants}, before=before, after=after, lake=lake)[
            str(case)
        ]
        took = {name: measurement.seconds for name, measurement in found.items()}
        warm[case] = took[REPLCTL]
        _reach(run, case, took)
    return warm


def _reach(run: Run, case: _Case, took: dict[str, float]) -> None:
    match case:
        case _Case(10_000_000, 1000, False):
            run.reach("merge", took[REPLCTL] / took[_DEFAULTS])
            run.reach("recipe", took[REPLCTL] / took[_RECIPE])
        case _Case(1_000_000, 1000, False):
            run.reach("by-hand", took[REPLCTL] / took[_DEFAULTS])
        case _Case(1_000_000, 100_000, False):
            run.reach("lean", took[REPLCTL] / took[_LEAN])
