"""Read each change data feed once for several subscriptions: pair the images once, and let each
subscription filter the pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from replctl.spark.change_data_feed import paired_columns_sql, pairs_of_columns_sql, pairs_sql
from replctl.spark.narrowed_version import narrowed
from replctl.spark.spark_query import Query
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import SMALL, local_view, staged
from replctl.spark.values import IMAGES, ChangeSource

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


class SharedFeeds:
    """Keeps the feeds that it has read until it is closed.  The first subscription that needs a
    feed reads it for all others.
    """

    def __init__(self) -> None:
        self._opening = Lock()  # guards `_reading`, so that no thread waits for another feed
        self._reading: dict[Hashable, Lock] = {}  # for each feed: others wait for its first reader
        self._read: dict[Hashable, Staged] = {}
        self._stack = ExitStack()

    def __enter__(self) -> SharedFeeds:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @contextmanager
    def pairs(self, engine: Engine, change_source: ChangeSource, count: int) -> Iterator[Query]:
        """Yield a query for the pairs of a table's changes (change_data_feed.pairs_sql).

        Args:
            count: estimated number of changes.
        """
        rows = self._rows(engine, change_source, count)
        if rows.rows is None:
            yield pairs_of_columns_sql(change_source.source, rows.view)
            return
        with local_view(engine, rows.rows, rows.columns) as view:
            yield pairs_of_columns_sql(change_source.source, view)

    def _rows(self, engine: Engine, change_source: ChangeSource, count: int) -> Staged:
        source, key = change_source.source, change_source.key
        versions = tuple(replace(version, position=0) for version in change_source.versions)
        feed = (source, key, versions)
        with self._opening:
            reading = self._reading.setdefault(feed, Lock())
        with reading:
            if feed not in self._read:
                columns = [
                    StagedColumn("version", "int8"),
                    StagedColumn("kind", "text"),
                    StagedColumn("has_o", "bool"),
                    StagedColumn("has_n", "bool"),
                ]
                columns += [
                    StagedColumn(f"{image}{column.attnum}", column.type, column.typmod)
                    for column in source.columns
                    for image in IMAGES
                ]
                with narrowed(engine, change_source, count) as narrow:
                    query = paired_columns_sql(source, pairs_sql(narrow))
                    is_many = count > SMALL
                    self._read[feed] = self._stack.enter_context(
                        staged(engine, query, columns, is_many=is_many, is_shared=True)
                    )
            return self._read[feed]
