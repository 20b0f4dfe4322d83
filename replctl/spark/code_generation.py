"""Whether Spark compiles a query: over small tables that takes longer than to interpret it.

Measured (benchmarks/small.py): statements and syncs of tables with few rows take two thirds
of the time when they are interpreted.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Up to so many bytes of Parquet a table is small.
_SMALL_TABLE = 8 << 20
_COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_TABLE = re.compile(r"delta\.`((?:[^`]|``)+)`|table_changes_by_path\('([^']*)'")


class CodeGeneration:
    """The choice for each query of an engine's sessions.

    Args:
        is_chosen: the user's own properties say it, so that nothing is changed here.
    """

    def __init__(self, *, is_chosen: bool) -> None:
        self._is_chosen = is_chosen
        self._is_compiled: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
        self._large_views: set[str] = set()

    def note_large(self, view: str) -> None:
        """A view has many rows."""
        self._large_views.add(view)

    def choose(self, session: SparkSession, text: str) -> None:
        """Set the session as the tables and views in a statement, or a table's name, ask for."""
        if self._is_chosen or text.startswith(("CREATE", "ALTER")):
            return
        compiled = any(view in text for view in self._large_views) or not all(
            _is_small(path.replace("``", "`") or feed) for path, feed in _TABLE.findall(text)
        )
        if self._is_compiled.get(session) == compiled:
            return
        for name, value in (_COMPILED if compiled else _INTERPRETED).items():
            session.conf.set(name, value)
        self._is_compiled[session] = compiled


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
