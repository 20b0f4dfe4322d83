"""Start a Spark session in a JVM of this process or on a server, with the settings on which
PostgreSQL's results depend.
"""

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
from replctl.process_environment import environment_with
from replctl.spark import java_start
from replctl.spark.java_environment import connect_environment
from replctl.spark.memory import cached_logs, heap, memory_limit
from replctl.spark.scratch import make_scratch
from replctl.spark.spark_conf import SparkConf
from replctl.spark.spark_settings import (
    DELTA,
    FORCED_SETTINGS,
    check_delta,
    check_forced_settings,
    for_session,
    has_value,
    unwanted,
    without_legacy,
)
from replctl.spark.values import OPTIMIZED_FILE_SIZE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's warnings about its dependencies
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
    # A sync of many changes has 170 pieces of generated code.  Spark's cache of 100 would lose all
    # of them before the next sync, and compiling them takes a fifth of a sync.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Each sort and each hash map takes a page, even for few rows.  With Spark's 64m each sync of 10
    # rows would fill the heap and cause a full collection.
    "spark.buffer.pageSize": "2m",
    # Each broadcast, such as the code of a stage, takes a whole block.  With Spark's 4m this would
    # be an eighth of all memory that small jobs allocate.
    "spark.broadcast.blockSize": "512k",
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",  # wide rows in a small heap
    # Spark writes cached rows once and soon reads them two or three times: encoding them costs more
    # than it saves.  A join in memory need not sort.  Both settings together save a tenth of a sync
    # of 1e5 changes (benchmarks/incremental.py).
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    # Each query formats its plan for Spark's user interface, although it is off.  With a detailed
    # plan this would take a quarter of the planning of a small write.
    "spark.sql.ui.explainMode": "simple",
    "spark.databricks.delta.optimize.maxFileSize": str(OPTIMIZED_FILE_SIZE),
    # Allow to cluster rows by a key even if its columns have no statistics.
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
}
#: Settings for a Spark that is a single JVM.
_LOCAL_PROPERTIES = {
    "spark.driver.host": "127.0.0.1",
    # The clock may jump, and the machine may sleep.  The JVM must not end because of this.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    "spark.executor.heartbeat.maxFailures": str(2**31 - 1),
}
#: The default properties that a session can change.
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
#: Bytes of the driver's heap if there is enough memory.
_HEAP = 2 << 30
#: Matches addresses of this machine to replace by localhost: PySpark sends a token without TLS only
#: to this name.
_LOOPBACK = re.compile(r"(?<=^sc://)(127\.0\.0\.1|\[::1\])(?=[:/]|$)")


def connect(remote: str) -> SparkSession:
    """Return a new session with the Connect server at an address.  The caller must configure it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    os.environ.pop("SPARK_REMOTE", None)
    with environment_with(connect_environment(os.environ)):
        session = SparkSession.builder.remote(_LOOPBACK.sub("localhost", remote)).create()
    # Retry for about 5 seconds if the server does not answer.  PySpark would retry for ten minutes,
    # without a message and without reaction to Ctrl-C.
    patience = DefaultPolicy(
        max_retries=9, initial_backoff=50, backoff_multiplier=2.0, max_backoff=1000
    )
    session.client.set_retry_policies([patience])
    return session


def start(conf: SparkConf, log: Path | None = None) -> SparkSession:
    """Start a JVM for this process, and return its configured session.

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
    else:  # other machines must not reach the JVM's ports, which need no token
        properties = _LOCAL_PROPERTIES | properties
    scratch = make_scratch(conf.scratch, properties.get("spark.local.dir"))
    properties = properties | scratch.properties()
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # an earlier session may have set it
    builder = SparkSession.builder.config("spark.api.mode", "classic")
    for name, value in (properties | FORCED_SETTINGS).items():
        builder = builder.config(name, value)
    try:
        with java_start.gateway(properties, scratch, log), _keeping_handler(signal.SIGINT):
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")  # fails if Spark has given up
            configure(session, conf)
    except BaseException:
        java_start.forget()  # the next start would wait for the ended JVM
        raise
    return session


def configure(session: SparkSession, conf: SparkConf) -> None:
    """Set the settings of a session.

    Raises:
        ObjectNotInPrerequisiteState: the server lacks Delta, or a setting that sessions cannot
            change is wrong.
        FeatureNotSupported: the server runs an unsupported version of Spark.
    """
    if session.version.split(".")[:2] != ["4", "2"]:
        raise FeatureNotSupported(
            f"Spark {session.version} is not supported", detail="replctl needs Spark 4.2."
        )
    chosen = dict(conf.properties)
    settings = {name: chosen.get(name, _DEFAULT_PROPERTIES[name]) for name in _LEAN_SETTINGS}
    if conf.remote:
        settings |= for_session(chosen)
    found = _settings_of(session, conf, (*settings, *FORCED_SETTINGS, *DELTA))
    check_delta(found)
    for name, value in settings.items():
        if name not in FORCED_SETTINGS and found.get(name) != value:
            session.conf.set(name, value)
    for name, value in FORCED_SETTINGS.items():
        if not has_value(found, name, value):
            # check_forced_settings reports settings that a session cannot change
            with suppress(PySparkException):
                session.conf.set(name, value)
    if conf.remote:  # a session of our own JVM accepts all of them
        for name in unwanted(found, chosen):
            with suppress(PySparkException):  # check_forced_settings reports those that stay
                session.conf.unset(name)
        check_forced_settings(session.conf.getAll, chosen)


def _settings_of(
    session: SparkSession, conf: SparkConf, names: Iterable[str]
) -> Mapping[str, str | None]:
    """Return the current values of settings.  From a Connect server, get all settings in one
    request."""
    if conf.remote:
        return session.conf.getAll
    return {name: session.conf.get(name, None) for name in names}


@contextmanager
def _keeping_handler(number: signal.Signals) -> Iterator[None]:
    """Restore the handler of a signal after the `with` block.  PySpark's own handler would fail: it
    calls the JVM from within the interrupted call.
    """
    handler = signal.getsignal(number)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(number, handler)
