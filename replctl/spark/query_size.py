"""Choose settings for queries of small tables, of few rows of large tables, and of many rows.

For small tables, compiling a query takes longer than interpreting it, and several tasks cost more
than one.  Measured in benchmarks/small.py: interpreted statements and syncs of small tables take
two thirds of the time.  One task for sorting and grouping, and no adaptive plans, save another
fifth. The last two settings also help with few rows of a large table, because half of the jobs of
such a query are Delta's queries of its own small log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from replctl.spark.spark_query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Maximum size of a small table, in bytes of Parquet.
_SMALL_TABLE = 8 << 20
_FOR_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
_FOR_SMALL_TABLES = _FOR_FEW_ROWS | {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.files.openCostInBytes": str(64 << 10),
}


class QuerySize:
    """Chooses the settings for each query of an engine's sessions.

    Args:
        chosen: the names of the properties that the user has set.  They stay as they are.

    Attributes:
        large_views: the names of the views with many rows.
    """

    def __init__(self, chosen: Collection[str]) -> None:
        self._chosen = frozenset(chosen)
        #: The original settings of the sessions, and the current ones.
        self._for_many: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        self._current: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        self.large_views: set[str] = set()

    @contextmanager
    def large(self, view: str) -> Iterator[None]:
        """Assume during the `with` block that a view has many rows."""
        self.large_views.add(view)
        try:
            yield
        finally:
            self.large_views.discard(view)

    def choose(self, session: SparkSession, query: Query, *, has_few_rows: bool = False) -> None:
        """Choose the session's settings for the tables and views of a query.

        Args:
            has_few_rows: the query reads or writes few rows of large tables.
        """
        if session not in self._current:
            own = {n: str(session.conf.get(n)) for n in _FOR_SMALL_TABLES.keys() - self._chosen}
            self._for_many[session], self._current[session] = own, dict(own)
        current = self._current[session]
        changed: dict[str, str] = {}
        if self.is_small(query):
            changed = _FOR_SMALL_TABLES
        elif has_few_rows:
            changed = _FOR_FEW_ROWS
        for name, before in self._for_many[session].items():
            value = changed.get(name, before)
            if current[name] != value:
                session.conf.set(name, value)
                current[name] = value

    def is_small(self, query: Query) -> bool:
        """Return whether a query reads only small tables and views."""
        has_large_view = any(view in self.large_views for view in query.views)
        return not has_large_view and all(map(_is_small, query.tables))


def _is_small(location: str) -> bool:
    """Return whether a table is small according to its newest version checksum, which is in Delta's
    log.  A table that this process cannot read counts as large.
    """
    folder = os.path.join(location.removeprefix("file://"), "_delta_log")
    try:
        newest = max((name for name in os.listdir(folder) if name.endswith(".crc")), default=None)
        if newest is None:
            return False
        with open(os.path.join(folder, newest), encoding="utf-8") as file:
            return int(json.load(file)["tableSizeBytes"]) <= _SMALL_TABLE
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # other programs write the file
        return False
