"""Measure row filters: one or many in the catalog, and subscriptions with no filter, one or ten."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import bare
from benchmarks.lake import DEFINITIONS, Keys, rows_of
from benchmarks.measure import REPLCTL, Run, Sample, process_environment, process_work, short
from replctl.catalog.open_cluster import open_cluster
from replctl.execute import execute
from replctl.session import Session

_GROUP = "filters"
#: Filters of three lengths, with constructs of several families.
_FILTERS = {
    "short": "a > 5 AND c = 'NSW'",
    "medium": "n BETWEEN 1.5 AND 20 AND c LIKE 'N%' OR a IN (1, 2, 3) AND d IS NOT NULL",
    "long": "CASE WHEN a > 0 THEN n / a ELSE 0 END > 1 AND upper(trim(c)) <> 'X'"
    " AND d >= '2024-01-01'",
}
_COLUMNS = "id int PRIMARY KEY, a int, c text, n numeric(10,2), d date"
_TIMES = 50


def measure(run: Run) -> None:
    """Measure filters in the catalog, then in syncs."""
    with tempfile.TemporaryDirectory(dir=run.scratch) as home:
        _measure_one(run, Path(home))
    with tempfile.TemporaryDirectory(dir=run.scratch) as home:
        _measure_many(run, Path(home), run.at(100, 1000, 1000))
    _measure_sync(run)


def _measure_one(run: Run, home: Path) -> None:
    """Measure the seconds to parse, check, store and print a filter, as the difference from an
    unfiltered table.
    """
    cluster = open_cluster(home)
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, f"CREATE TABLE t ({_COLUMNS})"))
    for name, text in _FILTERS.items():
        case = f"{name} filter, {_TIMES} times"
        if not run.wants(case):
            continue
        taken: dict[str, list[float]] = {"": [], f" WHERE ({text})": []}
        for _ in range(_TIMES):
            for where, seconds in taken.items():
                start = time.perf_counter()
                list(execute(session, f"CREATE PUBLICATION p FOR TABLE t{where}"))
                list(
                    execute(session, "SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel")
                )
                seconds.append(time.perf_counter() - start)
                list(execute(session, "DROP PUBLICATION p"))
        plain, filtered = taken.values()
        added = statistics.median(filtered) - statistics.median(plain)
        run.note(_GROUP, case, "publication with it", _samples(filtered))
        run.note(_GROUP, case, "publication without", _samples(plain))
        run.reach("filter", added * 1000)
    cluster.close()


def _samples(seconds: list[float]) -> list[Sample]:
    return [Sample(taken) for taken in seconds]


def _measure_many(run: Run, home: Path, tables: int) -> None:
    """Measure a publication of many filtered tables."""
    case = f"{tables} tables, whole process"
    if not run.wants(case):
        return
    names = [f"t{i:04}" for i in range(tables)]
    scripts = {
        "create": "".join(f"CREATE TABLE {name} ({_COLUMNS});\n" for name in names),
        "publish": "CREATE PUBLICATION many FOR TABLE "
        + ", ".join(
            f"{name} WHERE (a > {i} AND c = 'NSW' AND n BETWEEN 1.5 AND {i})"
            for i, name in enumerate(names)
        )
        + ";\n",
        "show": "\\dRp+ many\n",
        "drop": "DROP PUBLICATION many;\n",
    }
    work = {name: _script(home, name, text) for name, text in scripts.items()}
    work["create"]()
    taken: dict[str, list[Sample]] = {"publish": [], "show": []}
    for _round in range(run.rounds):
        for name in ("publish", "show", "drop"):
            start = time.perf_counter()
            work[name]()
            if name in taken:
                taken[name].append(Sample(time.perf_counter() - start))
    publish = run.note(_GROUP, case, "CREATE PUBLICATION", taken["publish"])
    show = run.note(_GROUP, case, r"\dRp+", taken["show"])
    if tables == 1000:
        run.reach("filters-1000", publish.seconds)
        run.reach("describe-1000", show.seconds)


def _script(home: Path, name: str, text: str) -> Callable[[], object]:
    file = home / f"{name}.sql"
    file.write_text(text, "utf-8")
    command = [
        sys.executable,
        "-m",
        "replctl",
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-f",
        str(file),
    ]
    return process_work(command, process_environment(home))


def _measure_sync(run: Run) -> None:
    """Measure changes without a filter, with one filter, and with ten filters."""
    rows = run.at(10_000, 1_000_000, 1_000_000)
    changes = rows // 10
    filters = {
        "no filter": (),
        "1 filter": ("quantity < 600",),
        "10 filters": tuple(f"quantity % 17 = {number}" for number in range(10)),
    }
    cases = {name: f"{short(rows)} rows, {short(changes)} random, {name}" for name in filters}
    if not any(map(run.wants, cases.values())):
        return
    with run.lake() as lake:
        lake.create_databases("pub")
        source = lake.publish("pub", rows)
        variants: dict[str, dict[str, Callable[[], object]]] = {}
        compared: list[dict[str, str]] = []
        for number, (name, texts) in enumerate(filters.items()):
            database = f"sub{number}"
            publications = [f"p{number}_{i}" for i in range(max(1, len(texts)))]
            for i, publication in enumerate(publications):
                where = f" WHERE ({texts[i]})" if texts else ""
                lake.run("pub", f"CREATE PUBLICATION {publication} FOR TABLE t{where}")
            lake.create_databases(database)
            lake.run(database, f"CREATE TABLE t ({DEFINITIONS})")
            lake.subscribe(database, ", ".join(publications))
            lake.sync(database)
            condition = " OR ".join(f"({text})" for text in texts) or "TRUE"
            target = str(lake.bare / f"target{number}")
            lake.create_table(target)
            bare.copy(lake.plain, source, target, condition)
            job = bare.Job(lake.lean, source, target, condition)
            variants[cases[name]] = {
                REPLCTL: partial(lake.sync, database),
                "MERGE by hand, lean": job.merge,
            }
            compared.append(
                {
                    REPLCTL: rows_of(lake.location(database)),
                    "by hand": rows_of(target),
                    "publisher": rows_of(source, condition),
                }
            )
        keys = Keys(rows)

        def after() -> None:
            for tables in compared:
                lake.check_equal(tables)

        run.compare(
            _GROUP,
            variants,
            before=lambda: lake.commit(source, keys.pick(changes, recent=False)),
            after=after,
            lake=lake,
        )
