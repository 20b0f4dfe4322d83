"""Run initial copies, and compare with a Spark job that appends the rows to a similar table."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import bare
from benchmarks.lake import DEFINITIONS, NINE_TENTHS, TENTH, Lake, files_of, rows_of
from benchmarks.measure import REPLCTL, Run, short

_GROUP = "copy"
_BY_HAND = "by hand"
_FILTERS = {"10 %": TENTH, "90 %": NINE_TENTHS}


def measure(run: Run) -> None:
    """Measure filters that keep a tenth and nine tenths of the rows."""
    for rows in run.at([10_000], [1_000_000], [1_000_000, 10_000_000]):
        cases = {f"{short(rows)} rows, {share}": where for share, where in _FILTERS.items()}
        wanted = {case: where for case, where in cases.items() if run.wants(case)}
        if not wanted:
            continue
        with run.lake() as lake:
            lake.create_databases("pub", "sub")
            source = lake.publish("pub", rows)
            for case, condition in wanted.items():
                _measure_case(run, lake, case, source, condition)
        if run.postgres is not None and rows <= 1_000_000:
            from benchmarks import postgres

            for case, condition in wanted.items():
                postgres.measure_copy(run, _GROUP, case, rows, condition)


def _measure_case(run: Run, lake: Lake, case: str, source: str, condition: str) -> None:
    target = str(lake.bare / "target")
    lake.run(
        "pub",
        f"DROP PUBLICATION IF EXISTS p; CREATE PUBLICATION p FOR TABLE t WHERE ({condition})",
    )

    def before() -> None:
        lake.run("sub", "DROP SUBSCRIPTION IF EXISTS sub")
        lake.run("sub", "DROP TABLE IF EXISTS t")
        lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
        lake.subscribe("sub", "p")
        if Path(target).exists():
            shutil.rmtree(target)

    def by_hand() -> None:
        lake.create_table(target)
        bare.copy(lake.plain, source, target, condition)

    def after() -> None:
        lake.check_equal({REPLCTL: rows_of(lake.location("sub")), _BY_HAND: rows_of(target)})

    found = run.compare(
        _GROUP,
        {case: {REPLCTL: lambda: lake.sync("sub"), _BY_HAND: by_hand}},
        before=before,
        after=after,
        lake=lake,
    )[case]
    files, size, with_statistics = files_of(lake.location("sub"))
    bare_files, bare_size, bare_with_statistics = files_of(target)
    run.say(
        f"  {case}: {files} files of {size:,} bytes, statistics of {with_statistics} columns;"
        f" by hand {bare_files} of {bare_size:,}, {bare_with_statistics}"
    )
    if case.startswith("1e7"):
        run.reach("copy", found[REPLCTL].seconds / found[_BY_HAND].seconds)
        run.reach("copy-files", files / bare_files)
        run.reach("copy-statistics", max(0, bare_with_statistics - with_statistics))
