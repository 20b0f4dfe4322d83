"""What the driver holds while few changes are applied, and while many are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.lake import DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import REPLCTL, Run, Sample, sampled, short

_GROUP = "memory"
_INTERVAL = 1.0  # seconds between two readings of the heap


def measure(run: Run) -> None:
    """Peaks of Python's resident memory, and of the live objects in the JVM's heap, which here is
    the executors', too."""
    rows = run.at(40_000, 2_000_000, 2_000_000)
    few, many = run.at((200, 20_000), (10_000, 1_000_000), (10_000, 1_000_000))
    with run.lake() as lake:
        lake.create_databases("pub", "sub")
        source = lake.publish("pub", rows)
        lake.run("pub", "CREATE PUBLICATION p FOR TABLE t WHERE (quantity < 900)")
        lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
        lake.subscribe("sub", "p")
        lake.sync()
        keys = Keys(rows)
        peaks: dict[int, tuple[int, int]] = {}
        took: dict[int, Sample] = {}
        for changes in (few, few, many):  # the first loads what is loaded once
            lake.commit(source, keys.pick(changes, recent=False))
            with _peaks(lake) as found:
                sample = sampled(lambda: lake.sync("sub"), lake)
            lake.check_equal(
                {
                    REPLCTL: rows_of(lake.location("sub")),
                    "publisher": rows_of(source, "quantity < 900"),
                }
            )
            peaks[changes] = (found["python"], found["heap"])
            took[changes] = sample
        for changes, sample in took.items():
            case = f"{short(rows)} rows, {short(changes)} random"
            for name, peak in zip(("Python, resident", "JVM, live"), peaks[changes], strict=True):
                run.note(_GROUP, case, f"{REPLCTL}: {name}", [replace(sample, peak=peak)])
        if run.size != "small":
            for one, other in zip(peaks[few], peaks[many], strict=True):
                run.reach("memory", other / one)


@contextmanager
def _peaks(lake: Lake) -> Iterator[dict[str, int]]:
    """The peaks while the block runs, in bytes, when it has ended."""
    jvm: Any = lake.engine.session.sparkContext._jvm
    java = jvm.java.lang
    found = {"heap": 0}
    is_done = threading.Event()

    def watch() -> None:
        while True:
            java.System.gc()
            used = (
                java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
            )
            found["heap"] = max(found["heap"], int(used))
            if is_done.wait(_INTERVAL):
                return

    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak starts anew
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        is_done.set()
        watcher.join()
    status = Path("/proc/self/status").read_text("ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    found["python"] = int(peak.split()[1]) * 1024
