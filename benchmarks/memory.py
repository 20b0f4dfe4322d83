"""Measure the driver's memory while replctl applies few changes, and while it applies many."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyspark

from benchmarks.lake import DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import (
    REPLCTL,
    Run,
    Sample,
    children_of,
    process_environment,
    sampled,
    short,
)
from replctl.spark.java import find_java

_GROUP = "memory"
_INTERVAL = 0.5  # seconds between two readings of the heap
#: One executor in a JVM of its own, so that the driver's JVM has only objects of the driver.
_MASTER = "local-cluster[1,2,2048]"
_EXECUTOR = "1536m"
_LIVE = re.compile(r"^Total +\d+ +(\d+)", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
_PARTS = ("Python, resident", "JVM, live")


def measure(run: Run) -> None:
    """Measure the peak memory of a `replctl sync` as a process, with a separate executor: Python's
    resident memory, and the live objects in the heap of the driver's JVM.
    """
    rows = run.at(40_000, 2_000_000, 2_000_000)
    few, many = run.at((200, 20_000), (10_000, 1_000_000), (10_000, 1_000_000))
    cases = {changes: f"{short(rows)} rows, {short(changes)} random" for changes in (few, many)}
    if not any(map(run.wants, cases.values())):
        return
    with run.lake() as lake:
        lake.create_databases("pub", "sub")
        source = lake.publish("pub", rows)
        lake.run("pub", "CREATE PUBLICATION p FOR TABLE t WHERE (quantity < 900)")
        lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
        lake.subscribe("sub", "p")
        lake.sync()
        keys = Keys(rows)
        taken: dict[str, list[list[Sample]]] = {
            case: [[] for _ in _PARTS] for case in cases.values()
        }
        for _round in range(run.rounds):
            for changes, case in cases.items():
                lake.commit(source, keys.pick(changes, recent=False))
                for samples, sample in zip(taken[case], _sampled_sync(lake), strict=True):
                    samples.append(sample)
                lake.check_equal(
                    {
                        REPLCTL: rows_of(lake.location("sub")),
                        "publisher": rows_of(source, "quantity < 900"),
                    }
                )
        peaks = {
            case: [
                run.note(_GROUP, case, f"{REPLCTL}: {part}", samples).peak or 0
                for part, samples in zip(_PARTS, parts, strict=True)
            ]
            for case, parts in taken.items()
        }
        if run.size != "small":
            for one, other in zip(*peaks.values(), strict=True):
                run.reach("memory", other / one)


def _sampled_sync(lake: Lake) -> list[Sample]:
    """Run a sync, and return a sample for each of its parts, with the peak of the part."""
    found: list[tuple[int, int]] = []
    sample = sampled(lambda: found.append(_sync(lake)))
    return [replace(sample, peak=peak) for peak in found[0]]


def _sync(lake: Lake) -> tuple[int, int]:
    """Run a sync, and return the peak memory of Python and of the driver's JVM, in bytes.

    Raises:
        RuntimeError: the sync failed, or its JVM did not answer.
    """
    command = [
        sys.executable, "-m", "replctl", "sync", "--master", _MASTER,
        "--conf", f"spark.executor.memory={_EXECUTOR}",
    ]  # fmt: skip
    environment = process_environment(lake.home) | _spark_home(lake.bare)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    python = heap = 0
    while process.poll() is None:
        python = max(python, _peak_of(process.pid))
        for child in children_of(process.pid):
            if (found := _live_bytes(child)) > heap:  # twice: see _live_bytes
                heap = max(heap, min(found, _live_bytes(child) or found))
        try:
            process.wait(_INTERVAL)
        except subprocess.TimeoutExpired:
            continue
    if process.returncode != 0:
        assert process.stdout is not None
        raise RuntimeError(f"{' '.join(command)} failed:\n{process.stdout.read()}")
    if not heap:
        raise RuntimeError("the heap of the driver's JVM was not seen")
    return python, heap


def _spark_home(scratch: Path) -> dict[str, str]:
    """Return a SPARK_HOME whose workers write their files to a scratch folder."""
    home = scratch / "spark"
    home.mkdir(exist_ok=True)
    for name in ("bin", "jars"):
        if not (home / name).exists():
            (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}


def _peak_of(pid: int) -> int:
    """Return a process's largest resident memory so far, in bytes; 0 if it has ended."""
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_text("ascii"))
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _live_bytes(pid: int) -> int:
    """Return the bytes of the reachable objects in a JVM's heap; 0 if the JVM does not answer.

    While native code holds an array, the JVM counts without a garbage collection (GCLocker).  Then
    the result includes unreachable objects.  Call the function twice to avoid that.
    """
    try:
        done = subprocess.run(
            [find_java().resolve().with_name("jcmd"), str(pid), "GC.class_histogram"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 0
    found = _LIVE.search(done.stdout)
    return int(found[1]) if found else 0
