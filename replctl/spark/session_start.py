"""How a Spark session begins: a JVM of this process or a connection to a server, with the settings
that PostgreSQL's results need."""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from replctl.errors import FeatureNotSupported
from replctl.spark import java_start
from replctl.spark.java_environment import NO_DEFAULTS, told_to_pyspark
from replctl.spark.memory import cached_logs, heap, memory_limit
from replctl.spark.scratch import make_scratch
from replctl.spark.spark_conf import SparkConf
from replctl.spark.spark_settings import (
    DELTA,
    FORCED_SETTINGS,
    check_delta,
    check_forced_settings,
    has_value,
    unwanted,
    without_legacy,
)
from replctl.spark.values import OPTIMIZED_FILE_SIZE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's own, about its dependencies
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

#: Settings that make small jobs cheap; --conf overrides them.
_DEFAULT_PROPERTIES = {
    "spark.app.name": "replctl",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.databricks.delta.snapshotPartitions": "1",
    **DELTA,
    # A sync of many changes has 170 pieces of generated code; with Spark's 100 none of them is left
    # when the next sync comes, and to compile them again takes a fifth of it
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Each sort and each hash map takes a page, however few rows it has; with Spark's 64m every sync
    # of 10 rows fills the heap and ends in a full collection
    "spark.buffer.pageSize": "2m",
    # What is broadcast, each stage's code for one, takes a whole block, however small it is; with
    # Spark's 4m that is an eighth of all memory that small jobs use up
    "spark.broadcast.blockSize": "512k",
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",  # wide rows in a small heap
    # Rows that are kept are written once and read two or three times, soon: to encode them costs
    # more than it saves, and a join of what fits into memory need not sort it.  Together they take
    # a tenth of a sync of 1e5 changes (benchmarks/incremental.py)
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    # Each query writes its plan for a user interface that is off; as a list with an entry for each
    # operator that takes a fourth of the planning of a small write
    "spark.sql.ui.explainMode": "simple",
    "spark.databricks.delta.optimize.maxFileSize": str(OPTIMIZED_FILE_SIZE),
    # A key beyond the columns that have statistics clusters rows none the less
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
}
#: Where all of Spark is one JVM.
_LOCAL_PROPERTIES = {
    "spark.driver.host": "127.0.0.1",
    # The clock may jump, and the machine may sleep: that is no reason to end the JVM
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    "spark.executor.heartbeat.maxFailures": str(2**31 - 1),
}
#: What a session can set of them.
_LEAN_SETTINGS = (
    "spark.databricks.delta.optimize.maxFileSize",
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled",
    "spark.sql.shuffle.partitions",
    "spark.databricks.delta.snapshotPartitions",
    "spark.sql.inMemoryColumnarStorage.batchSize",
    "spark.sql.inMemoryColumnarStorage.compressed",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold",
    "spark.sql.ui.explainMode",
)


_CACHED_LOGS = "spark.databricks.delta.delta.log.cacheSize"
#: Bytes of the driver's heap, where there is memory for it.
_HEAP = 2 << 30
#: PySpark sends a token without TLS to this name alone.
_LOOPBACK = re.compile(r"(?<=^sc://)(127\.0\.0\.1|\[::1\])(?=[:/]|$)")


def connect(remote: str) -> SparkSession:
    """Return a session, not yet configured, with the Connect server at an address."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    os.environ.pop("SPARK_REMOTE", None)
    with told_to_pyspark(NO_DEFAULTS):
        session = SparkSession.builder.remote(_LOOPBACK.sub("localhost", remote)).create()
    # A server that does not answer is tried again for some 5 seconds, not for PySpark's ten
    # minutes, in which nothing is said and Ctrl-C waits, too
    patience = DefaultPolicy(
        max_retries=9, initial_backoff=50, backoff_multiplier=2.0, max_backoff=1000
    )
    session.client.set_retry_policies([patience])
    return session


def start(conf: SparkConf, log: Path | None = None) -> SparkSession:
    """Return the session, configured, of a JVM that is started for this process.

    Args:
        log: the file to which the JVM writes.
    """
    properties = _DEFAULT_PROPERTIES | without_legacy(dict(conf.properties))
    memory = properties.setdefault("spark.driver.memory", heap(_HEAP, memory_limit()))
    properties.setdefault(_CACHED_LOGS, str(cached_logs(memory)))
    properties["spark.master"] = conf.master or properties.get("spark.master", "local[*]")
    if conf.is_brief:
        options = properties.get("spark.driver.extraJavaOptions", "")
        properties["spark.driver.extraJavaOptions"] = f"{java_start.BRIEF_OPTIONS} {options}"
    if java_start.has_executors(properties["spark.master"]):
        properties |= java_start.executor_properties(properties)
    else:  # nobody else has to reach its ports, which ask for no token
        properties = _LOCAL_PROPERTIES | properties
    scratch = make_scratch(conf.scratch, properties.get("spark.local.dir"))
    properties = properties | scratch.properties()
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # set by a session with a server before
    builder = SparkSession.builder.config("spark.api.mode", "classic")
    for name, value in (properties | FORCED_SETTINGS).items():
        builder = builder.config(name, value)
    try:
        with java_start.gateway(properties, scratch, log), _keeping_handler(signal.SIGINT):
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")  # fails where Spark has given up
            configure(session, conf)
    except BaseException:
        java_start.forget()  # it has ended: the next start would wait for it, or use what it had
        raise
    return session


def configure(session: SparkSession, conf: SparkConf) -> None:
    """Set what a session can set, and refuse a server that has not what only its start can give
    it."""
    if session.version.split(".")[:2] != ["4", "2"]:
        raise FeatureNotSupported(
            f"Spark {session.version} is not supported", detail="replctl needs Spark 4.2."
        )
    chosen = dict(conf.properties)
    settings = {name: chosen.get(name, _DEFAULT_PROPERTIES[name]) for name in _LEAN_SETTINGS}
    if conf.remote:
        settings |= without_legacy(chosen)
    found = _settings_of(session, conf, (*settings, *FORCED_SETTINGS, *DELTA))
    check_delta(found)
    for name, value in settings.items():
        if name not in FORCED_SETTINGS and found.get(name) != value:
            session.conf.set(name, value)
    for name, value in FORCED_SETTINGS.items():
        if not has_value(found, name, value):
            with suppress(PySparkException):  # what a session cannot set, is told below
                session.conf.set(name, value)
    if conf.remote:  # a session of our own JVM takes what it is given
        for name in unwanted(found, chosen):
            with suppress(PySparkException):
                session.conf.unset(name)
        check_forced_settings(session.conf.getAll, chosen)


def _settings_of(
    session: SparkSession, conf: SparkConf, names: Iterable[str]
) -> Mapping[str, str | None]:
    """Return settings that a session has: of a Connect server all, for it is asked once."""
    if conf.remote:
        return session.conf.getAll
    return {name: session.conf.get(name, None) for name in names}


@contextmanager
def _keeping_handler(number: signal.Signals) -> Iterator[None]:
    """Around what takes a signal for itself: PySpark's handler calls the JVM from within the call
    that it interrupts, which fails."""
    handler = signal.getsignal(number)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)
