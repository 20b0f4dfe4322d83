"""Reconcile and verify whole tables, and compare with the same work by hand in Spark."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import bare
from benchmarks.lake import DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import REPLCTL, Measurement, Run, short
from replctl.verify import verify

_SIZES = ([100_000], [1_000_000], [10_000_000])
_DIFFERENCES = 1000
_REPLACE = "join, replaceWhere by hand"
_MERGE = "join, MERGE by hand"
_COPY = "replctl, replacing the table"
_COUNTED = "both counted and hashed"
#: Databases with one copy each: the first copy is reconciled, the second copy is replaced.
_RECONCILED, _REPLACED = "sub", "whole"


def measure_reconcile(run: Run) -> None:
    """Measure a reconcile of a target in which a thousand rows differ."""
    for rows in run.at(*_SIZES):
        case = f"{short(rows)} rows, {short(_DIFFERENCES)} differ"
        if run.wants(case):
            with run.lake() as lake:
                _measure_reconcile(run, lake, case, rows)


def measure_verify(run: Run) -> None:
    """Measure the comparison of two equal sides."""
    for rows in run.at(*_SIZES):
        case = f"{short(rows)} rows, equal"
        if run.wants(case):
            with run.lake() as lake:
                _measure_verify(run, lake, case, rows)


def _measure_reconcile(run: Run, lake: Lake, case: str, rows: int) -> None:
    source = _copied(lake, rows, _RECONCILED, _REPLACED)
    reconciled = lake.location(_RECONCILED)
    by_hand = {name: str(lake.bare / f"target{i}") for i, name in enumerate((_REPLACE, _MERGE))}
    for target in by_hand.values():
        lake.create_table(target)
        bare.copy(lake.plain, source, target, "TRUE")
    keys = Keys(rows)

    def before() -> None:
        planted = keys.pick(_DIFFERENCES, recent=False)
        for target in (reconciled, *by_hand.values()):
            lake.commit(target, planted)

    def after() -> None:
        lake.check_equal(
            {
                "the source": rows_of(source),
                REPLCTL: rows_of(reconciled),
                **{name: rows_of(target) for name, target in by_hand.items()},
            }
        )

    def refreshed(name: str, option: str = "") -> Callable[[], object]:
        def work() -> None:
            lake.run(name, f"ALTER SUBSCRIPTION {name} REFRESH TABLE t{option}")
            lake.sync(name)

        return work

    found = run.compare(
        "reconcile",
        {
            case: {
                REPLCTL: refreshed(_RECONCILED),
                _REPLACE: lambda: bare.reconcile(lake.lean, source, by_hand[_REPLACE], "replace"),
                _MERGE: lambda: bare.reconcile(lake.lean, source, by_hand[_MERGE], "merge"),
                _COPY: refreshed(_REPLACED, " WITH (replace = true)"),
            }
        },
        before=before,
        after=after,
        lake=lake,
    )[case]
    _reach_reconcile(run, found)


def _reach_reconcile(run: Run, found: dict[str, Measurement]) -> None:
    own, copy = found[REPLCTL], found[_COPY]
    best = min(found[_REPLACE].seconds, found[_MERGE].seconds)
    run.reach("reconcile", own.seconds / best)
    if own.written and copy.written:
        run.reach("reconcile-bytes", 100 * own.written / copy.written)


def _measure_verify(run: Run, lake: Lake, case: str, rows: int) -> None:
    source = _copied(lake, rows, _RECONCILED)
    target = lake.location(_RECONCILED)

    def compared() -> None:
        (found,) = verify(lake.session("postgres"), _RECONCILED)
        (table,) = found.tables
        comparison = table.comparison
        if comparison is None or not comparison.is_equal or comparison.published_rows != rows:
            raise RuntimeError(f"verify has found {found}")

    def counted() -> None:
        sums = {lake.checksum(rows_of(location)) for location in (source, target)}
        if len(sums) != 1:
            raise RuntimeError(f"the sides are not equal: {sums}")

    found = run.compare("verify", {case: {REPLCTL: compared, _COUNTED: counted}}, lake=lake)[case]
    run.reach("verify", found[REPLCTL].seconds / found[_COUNTED].seconds)


def _copied(lake: Lake, rows: int, *databases: str) -> str:
    """Make a table and copies of it in the databases of subscriptions of these names.  Return its
    location.
    """
    lake.create_databases("pub", *databases)
    source = lake.publish("pub", rows)
    lake.run("pub", "CREATE PUBLICATION p FOR TABLE t")
    for database in databases:
        lake.run(database, f"CREATE TABLE t ({DEFINITIONS})")
        lake.subscribe(database, "p")
    lake.sync()
    return source
