"""Refuse tables with an empty text as the partition value of a number, a date or a time.

The empty text is NULL (Delta's protocol, section "Partition Value Serialization").  Spark 4.2 shows
NULL, too.  But a condition on the column fails under ANSI, even IS NULL: to choose the files, Delta
casts the text to the type of the column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.lake.delta_files import whole_files_at
from replctl.lake.delta_log import read_actions
from replctl.lake.partition_zone import partitioned_metadata
from replctl.lake.table_metadata import TableMetadata
from replctl.record import dataclass

#: The types whose values Delta does not cast, as in TableMetadata.columns.
_TEXTS = (repr("string"), repr("binary"))


@dataclass(frozen=True, slots=True)
class _Empty:
    """A file with an empty partition value.

    Attributes:
        column: the name of the partition column in the log.
        path: the path of the file in the log.
    """

    column: str
    path: str


def check_empty_values(relation: Relation, versions: Iterable[int] | None = None) -> None:
    """Check the partition values of the newest version of an adopted table.

    Args:
        versions: check only if one of these versions adds a file with an empty value; None: check
            always.

    Raises:
        FeatureNotSupported: a partition value is empty, and the type of its column is not text
            (0A000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    metadata = partitioned_metadata(relation)
    if metadata is None or not (columns := _cast_partitions(metadata)):
        return
    assert relation.storage is not None
    location = relation.storage.location
    try:
        if versions is not None and not any(
            _first_empty((a["add"] for a in read_actions(location, v) if "add" in a), columns)
            for v in versions
        ):
            return
        found = _first_empty(whole_files_at(location, metadata.version), columns)
    except ObjectNotInPrerequisiteState:  # the log no longer names all files
        return
    if found is not None:
        raise _has_empty(relation, columns[found.column], found.path)


def _cast_partitions(metadata: TableMetadata) -> dict[str, str]:
    """Return the partition columns whose texts Delta casts: the names in the schema by the names in
    the log.
    """
    _mode, *names = metadata.layout
    return {
        physical or name: name
        for name, type_, physical, _nullable in metadata.columns
        if name in names and type_ not in _TEXTS
    }


def _first_empty(bodies: Iterable[Mapping[str, Any]], columns: Collection[str]) -> _Empty | None:
    for body in bodies:
        for column, text in (body.get("partitionValues") or {}).items():
            if text == "" and column in columns:
                return _Empty(column, body["path"])
    return None


def _has_empty(relation: Relation, column: str, path: str) -> FeatureNotSupported:
    assert relation.storage is not None
    name, table = f"`{column}`", f"delta.`{relation.storage.location}`"
    return FeatureNotSupported(
        f'partition column "{column}" of table "{relation.qualified_name}" has empty values',
        detail=f'File "{path}" has one. Delta reads it as NULL, but Spark cannot evaluate'
        " conditions on the column.",
        hint="Ask the table's owner to write NULL instead, in Spark: SET spark.sql.ansi.enabled ="
        f" false; UPDATE {table} SET {name} = NULL WHERE {name} IS NULL",
    )
