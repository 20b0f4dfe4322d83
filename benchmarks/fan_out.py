"""Measure many tables of one subscription, many subscriptions of one table, and syncs without
changes."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import bare
from benchmarks.lake import DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import IMPORTS, REPLCTL, Run, process_environment, process_work, short

_GROUP = "fan-out"
_ROWS_OF_EACH = 1000
_BY_HAND = "MERGE by hand, lean"
#: Number of tables that also have a subscription of their own.
_SINGLE = 10
#: How many subscriptions are measured together; each has a filter and a database of its own.
_SUBSCRIPTIONS = [1, 5, 10, 20]


def measure_tables(run: Run) -> None:
    """Measure 1, 10 and 100 tables with 10 changes each, with one subscription and with several.
    Then measure syncs of the same tables without changes.
    """
    counts = [n for n in run.at([1, 2], [1, 10, 100], [1, 10, 100]) if run.wants(f"{n} tables")]
    if not counts:
        return
    with run.lake() as lake:
        tables = _Tables(lake, max(counts))
        for count in counts:
            _measure_tables(run, tables, count)


def measure_no_op(run: Run) -> None:
    """Measure `replctl sync` as a process if nothing has changed."""
    count = run.at(2, 100, 100)
    case = f"{count} tables, nothing changed"
    if not run.wants(case):
        return
    with run.lake() as lake:
        _Tables(lake, count).subscribe(f"many{count}", count)
        java = _broken_java(lake.bare)
        environment = {**process_environment(lake.home), "JAVA_HOME": str(java)}
        imports = process_work([sys.executable, "-c", IMPORTS], environment)
        command = [sys.executable, "-m", "replctl", "sync", f"many{count}"]
        found = run.compare(
            "no-op",
            {case: {REPLCTL: process_work(command, environment), IMPORTS: imports}},
            is_short=True,
        )[case]
        if count == 100:
            run.reach("noop", found[REPLCTL].seconds)


def _broken_java(folder: Path) -> Path:
    """Return a JAVA_HOME with which no JVM can start."""
    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho a JVM was started >&2\nexit 1\n", "utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program.parent.parent


class _Tables:
    """A publisher with equal tables t0, t1 and so on, and subscriptions to some of them."""

    def __init__(self, lake: Lake, count: int) -> None:
        self.lake = lake
        lake.create_databases("pub")
        first = lake.publish("pub", _ROWS_OF_EACH, "t0")
        self.locations = [first]
        for number in range(1, count):
            location = str(lake.bare / f"pub-t{number}")
            shutil.copytree(first, location)
            lake.run(
                "pub",
                f"CREATE TABLE t{number} (PRIMARY KEY (id)) USING delta LOCATION '{location}';"
                f"ALTER TABLE t{number} REPLICA IDENTITY FULL",
            )
            self.locations.append(location)
        self._keys = [Keys(_ROWS_OF_EACH, number) for number in range(count)]
        self.subscribed: set[str] = set()

    def subscribe(self, name: str, count: int, first: int = 0) -> None:
        """Make a database with copies of some tables."""
        if name in self.subscribed:
            return
        self.subscribed.add(name)
        lake, tables = self.lake, range(first, first + count)
        lake.create_databases(name)
        lake.run(name, ";".join(f"CREATE TABLE t{number} ({DEFINITIONS})" for number in tables))
        named = ", ".join(f"t{number}" for number in tables)
        lake.run("pub", f"CREATE PUBLICATION {name} FOR TABLE {named}")
        lake.subscribe(name, name)
        lake.sync(name)

    def commit(self, count: int) -> None:
        """Change 10 rows of each of the first `count` tables."""
        with ThreadPoolExecutor(2) as pool:
            chosen = zip(self.locations[:count], self._keys, strict=False)
            for done in [
                pool.submit(self.lake.commit, location, keys.pick(10, recent=False))
                for location, keys in chosen
            ]:
                done.result()


def _measure_tables(run: Run, tables: _Tables, count: int) -> None:
    """Measure one subscription of all tables, and the same number of syncs of one table each.
    Extrapolate large numbers from a few syncs.
    """
    lake, single = tables.lake, min(count, _SINGLE)
    together = f"many{count}"
    tables.subscribe(together, count)
    singles = [f"one{number}" for number in range(single)] if count > 1 else []
    for number, name in enumerate(singles):
        tables.subscribe(name, 1, number)
    targets = [str(lake.bare / f"target-{count}-{number}") for number in range(single)]
    jobs = []
    for source, target in zip(tables.locations, targets, strict=False):
        lake.create_table(target)
        bare.copy(lake.plain, source, target, "TRUE")
        jobs.append(bare.Job(lake.lean, source, target, "TRUE"))

    def one_by_one() -> None:
        for name in singles:
            lake.sync(name)

    def by_hand() -> None:
        for job in jobs:
            job.merge()

    def after() -> None:
        for number, source in enumerate(tables.locations[:single]):
            compared = {"publisher": rows_of(source), _BY_HAND: rows_of(targets[number])}
            compared[REPLCTL] = rows_of(lake.location(together, f"t{number}"))
            if singles:
                compared["single"] = rows_of(lake.location(singles[number], f"t{number}"))
            lake.check_equal(compared)

    variants: dict[str, Callable[[], object]] = {REPLCTL: lambda: lake.sync(together)}
    if singles:
        variants[f"{single} single syncs"] = one_by_one
    variants[f"{single} times {_BY_HAND}"] = by_hand
    case = f"{count} tables, 10 changes each"
    found = run.compare(
        _GROUP, {case: variants}, before=lambda: tables.commit(count), after=after, lake=lake
    )[case]
    if count <= single:
        return
    for name in (f"{single} single syncs", f"{single} times {_BY_HAND}"):
        scaled = [
            replace(
                sample,
                seconds=sample.seconds * count / single,
                cpu=None if sample.cpu is None else sample.cpu * count / single,
                jobs=None if sample.jobs is None else sample.jobs * count // single,
                written=None if sample.written is None else sample.written * count // single,
            )
            for sample in found[name].samples
        ]
        title = f"{count} {name.split(' ', 1)[1]} (from {single})"
        run.measurements.remove(found[name])
        found[title] = run.note(_GROUP, case, title, scaled)
    if count == 100:
        alone = found[f"{count} single syncs (from {single})"].seconds
        run.reach("tables", found[REPLCTL].seconds / alone)


def measure_subscriptions(run: Run) -> None:
    """Measure subscriptions of one table with different filters."""
    rows = run.at(10_000, 1_000_000, 1_000_000)
    changes = rows // 100
    case = f"{short(rows)} rows, {short(changes)} random"
    if not run.wants(case):
        return
    with run.lake() as lake:
        lake.create_databases("pub")
        source = lake.publish("pub", rows)
        groups: dict[int, list[str]] = {}
        for count in run.at([1, 2], _SUBSCRIPTIONS, _SUBSCRIPTIONS):
            groups[count] = [f"sub{count}_{number}" for number in range(count)]
            for number, name in enumerate(groups[count]):
                condition = _region(number)
                lake.run("pub", f"CREATE PUBLICATION {name} FOR TABLE t WHERE ({condition})")
                lake.create_databases(name)
                lake.run(name, f"CREATE TABLE t ({DEFINITIONS})")
                lake.subscribe(name, name)
        lake.sync()
        target = str(lake.bare / "target")
        lake.create_table(target)
        bare.copy(lake.plain, source, target, _region(0))
        job = bare.Job(lake.lean, source, target, _region(0))
        keys = Keys(rows)

        def before() -> None:
            lake.commit(source, keys.pick(changes, recent=False))

        def after() -> None:
            for names in groups.values():
                for number, name in enumerate(names):
                    compared = {REPLCTL: rows_of(lake.location(name))}
                    if number == 0:
                        compared[_BY_HAND] = rows_of(target)
                    compared["publisher"] = rows_of(source, _region(number))
                    lake.check_equal(compared)

        cases: dict[str, dict[str, Callable[[], object]]] = {}
        for count, names in groups.items():
            cases[f"{count} subscriptions, {case}"] = {REPLCTL: partial(lake.sync, *names)}
        cases[f"1 subscriptions, {case}"][_BY_HAND] = job.merge
        found = run.compare(_GROUP, cases, before=before, after=after, lake=lake)
        if rows == 1_000_000:
            one, ten = (found[f"{count} subscriptions, {case}"][REPLCTL] for count in (1, 10))
            run.reach("subscriptions", ten.seconds / one.seconds)


def _region(number: int) -> str:
    return f"region = 'r{number:02}'"
