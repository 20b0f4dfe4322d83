"""Measure the memory of a Spark server after garbage collection."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replctl.spark import SparkConf, find_server, open_engine

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Properties of a server whose caches fill up soon, so that any further growth is a leak.  Delta
#: caches few logs, and the garbage collector also removes objects that are kept only for speed.
FEW_CACHES = {
    "spark.databricks.delta.delta.log.cacheSize": "64",
    "spark.driver.extraJavaOptions": "-XX:SoftRefLRUPolicyMSPerMB=0",
}
_PATIENCE = 60.0  # seconds to wait until a JVM has written its memory
#: Parts of the heap, as a JVM names them for the collectors that replctl uses.
_PARTS = r"def new generation|tenured generation|PSYoungGen|ParOldGen"
_HEAP = re.compile(rf"^ (?:{_PARTS})\s+total \d+K, used (\d+)K", re.MULTILINE)
_METASPACE = re.compile(r"^ Metaspace\s+used (\d+)K", re.MULTILINE)
_THREAD = re.compile(r'^"([^"]+)" ', re.MULTILINE)
#: Spark's own pools.  The number of their threads depends on the queries of the last minute.  A
#: pool starts a thread for each piece of work until it is full, and a thread ends after a minute
#: without work.
_POOL = re.compile(
    r"(?:broadcast-exchange|shuffle-exchange|ResultQueryStageExecution|QueryStageCreator"
    r"|block-manager-(?:ask|storage-async)-thread-pool)-\d+"
)


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """Megabytes of heap and of classes, the number of threads outside Spark's own pools, and the
    number of views of the current session.
    """

    heap: float
    metaspace: float
    threads: int
    views: int

    def __str__(self) -> str:
        return (
            f"heap {self.heap:.0f} MB, classes {self.metaspace:.0f} MB, threads {self.threads},"
            f" views {self.views}"
        )

    def growth(self, earlier: ServerMemory) -> list[str]:
        """Return sentences about numbers that have grown although the server's caches are full
        (FEW_CACHES).

        Caches fill up while the first hundreds of queries run.
        """
        found = {
            "the heap has grown": self.heap > 1.5 * earlier.heap + 64,
            "classes have grown": self.metaspace > 1.5 * earlier.metaspace + 64,
            "threads are left": self.threads > earlier.threads + 50,
            "views are left": self.views > earlier.views,
        }
        return [what for what, is_so in found.items() if is_so]


def server_memory(folder: Path, engine: Engine | None = None) -> ServerMemory:
    """Return the memory of the server that runs in a folder.

    A JVM that gets SIGQUIT writes its threads and heap into its log.

    Args:
        engine: an engine with a session of the server; None: the function opens one.

    Raises:
        TimeoutError: the server's JVM does not write its memory.
    """
    server = find_server(folder)
    assert server is not None
    opened = engine or open_engine(SparkConf(remote=server.remote))
    views = len(opened.rows("SHOW VIEWS"))
    for _ in range(2):  # the second collection frees what Spark drops after the first
        opened.rows("SELECT reflect('java.lang.System', 'gc')")
        time.sleep(1)
    if engine is None:
        opened.stop()
    log = Path(server.log)
    before = log.stat().st_size
    os.kill(server.jvm, signal.SIGQUIT)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        time.sleep(0.2)
        told = log.read_bytes()[before:].decode("utf-8", "replace")
        if metaspace := _METASPACE.search(told):
            heap = sum(map(int, _HEAP.findall(told)))
            threads = [name for name in _THREAD.findall(told) if not _POOL.fullmatch(name)]
            return ServerMemory(heap / 1024, int(metaspace[1]) / 1024, len(threads), views)
    raise TimeoutError("the JVM does not say what it uses")
