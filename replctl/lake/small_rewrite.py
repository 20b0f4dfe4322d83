"""Rewrite all rows of a Delta table, with other columns or other values.  For small tables, this
process writes the rows (`small_commit.py`); Spark only computes new values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from replctl import spark
from replctl.errors import SerializationFailure
from replctl.injection_point import injection_point
from replctl.lake.delta_actions import parse_columns
from replctl.lake.delta_files import is_empty_at
from replctl.lake.delta_log import latest_version, stored_names
from replctl.lake.delta_names import version_path
from replctl.lake.file_layout import is_clustered
from replctl.lake.small_commit import SmallCommit, writing_files
from replctl.lake.small_table import data_files, hidden_columns
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_metadata import ROW_TRACKING
from replctl.session import Session
from replctl.spark import (
    NO_COLUMN,
    NO_LAYOUT,
    CommitNote,
    FileLayout,
    TableColumn,
    reading,
    table_name,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Delta's parameters of a WRITE that replaces all rows.
_OVERWRITE = {"mode": "Overwrite", "partitionBy": "[]"}


def set_columns(
    session: Session,
    location: str,
    columns: Sequence[TableColumn],
    values: Mapping[str, str],
    note: CommitNote,
) -> None:
    """Set columns of all rows of a table, in one commit.  Do nothing if the table has no files.

    Args:
        columns: the columns to set.
        values: Spark SQL of the new values, by name in storage.

    Raises:
        PostgresError: a value cannot be computed, or the table cannot be written.
    """
    if is_empty_at(location, latest_version(location) or 0):
        return

    def rewritten(rows: pa.Table) -> pa.Table | None:
        return _with_values(session, rows, columns, values, {})

    small = _Rewrite(session, location, note)
    if not small.is_done(rewritten, columns, "UPDATE", {"predicate": '["true"]'}):
        spark.jobs.rewrite_columns(session.engine(), location, values, note)


def fill_columns(
    session: Session,
    location: str,
    columns: Sequence[TableColumn],
    values: Mapping[str, str],
    numbers: Callable[[int], Mapping[str, range]],
    note: CommitNote,
) -> int:
    """Set columns of all rows of a table to values that are computed once per row, in the order of
    the rows.  Make one commit, or none if there are no rows.

    Args:
        columns, values: see `set_columns`.  The values may be volatile.
        numbers: returns the names that `values` may use, each with a range of numbers: one for
            each row.  Its argument is the number of rows.

    Returns:
        the number of rows.

    Raises:
        PostgresError: see `set_columns`, or a sequence has too few numbers.
    """
    if is_empty_at(location, latest_version(location) or 0):
        return 0
    numbers = cache(numbers)  # if this process cannot write the rows, Spark uses the same numbers
    count = 0

    def rewritten(rows: pa.Table) -> pa.Table | None:
        nonlocal count
        count = rows.num_rows
        return _with_values(session, rows, columns, values, numbers(count))

    small = _Rewrite(session, location, note)
    if small.is_done(rewritten, columns, "WRITE", _OVERWRITE):
        return count
    stored = reading(f"SELECT 1 FROM {table_name(location)}", table=location)
    count = spark.jobs.count_rows(session.engine(), stored)
    if count:
        engine, rows = session.engine(), numbers(count)
        has_clusters = is_clustered(location)
        spark.jobs.rewrite_rows(engine, location, values, rows, note, is_clustered=has_clusters)
    return count


def _with_values(
    session: Session,
    rows: pa.Table,
    columns: Sequence[TableColumn],
    values: Mapping[str, str],
    numbers: Mapping[str, range],
) -> pa.Table | None:
    """Return rows with new values for some columns; None if Spark has to write the rows."""
    new = spark.jobs.computed(session.engine(), rows, columns, values, numbers)
    if new is None:
        return None
    for i, name in enumerate(rows.column_names):
        if name in new:
            rows = rows.set_column(i, name, new[name])
    return rows


def rewrite_schema(
    session: Session,
    location: str,
    columns: Sequence[tuple[str, str]],
    removed: Collection[str],
    note: CommitNote,
    layout: FileLayout = NO_LAYOUT,
) -> None:
    """Rewrite all rows of a table with only some of the columns, in one commit.

    Args:
        columns: the old and the new name of each remaining column.
        removed: the names of the other columns.
        layout: the layout of the table's files, with the new names.

    Raises:
        SerializationFailure: another program has added or removed a column.
        PostgresError: the table cannot be written.
    """
    expected = {*removed, *(before for before, _after in columns)}

    def rewritten(rows: pa.Table) -> pa.Table | None:
        if expected != {*rows.column_names} - {NO_COLUMN}:
            return None
        return rows.select([before for before, _after in columns]).rename_columns(
            [after for _before, after in columns]
        )

    small = _Rewrite(session, location, note)
    if columns and small.is_done(rewritten, (), "WRITE", _OVERWRITE, columns):
        return
    if stored_names(location) - {NO_COLUMN} == {name.lower() for name in expected}:
        spark.jobs.rewrite_schema(session.engine(), location, columns, note, layout)
    else:
        raise SerializationFailure("could not serialize access due to concurrent update")


class _Rewrite:
    """A rewrite of all rows of a table, in one commit."""

    def __init__(self, session: Session, location: str, note: CommitNote) -> None:
        self._folder = TableFolder.of(location)
        self._note = note
        self._most = int(session.setting("replctl.small_table_rows"))

    def is_done(
        self,
        rewritten: Callable[[pa.Table], pa.Table | None],
        columns: Sequence[TableColumn],
        operation: str,
        parameters: Mapping[str, str | None],
        names: Sequence[tuple[str, str]] | None = None,
    ) -> bool:
        """Rewrite the rows, and return True; return False if Spark has to do it.

        Args:
            rewritten: returns the new rows for the stored ones; None if Spark has to do it.
            columns: the columns whose values change.
            operation, parameters: by Delta's names.
            names: the old and the new name of each column of the new schema; None if the schema
                does not change.

        Raises:
            IoError: the table cannot be written.
        """
        commit = SmallCommit.following(self._folder, self._note)
        if commit is None or not self._most or not commit.has_types(columns):
            return False
        files = commit.files()
        rows = None if files is None else self._rows(commit, files)
        new = None if rows is None else rewritten(rows)
        if files is None or new is None:
            return False
        metadata = None if names is None else _metadata(commit, names)
        with writing_files(self._folder):
            return self._is_written(commit, files, new, columns, operation, parameters, metadata)

    def _rows(self, commit: SmallCommit, adds: Sequence[dict[str, Any]]) -> pa.Table | None:
        state, files = commit.state, data_files(self._folder, adds)
        if files is None or not state.is_on(ROW_TRACKING):
            return None
        schema = str(state.metadata["schemaString"])
        location = self._folder.location
        return spark.jobs.rows_in_order(
            location, state.version, files, schema, hidden_columns(state), self._most
        )

    def _is_written(
        self,
        commit: SmallCommit,
        files: Sequence[dict[str, Any]],
        rows: pa.Table,
        columns: Sequence[TableColumn],
        operation: str,
        parameters: Mapping[str, str | None],
        metadata: dict[str, Any] | None,
    ) -> bool:
        adds, domains = list[dict[str, Any]](), list[dict[str, Any]]()
        path = f"part-00000-{uuid4()}-c000.snappy.parquet"
        if rows.num_rows:
            place = f"{self._folder.location}/{path}"
            written = spark.jobs.write_rows(rows, columns, place)
            if written is None:
                return False
            self._folder.copy_mode(version_path(commit.state.version), path)
            added, domains = commit.added(path, written)
            adds.append(added)
        injection_point("small.after-file")
        metrics = {"numFiles": len(adds), "numOutputRows": rows.num_rows}
        is_made = commit.is_made(
            operation,
            parameters,
            metrics,
            adds=adds,
            removed=files,
            domains=domains,
            metadata=metadata,
        )
        if not is_made and adds:
            self._folder.delete(path)
        return is_made


def _metadata(commit: SmallCommit, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a table's metaData action with only some of the columns, under new names."""
    fields = {field["name"]: field for field in parse_columns(commit.metadata)}
    kept = [{**fields[before], "name": after} for before, after in names]
    schema = {"type": "struct", "fields": kept}
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return {**commit.metadata, "schemaString": text}
