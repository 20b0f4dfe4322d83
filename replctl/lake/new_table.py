"""Create empty Delta tables without Spark, by writing their first commit and its checksum (Delta's
protocol, sections "Actions" and "Version Checksum File").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from replctl import spark
from replctl.errors import IoError
from replctl.lake.file_layout import CLUSTERED, clustering_domain
from replctl.lake.own_commit import (
    commit_info,
    create_checksum,
    create_version,
    features_of,
    now,
    stored_type,
)
from replctl.lake.table_folder import TableFolder
from replctl.session import Session
from replctl.spark import (
    NO_COLUMN,
    NO_LAYOUT,
    TABLE_PROPERTIES,
    CommitNote,
    FileLayout,
    TableColumn,
)
from replctl.types.delta_type import DeltaType

#: The features of all tables that replctl creates, which their writers must support.
_WRITER_FEATURES = ("domainMetadata", "rowTracking", "invariants", "changeDataFeed", "appendOnly")
#: The feature of tables with deletion vectors.  Readers and writers must support it.
_DELETION_VECTORS = "deletionVectors"


def create_table(
    session: Session,
    location: str,
    columns: Sequence[TableColumn],
    note: CommitNote,
    *,
    has_deletion_vectors: bool,
    layout: FileLayout = NO_LAYOUT,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create an empty Delta table, unless there is one.

    On object storage Spark creates the table, because its log store prevents two writers from
    creating it at the same time.

    Args:
        has_deletion_vectors: if false, changes rewrite whole files.
        layout: the columns by which the table is partitioned or clustered.
        properties: more properties of Delta.

    Raises:
        IoError: the folder cannot be written.
    """
    vectors = {"delta.enableDeletionVectors": str(has_deletion_vectors).lower()}
    properties = {**TABLE_PROPERTIES, **vectors, **properties}
    folder = TableFolder.of(location)
    if not folder.is_local:
        spark.jobs.create_table(session.engine(), location, columns, properties, note, layout)
        return
    metadata, protocol = _definition(columns, properties, layout)
    domains = [clustering_domain(layout.clusters)] if layout.clusters else []
    parameters = {
        "partitionBy": _names(layout.partitions),
        "clusterBy": _names(list(map(".".join, layout.clusters))),
        "description": None,
        "isManaged": "false",
        "properties": json.dumps(properties, separators=(",", ":")),
    }
    info = commit_info("CREATE TABLE", parameters, {}, note)
    actions = [
        {"commitInfo": info},
        {"metaData": metadata},
        {"protocol": protocol},
        *({"domainMetadata": domain} for domain in domains),
    ]
    try:
        if create_version(folder, 0, actions):
            create_checksum(folder, 0, _checksum(metadata, protocol, domains, info["txnId"]))
    except OSError as error:
        raise IoError(f'could not create a Delta table at "{location}": {error}') from error


def _names(columns: Sequence[str]) -> str:
    """Return a list of names as Delta writes it."""
    return json.dumps(columns, separators=(",", ":"), ensure_ascii=False)


def _checksum(
    metadata: Mapping[str, Any],
    protocol: Mapping[str, Any],
    domains: Sequence[Mapping[str, Any]],
    transaction: str,
) -> dict[str, Any]:
    """Return the checksum of an empty table."""
    return {
        "txnId": transaction,
        "tableSizeBytes": 0,
        "numFiles": 0,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": domains,
        "metadata": metadata,
        "protocol": protocol,
        "allFiles": [],
    }


def _definition(
    columns: Sequence[TableColumn], properties: Mapping[str, str], layout: FileLayout
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metaData action and the protocol action of a new table."""
    types = {column.storage_name or "": stored_type(column) for column in columns}
    types = types or {NO_COLUMN: DeltaType("BOOLEAN")}  # Delta has no table without columns
    schema = DeltaType("STRUCT", tuple(types.items())).declaration
    features = features_of(types.values())
    if properties["delta.enableDeletionVectors"] == "true":
        features.insert(0, _DELETION_VECTORS)
    hidden = {
        f"delta.rowTracking.materialized{name}ColumnName": f"_{place}-col-{uuid4()}"
        for name, place in (("RowId", "row-id"), ("RowCommitVersion", "row-commit-version"))
    }
    metadata = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
        "partitionColumns": layout.partitions,
        "configuration": {**properties, **hidden},
        "createdTime": now(),
    }
    readers = {"minReaderVersion": 3, "readerFeatures": features}
    protocol = {
        **(readers if features else {"minReaderVersion": 1}),
        "minWriterVersion": 7,
        "writerFeatures": [
            *(*features, *_WRITER_FEATURES),
            *((CLUSTERED,) if layout.clusters else ()),
        ],
    }
    return metadata, protocol
