"""Read small tables without Spark, if they are on a disk of this machine and have only features
that are simple to read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_files import log_size, whole_files_at
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_paths import TablePaths
from replctl.lake.table_state import TableState, table_state
from replctl.spark import DataFile, LocalRow, TableSource, rows_of_files
from replctl.types.delta_type import is_native

#: Spark reads tables with a larger log, more files, or larger ones.
_MOST_LOG_BYTES = 1 << 20
_MOST_FILES = 100
_MOST_BYTES = 4 << 20
#: The reader features that `rows_of_files` supports.
_FEATURES = frozenset(("deletionVectors", "timestampNtz"))
#: The properties with the names of the hidden columns that identify rows (`FileReader.read`).
_HIDDEN = (
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.rowTracking.materializedRowIdColumnName",
)


def small_rows(source: TableSource, most: int) -> list[LocalRow] | None:
    """Return the rows of a table in the order in which they were written.

    Args:
        most: the maximum number of rows.

    Returns:
        the rows; None if Spark has to read the table, because it is larger, is not on a local disk,
        or has features or values that only Spark reads.

    Raises:
        PostgresError: the log of the table cannot be read.
    """
    if source.location is None:
        return []
    folder = TableFolder.of(source.location)
    if not folder.is_local or not are_plain(source):
        return None
    try:
        state = table_state(source.location)
        if (
            source.version not in (None, state.version)
            or not is_plain(state)
            or log_size(source.location) > _MOST_LOG_BYTES
        ):
            return None
        bodies = whole_files_at(source.location, state.version)
    except ObjectNotInPrerequisiteState:  # Spark also reads compacted logs, and shortened ones
        return None
    files = data_files(folder, bodies)
    if files is None:
        return None
    hidden = hidden_columns(state) if source.has_row_tracking else (None, None)
    return rows_of_files(folder.location, state.version, files, source.columns, hidden, most)


def hidden_columns(state: TableState) -> tuple[str | None, str | None]:
    """Return the names of the hidden columns that identify the rows of a table with row
    tracking."""
    version, row_id = map(state.properties.get, _HIDDEN)
    return version, row_id


def data_files(folder: TableFolder, adds: Sequence[Mapping[str, Any]]) -> list[DataFile] | None:
    """Return the data files of a table on a local disk; None if Spark has to read them, because
    they are many or large, or lie outside of the table's folder.

    Args:
        adds: the `add` actions of the files.
    """
    paths = TablePaths(folder.location)
    names = [paths.relative(add["path"]) for add in adds]
    if (
        len(adds) > _MOST_FILES
        or sum(add.get("size", 0) for add in adds) > _MOST_BYTES
        or any(map(paths.leads_out, (add["path"] for add in adds)))
    ):
        return None
    files = [
        _data_file(os.path.join(folder.location, name or ""), add)
        for name, add in zip(names, adds, strict=True)
    ]
    return files if all(os.path.isfile(file.path) for file in files) else None


def are_plain(source: TableSource) -> bool:
    """Return whether queries show the columns' values just as the files have them."""
    return not any(
        column.fault is not None
        or column.zone is not None
        or column.text_of is not None
        or column.input_of is not None
        or is_native(column.type)
        for column in source.columns
    )


def is_plain(state: TableState) -> bool:
    """Return whether a table has only supported features, and no partition columns."""
    features = {*(state.protocol.get("readerFeatures") or ())}
    is_known = state.protocol.get("minReaderVersion", 0) in (1, 3) and features <= _FEATURES
    return is_known and not state.metadata.get("partitionColumns", True)


def _data_file(path: str, body: Mapping[str, Any]) -> DataFile:
    has_vector = body.get("deletionVector") is not None
    return DataFile(path, has_vector, body.get("baseRowId"), body.get("defaultRowCommitVersion"))
