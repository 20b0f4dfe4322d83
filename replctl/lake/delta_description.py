"""Describe a Delta table from its log: protocol, features, change data feed, and identity,
partition and clustering columns.

Delta's protocol, sections "Protocol Evolution", "Change Metadata", "Clustered Table" and "Identity
Columns".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replctl.errors import DataCorrupted
from replctl.lake.adopt import delta_type_shown
from replctl.lake.delta_log import (
    checkpoints,
    columns_of,
    log_names,
    read_actions,
    read_checkpoint,
    versions_in,
)
from replctl.lake.table_metadata import CHANGE_FEED, physical_name
from replctl.lake.table_state import table_state
from replctl.record import dataclass

_CLUSTERING = "delta.clustering"
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
    clustering: tuple[str, ...] = ()
    if "clustering" in features:
        names = {physical_name(field) or field["name"]: field["name"] for field in fields}
        clustering = tuple(names.get(name, name) for name in _clustering(location))
    return DeltaDescription(
        int(protocol.get("minReaderVersion", 1)),
        int(protocol.get("minWriterVersion", 1)),
        tuple(sorted(features)),
        state.is_on(CHANGE_FEED),
        str(state.metadata.get("id", "")),
        tuple(state.metadata.get("partitionColumns", ())),
        clustering,
        tuple(_identity(fields)),
        {field["name"]: delta_type_shown(field) for field in fields},
    )


def _identity(fields: list[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    for field in fields:
        notes = field.get("metadata", {})
        if _START in notes:
            yield field["name"], int(notes[_START]), int(notes.get(_STEP, 1))


def _clustering(location: str) -> tuple[str, ...]:
    """Return the names in data files of the clustering columns, from the newest action."""
    for domain in _domains(location):
        if domain["domain"] == _CLUSTERING:
            return () if domain.get("removed") else _columns(domain["configuration"], location)
    return ()


def _domains(location: str) -> Iterator[Mapping[str, Any]]:
    """Yield the domain metadata of a table, newest first: from the commits after the newest
    checkpoint, then from this checkpoint.
    """
    names = log_names(location)
    whole = max(checkpoints(names), default=-1)
    for version in sorted((v for v in versions_in(names) if v > whole), reverse=True):
        actions = read_actions(location, version)
        yield from (action["domainMetadata"] for action in actions if "domainMetadata" in action)
    for row in read_checkpoint(location, whole, ["domainMetadata"]) if whole >= 0 else ():
        if row["domainMetadata"] is not None:
            yield row["domainMetadata"]


def _columns(configuration: str, location: str) -> tuple[str, ...]:
    """Return the names in `{"clusteringColumns": [["a"], ["s", "b"]]}`."""
    try:
        return tuple(".".join(path) for path in json.loads(configuration)["clusteringColumns"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataCorrupted(
            f'the log of the Delta table "{location}" is broken',
            detail=f"Its domain metadata {_CLUSTERING} is not valid.",
        ) from error
