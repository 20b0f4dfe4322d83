"""Measure whole processes: catalog commands, a cold sync, and `sync --watch`."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.lake import DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import IMPORTS, REPLCTL, Run, Sample, process_environment, process_work
from replctl.lake.delta_log import latest_version

_COMMANDS = (
    r"\dRp+",
    r"\d t",
    "SELECT * FROM pg_publication_tables",
    "SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel",
    "CREATE SCHEMA IF NOT EXISTS s",
)
_LONGEST = 120.0  # seconds that a row may take to arrive
#: Rounds until the JVM of an applier is about warm.
_WATCH_WARM_UP = 12


def measure_catalog(run: Run) -> None:
    """Measure catalog commands."""
    with tempfile.TemporaryDirectory(dir=run.scratch) as home:
        environment = process_environment(home)
        replctl = [sys.executable, "-m", "replctl", "-X"]
        setup = (
            "CREATE TABLE t (a int, c text);"
            " CREATE PUBLICATION p FOR TABLE t WHERE (a > 5 AND c = 'NSW')"
        )
        process_work([*replctl, "-q", "-c", setup], environment)()
        imports = process_work([sys.executable, "-c", IMPORTS], environment)
        cases = {
            command: {
                REPLCTL: process_work([*replctl, "-c", command], environment),
                IMPORTS: imports,
            }
            for command in _COMMANDS
            if run.wants(command)
        }
        found = run.compare("catalog", cases, is_short=True)
        for variants in found.values():
            run.reach("catalog", variants[REPLCTL].seconds / variants[IMPORTS].seconds)


def measure_cold(run: Run) -> None:
    """Measure a sync of 10 changes in a table of 1000 rows, with the start of all processes."""
    case = "1e3 rows, 10 changes, from process start"
    if not run.wants(case):
        return
    with run.lake() as lake:
        source = _small_table(lake)
        target = str(lake.bare / "target")
        lake.create_table(target)
        lake.lean.sql(f"INSERT INTO delta.`{target}` {rows_of(source)}")
        keys = Keys(1000)
        script = [sys.executable, str(Path(__file__).with_name("plain_script.py")), source, target]
        command = [sys.executable, "-m", "replctl", "sync", "--master", run.master]
        environment = process_environment(lake.home)

        def by_hand() -> None:
            process_work([*script, str(latest_version(source)), run.master], environment)()

        found = run.compare(
            "cold",
            {case: {REPLCTL: process_work(command, environment), "plain PySpark script": by_hand}},
            has_jvm=True,
            before=lambda: lake.commit(source, keys.pick(10, recent=False)),
            after=lambda: lake.check_equal(
                {REPLCTL: rows_of(lake.location("sub")), "by hand": rows_of(target)}
            ),
        )[case]
        run.reach("cold", found[REPLCTL].seconds / found["plain PySpark script"].seconds)


def measure_watch(run: Run) -> None:
    """Measure the time from the end of a commit until readers have the row, while `sync --watch`
    runs.
    """
    case = "1e3 rows, 1 row changed"
    if not run.wants(case):
        return
    with run.lake() as lake:
        source = _small_table(lake)
        target = lake.location("sub")
        command = [
            sys.executable, "-m", "replctl", "sync", "-q", "--watch", "--interval", "0",
            "--master", run.master,
        ]  # fmt: skip
        environment = process_environment(lake.home)
        keys, samples = Keys(1000), []
        applier = subprocess.Popen(command, env=environment)
        try:
            uncounted = _WATCH_WARM_UP + run.warm_up
            for number in range(uncounted + max(run.rounds, 5)):
                before = latest_version(target)
                lake.commit(source, keys.pick(1, recent=False))
                start = time.perf_counter()
                while latest_version(target) == before or _is_unfinished(lake):
                    if time.perf_counter() - start > _LONGEST or applier.poll() is not None:
                        raise RuntimeError("the row did not come")
                    time.sleep(0.005)
                if number >= uncounted:
                    samples.append(Sample(time.perf_counter() - start))
        finally:
            applier.send_signal(signal.SIGTERM)
            applier.wait(60)
        lake.check_equal({REPLCTL: rows_of(target), "publisher": rows_of(source)})
        found = run.note("watch", case, REPLCTL, samples)
        run.reach("watch", found.seconds)


def _small_table(lake: Lake) -> str:
    lake.create_databases("pub", "sub")
    source = lake.publish("pub", 1000)
    lake.run("pub", "CREATE PUBLICATION p FOR TABLE t")
    lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
    lake.subscribe("sub", "p")
    lake.sync()
    return source


def _is_unfinished(lake: Lake) -> bool:
    with lake.cluster.begin(write=False) as connection:
        return bool(connection.exec_driver_sql("SELECT count(*) FROM apply_batch").scalar_one())
