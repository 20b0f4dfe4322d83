"""Statements and syncs of small tables, in this process and through Spark Connect."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.lake import DEFINITIONS, TABLE_PROPERTIES, Keys, Lake, rows_of
from benchmarks.measure import REPLCTL, Run, Sample
from replctl.spark import temporary_server

_GROUP = "small"
_CONNECT = "connect"
_SYNC = "1e3 rows, 10 changes"


def measure(run: Run) -> None:
    """Measure statements, then syncs."""
    measures = _measures(run)
    if not measures:
        return
    with run.lake() as lake:
        lake.create_databases("pub", "sub")
        for measure_part in measures:
            measure_part(run, lake)


def _measures(run: Run) -> list[Callable[[Run, Lake], None]]:
    parts = {"statement": _measure_statements, _SYNC: _measure_sync}
    return [measure_part for case, measure_part in parts.items() if run.wants(case)]


def measure_connect(run: Run) -> None:
    """Measure the same work in a process that uses a Connect server."""
    if not _measures(run):
        return
    with (
        temporary_server("3g") as remote,
        tempfile.TemporaryDirectory(dir=run.scratch) as folder,
    ):
        answer = Path(folder) / "answer.json"
        command = [
            sys.executable, "-m", "benchmarks", "--group", _GROUP, "--remote", remote,
            "--rounds", str(run.rounds), "--warm-up", str(run.warm_up), "--json", str(answer),
            *(argument for case in run.cases for argument in ("--case", case)),
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for found in json.loads(answer.read_text("utf-8"))["measurements"]:
            samples = [Sample(**sample) for sample in found["samples"]]
            noted = run.note(_CONNECT, found["case"], found["variant"], samples)
            if (noted.case, noted.variant) == (_SYNC, REPLCTL):
                run.reach("small-connect", noted.seconds)


def _measure_statements(run: Run, lake: Lake) -> None:
    """Measure statements on a relation, and the same work on a bare Delta table."""
    lake.run("pub", "CREATE TABLE s (id bigint PRIMARY KEY, region text, note text)")
    rows = "SELECT g, 'north', 'row ' || g FROM generate_series(1, 1000) g"
    lake.run("pub", f"INSERT INTO s {rows}")
    location, target = lake.location("pub", "s"), str(lake.bare / "statements")
    lake.create_table(target, columns="id BIGINT, region STRING, note STRING")
    columns = "id, region, note"
    lake.lean.sql(f"INSERT INTO delta.`{target}` SELECT {columns} FROM delta.`{location}`")
    here = f"delta.`{target}`"
    statements: dict[str, Callable[[str, int], str]] = {
        "INSERT": lambda table, n: (
            f"INSERT INTO {table} VALUES ({5000 + n}, 'x', 'y'), ({6000 + n}, 'x', 'y')"
        ),
        "UPDATE": lambda table, n: f"UPDATE {table} SET note = 'n{n}' WHERE id < 4",
        "DELETE": lambda table, n: f"DELETE FROM {table} WHERE id = {100 + n}",
        "SELECT": lambda table, n: f"SELECT count(*) FROM {table}",
    }

    def through_replctl(statement: Callable[[str, int], str]) -> Callable[[], object]:
        numbers = itertools.count()
        return lambda: lake.run("pub", statement("s", next(numbers)))

    def by_spark(statement: Callable[[str, int], str]) -> Callable[[], object]:
        numbers = itertools.count()
        return lambda: lake.lean.sql(statement(here, next(numbers))).collect()

    cases = {
        f"statement {name}": {REPLCTL: through_replctl(text), "Spark SQL, lean": by_spark(text)}
        for name, text in statements.items()
    }
    queries = {
        REPLCTL: f"SELECT {columns} FROM delta.`{location}`",
        "by hand": f"SELECT {columns} FROM delta.`{target}`",
    }
    run.compare(_GROUP, cases, after=lambda: lake.check_equal(queries), lake=lake, is_short=True)


def _measure_sync(run: Run, lake: Lake) -> None:
    source = lake.publish("pub", 1000)
    lake.run("pub", "CREATE PUBLICATION p FOR TABLE t WHERE (quantity < 900)")
    lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
    lake.subscribe("sub", "p")
    lake.sync()
    location, keys = lake.location("sub"), Keys(1000)
    variants: dict[str, Callable[[], object]] = {REPLCTL: lambda: lake.sync("sub")}
    queries = {REPLCTL: rows_of(location), "publisher": rows_of(source, "quantity < 900")}
    if run.remote is None:  # the jobs by hand use Delta's Python API for classic sessions
        from benchmarks import bare

        by_hand = {
            "MERGE by hand, defaults": (lake.plain, bare.Job.merge),
            "MERGE by hand, lean": (lake.lean, bare.Job.merge),
            "replaceWhere by hand": (lake.lean, bare.Job.replace),
        }
        for number, (name, (session, work)) in enumerate(by_hand.items()):
            target = str(lake.bare / f"target{number}")
            lake.create_table(target, {} if session is lake.plain else TABLE_PROPERTIES)
            bare.copy(session, source, target, "quantity < 900")
            job = bare.Job(session, source, target, "quantity < 900")
            variants[name] = partial(work, job)
            queries[name] = rows_of(target)
    found = run.compare(
        _GROUP,
        {_SYNC: variants},
        before=lambda: lake.commit(source, keys.pick(10, recent=False)),
        after=lambda: lake.check_equal(queries),
        lake=lake,
        is_short=True,
    )[_SYNC]
    nothing = {"1e3 rows, no changes": {REPLCTL: lambda: lake.sync("sub")}}
    run.compare(_GROUP, nothing, lake=lake, is_short=True)
    if run.remote is None:
        run.reach("small", found[REPLCTL].seconds)
