"""Handle the time zones of timestamps by which tables are partitioned.

Delta stores the values of partition columns as text.  A timestamp without a zone is in the zone of
the session that wrote it (Delta's protocol, section "Partition Value Serialization").  The log does
not record this zone.  The owner of the table specifies it: WITH (partition_timezone = ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.catalog.storage import PARTITION_TIMEZONE
from replctl.errors import FeatureNotSupported
from replctl.lake.delta_log import (
    checkpoints,
    columns_of,
    file_state_of,
    log_names,
    read_actions,
    read_checkpoint,
    versions_in,
)
from replctl.lake.table_metadata import physical_name
from replctl.lake.table_state import TableState, table_state
from replctl.record import dataclass
from replctl.spark import PartitionZone
from replctl.types.timezone import RegionZone, zone_named

_BARE = re.compile(r"[-+]?\d{4,}-\d\d?-\d\d?(?:[ T]\d\d?:\d\d?(?::\d\d?(?:\.\d*)?)?)?", re.ASCII)
_CHECKPOINT = ["add.partitionValues", "remove.partitionValues"]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Partition values found in a log.

    Attributes:
        newest: the version up to which the log was read.
        file_state: the state of this version's file (delta_log.file_state_of).
        texts: the texts of each column, by the column's name in the log.
    """

    newest: int
    file_state: str | None
    texts: Mapping[str, frozenset[str]]


_remembered: dict[str, _Seen] = {}


def timestamp_partitions(state: TableState, location: str) -> dict[str, str]:
    """Return the timestamp columns by which a table is partitioned, as a mapping from the name in
    the schema to the name in the log.

    Raises:
        DataCorrupted: the metadata has no schema in Delta's form (XX001).
    """
    names = state.metadata.get("partitionColumns", ())
    if not names:
        return {}
    fields = columns_of(state.metadata, location, state.version)
    return {
        field["name"]: physical_name(field) or field["name"]
        for field in fields
        if field["name"] in names and field["type"] == "timestamp"
    }


def is_utc(zone: str) -> bool:
    """Return whether a time zone is UTC, the zone of replctl's sessions in Spark."""
    found = zone_named(zone.lower())
    return found is not None and found.fixed_offset == 0


def check_partition_zones(relation: Relation) -> None:
    """Check that the time zones of the partition values of a relation's table are known.

    Raises:
        FeatureNotSupported: a time zone is unknown, or `_check_distinct` fails (0A000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    if storage is None or not (storage.is_made and storage.is_adopted):
        return
    zone = relation.options.get(PARTITION_TIMEZONE)
    for column, texts in _texts_of(storage.location).items():
        bare = sorted(text for text in texts if _BARE.fullmatch(text))
        if bare and zone is None:
            name = relation.quoted_name
            raise FeatureNotSupported(
                f'partition column "{column}" of table "{relation.qualified_name}" has values'
                " without a time zone",
                detail=f'One of them is "{bare[0]}", in the time zone of the session that wrote'
                " it.",
                hint="If the session that wrote the values used UTC, adopt the table with WITH"
                f" ({PARTITION_TIMEZONE} = 'UTC'), or use ALTER TABLE {name} SET"
                f" ({PARTITION_TIMEZONE} = 'UTC'). Otherwise use the"
                " session's time zone instead of 'UTC'.",
            )
        if bare and zone is not None and not is_utc(zone):
            _check_distinct(relation, column, bare, texts)


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


def partition_zones(relation: Relation) -> dict[str, PartitionZone]:
    """Return the zones of the partition columns whose values must be converted from another time
    zone, by the columns' names in the Delta table.

    Raises:
        The errors of `check_partition_zones`.
    """
    storage, zone = relation.storage, relation.options.get(PARTITION_TIMEZONE)
    if storage is None or not storage.is_adopted or zone is None or is_utc(zone):
        return {}
    check_partition_zones(relation)
    found = zone_named(zone.lower())
    assert isinstance(found, RegionZone)  # reloptions allows no other
    return {
        column: PartitionZone(
            found.info.key, tuple(sorted(text for text in texts if not _BARE.fullmatch(text)))
        )
        for column, texts in _texts_of(storage.location).items()
    }


def _texts_of(location: str) -> dict[str, frozenset[str]]:
    """Return the texts of a table's partition timestamps in its log, by column."""
    state = table_state(location)
    columns = timestamp_partitions(state, location)
    if not columns:
        return {}
    known = _remembered.get(location)
    if known is not None and file_state_of(location, known.newest) != known.file_state:
        known = None
    if known is None or known.newest != state.version:
        known = _read(location, state, known)
        _remembered[location] = known
    return {column: known.texts.get(name, frozenset()) for column, name in columns.items()}


def _read(location: str, state: TableState, known: _Seen | None) -> _Seen:
    """Read the partition values of the versions after the known ones.  If nothing is known, start
    with the newest checkpoint.
    """
    names = log_names(location)
    texts: dict[str, set[str]] = {}
    first = 0
    if known is not None:
        texts = {column: set(found) for column, found in known.texts.items()}
        first = known.newest + 1
    elif whole := checkpoints(names):
        for row in read_checkpoint(location, max(whole), _CHECKPOINT):
            _note(texts, (row["add"], row["remove"]))
    for version in sorted(versions_in(names)):
        if first <= version <= state.version:
            for action in read_actions(location, version):
                _note(texts, (action.get(kind) for kind in ("add", "remove", "cdc")))
    found = {column: frozenset(values) for column, values in texts.items()}
    return _Seen(state.version, state.file_state, found)


def _note(texts: dict[str, set[str]], bodies: Iterable[Mapping[str, Any] | None]) -> None:
    for body in bodies:
        for column, text in ((body or {}).get("partitionValues") or {}).items():
            if text:
                texts.setdefault(column, set()).add(text)
