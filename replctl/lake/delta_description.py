"""Describe a Delta table from its log: protocol, features, change data feed, and identity,
partition and clustering columns.

Delta's protocol, sections "Protocol Evolution", "Change Metadata", "Clustered Table" and "Identity
Columns".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replctl.lake.adopt import delta_type_shown
from replctl.lake.delta_log import columns_of
from replctl.lake.file_layout import current_layout
from replctl.lake.table_metadata import CHANGE_FEED
from replctl.lake.table_state import table_state
from replctl.record import dataclass

_START, _STEP = "delta.identity.start", "delta.identity.step"


@dataclass(frozen=True, slots=True)
class DeltaDescription:
    """A Delta table at its newest version.

    Attributes:
        reader, writer: the versions of the protocol for readers and writers.
        features: the table features that the protocol lists.
        table_id: metaData.id.
        partitions: the names of the partition columns.
        clustering: the names of the clustering columns.
        identity: the identity columns, each with its first value and its step.
        types: the types of all columns in Delta, by name.
    """

    reader: int
    writer: int
    features: tuple[str, ...]
    has_feed: bool
    table_id: str
    partitions: tuple[str, ...]
    clustering: tuple[str, ...]
    identity: tuple[tuple[str, int, int], ...]
    types: Mapping[str, str]


def delta_description(location: str) -> DeltaDescription:
    """Return the description of the table at a location.

    Raises:
        UndefinedFile: there is no Delta table (58P01).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    state = table_state(location)
    fields = columns_of(state.metadata, location, state.version)
    protocol = state.protocol
    features = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
    layout = current_layout(state, location)
    return DeltaDescription(
        int(protocol.get("minReaderVersion", 1)),
        int(protocol.get("minWriterVersion", 1)),
        tuple(sorted(features)),
        state.is_on(CHANGE_FEED),
        str(state.metadata.get("id", "")),
        layout.partitions,
        tuple(map(".".join, layout.clusters)),
        tuple(_identity(fields)),
        {field["name"]: delta_type_shown(field) for field in fields},
    )


def _identity(fields: list[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    for field in fields:
        notes = field.get("metadata", {})
        if _START in notes:
            yield field["name"], int(notes[_START]), int(notes.get(_STEP, 1))
