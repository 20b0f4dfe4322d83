"""Detect commits that replace all rows of a table: RESTORE, CREATE OR REPLACE TABLE, CLONE, and
overwrites of the whole table.

Delta's protocol, section "Commit Provenance Information", lets the writer choose the name of the
operation.  This module knows the names of `DeltaOperations` in Delta, and of delta-rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_actions import file_key
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import files_at, row_actions

#: Operations that replace all rows, regardless of their parameters.
_REPLACING = ("RESTORE", "CLONE")
_REPLACE_TABLE = ("REPLACE TABLE", "CREATE OR REPLACE TABLE")
#: Operations that replace all rows if a parameter has this value.
_OVERWRITING = {
    "WRITE": ("mode", "overwrite"),
    "CREATE TABLE": ("mode", "overwrite"),
    "CREATE TABLE AS SELECT": ("mode", "overwrite"),
    "STREAMING UPDATE": ("outputMode", "complete"),
}
#: Operations that do not replace all rows.
_CHANGING = frozenset(
    {"DELETE", "UPDATE", "MERGE", "TRUNCATE", "OPTIMIZE", "REORG", "CONVERT", "VACUUM END"}
)
#: Parameters that limit an operation to some rows.
_BOUNDS = ("predicate", "replaceOnCond", "replaceUsingCols", "isDynamicPartitionOverwrite")
_NO_BOUND = ("", "[]", "true", "false")


def replacement(location: str, commit: DeltaCommit) -> str | None:
    """Return a description of a commit that replaces all rows of a table, as the predicate of a
    sentence; None for other commits (`replaces_table`).
    """
    if not commit.changes_data or not replaces_table(location, commit):
        return None
    if replaces_rows(commit.operation, commit.parameters) is None:
        return "replaced all files of the table"
    return _words(commit.operation.upper())


def replacement_sentence(what: str, location: str, version: int) -> str:
    """Return a sentence about a commit.

    Args:
        what: the predicate, as `replacement` returns it.
    """
    return f'Another program {what} in version {version} of the Delta table "{location}".'


def replaces_table(location: str, commit: DeltaCommit) -> bool:
    """Return whether a commit replaces all rows of a table.

    If the operation is unknown, the files decide: a commit replaces all rows if it removes all
    files of the table and adds new ones.
    """
    found = replaces_rows(commit.operation, commit.parameters)
    return _replaces_files(location, commit.version) if found is None else found


def replaces_rows(operation: str, parameters: Mapping[str, Any]) -> bool | None:
    """Return whether an operation replaces all rows of its table; None if unknown.

    (WRITE, {`mode`: Overwrite})  ->  True
    (WRITE, {`mode`: Overwrite, `predicate`: `id > 3`})  ->  False
    """
    name = operation.upper()
    if name in _REPLACING:
        return True
    if name.startswith(_REPLACE_TABLE):
        return not _is_bounded(parameters)
    if name in _OVERWRITING:
        parameter, value = _OVERWRITING[name]
        said = parameters.get(parameter)
        if not isinstance(said, str):
            return None
        return said.lower() == value and not _is_bounded(parameters)
    return False if name in _CHANGING else None


def _is_bounded(parameters: Mapping[str, Any]) -> bool:
    """Return whether an overwrite replaces only some rows.  Return False if its condition is always
    true.
    """
    said = {name: str(parameters.get(name) or "").strip().lower() for name in _BOUNDS}
    if said.pop("isDynamicPartitionOverwrite") == "true":
        return True
    return any(text not in _NO_BOUND for text in said.values())


def _words(operation: str) -> str:
    if operation == "RESTORE":
        return "restored an earlier version of the table (RESTORE)"
    if operation in ("WRITE", "STREAMING UPDATE"):
        return f"overwrote the table without a predicate ({operation})"
    return f"replaced the table ({operation})"


def keeps_files(location: str, version: int) -> bool:
    """Return whether a version keeps some files of a table as they are, with the same deletion
    vectors.  Return False if the log no longer says what the files were.
    """
    last = {key: kind for kind, key, _body in row_actions(location, version)}
    try:
        before = files_at(location, version - 1)
    except ObjectNotInPrerequisiteState:
        return False
    return any(last.get(file_key(body)) != "remove" for body in before)


def _replaces_files(location: str, version: int) -> bool:
    """Return whether a version removes all files that a table had, and adds new ones."""
    last = {key: kind for kind, key, _body in row_actions(location, version)}
    removed, added = (
        {path for (path, _vector), found in last.items() if found == kind}
        for kind in ("remove", "add")
    )
    if not removed or not added:
        return False
    try:
        before = {file_key(body)[0] for body in files_at(location, version - 1)}
    except ObjectNotInPrerequisiteState:  # the log no longer has these files
        return False
    return before <= removed - added
