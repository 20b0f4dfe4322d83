"""A Spark session, classic or Connect, with the settings that PostgreSQL's results need."""

from __future__ import annotations

import atexit
import logging
import os
import re
import secrets
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replctl.ctrl_c import on_ctrl_c
from replctl.errors import (
    ConnectionFailure,
    FeatureNotSupported,
    PostgresError,
    QueryCanceled,
    SessionEnded,
    UndefinedFile,
)
from replctl.expr.nodes import Expr
from replctl.spark import (
    SparkConf,
    delta_table,
    foreign_key,
    jvm,
    local_change,
    merge,
    reconcile,
    replicated_change,
    uniqueness,
)
from replctl.spark.change_data_feed import changes_sql, feeds_in, ordered_changes_sql
from replctl.spark.data_type import quote, quote_name, table_name, text_of_wire, wire
from replctl.spark.environment import NO_DEFAULTS, told_to_pyspark
from replctl.spark.errors import HostNotReached, translated
from replctl.spark.log_folder import LogFolder
from replctl.spark.memory import cached_logs, heap, memory_limit
from replctl.spark.merge import LeafChange, WritePath
from replctl.spark.narrowed_version import narrowed
from replctl.spark.outcome import Outcome, Problem, earliest_problem, first_problem
from replctl.spark.python_functions import PythonFunctions
from replctl.spark.query_size import QuerySize
from replctl.spark.replicated_change import ChangeSummary
from replctl.spark.revert import revert
from replctl.spark.scratch import make_scratch
from replctl.spark.session_pool import SessionPool
from replctl.spark.settings import (
    DELTA,
    FORCED_SETTINGS,
    check_delta,
    check_forced_settings,
    has_value,
    unwanted,
    without_legacy,
)
from replctl.spark.shared_feed import SharedFeeds
from replctl.spark.staging import SMALL, Staged, StagedColumn, local_view, staged, wire_table
from replctl.spark.values import (
    OPTIMIZED_FILE_SIZE,
    ChangeSource,
    CommitNote,
    FeedVersion,
    ForeignChanges,
    Leaf,
    Mending,
    Reference,
    SentColumn,
    TableColumn,
    TableSource,
    Target,
    UniqueKey,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's own, about its dependencies
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    import pyarrow as pa

# Spark warns of settings that are going to go; a filter for a block is not one thread's own
warnings.filterwarnings("ignore", message="The SQL config", category=UserWarning)
# What has been tried in vain is raised, too
warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)

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
#: What they write is raised too, or is of a connection that is closed.
_REPEATING_LOGGERS = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "pyspark",
    "py4j.clientserver",
)
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

#: Seconds.
_CANCEL_INTERVAL = 0.1
#: PySpark sends a token without TLS to this name alone.
_LOOPBACK = re.compile(r"(?<=^sc://)(127\.0\.0\.1|\[::1\])(?=[:/]|$)")
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
        with _translating():
            if conf.remote:
                first = self._connected_session()
            else:
                first = self._start(log)
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
        with _translating():
            return self._connect() if self._conf.remote else self._first.newSession()

    def _configured_session(self) -> SparkSession:
        with _translating():
            if self._conf.remote:
                return self._connected_session()
            session = self._first.newSession()
            self._configure(session)
            return session

    def _connected_session(self) -> SparkSession:
        session = self._connect()
        try:
            self._configure(session)
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
            with _translating():
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
                _translating(),
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
            self.is_lost = self._conf.remote is not None or jvm.has_ended()
            raise

    def _cancel_until(self, has_ended: threading.Event) -> None:
        def cancel() -> None:
            while not has_ended.is_set():  # one job ends, and the next one begins
                self._try_to_cancel()
                has_ended.wait(_CANCEL_INTERVAL)

        threading.Thread(target=cancel).start()

    def _try_to_cancel(self) -> None:
        with suppress(PostgresError), _translating():  # what Spark does wrong the statement tells
            self.cancel()

    # -- tables

    def create_table(
        self,
        location: str,
        columns: Sequence[TableColumn],
        note: CommitNote,
        *,
        deletion_vectors: bool = True,
    ) -> None:
        """Make an empty Delta table; without deletion vectors, a change writes its files again."""
        properties = {"delta.enableDeletionVectors": str(deletion_vectors).lower()}
        stored = delta_table.storage_columns(columns)
        delta_table.create(self, location, stored, properties, note)

    def add_columns(self, location: str, columns: Sequence[TableColumn], note: CommitNote) -> None:
        """Add columns to a table."""
        delta_table.add_columns(self, location, delta_table.storage_columns(columns), note)

    def fill_columns(self, location: str, columns: Sequence[TableColumn], note: CommitNote) -> None:
        """Give all rows of a table the value that columns added by DDL have in rows before."""
        delta_table.fill_columns(self, location, columns, note)

    def rewrite_columns(self, location: str, values: Mapping[str, str], note: CommitNote) -> None:
        """Give columns of a table, by their names in storage, values that are Spark SQL."""
        delta_table.rewrite_columns(self, location, values, note)

    def set_properties(self, location: str, properties: Mapping[str, str]) -> None:
        """Change properties of a table."""
        delta_table.set_properties(self, location, properties)

    def truncate(self, location: str, note: CommitNote) -> None:
        """Remove all rows of a table."""
        delta_table.execute(self, f"TRUNCATE TABLE {table_name(location)}", note)

    def restore(self, location: str, version: int, note: CommitNote) -> None:
        """Make a table what it was at a version."""
        delta_table.restore(self, location, version, note)

    def optimize(self, location: str, key: Sequence[str]) -> None:
        """Write many small files as few large ones; no row changes.

        Args:
            key: names, in storage, of columns by which rows that are near to each other are to lie
                together.
        """
        delta_table.optimize(self, location, key)

    def revert(
        self,
        source: TableSource,
        key: Sequence[int],
        own: Sequence[FeedVersion],
        foreign: Sequence[FeedVersion],
        note: CommitNote,
    ) -> None:
        """Take back what commits have done to a table's rows, as `revert.revert`."""
        revert(self, source, key, own, foreign, note)

    # -- replication

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
            return not jvm.has_executors(master)
        if not _NEAR.match(self._conf.remote):
            return False
        token = secrets.token_hex(16)
        path = quote_name(self._log_folder.path_of(token))
        try:
            return [list(row) for row in self.run(f"SELECT value FROM text.{path}")] == [[token]]
        except PostgresError:  # the address leads to another machine
            return False

    def copied(
        self, target: Target, sent: Sequence[SentColumn], rows: str
    ) -> AbstractContextManager[Outcome]:
        """Return the outcome of an initial copy; `rows` is `copied_sql`."""
        return replicated_change.copied(self, target, sent, rows)

    def difference(
        self, target: Target, sent: Sequence[SentColumn], rows: str, mending: Mending
    ) -> AbstractContextManager[Staged]:
        """Return where a target differs from the published rows; `rows` is `copied_sql`."""
        return reconcile.difference(self, target, sent, rows, mending)

    def renewed_difference(
        self,
        target: Target,
        sent: Sequence[SentColumn],
        rows: str,
        mending: Mending,
        earlier: Staged,
        changes: Sequence[ForeignChanges],
    ) -> AbstractContextManager[Staged]:
        """Return a difference that was found before, after others have changed rows of the
        target."""
        return reconcile.renewed_difference(self, target, sent, rows, mending, earlier, changes)

    def reconciled(self, target: Target, difference: Staged) -> AbstractContextManager[Outcome]:
        """Return the outcome of writing a difference."""
        return reconcile.reconciled(self, target, difference)

    def count_deleted(self, target: Target, difference: Staged) -> tuple[int, int]:
        """Return how many rows of a target a difference deletes, and how many it has."""
        return reconcile.count_deleted(self, target, difference)

    def count_unpublished(
        self,
        target: Target,
        sent: Sequence[SentColumn],
        rows: str,
        scope: tuple[Expr, ...] | None,
    ) -> tuple[int, int]:
        """Return how many rows of a target are not published: those in a scope, and all."""
        return reconcile.count_unpublished(self, target, sent, rows, scope)

    @contextmanager
    def decoded(
        self,
        sources: Sequence[ChangeSource],
        sent: Sequence[SentColumn],
        count: int,
        feeds: SharedFeeds | None = None,
    ) -> Iterator[Staged]:
        """Yield the changes of one published relation, in however many tables they are.

        Args:
            count: how many changes are read for it, about.
            feeds: what others read, too.
        """
        with ExitStack() as stack:
            if feeds is None:
                narrow = [stack.enter_context(narrowed(self, source, count)) for source in sources]
                query = " UNION ALL ".join(map(changes_sql, narrow))
            else:
                pairs = [
                    stack.enter_context(feeds.pairs(self, source, count)) for source in sources
                ]
                query = " UNION ALL ".join(map(changes_sql, sources, pairs))
            columns = _change_columns(sent)
            is_many = count > SMALL if feeds is None else None
            yield stack.enter_context(staged(self, query, columns, is_many=is_many))

    def listed_changes(
        self, source: ChangeSource, sent: Sequence[SentColumn]
    ) -> list[list[str | None]]:
        """Return the changes of one table, in the text form of their types: position, action, the
        old row, the new one; in an order as good as can be known."""
        return self.fetch(ordered_changes_sql(source), _change_columns(sent))

    def moving_positions(
        self, changes: Staged, key: Sequence[int], first: int, last: int
    ) -> set[int]:
        """Return the positions of updates that change a key, given by the places of its columns."""
        return replicated_change.moving_positions(self, changes, key, first, last)

    def converted(
        self,
        target: Target,
        sent: Sequence[SentColumn],
        changes: Staged,
        first: int,
        last: int,
    ) -> AbstractContextManager[Staged]:
        """Return the changes at positions from `first` to `last` as the target stores them."""
        return replicated_change.converted(self, target, sent, changes, first, last)

    def summary(self, target: Target, changes: Staged) -> ChangeSummary:
        """Return what is known of converted changes before they meet their target."""
        return replicated_change.summary(self, target, changes)

    def outcome(
        self, target: Target, changes: Staged, summary: ChangeSummary
    ) -> AbstractContextManager[Outcome]:
        """Return what converted changes do to their target."""
        return replicated_change.outcome(self, target, changes, summary)

    def count_actions(self, changes: Staged, first: int, last: int) -> dict[str, int]:
        """Return how many changes of a range there are of each kind (I, U, D)."""
        counted = self.rows(
            f"SELECT action, count(*) FROM {changes.view} WHERE position BETWEEN {first} AND"
            f" {last} GROUP BY action"
        )
        return {str(action): int(count) for action, count in counted}

    def first_action(
        self, changes: Staged, first: int, last: int, actions: str = "IUD"
    ) -> tuple[int, str] | None:
        """Position and kind of the first change of a range that is of one of some kinds."""
        listed = ", ".join(f"'{action}'" for action in actions)
        found = self.rows(
            f"SELECT position, action FROM {changes.view} WHERE position BETWEEN {first} AND {last}"
            f" AND action IN ({listed}) ORDER BY position LIMIT 1"
        )
        return (int(found[0][0]), str(found[0][1])) if found else None

    def failing_conversion(
        self, target: Target, sent: Sequence[SentColumn], changes: Staged, position: int
    ) -> tuple[str, str] | None:
        """Return the change at a position with a value that cannot be converted: its kind and
        column."""
        return replicated_change.failing_conversion(self, target, sent, changes, position)

    def count_rows(self, query: str) -> int:
        """Return how many rows a query has."""
        ((count,),) = self.rows(f"SELECT count(*) FROM ({query})")
        return int(count)

    def has_rows(self, location: str) -> bool:
        """Return whether a table has any row."""
        return bool(self.rows(f"SELECT 1 FROM {table_name(location)} LIMIT 1"))

    # -- statements

    def inserted(
        self, target: Target, rows: str, place: str | None = None
    ) -> AbstractContextManager[Outcome]:
        """Return the outcome of INSERT; `rows` is a query of w<attnum>, in order, or with a column
        `place` that numbers them."""
        return local_change.inserted(self, target, rows, place)

    def changed(
        self,
        target: Target,
        rows: str,
        *,
        op: str,
        moves_keys: bool = False,
        with_old: bool = False,
    ) -> AbstractContextManager[Outcome]:
        """Return the outcome of UPDATE (op U) or DELETE (D); `rows` is a query of leaf, c<attnum>,
        w<attnum>."""
        return local_change.changed(
            self, target, rows, op=op, moves_keys=moves_keys, with_old=with_old
        )

    def local_rows(
        self, columns: Sequence[StagedColumn], rows: Sequence[Sequence[str | None]]
    ) -> AbstractContextManager[str]:
        """Return rows given as canonical texts, as a view; its name."""
        return local_view(self, wire_table(columns, rows), columns)

    def fetch(self, query: str, columns: Sequence[StagedColumn]) -> list[list[str | None]]:
        """Return the rows of a query, in the text form of their types."""
        sent = ", ".join(
            f"{wire(c.type, c.typmod).to_wire.format(c.name)} AS {c.name}" for c in columns
        )
        table = self.arrow(self.sql(f"SELECT {sent or '1 AS nothing'} FROM ({query})"))
        texts = [
            [text_of_wire(column.type, value) for value in table.column(column.name).to_pylist()]
            for column in columns
        ]
        return [list(row) for row in zip(*texts, strict=True)] or [
            [] for _ in range(table.num_rows)
        ]

    # -- outcomes

    def first_problem(self, outcome: Outcome, keys: Sequence[UniqueKey]) -> Problem | None:
        """Return what stands in the way of an outcome, in the order of its changes.

        Args:
            keys: the target's unique indexes that its rows may violate.
        """
        found = first_problem(self, outcome)
        others = uniqueness.duplicates(self, outcome, keys)
        return earliest_problem(others if found is None else [found, *others])

    def first_collision(self, outcome: Outcome, target: Target) -> Problem | None:
        """After an outcome is written: the first of its rows whose unique key another row has."""
        return uniqueness.first_collision(self, outcome, target)

    def first_orphan(self, outcome: Outcome, reference: Reference) -> Problem | None:
        """Return the first new row that refers to a row that is not there."""
        return foreign_key.first_orphan(self, outcome, reference)

    def first_broken_reference(self, outcome: Outcome, reference: Reference) -> Problem | None:
        """Return the first row that goes although others refer to it."""
        return foreign_key.first_broken_reference(self, outcome, reference)

    def leaf_changes(self, outcome: Outcome) -> list[LeafChange]:
        """For each leaf of the target what an outcome does to it."""
        return merge.changes_of_leaves(outcome)

    def write_path(self, outcome: Outcome, change: LeafChange) -> WritePath:
        """Return how an outcome is going to be written into a leaf."""
        return merge.write_path(outcome, change)

    def write_leaf(
        self, outcome: Outcome, number: int, leaf: Leaf, change: LeafChange, note: CommitNote
    ) -> None:
        """Write an outcome's rows of one leaf, in one commit."""
        merge.write_leaf(self, outcome, number, leaf, change, note)

    def replace_leaf(self, outcome: Outcome, number: int, leaf: Leaf, note: CommitNote) -> None:
        """Put an outcome's rows of one leaf in the place of all that it has, in one commit."""
        merge.replace_leaf(self, outcome, number, leaf, note)

    def cancel(self) -> None:
        """End the jobs of all threads."""
        if not self._conf.remote:
            self._first.sparkContext.cancelAllJobs()
            return
        for session in self._sessions.all():
            with suppress(SessionEnded), _translating():
                session.interruptAll()

    def stop(self) -> None:
        """End the sessions with a Connect server; a JVM that was started here ends with this
        process, which may have another one where it is lost."""
        self._sessions.clear()
        if self.is_lost and not self._conf.remote:
            jvm.forget()
        self._log_folder.close()
        for session in list(self._connected):
            self._end_session(session)

    def _connect(self) -> SparkSession:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        assert self._conf.remote is not None
        os.environ.pop("SPARK_REMOTE", None)
        with told_to_pyspark(NO_DEFAULTS):
            session = SparkSession.builder.remote(
                _LOOPBACK.sub("localhost", self._conf.remote)
            ).create()
        # A server that does not answer is tried again for some 5 seconds, not for PySpark's ten
        # minutes, in which nothing is said and Ctrl-C waits, too
        patience = DefaultPolicy(
            max_retries=9, initial_backoff=50, backoff_multiplier=2.0, max_backoff=1000
        )
        session.client.set_retry_policies([patience])
        self._connected.append(session)
        return session

    def _start(self, log: Path | None) -> SparkSession:
        properties = _DEFAULT_PROPERTIES | without_legacy(dict(self._conf.properties))
        memory = properties.setdefault("spark.driver.memory", heap(_HEAP, memory_limit()))
        properties.setdefault(_CACHED_LOGS, str(cached_logs(memory)))
        properties["spark.master"] = self._conf.master or properties.get("spark.master", "local[*]")
        if self._conf.is_brief:
            options = properties.get("spark.driver.extraJavaOptions", "")
            properties["spark.driver.extraJavaOptions"] = f"{jvm.BRIEF_OPTIONS} {options}"
        if jvm.has_executors(properties["spark.master"]):
            properties |= jvm.executor_properties(properties)
        else:  # nobody else has to reach its ports, which ask for no token
            properties = _LOCAL_PROPERTIES | properties
        scratch = make_scratch(self._conf.scratch, properties.get("spark.local.dir"))
        properties = properties | scratch.properties()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # set by a session with a server before
        builder = SparkSession.builder.config("spark.api.mode", "classic")
        for name, value in (properties | FORCED_SETTINGS).items():
            builder = builder.config(name, value)
        try:
            with jvm.gateway(properties, scratch, log), _keeping_handler(signal.SIGINT):
                session = builder.getOrCreate()
                session.sparkContext.setLogLevel("ERROR")  # fails where Spark has given up
                self._configure(session)
        except BaseException:
            jvm.forget()  # it has ended: the next start would wait for it, or use what it had
            raise
        return session

    def _configure(self, session: SparkSession) -> None:
        """Set what a session can set, and refuse a server that has not what only its start can give
        it."""
        if session.version.split(".")[:2] != ["4", "2"]:
            raise FeatureNotSupported(
                f"Spark {session.version} is not supported", detail="replctl needs Spark 4.2."
            )
        chosen = dict(self._conf.properties)
        settings = {name: chosen.get(name, _DEFAULT_PROPERTIES[name]) for name in _LEAN_SETTINGS}
        if self._conf.remote:
            settings |= without_legacy(chosen)
        found = self._settings_of(session, (*settings, *FORCED_SETTINGS, *DELTA))
        check_delta(found)
        for name, value in settings.items():
            if name not in FORCED_SETTINGS and found.get(name) != value:
                session.conf.set(name, value)
        for name, value in FORCED_SETTINGS.items():
            if not has_value(found, name, value):
                with suppress(PySparkException):  # what a session cannot set, is told below
                    session.conf.set(name, value)
        if self._conf.remote:  # a session of our own JVM takes what it is given
            for name in unwanted(found, chosen):
                with suppress(PySparkException):
                    session.conf.unset(name)
            check_forced_settings(session.conf.getAll, chosen)

    def _settings_of(self, session: SparkSession, names: Iterable[str]) -> Mapping[str, str | None]:
        """Return settings that a session has: of a Connect server all, for it is asked once."""
        if self._conf.remote:
            return session.conf.getAll
        return {name: session.conf.get(name, None) for name in names}


def _change_columns(sent: Sequence[SentColumn]) -> list[StagedColumn]:
    """Return what a query of changes returns: of each row its old image and its new one."""
    images = [
        StagedColumn(f"{image}{i}", column.type, column.typmod)
        for image in "on"
        for i, column in enumerate(sent, start=1)
    ]
    return [StagedColumn("position", "int8"), StagedColumn("action", "text"), *images]


@contextmanager
def _keeping_handler(number: signal.Signals) -> Iterator[None]:
    """Around what takes a signal for itself: PySpark's handler calls the JVM from within the call
    that it interrupts, which fails."""
    handler = signal.getsignal(number)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


def _is_not_raised(record: logging.LogRecord) -> bool:
    """py4j writes what it raises into the root's log, too."""
    return record.module != "java_gateway"


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except Exception as error:
        raise translated(error) from error
