"""Detect columns that another program has dropped and restored, so that rows have their former
values again although no version has written these rows."""

from __future__ import annotations

from replctl.catalog.storage import Storage
from replctl.catalog.storage_column import StorageColumn
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_log import columns_of
from replctl.lake.replacement import keeps_files
from replctl.lake.table_metadata import metadata_at, physical_name

_MAX_ID, _ID = "delta.columnMapping.maxColumnId", "delta.columnMapping.id"


def is_restored(storage: Storage, column: StorageColumn, before: int, after: int) -> bool:
    """Return whether a column is one that was dropped at the version `before` and is there again at
    the version `after`, with its values.

    Without column mapping, all rows were replaced, so the publisher sends them.

    Args:
        column: a column that the relation lacks at `before` and has at `after`.
    """
    since = column.since_version
    if since is None or before < 0:
        return False
    if since > before:  # or the table was adopted after the column was dropped
        return _has_earlier_id(storage.location, column.identity, since)
    if column.renamed_version is None:
        return False
    try:
        return metadata_at(storage.location, after).is_mapped
    except ObjectNotInPrerequisiteState:  # unknown
        return True


def _has_earlier_id(location: str, physical: str, version: int) -> bool:
    """Return whether a column that is new in a version has an id that Delta gave earlier.  New
    columns get new ids.
    """
    try:
        old, new = metadata_at(location, version - 1), metadata_at(location, version)
    except ObjectNotInPrerequisiteState:  # the log no longer has the earlier version
        return False
    if not (old.is_mapped and new.is_mapped) or physical in old.names:
        return False
    fields = columns_of(new.action, location, version)
    found = next((field for field in fields if physical_name(field) == physical), {})
    id_, last = found.get("metadata", {}).get(_ID), old.action.get("configuration", {}).get(_MAX_ID)
    if not isinstance(id_, int) or not str(last).isdigit() or id_ > int(last):
        return False
    return keeps_files(location, version)  # of other files, all rows are sent
