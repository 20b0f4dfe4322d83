"""Settings for queries of small tables, of few rows of large ones, and of many.

Over small tables it takes longer to compile a query than to interpret it, and what is divided among
tasks costs more than one task.  Measured: statements and syncs of tables with few rows take two
thirds of the time when they are interpreted (benchmarks/small.py), and a fifth less again where one
task sorts and groups, and no plan is adapted between stages.  The latter is so for few rows of a
large table, too: what Delta asks of its own log, which is small, are half of such a query's jobs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from replctl.spark.feed_name import feeds_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Up to so many bytes of Parquet a table is small.
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
_TABLE = re.compile(r"delta\.`((?:[^`]|``)+)`")


class QuerySize:
    """The choice for each query of an engine's sessions.

    Args:
        chosen: the names of the user's own properties; they stay what they are.
    """

    def __init__(self, chosen: Collection[str]) -> None:
        self._chosen = frozenset(chosen)
        #: What sessions had before, and what they have now.
        self._for_many: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        self._current: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        self._large_views: set[str] = set()

    @contextmanager
    def large(self, view: str) -> Iterator[None]:
        """Yield a view that has many rows, while the context lasts."""
        self._large_views.add(view)
        try:
            yield
        finally:
            self._large_views.discard(view)

    def choose(self, session: SparkSession, text: str, *, has_few_rows: bool = False) -> None:
        """Set the session as the tables and views in a statement, or a table's name, ask for.

        Args:
            has_few_rows: few rows come from large tables, or go there.
        """
        if text.startswith(("CREATE", "ALTER")):
            return
        if session not in self._current:
            own = {n: str(session.conf.get(n)) for n in _FOR_SMALL_TABLES.keys() - self._chosen}
            self._for_many[session], self._current[session] = own, dict(own)
        current = self._current[session]
        changed: dict[str, str] = {}
        if self.is_small(text):
            changed = _FOR_SMALL_TABLES
        elif has_few_rows:
            changed = _FOR_FEW_ROWS
        for name, before in self._for_many[session].items():
            value = changed.get(name, before)
            if current[name] != value:
                session.conf.set(name, value)
                current[name] = value

    def is_small(self, text: str) -> bool:
        """Return whether all that a statement reads is small."""
        tables = [*(name.replace("``", "`") for name in _TABLE.findall(text)), *feeds_in(text)]
        large_views = tuple(self._large_views)  # other threads have theirs
        has_large_view = any(view in text for view in large_views)
        return not has_large_view and all(map(_is_small, tables))


def _is_small(location: str) -> bool:
    """Return whether the newest checksum that Spark has written next to Delta's log says so; a
    table that cannot be seen from here is not."""
    folder = os.path.join(location.removeprefix("file://"), "_delta_log")
    try:
        newest = max((name for name in os.listdir(folder) if name.endswith(".crc")), default=None)
        if newest is None:
            return False
        with open(os.path.join(folder, newest), encoding="utf-8") as file:
            return int(json.load(file)["tableSizeBytes"]) <= _SMALL_TABLE
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False
