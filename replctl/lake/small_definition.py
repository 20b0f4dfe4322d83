"""Add columns to Delta tables, and remove all rows of tables.  For simple tables this needs no
Spark (`small_commit.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from replctl import spark
from replctl.lake.delta_actions import parse_columns
from replctl.lake.own_commit import contains, stored_type
from replctl.lake.small_commit import SmallCommit, writing_files
from replctl.lake.table_folder import TableFolder
from replctl.session import Session
from replctl.spark import CommitNote, TableColumn

_TIMESTAMPS = "timestampNtz"


def add_columns(
    session: Session, location: str, columns: Sequence[TableColumn], note: CommitNote
) -> None:
    """Add columns to a table, in one commit.  Existing rows get NULL.

    Raises:
        IoError: the table cannot be written.
    """
    folder = TableFolder.of(location)
    with writing_files(folder):
        is_done = _are_added(folder, columns, note)
    if not is_done:
        spark.jobs.add_columns(session.engine(), location, columns, note)


def _are_added(folder: TableFolder, columns: Sequence[TableColumn], note: CommitNote) -> bool:
    """Add columns, and return True; return False if Spark has to do it."""
    commit = SmallCommit.following(folder, note)
    if commit is None:
        return False
    types = {column.storage_name or "": stored_type(column) for column in columns}
    has_timestamps = any(contains(type_, "TIMESTAMP_NTZ") for type_ in types.values())
    if has_timestamps and _TIMESTAMPS not in (commit.state.protocol.get("writerFeatures") or ()):
        return False
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
    return commit.is_made("ADD COLUMNS", {"columns": listed}, {}, metadata=metadata)


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
