"""Handle the time zones of timestamps by which tables are partitioned.

Delta stores the values of partition columns as text.  A timestamp without a zone is in the zone of
the session that wrote it (Delta's protocol, section "Partition Value Serialization").  The log does
not record this zone.  The owner of the table specifies it: WITH (partition_timezone = ...).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from replctl.catalog.pg_class import Relation
from replctl.catalog.storage import PARTITION_TIMEZONE
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.lake.delta_files import files_at
from replctl.lake.delta_log import (
    checkpoints,
    file_state_of,
    log_names,
    read_actions,
    read_checkpoint,
    versions_in,
)
from replctl.lake.table_metadata import TableMetadata, metadata_at
from replctl.lake.table_state import TableState, table_state
from replctl.record import dataclass
from replctl.spark import PartitionZone
from replctl.types.timezone import RegionZone, zone_named

_BARE = re.compile(r"[-+]?\d{4,}-\d\d?-\d\d?(?:[ T]\d\d?:\d\d?(?::\d\d?(?:\.\d*)?)?)?", re.ASCII)
_CHECKPOINT = ["add.partitionValues", "remove.partitionValues"]
#: The type of a column in TableMetadata.columns.
_TIMESTAMP = repr("timestamp")
#: Texts of partition values, by the columns' names in the log.
_Texts: TypeAlias = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Partition values found in a log.

    Attributes:
        oldest, newest: the versions from which and up to which the log was read.
        file_state: the state of this version's file (delta_log.file_state_of).
        texts: the texts of each column, by the column's name in the log.
    """

    oldest: int
    newest: int
    file_state: str | None
    texts: _Texts


_remembered: dict[str, _Seen] = {}


def _timestamp_partitions(metadata: TableMetadata) -> dict[str, str]:
    """Return the timestamp columns by which a table is partitioned, as a mapping from the name in
    the schema to the name in the log.
    """
    _mode, *names = metadata.layout
    return {
        name: physical or name
        for name, type_, physical, _nullable in metadata.columns
        if name in names and type_ == _TIMESTAMP
    }


def metadata_of_versions(
    location: str, versions: Collection[int], earlier: Collection[int]
) -> dict[int, TableMetadata]:
    """Return the metadata valid at versions.  List the log once, and read it once for all versions
    with the same metadata.

    Args:
        versions: the versions to read.
        earlier: versions to omit from the result if the log no longer has their metadata.

    Raises:
        The errors of `metadata_at`, for `versions`.
    """
    if not versions:
        return {}
    state, found = table_state(location), {}
    metadata: TableMetadata | None = None
    for version in sorted({*versions, *earlier}, reverse=True):
        if version == state.version:
            if state.metadata:
                found[version] = TableMetadata.of(version, state.metadata, location)
            continue
        if metadata is None or version < metadata.version:
            try:
                metadata = metadata_at(location, version)
            except ObjectNotInPrerequisiteState:
                if version in versions:
                    raise
                continue
        found[version] = metadata
    return found


def is_utc(zone: str) -> bool:
    """Return whether a time zone is UTC, the zone of replctl's sessions in Spark."""
    found = zone_named(zone.lower())
    return found is not None and found.fixed_offset == 0


def check_partition_zones(relation: Relation) -> None:
    """Check that the time zones of the partition values of a relation's table are known.  Check the
    columns by which the newest version is partitioned.

    Raises:
        FeatureNotSupported: a time zone is unknown, or `_check_distinct` fails (0A000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    metadata = partitioned_metadata(relation)
    if metadata is not None and (columns := _timestamp_partitions(metadata)):
        assert relation.storage is not None
        _check(relation, columns, _texts_of(relation.storage.location, ()))


def partitioned_metadata(relation: Relation) -> TableMetadata | None:
    """Return the newest metadata of a relation's table; None if the table is not adopted or not
    partitioned.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    if storage is None or not (storage.is_made and storage.is_adopted):
        return None
    state = table_state(storage.location)
    if not state.metadata.get("partitionColumns"):
        return None
    return TableMetadata.of(state.version, state.metadata, storage.location)


def _check(relation: Relation, columns: Mapping[str, str], texts: _Texts) -> None:
    """Make the checks of `check_partition_zones` for some columns.

    Args:
        columns: their names in the log, by their names in the schema.
    """
    zone = relation.options.get(PARTITION_TIMEZONE)
    for column, name in columns.items():
        found = texts.get(name, frozenset())
        bare = sorted(text for text in found if _BARE.fullmatch(text))
        if bare and zone is None:
            table = relation.quoted_name
            raise FeatureNotSupported(
                f'partition column "{column}" of table "{relation.qualified_name}" has values'
                " without a time zone",
                detail=f'One of them is "{bare[0]}", in the time zone of the session that wrote'
                " it.",
                hint="If the session that wrote the values used UTC, adopt the table with WITH"
                f" ({PARTITION_TIMEZONE} = 'UTC'), or use ALTER TABLE {table} SET"
                f" ({PARTITION_TIMEZONE} = 'UTC'). Otherwise use the"
                " session's time zone instead of 'UTC'.",
            )
        if bare and zone is not None and not is_utc(zone):
            _check_distinct(relation, column, bare, found)


def _check_distinct(
    relation: Relation, column: str, bare: Iterable[str], texts: Iterable[str]
) -> None:
    """Check that Spark does not confuse different instants of a column.  Spark reads texts without
    a zone as UTC.

    Raises:
        FeatureNotSupported: Spark would confuse two instants (0A000).
    """
    instants = {_instant(text): text for text in texts if not _BARE.fullmatch(text)}
    for text in bare:
        other = instants.get(_instant(text))
        if other is not None:
            raise FeatureNotSupported(
                f'partition column "{column}" of table "{relation.qualified_name}" has values that'
                " cannot be distinguished",
                detail=f'They are "{text}", without a time zone, and "{other}".',
            )


def _instant(text: str) -> datetime | str:
    """Return the instant that Spark reads from a text in a session with UTC.  Return the text
    itself if Python cannot convert it to a datetime.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:  # such as a year after 9999; equal texts still match
        return text
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def partition_zones(
    relation: Relation,
    versions: Mapping[int, TableMetadata],
    names_at: Callable[[int], Mapping[int, str | None]],
) -> dict[int, tuple[PartitionZone, frozenset[int]]]:
    """Return the zones of the partition columns whose values must be converted from another time
    zone, each with the versions to which this applies, by attnum.  The owner may have changed the
    partitioning between two versions.

    Args:
        versions: the versions to read, with their metadata.
        names_at: returns the names of a version's columns by attnum.

    Raises:
        The errors of `check_partition_zones`.
        ObjectNotInPrerequisiteState: the log no longer has the metadata of a version (55000).
    """
    storage, zone = relation.storage, relation.options.get(PARTITION_TIMEZONE)
    assert storage is not None
    partitions = {
        version: columns
        for version, metadata in versions.items()
        if (columns := _timestamp_partitions(metadata))
    }
    if not partitions:
        return {}
    texts = _texts_of(storage.location, partitions)
    for columns in {tuple(columns.items()): columns for columns in partitions.values()}.values():
        _check(relation, columns, texts)
    if zone is None or is_utc(zone):
        return {}
    found = zone_named(zone.lower())
    assert isinstance(found, RegionZone)  # reloptions allows no other
    names: dict[int, dict[int, str]] = defaultdict(dict)
    for version, columns in partitions.items():
        lower = {name.lower(): physical for name, physical in columns.items()}
        for attnum, name in names_at(version).items():
            if (physical := lower.get((name or "").lower())) is not None:
                names[attnum][version] = physical
    zones = {}
    for attnum, by_version in names.items():
        known = frozenset().union(*(texts.get(name, ()) for name in by_version.values()))
        others = sorted(text for text in known if not _BARE.fullmatch(text))
        zones[attnum] = PartitionZone(found.info.key, tuple(others)), frozenset(by_version)
    return zones


def _texts_of(location: str, versions: Iterable[int]) -> _Texts:
    """Return the texts of partition values in a table's log, by the columns' names in the log.

    Args:
        versions: versions to read; they may be older than the newest checkpoint.
    """
    state = table_state(location)
    known = _remembered.get(location)
    if known is not None and file_state_of(location, known.newest) != known.file_state:
        known = None
    if known is None or known.newest != state.version:
        known = _read(location, state, known)
        _remembered[location] = known
    older = [version for version in versions if version < known.oldest]
    if not older:
        return known.texts
    texts = {name: set(found) for name, found in known.texts.items()}
    for version in older:
        _note(texts, files_at(location, version))
    return {name: frozenset(found) for name, found in texts.items()}


def _read(location: str, state: TableState, known: _Seen | None) -> _Seen:
    """Read the partition values of the versions after the known ones.  If nothing is known, start
    with the newest checkpoint.
    """
    names = log_names(location)
    texts: dict[str, set[str]] = {}
    first = oldest = 0
    if known is not None:
        texts = {column: set(found) for column, found in known.texts.items()}
        first, oldest = known.newest + 1, known.oldest
    elif whole := checkpoints(names):
        oldest = max(whole)
        for row in read_checkpoint(location, oldest, _CHECKPOINT):
            _note(texts, (row["add"], row["remove"]))
    for version in sorted(versions_in(names)):
        if first <= version <= state.version:
            for action in read_actions(location, version):
                _note(texts, (action.get(kind) for kind in ("add", "remove", "cdc")))
    found = {column: frozenset(values) for column, values in texts.items()}
    return _Seen(oldest, state.version, state.file_state, found)


def _note(texts: dict[str, set[str]], bodies: Iterable[Mapping[str, Any] | None]) -> None:
    for body in bodies:
        for column, text in ((body or {}).get("partitionValues") or {}).items():
            if text:
                texts.setdefault(column, set()).add(text)
