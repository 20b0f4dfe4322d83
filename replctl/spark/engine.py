"""Spark for a process: its sessions, queries and their rows, and the end of its jobs."""

from __future__ import annotations

import atexit
import logging
import re
import secrets
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
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
from replctl.spark.feed_name import feeds_in
from replctl.spark.log_folder import LogFolder
from replctl.spark.python_functions import PythonFunctions
from replctl.spark.query_size import QuerySize
from replctl.spark.session_pool import SessionPool
from replctl.spark.spark_conf import SparkConf
from replctl.spark.spark_errors import HostNotReached, translating
from replctl.spark.staged import StagedColumn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's own, about its dependencies
    from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    import pyarrow as pa

# Spark warns of settings that are going to go; a filter for a block is not one thread's own
warnings.filterwarnings("ignore", message="The SQL config", category=UserWarning)
# What has been tried in vain is raised, too
warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)

#: What they write is raised too, or is of a connection that is closed.
_REPEATING_LOGGERS = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "pyspark",
    "py4j.clientserver",
)
#: Bytes of a text and of its place in a row, without its characters.
_VALUE_BYTES = 70
#: Seconds.
_CANCEL_INTERVAL = 0.1
#: An address of this machine, as far as the name says it.
_NEAR = re.compile(r"sc://(localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)")


class Engine:
    """Spark for this process.  Each thread has a session of its own: settings of a write are a
    session's.

    Attributes:
        is_lost: its JVM has ended, or its Connect server cannot be reached any more.
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
        atexit.register(self.stop)  # a Connect session that is left to the interpreter's end hangs
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
        """The calling thread's session.

        Raises:
            ConnectionFailure: Spark has ended, or cannot be reached.
        """
        with self._noting_loss():
            return self._sessions.current()

    def new_session(self) -> SparkSession:
        """Return a session with the engine's properties and no settings of its own; it ends with
        the engine."""
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
        except BaseException:  # a server that is refused, or that has gone
            self._end_session(session)
            raise
        return session

    def _end_session(self, session: SparkSession) -> None:
        """Close the connection of a session with a Connect server; others end with the JVM."""
        if session not in self._connected:
            return
        self._connected.remove(session)
        session.client.set_retry_policies([])  # a server that has gone knows no session
        session.stop()
        # What outlives this, in a traceback say, would close its channel once more when the
        # interpreter ends, and wait for ever.
        session._client = None  # type: ignore[attr-defined]

    def _has_session(self, session: SparkSession) -> bool:
        """Return whether Spark has not ended a session.

        Raises:
            ConnectionFailure: the server cannot be reached.
        """
        if not self._conf.remote:
            return True
        try:
            with translating():
                session.conf.get("spark.sql.ansi.enabled")  # PySpark remembers the version
                return True
        except SessionEnded:
            return False

    def sql(self, text: str, *, has_few_rows: bool = False) -> DataFrame:
        """Return the result of a query, not yet computed; a command is carried out.

        Args:
            has_few_rows: few rows of large tables are read.
        """
        try:
            return self._sql(text, has_few_rows)
        except UndefinedFile:
            # Once it has missed a table Spark finds its change feed again only after its rows
            locations = feeds_in(text)
            for location in locations:
                self._sql(f"SELECT 1 FROM {table_name(location)} LIMIT 0", has_few_rows)
            if not locations:
                raise
            return self._sql(text, has_few_rows)

    def _sql(self, text: str, has_few_rows: bool) -> DataFrame:
        with self.running():
            session = self.session
            self._python_functions.make_known(session, text)
            self.query_size.choose(session, text, has_few_rows=has_few_rows)
            return session.sql(text)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Carry out a command; the rows that it answers with."""
        frame = self.sql(text)
        with self.running():
            return [tuple(row) for row in frame.collect()]

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that is known to have few, as Python values through Arrow."""
        table = self.arrow(self.sql(text))
        return (
            list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            if table.num_columns
            else []
        )

    def has_class(self, name: str) -> bool:
        """Return whether Spark's program has a class of Java."""
        try:
            self.run(f"SELECT reflect({quote(name)}, 'replctl')")
        except PostgresError as error:
            return "UNEXPECTED_CLASS_TYPE" not in str(error.__cause__)
        return True

    def arrow(self, frame: DataFrame) -> pa.Table:
        """Return all rows of a DataFrame, which the caller has bounded."""
        with self.running():
            return frame.toArrow()

    def frame(self, table: pa.Table) -> DataFrame:
        """Return a DataFrame of local rows."""
        with self.running():
            return self.session.createDataFrame(table)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around whatever makes Spark work: its exceptions become ours, Ctrl-C cancels its jobs, in
        a thread of its own, for this one may be amid a call of the JVM.

        Raises:
            PostgresError: what the statement did wrong, or what happened to Spark.
            QueryCanceled: Ctrl-C (57014).
        """
        has_ended = threading.Event()
        try:
            with (
                self._noting_loss(),
                translating(),
                on_ctrl_c(partial(self._cancel_until, has_ended)),
            ):
                yield
        except KeyboardInterrupt:
            self._try_to_cancel()  # where something else than this has taken Ctrl-C
            raise QueryCanceled("canceling statement due to user request") from None
        finally:
            has_ended.set()

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        try:
            yield
        except HostNotReached:
            raise
        except SessionEnded:  # the server has others
            self._sessions.drop()
            raise
        except ConnectionFailure:
            self.is_lost = self._conf.remote is not None or java_start.has_ended()
            raise

    def _cancel_until(self, has_ended: threading.Event) -> None:
        def cancel() -> None:
            while not has_ended.is_set():  # one job ends, and the next one begins
                self._try_to_cancel()
                has_ended.wait(_CANCEL_INTERVAL)

        threading.Thread(target=cancel).start()

    def _try_to_cancel(self) -> None:
        with suppress(PostgresError), translating():  # what Spark does wrong the statement tells
            self.cancel()

    def place_log(self, log: str) -> str | None:
        """Make a Delta table of files that lie elsewhere (LogFolder.place); None, if Spark does not
        see the files of this machine.

        Args:
            log: the table's only commit.
        """
        return self._log_folder.place(log) if self._sees_our_files else None

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
        except PostgresError:  # the address leads to another machine
            return False

    def fetch(
        self, query: str, columns: Sequence[StagedColumn], max_kilobytes: int | None = None
    ) -> list[list[str | None]]:
        """Return the rows of a query, in the text form of their types.

        Args:
            max_kilobytes: memory that they may take; None: they are known to be few.

        Raises:
            OutOfMemory: they take more (53200).
        """
        sent = ", ".join(
            f"{wire(c.type, c.typmod).to_wire.format(c.name)} AS {c.name}" for c in columns
        )
        table = self.arrow(self.sql(f"SELECT {sent or '1 AS nothing'} FROM ({query})"))
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
        """End the jobs of all threads."""
        if not self._conf.remote:
            self._first.sparkContext.cancelAllJobs()
            return
        for session in self._sessions.all():
            with suppress(SessionEnded), translating():
                session.interruptAll()

    def stop(self) -> None:
        """End the sessions with a Connect server; a JVM that was started here ends with this
        process, which may have another one where it is lost."""
        self._sessions.clear()
        if self.is_lost and not self._conf.remote:
            java_start.forget()
        self._log_folder.close()
        for session in list(self._connected):
            self._end_session(session)


def _is_not_raised(record: logging.LogRecord) -> bool:
    """py4j writes what it raises into the root's log, too."""
    return record.module != "java_gateway"


def _size_of_texts(table: pa.Table) -> int:
    """Return about how many bytes the rows of a table take with it, as lists of texts."""
    values: int = table.num_rows * (table.num_columns + 1)
    characters: int = table.nbytes
    return 2 * characters + values * _VALUE_BYTES
