"""Keep rows that several jobs need: few rows in this process, many in Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from replctl.spark.data_type import value_literal, wire, wire_of_text
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import Staged, StagedColumn, view_rows
from replctl.types.delta_type import is_native

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from replctl.spark.engine import Engine

#: Maximum number of rows to fetch to this process, and to send back to Spark for other queries.
SMALL = 2000


@contextmanager
def staged(
    engine: Engine,
    query: Query,
    columns: Sequence[StagedColumn],
    *,
    is_repeatable: bool = False,
    is_many: bool | None = None,
    is_shared: bool = False,
) -> Iterator[Staged]:
    """Compute a query once, and keep its rows for other queries during the `with` block.  Rows with
    native columns stay in Spark, even if they are few.

    Args:
        is_repeatable: the query always returns the same rows.  So it can run again, and many rows
            need not be kept.
        is_many: there are many rows, so Spark keeps them before it counts them.  False means
            that the rows are probably few, and None that this is unknown.
        is_shared: other threads may read the rows.  If they are few, those threads must use `rows`
            instead of the view.
    """
    with ExitStack() as stack:
        keep = _repeated if is_repeatable else _shared if is_shared else _kept
        view, count = None, 0
        stays = any(is_native(column.type) for column in columns)
        if is_many or stays:
            view, count = stack.enter_context(keep(engine, query, columns))
        if view is not None and (stays or count > SMALL):
            yield Staged(view, tuple(columns), None)
            return
        sent = ", ".join(f"{_sent(column)} AS {column.name}" for column in columns)
        source, rows = (f"({query})", query) if view is None else (view, view_rows(view))
        limited = reading(f"SELECT {sent} FROM {source} LIMIT {SMALL + 1}", rows)
        first = engine.arrow(engine.sql(limited, has_few_rows=is_many is False))
        if first.num_rows <= SMALL:
            stack.pop_all().close()
            few = stack.enter_context(late_view(engine, first, columns))
            yield Staged(few, tuple(columns), first)
            return
        if view is None:
            view, _count = stack.enter_context(keep(engine, query, columns))
        yield Staged(view, tuple(columns), None)


@contextmanager
def _kept(
    engine: Engine, query: Query, columns: Sequence[StagedColumn]
) -> Iterator[tuple[str, int]]:
    """Yield a view of many rows, which Spark caches at the first read, and 0: their number is not
    known.
    """
    from pyspark import StorageLevel

    with _view_of(engine, query, columns) as view, engine.query_size.large(view):
        with engine.running():
            frame = engine.session.table(view).persist(StorageLevel.DISK_ONLY)
        try:
            yield view, 0
        finally:
            with engine.running():
                frame.unpersist()


@contextmanager
def _shared(
    engine: Engine, query: Query, columns: Sequence[StagedColumn]
) -> Iterator[tuple[str, int]]:
    """Yield a view of many rows for all sessions, and their number.  Compute the rows immediately,
    because the functions that they may need belong to this session.
    """
    with _kept(engine, query, columns) as (own, _count):
        name = f"{own}_shared"
        with engine.running():
            frame = engine.session.table(own)
            frame.createOrReplaceGlobalTempView(name)
            session = engine.session
        view = f"global_temp.{name}"
        try:
            with engine.query_size.large(view):
                yield view, count_rows(engine, view_rows(view))
        finally:
            with engine.running():
                session.catalog.dropGlobalTempView(name)


@contextmanager
def _repeated(
    engine: Engine, query: Query, columns: Sequence[StagedColumn]
) -> Iterator[tuple[str, int]]:
    """Yield a view of many rows that Spark reads again each time, and 0 for their unknown
    number."""
    with _view_of(engine, query, columns) as view, engine.query_size.large(view):
        yield view, 0


@contextmanager
def _view_of(engine: Engine, query: Query, columns: Sequence[StagedColumn]) -> Iterator[str]:
    """Yield a view of a query whose steps are views instead of WITH items.

    Spark numbers all WITH items of a statement, and compares queries with these numbers. If both a
    statement and the query of cached rows had a WITH, Spark would not recognise the cached rows. It
    would compute them again.
    """
    names = ", ".join(column.name for column in columns)
    with ExitStack() as stack:
        with _Steps(engine) as steps:
            rows = replace(query, select=f"SELECT {names} FROM ({query.select})")
            view = stack.enter_context(named_view(engine, steps.frame(rows, {})))
        engine.query_size.choose(engine.session, query)  # the last step may not read a table
        yield view


class _Steps:
    """Creates views of the session for the steps of queries, with the steps' names, and drops them
    when it is closed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._views: dict[str, DataFrame] = {}  # the current view of each name
        self._stack = ExitStack()

    def __enter__(self) -> _Steps:
        return self

    def __exit__(self, *exception: object) -> None:
        session = self._engine.session
        with self._stack, self._engine.running():
            for name in self._views:
                session.catalog.dropTempView(name)

    def frame(self, query: Query | str, outer: Mapping[str, DataFrame]) -> DataFrame:
        """Return the DataFrame of a query.

        Args:
            outer: the steps of outer queries, which the query may read.
        """
        seen = dict(outer)
        if isinstance(query, str):
            return self._read(Query(query), seen)
        for name, step in query.steps:
            # With Connect a DataFrame is only text.  Later, a name in it may mean another view.
            view = self._stack.enter_context(named_view(self._engine, self.frame(step, seen)))
            seen[name] = self._engine.session.table(view)
        return self._read(reading(query.select, query), seen)

    def _read(self, query: Query, seen: Mapping[str, DataFrame]) -> DataFrame:
        with self._engine.running():
            for name, frame in seen.items():
                if self._views.get(name) is not frame:  # an inner step may have the same name
                    frame.createOrReplaceTempView(name)
                    self._views[name] = frame
        return self._engine.sql(query)


def fetched(engine: Engine, rows: Staged) -> Staged:
    """Return kept rows after fetching them into this process, even if they are many.  Their `view`
    may also be a query in parentheses.
    """
    if rows.is_small:
        return rows
    sent = ", ".join(f"{_sent(column)} AS {column.name}" for column in rows.columns)
    table = engine.arrow(engine.sql(reading(f"SELECT {sent} FROM {rows.view}", rows.query)))
    return replace(rows, rows=table)


def count_rows(engine: Engine, query: Query) -> int:
    """Return the number of rows of a query."""
    ((count,),) = engine.rows(reading(f"SELECT count(*) FROM ({query})", query))
    return int(count)


class LocalRows:
    """Collects rows of this process for Spark, in wire form.

    Args:
        columns: the columns of the rows.
    """

    def __init__(self, columns: Sequence[StagedColumn]) -> None:
        self.columns = tuple(columns)
        self._pieces: list[pa.Table] = []

    def add(self, rows: Sequence[Sequence[str | None]]) -> None:
        """Add rows in canonical text."""
        self._pieces.append(wire_table(self.columns, rows))

    @property
    def table(self) -> pa.Table:
        """Return all rows."""
        import pyarrow as pa

        return pa.concat_tables(self._pieces)

    def view(self, engine: Engine) -> AbstractContextManager[str]:
        """Yield the name of a view of the rows."""
        return local_view(engine, self.table, self.columns)


@contextmanager
def late_view(
    engine: Engine, rows: pa.Table, columns: Sequence[StagedColumn]
) -> Iterator[Callable[[], str]]:
    """Yield a function that returns the name of a view of rows (`local_view`).  The first call of
    the function makes the view, because often only this process needs the rows.
    """
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(local_view(engine, rows, columns)))


@contextmanager
def local_view(engine: Engine, rows: pa.Table, columns: Sequence[StagedColumn]) -> Iterator[str]:
    """Yield the name of a temporary view of `rows`.  Spark converts the values from their wire form
    (data_type.wire) to the storage types of `columns`.
    """
    received = [
        f"{wire(column.type, column.typmod).from_wire.format(column.name)} AS {column.name}"
        for column in columns
    ]
    if rows.num_rows:
        frame = engine.frame(rows)
        with engine.running():
            # One task reads few rows in their order, so that the first error is the first row's
            frame = frame.coalesce(1) if rows.num_rows <= SMALL else frame
            frame = frame.selectExpr(*received)
    else:
        nothing = [f"{value_literal(c.type, c.typmod, None)} AS {c.name}" for c in columns]
        frame = engine.sql(f"SELECT {', '.join(nothing)} WHERE FALSE")
    with named_view(engine, frame) as view:
        yield view


def wire_table(columns: Sequence[StagedColumn], rows: Sequence[Sequence[str | None]]) -> pa.Table:
    """Convert rows of canonical texts to their wire form."""
    import pyarrow as pa

    arrays = [
        pa.array(
            [wire_of_text(column.type, column.typmod, row[i]) for row in rows],
            wire(column.type, column.typmod).arrow,
        )
        for i, column in enumerate(columns)
    ]
    return pa.table(dict(zip((column.name for column in columns), arrays, strict=True)))


@contextmanager
def named_view(engine: Engine, frame: DataFrame) -> Iterator[str]:
    """Create a temporary view of a DataFrame for the `with` block, and yield its name."""
    view, session = f"replctl_{uuid.uuid4().hex}", engine.session
    with engine.running():
        frame.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        with engine.running():
            session.catalog.dropTempView(view)


def _sent(column: StagedColumn) -> str:
    return wire(column.type, column.typmod).to_wire.format(column.name)
