"""Add columns to Delta tables, set properties, remove all rows of tables, and restore the rows of a
version.  For simple tables, only properties need Spark (`small_commit.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from replctl import spark
from replctl.lake.adopt import delta_settings
from replctl.lake.delta_actions import file_key, parse_columns
from replctl.lake.own_commit import features_of, stored_type
from replctl.lake.small_commit import SmallCommit, writing_files
from replctl.lake.small_table import data_files
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import table_state
from replctl.session import Session
from replctl.spark import CommitNote, TableColumn


def add_columns(
    session: Session, location: str, columns: Sequence[TableColumn], note: CommitNote
) -> None:
    """Add columns to a table.  Existing rows get NULL.

    If the types of the columns need table features that the table lacks, the table gets these
    features, too.  Delta adds `timestampNtz` to a new table only.

    Raises:
        IoError: the table cannot be written.
    """
    folder = TableFolder.of(location)
    with writing_files(folder):
        is_done = _are_added(folder, columns, note)
    if not is_done:
        missing = _missing_features(table_state(location).protocol, columns)
        if missing:
            added = {f"delta.feature.{feature}": "supported" for feature in missing}
            set_properties(session, location, added)
        spark.jobs.add_columns(session.engine(), location, columns, note)


def set_properties(
    session: Session, location: str, properties: Mapping[str, str], note: CommitNote | None = None
) -> None:
    """Set properties of a table.  Report all settings that change with them, such as the protocol.

    Args:
        note: the commit's note; None for a commit without replctl's mark.

    Raises:
        PostgresError: the table cannot be written.
    """
    before = delta_settings(location)
    spark.jobs.set_properties(session.engine(), location, properties, note)
    after = delta_settings(location)
    for name in sorted(after):
        if before.get(name) != after[name]:
            session.notice(
                f'property "{name}" of the Delta table at "{location}" is changed from'
                f" {before.get(name, 'unset')} to {after[name]}"
            )


def _missing_features(protocol: Mapping[str, Any], columns: Sequence[TableColumn]) -> list[str]:
    """Return the features that columns need, and that a table's protocol lacks."""
    present = protocol.get("writerFeatures") or ()
    return [feature for feature in features_of(map(stored_type, columns)) if feature not in present]


def _are_added(folder: TableFolder, columns: Sequence[TableColumn], note: CommitNote) -> bool:
    """Add columns, and return True; return False if Spark has to do it."""
    commit = SmallCommit.following(folder, note)
    if commit is None:
        return False
    protocol: dict[str, Any] = dict(commit.state.protocol)
    missing = _missing_features(protocol, columns)
    if missing and (protocol["minReaderVersion"], protocol["minWriterVersion"]) != (3, 7):
        return False  # Spark adds the features that the older versions imply
    for side in ("readerFeatures", "writerFeatures"):
        protocol[side] = [*(protocol.get(side) or ()), *missing]
    types = {column.storage_name or "": stored_type(column) for column in columns}
    added = [
        {"name": name, "type": type_.declaration, "nullable": True, "metadata": {}}
        for name, type_ in types.items()
    ]
    schema = {"type": "struct", "fields": [*parse_columns(commit.metadata), *added]}
    metadata = {
        **commit.metadata,
        "schemaString": json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
    }
    listed = json.dumps([{"column": field} for field in added], separators=(",", ":"))
    return commit.is_made(
        "ADD COLUMNS",
        {"columns": listed},
        {},
        metadata=metadata,
        protocol=protocol if missing else None,
    )


def remove_rows(session: Session, location: str, note: CommitNote) -> None:
    """Remove all rows of a table, in one commit.  Do nothing if the table has no files.

    Raises:
        IoError: the table cannot be written.
    """
    folder = TableFolder.of(location)
    with writing_files(folder):
        is_done = _is_emptied(folder, note)
    if not is_done:
        spark.jobs.truncate(session.engine(), location, note)


def _is_emptied(folder: TableFolder, note: CommitNote) -> bool:
    """Remove all rows, and return True; return False if Spark has to do it.

    Like Spark's TRUNCATE, the commit has no transaction identifier: a batch may then write rows
    with the same identifier.
    """
    commit = SmallCommit.following(folder, CommitNote(note.user_metadata))
    files = None if commit is None else commit.files()
    if commit is None or files is None:
        return False
    if not files:
        return True
    return commit.is_made("TRUNCATE", {}, {"numRemovedFiles": len(files)}, removed=files)


def restore(session: Session, location: str, version: int, note: CommitNote) -> None:
    """Restore the rows that a table had at a version, in one commit.

    Raises:
        IoError: the table cannot be written.
    """
    folder = TableFolder.of(location)
    with writing_files(folder):
        is_done = _is_restored(folder, version, note)
    if not is_done:
        spark.jobs.restore(session.engine(), location, version, note)


def _is_restored(folder: TableFolder, version: int, note: CommitNote) -> bool:
    """Restore the rows, and return True; return False if Spark has to do it."""
    commit = SmallCommit.following(folder, note)
    files = None if commit is None else commit.files()
    wanted = None if commit is None else commit.files_at(version)
    if commit is None or files is None or wanted is None:
        return False
    present, kept = set(map(file_key, files)), set(map(file_key, wanted))
    adds = [{**add, "dataChange": True} for add in wanted if file_key(add) not in present]
    removed = [add for add in files if file_key(add) not in kept]
    if data_files(folder, adds) is None:  # Spark reports missing files
        return False
    metrics = {"numRestoredFiles": len(adds), "numRemovedFiles": len(removed)}
    parameters = {"version": str(version), "timestamp": None}
    return commit.is_made("RESTORE", parameters, metrics, adds=adds, removed=removed)
