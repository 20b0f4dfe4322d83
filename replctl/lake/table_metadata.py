"""Read the metadata of a table at a version: schema, partition columns, and whether writers kept a
change data feed.

Delta's protocol, section "Change Metadata": a metaData action replaces the previous one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Any

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_log import (
    checkpoint_metadata,
    checkpoints,
    columns_of,
    log_names,
    metadata_of,
    version_state,
)
from replctl.record import dataclass
from replctl.types.delta_type import quoted_name

CHANGE_FEED = "delta.enableChangeDataFeed"
ROW_TRACKING = "delta.enableRowTracking"
MAPPING_MODE = "delta.columnMapping.mode"
#: Features of tables that change columns without rewriting rows.
MAPPING, WIDENING = "columnMapping", "typeWidening"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
#: Maximum number of cached versions.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The metadata valid at some versions of a table.

    Attributes:
        version: the first of these versions, whose commit or checkpoint has the metaData action.
        has_feed: writers keep a change data feed.
        columns: name, type, physical name and nullability of each column.
        layout: the mode of column mapping, and the partition columns.
        action: the metaData action.
    """

    version: int
    has_feed: bool
    columns: tuple[tuple[str, str, str, bool], ...]
    layout: tuple[str, ...]
    action: dict[str, Any] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(version: int, action: Mapping[str, Any], location: str) -> TableMetadata:
        """Return the content of a metaData action.

        Raises:
            DataCorrupted: the action has no schema in Delta's form (XX001).
        """
        configuration = action.get("configuration", {})
        fields = columns_of(action, location, version)
        return TableMetadata(
            version,
            configuration.get(CHANGE_FEED, "").lower() == "true",
            tuple(map(_column, fields)),
            (configuration.get(MAPPING_MODE, "none"), *action.get("partitionColumns", ())),
            dict(action),
        )

    @property
    def has_row_ids(self) -> bool:
        """Return whether all rows have row ids."""
        return has_row_ids(self.action)

    @property
    def is_mapped(self) -> bool:
        """Return whether the table has column mapping."""
        return self.layout[0].lower() != "none"

    @property
    def names(self) -> dict[str, str]:
        """Return the columns' names in the schema, by their names in data files."""
        return {physical or name: name for name, _type, physical, _nullable in self.columns}

    def is_readable_as(self, later: TableMetadata) -> bool:
        """Return whether Delta can read a change data feed of these versions under later metadata.
        Only two differences are allowed: nullable columns were added, or columns became nullable.
        Delta reads a feed by the newest schema (CDCReaderBase).
        """
        if self.layout != later.layout:
            return False
        old = {(name, *rest): nullable for name, *rest, nullable in self.columns}
        new = {(name, *rest): nullable for name, *rest, nullable in later.columns}
        kept = all(column in new and new[column] >= nullable for column, nullable in old.items())
        return kept and all(nullable for column, nullable in new.items() if column not in old)


def has_row_ids(action: Mapping[str, Any]) -> bool:
    """Return whether all rows have row ids, according to a metaData action."""
    return bool(action.get("configuration", {}).get(ROW_TRACKING, "").lower() == "true")


def _column(found: Mapping[str, Any]) -> tuple[str, str, str, bool]:
    physical = physical_name(found) or ""
    return found["name"], repr(found["type"]), physical, bool(found.get("nullable", True))


def physical_name(found: Mapping[str, Any]) -> str | None:
    """Return a column's name in data files under column mapping; None without column mapping."""
    details = found.get("metadata")
    physical = details.get(_PHYSICAL_NAME) if isinstance(details, dict) else None
    return None if physical is None else str(physical)


def nested_names(found: Mapping[str, Any]) -> str | None:
    """Return the names in data files of the fields of all STRUCTs in a column, as JSON: an object
    with a name for each path in the schema.  The empty path is the column.  None if the column has
    no STRUCT.
    """
    names = dict(_nested(found["type"], ""))
    if not names:
        return None
    return json.dumps({"": physical_name(found) or found["name"], **names}, ensure_ascii=False)


def _nested(type_: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of all STRUCTs in a type: path in the schema, and name in data files."""
    if not isinstance(type_, dict):
        return
    for part in ("elementType", "keyType", "valueType"):
        yield from _nested(type_.get(part), f"{path}.{part}")
    for item in type_.get("fields", ()):
        place = f"{path}.{quoted_name(item['name'])}"
        yield place, physical_name(item) or item["name"]
        yield from _nested(item["type"], place)


def physical_names(location: str, version: int) -> dict[str, str]:
    """Return the names in data files of the columns for which they differ from the columns' names,
    by the columns' names.

    Raises:
        ObjectNotInPrerequisiteState, DataCorrupted, IoError: see `metadata_at`.
    """
    columns = metadata_at(location, version).columns
    return {name: physical for name, _type, physical, _ in columns if physical not in ("", name)}


#: Cached results, by location, version and the state of the version's file.
_remembered: dict[tuple[str, int, tuple[int, int, int]], TableMetadata] = {}


def metadata_at(location: str, version: int) -> TableMetadata:
    """Return the metadata valid at a version.  It comes from the version's commit, from the newest
    earlier commit that has metadata, or from a checkpoint in between.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer has the metadata (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    whole: Collection[int] | None = None
    start: tuple[str, int, tuple[int, int, int]] | None = None
    for number in range(version, -1, -1):
        state = version_state(location, number)
        place = None if state is None else (location, number, state)
        start = place if number == version else start
        found = None if place is None else _remembered.get(place)
        action = None if found is not None or state is None else metadata_of(location, number)
        if found is None and action is None:
            whole = checkpoints(log_names(location)) if whole is None else whole
            action = checkpoint_metadata(location, number) if number in whole else None
        if found is None and action is not None:
            found = TableMetadata.of(number, action, location)
        if found is not None:
            if start is not None:
                _remember(start, found)
            return found
        if state is None:  # the log begins after this version
            break
    raise ObjectNotInPrerequisiteState(
        f'the log of the Delta table "{location}" does not say what version {version} was'
    )


def _remember(place: tuple[str, int, tuple[int, int, int]], found: TableMetadata) -> None:
    if len(_remembered) >= _REMEMBERED:
        _remembered.clear()
    _remembered[place] = found
