"""Read by which columns a Delta table partitions or clusters its files (Delta's protocol, sections
"Change Metadata" and "Clustered Table").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replctl.catalog.file_layout import CLUSTER_BY, PARTITION_BY, layout_columns
from replctl.catalog.pg_class import Relation
from replctl.errors import DataCorrupted
from replctl.lake.delta_log import (
    checkpoints,
    columns_of,
    log_names,
    read_actions,
    read_checkpoint,
    versions_in,
)
from replctl.lake.table_metadata import physical_name
from replctl.lake.table_state import TableState, table_state
from replctl.spark import FileLayout

CLUSTERING = "delta.clustering"
#: The table feature of clustered tables.
CLUSTERED = "clustering"


def wanted_layout(relation: Relation) -> FileLayout:
    """Return the layout that a relation's storage parameters ask for."""
    partitions, clusters = (_in_storage(relation, name) for name in (PARTITION_BY, CLUSTER_BY))
    return FileLayout(partitions, tuple((name,) for name in clusters))


def _in_storage(relation: Relation, parameter: str) -> tuple[str, ...]:
    """Return the names in the Delta table of the columns that a storage parameter names."""
    names = layout_columns(relation.options, parameter)
    if not names or relation.storage is None:
        return ()
    attnums = {column.name: column.attnum for column in relation.columns}
    return tuple(relation.storage.columns[attnums[name]].name for name in names if name in attnums)


def current_layout(state: TableState, location: str) -> FileLayout:
    """Return the layout of the table at a location.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    clusters: tuple[tuple[str, ...], ...] = ()
    if CLUSTERED in (state.protocol.get("writerFeatures") or ()):
        fields = columns_of(state.metadata, location, state.version)
        clusters = tuple(tuple(_path(fields, path)) for path in _clustering(location))
    return FileLayout(tuple(state.metadata.get("partitionColumns", ())), clusters)


def _path(fields: Sequence[Mapping[str, Any]], physical: Sequence[str]) -> Iterator[str]:
    """Yield the names in the schema for a path of names in data files."""
    for name in physical:
        found = next((f for f in fields if (physical_name(f) or f["name"]) == name), None)
        yield name if found is None else found["name"]
        type_ = None if found is None else found["type"]
        fields = type_.get("fields", ()) if isinstance(type_, dict) else ()


def is_clustered(location: str) -> bool:
    """Return whether the table at a location may be clustered.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    return CLUSTERED in (table_state(location).protocol.get("writerFeatures") or ())


def clustering_domain(columns: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Return the metadata domain of a table that is clustered by columns."""
    configuration = {"clusteringColumns": columns, "domainName": CLUSTERING}
    text = json.dumps(configuration, separators=(",", ":"), ensure_ascii=False)
    return {"domain": CLUSTERING, "configuration": text, "removed": False}


def _clustering(location: str) -> list[list[str]]:
    """Return the paths in data files of the clustering columns, from the newest action."""
    for domain in _domains(location):
        if domain["domain"] == CLUSTERING:
            return [] if domain.get("removed") else _columns(domain["configuration"], location)
    return []


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


def _columns(configuration: str, location: str) -> list[list[str]]:
    """Return the paths in `{"clusteringColumns": [["a"], ["s", "b"]]}`."""
    try:
        paths = json.loads(configuration)["clusteringColumns"]
    except (KeyError, TypeError, ValueError):
        paths = None
    if isinstance(paths, list) and all(map(_is_path, paths)):
        return paths
    raise DataCorrupted(
        f'the log of the Delta table "{location}" is broken',
        detail=f"Its domain metadata {CLUSTERING} is not valid.",
    )


def _is_path(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(n, str) for n in value)
