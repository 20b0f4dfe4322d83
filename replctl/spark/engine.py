"""Spark in a process: sessions, queries and their rows, and cancellation of jobs."""

from __future__ import annotations

import atexit
import logging
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replctl.ctrl_c import on_ctrl_c
from replctl.errors import (
    ConnectionFailure,
    PostgresError,
    QueryCanceled,
    SessionEnded,
    UndefinedFile,
)
from replctl.memory_limit import out_of_memory
from replctl.spark import java_start, session_start
from replctl.spark.data_type import quote, quote_name, table_name, text_of_wire, wire
from replctl.spark.log_folder import LogFolder
from replctl.spark.python_functions import PythonFunctions
from replctl.spark.query_size import QuerySize
from replctl.spark.s3_connector import S3Connector, files_on_s3
from replctl.spark.session_pool import SessionPool
from replctl.spark.spark_conf import SparkConf
from replctl.spark.spark_errors import HostNotReached, PlanningError, translating
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import StagedColumn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's warnings about its dependencies
    from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    import pyarrow as pa

# Spark warns about deprecated settings.  A filter in a `with` block would affect all threads, too.
warnings.filterwarnings("ignore", message="The SQL config", category=UserWarning)
# Spark also raises an exception for failed attempts
warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)

#: Loggers that repeat raised exceptions, or report closed connections.
_REPEATING_LOGGERS = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "pyspark",
    "py4j.clientserver",
)
#: Bytes of a Python text and its slot in a row, without its characters.
_VALUE_BYTES = 70
#: Seconds between two attempts to cancel.
_CANCEL_INTERVAL = 0.1
#: Seconds that the end of a statement waits for an attempt to cancel its jobs.
_CANCEL_LIMIT = 5.0
#: Matches server addresses that are on this machine by their name.
_NEAR = re.compile(r"sc://(localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)")


class Engine:
    """The connection of this process to Spark.  Each thread has its own session, because the
    settings of a write belong to a session.

    Attributes:
        is_lost: the JVM has ended, or the Connect server is unreachable.
        provide_for: prepares Spark for S3 if one of several locations is there.  Callers need it
            only for tables of statements that do not go through `sql`.
    """

    def __init__(self, conf: SparkConf, log: Path | None = None) -> None:
        self._conf = conf
        self.is_lost = False
        self._connected: list[SparkSession] = []
        for name in _REPEATING_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_not_raised)
        with translating():
            if conf.remote:
                first = self._connected_session()
            else:
                first = session_start.start(conf, log)
        self._first = first
        self.provide_for = (
            (lambda _locations: None)
            if conf.remote
            else S3Connector(first, dict(conf.properties)).provide_for
        )
        atexit.register(
            self.stop
        )  # a Connect session still open when the interpreter ends would hang
        self._python_functions = PythonFunctions(
            is_remote=conf.remote is not None, scratch=conf.scratch
        )
        self._log_folder = LogFolder(conf.scratch)
        self.query_size = QuerySize(dict(conf.properties).keys())
        self._sessions = SessionPool(
            first, self._configured_session, self._has_session, self._end_session
        )

    @property
    def session(self) -> SparkSession:
        """Return the session of the calling thread.

        Raises:
            ConnectionFailure: Spark has ended, or cannot be reached.
        """
        with self._noting_loss():
            return self._sessions.current()

    def new_session(self) -> SparkSession:
        """Return a new session with the properties of Spark, but without replctl's settings. It
        ends with the engine."""
        with translating():
            return self._connect() if self._conf.remote else self._first.newSession()

    def _configured_session(self) -> SparkSession:
        with translating():
            if self._conf.remote:
                return self._connected_session()
            session = self._first.newSession()
            session_start.configure(session, self._conf)
            return session

    def _connect(self) -> SparkSession:
        assert self._conf.remote is not None
        session = session_start.connect(self._conf.remote)
        self._connected.append(session)
        return session

    def _connected_session(self) -> SparkSession:
        session = self._connect()
        try:
            session_start.configure(session, self._conf)
        except BaseException:  # replctl refuses the server, or the server has ended
            self._end_session(session)
            raise
        return session

    def _end_session(self, session: SparkSession) -> None:
        """Close the connection of a session with a Connect server.  Other sessions end with their
        JVM."""
        if session not in self._connected:
            return
        self._connected.remove(session)
        session.client.set_retry_policies([])  # a server that has ended knows no session
        session.stop()
        # If something still refers to the session (such as a traceback), pyspark would close the
        # channel again when the interpreter ends, and wait forever.
        session._client = None  # type: ignore[attr-defined]

    def _has_session(self, session: SparkSession) -> bool:
        """Return whether Spark still knows a session.

        Raises:
            ConnectionFailure: the server cannot be reached.
        """
        if not self._conf.remote:
            return True
        try:
            with translating():
                session.conf.get("spark.sql.ansi.enabled")  # PySpark caches the version
                return True
        except SessionEnded:  # the caller opens another session
            return False

    def sql(self, query: Query | str, *, has_few_rows: bool = False) -> DataFrame:
        """Return the result of a query without computing it.  Run commands immediately.

        Args:
            query: the query; a text reads no tables and no kept rows.
            has_few_rows: the query reads few rows of large tables.
        """
        query = query if isinstance(query, Query) else Query(query)
        try:
            return self._sql(query, has_few_rows)
        except UndefinedFile:
            # If Spark has once failed to find a table, it does not find the table's change feed
            # until a query has read the table itself.
            for location in sorted(query.feeds):
                text = f"SELECT 1 FROM {table_name(location)} LIMIT 0"
                self._sql(reading(text, table=location), has_few_rows)
            if not query.feeds:
                raise
            return self._sql(query, has_few_rows)

    def _sql(self, query: Query, has_few_rows: bool) -> DataFrame:
        with self.running():
            session, text = self.session, query.sql
            self.provide_for(query.tables)
            self._python_functions.make_known(session, text)
            self.query_size.choose(session, query, has_few_rows=has_few_rows)
            return session.sql(text)

    def run(self, query: Query | str) -> list[tuple[Any, ...]]:
        """Run a command and return its result rows."""
        frame = self.sql(query)
        with self.running():
            return [tuple(row) for row in frame.collect()]

    def rows(self, query: Query | str) -> list[tuple[Any, ...]]:
        """Return the rows of a query as Python values.  The caller must know that they are few."""
        table = self.arrow(self.sql(query))
        return (
            list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            if table.num_columns
            else []
        )

    def plan(self, query: Query, *, is_formatted: bool = False) -> str:
        """Return Spark's physical plan of a query.

        Raises:
            PostgresError: Spark cannot plan the query.
        """
        explained = f"EXPLAIN {'FORMATTED ' if is_formatted else ''}{query}"
        (first, *others) = self.rows(reading(explained, query))
        if others:  # ExplainCommand returns the lines of an error after one line of its own
            with translating():
                raise PlanningError("\n".join(str(line) for (line,) in others))
        return str(first[0])

    def has_class(self, name: str) -> bool:
        """Return whether Spark's class path has a Java class."""
        try:
            self.run(f"SELECT reflect({quote(name)}, 'replctl')")
        except PostgresError as error:  # without the class, or without a method of this name
            return "UNEXPECTED_CLASS_TYPE" not in str(error.__cause__)
        return True

    def property(self, name: str) -> str | None:
        """Return the value of a Spark property; None if it is not set."""
        with self.running():
            return self.session.conf.get(name, None)

    def arrow(self, frame: DataFrame) -> pa.Table:
        """Return all rows of a DataFrame.  The caller must have limited their number."""
        with self.running():
            return frame.toArrow()

    def frame(self, table: pa.Table) -> DataFrame:
        """Return a DataFrame of rows that this process holds."""
        import pyarrow as pa

        # Spark does not read on behind an empty batch (ArrowConverters.fromIPCStream)
        batches = [batch for batch in table.to_batches() if batch.num_rows]
        with self.running():
            return self.session.createDataFrame(pa.Table.from_batches(batches, table.schema))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Translate Spark's exceptions in the `with` block to ours, and cancel its jobs on Ctrl-C.
        A separate thread cancels them, because this thread may be inside a call of the JVM.

        Raises:
            PostgresError: the statement or Spark has failed.
            QueryCanceled: the user has pressed Ctrl-C (57014).
        """
        cancellation = _Cancellation(self._try_to_cancel)
        try:
            with self._noting_loss(), translating(), on_ctrl_c(cancellation.begin):
                yield
        except KeyboardInterrupt:
            self._try_to_cancel()  # if another handler has received Ctrl-C
            raise QueryCanceled("canceling statement due to user request") from None
        finally:
            cancellation.end()

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        try:
            yield
        except HostNotReached:
            raise
        except SessionEnded:  # the server can open other sessions
            self._sessions.drop()
            raise
        except ConnectionFailure:
            self.is_lost = self._conf.remote is not None or java_start.has_ended()
            raise

    def _try_to_cancel(self) -> None:
        with suppress(PostgresError), translating():  # the statement itself reports Spark's errors
            self.cancel()

    def place_log(self, log: str) -> str | None:
        """Create a Delta table that consists of files stored elsewhere (LogFolder.place).

        Returns:
            the table's location; None if Spark cannot read files of this machine.

        Args:
            log: the table's only commit.
        """
        if not self._sees_our_files:
            return None
        self.provide_for(files_on_s3(log))
        return self._log_folder.place(log)

    @cached_property
    def _sees_our_files(self) -> bool:
        if self._conf.remote is None:
            master = self._conf.master or dict(self._conf.properties).get("spark.master", "local")
            return not java_start.has_executors(master)
        if not _NEAR.match(self._conf.remote):
            return False
        token = secrets.token_hex(16)
        path = quote_name(self._log_folder.path_of(token))
        try:
            return [list(row) for row in self.run(f"SELECT value FROM text.{path}")] == [[token]]
        except PostgresError:  # the server is on another machine
            return False

    def fetch(
        self, query: Query | str, columns: Sequence[StagedColumn], max_kilobytes: int | None = None
    ) -> list[list[str | None]]:
        """Return the rows of a query as text.

        Args:
            max_kilobytes: memory that the rows may use; None: no limit, because they are few.

        Raises:
            OutOfMemory: the rows need more memory (53200).
        """
        sent = ", ".join(
            f"{wire(c.type, c.typmod).to_wire.format(c.name)} AS {c.name}" for c in columns
        )
        text = f"SELECT {sent or '1 AS nothing'} FROM ({query})"
        table = self.arrow(self.sql(reading(text, query)))
        if max_kilobytes is not None and _size_of_texts(table) > max_kilobytes * 1024:
            raise out_of_memory(max_kilobytes)
        texts = [
            [text_of_wire(column.type, value) for value in table.column(column.name).to_pylist()]
            for column in columns
        ]
        return [list(row) for row in zip(*texts, strict=True)] or [
            [] for _ in range(table.num_rows)
        ]

    def cancel(self) -> None:
        """Cancel the jobs of all threads."""
        if not self._conf.remote:
            self._first.sparkContext.cancelAllJobs()
            return
        for session in self._sessions.all():
            with suppress(SessionEnded), translating():  # an ended session has no jobs
                session.interruptAll()

    def stop(self) -> None:
        """Close the sessions of a Connect server.  A JVM of this process ends with the process; if
        the JVM has ended earlier, the process can start another one after this call.
        """
        self._sessions.clear()
        if self.is_lost and not self._conf.remote:
            java_start.forget()
        self._log_folder.close()
        for session in list(self._connected):
            self._end_session(session)


class _Cancellation:
    """A thread that cancels the jobs of a statement until the statement has ended."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if self._thread is None:  # Ctrl-C was pressed once
            self._thread = threading.Thread(target=self._run)
            self._thread.start()

    def _run(self) -> None:
        while not self._has_ended.is_set():  # another job may begin after one ends
            self._cancel()
            self._has_ended.wait(_CANCEL_INTERVAL)

    def end(self) -> None:
        """Wait until no call can cancel a job of the next statement.  Do not wait longer than
        `_CANCEL_LIMIT`: a server may not answer.
        """
        self._has_ended.set()
        if self._thread is not None:
            self._thread.join(_CANCEL_LIMIT)


def _is_not_raised(record: logging.LogRecord) -> bool:
    """Return whether a log record does not come from py4j, which logs the exceptions that it also
    raises.
    """
    return record.module != "java_gateway"


def _size_of_texts(table: pa.Table) -> int:
    """Return the estimated size in bytes of a table, plus that of its rows as lists of texts."""
    values: int = table.num_rows * (table.num_columns + 1)
    characters: int = table.nbytes
    return 2 * characters + values * _VALUE_BYTES
