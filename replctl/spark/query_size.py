"""Settings for queries of small tables and of large ones, chosen for each query.

Over small tables it takes longer to compile a query than to interpret it, and what is divided among
tasks costs more than one task.  Measured: statements and syncs of tables with few rows take two
thirds of the time when they are interpreted (benchmarks/small.py), and a fifth less again where one
task sorts and groups, and no plan is adapted between stages.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from replctl.spark.change_data_feed import feeds_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Up to so many bytes of Parquet a table is small.
_SMALL_TABLE = 8 << 20
_FOR_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.openCostInBytes": str(64 << 10),
}
_TABLE = re.compile(r"delta\.`((?:[^`]|``)+)`")


class QuerySize:
    """The choice for each query of an engine's sessions.

    Args:
        chosen: the names of the user's own properties; they stay what they are.
    """

    def __init__(self, chosen: Collection[str]) -> None:
        self._for_small = {n: value for n, value in _FOR_SMALL.items() if n not in chosen}
        #: What sessions had before, and whether they are set for small queries now.
        self._for_large: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
        self._is_small: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
        self._large_views: set[str] = set()

    def note_large(self, view: str) -> None:
        """A view has many rows."""
        self._large_views.add(view)

    def choose(self, session: SparkSession, text: str) -> None:
        """Set the session as the tables and views in a statement, or a table's name, ask for."""
        if text.startswith(("CREATE", "ALTER")):
            return
        tables = [*(name.replace("``", "`") for name in _TABLE.findall(text)), *feeds_in(text)]
        has_large_view = any(view in text for view in self._large_views)
        is_small = not has_large_view and all(map(_is_small, tables))
        if self._is_small.get(session, False) == is_small:
            return
        if session not in self._for_large:
            self._for_large[session] = {
                name: str(session.conf.get(name)) for name in self._for_small
            }
        settings = self._for_small if is_small else self._for_large[session]
        for name, value in settings.items():
            session.conf.set(name, value)
        self._is_small[session] = is_small


def _is_small(location: str) -> bool:
    """Whether the newest checksum that Spark has written beside Delta's log says so; a table that
    cannot be seen from here is not."""
    folder = os.path.join(location.removeprefix("file://"), "_delta_log")
    try:
        newest = max((name for name in os.listdir(folder) if name.endswith(".crc")), default=None)
        if newest is None:
            return False
        with open(os.path.join(folder, newest), encoding="utf-8") as file:
            return int(json.load(file)["tableSizeBytes"]) <= _SMALL_TABLE
    except (OSError, ValueError, KeyError):
        return False
