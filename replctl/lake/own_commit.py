"""Write commits of Delta tables without Spark.

Delta's protocol, sections "Delta Log Entries", "Commit Provenance Information" and "Version
Checksum File".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

import replctl
from replctl.lake.delta_names import checksum_path, version_path
from replctl.lake.table_folder import TableFolder
from replctl.spark import CommitNote, TableColumn, storage_type
from replctl.types.delta_type import VARIANT, DeltaType, parsed

#: The features that columns of some types need.
_TYPE_FEATURES = {"TIMESTAMP_NTZ": "timestampNtz", VARIANT: "variantType"}


def commit_info(
    operation: str,
    parameters: Mapping[str, str | None],
    metrics: Mapping[str, str],
    note: CommitNote,
    read_version: int | None = None,
    *,
    is_blind: bool = True,
) -> dict[str, Any]:
    """Return the commitInfo action of a commit.

    Args:
        operation, parameters, metrics: by Delta's names.
        read_version: the version on which the commit is based; None for the first one.
        is_blind: the commit does not depend on the table's rows.
    """
    based_on = {} if read_version is None else {"readVersion": read_version}
    return {
        "timestamp": now(),
        "operation": operation,
        "operationParameters": parameters,
        **based_on,
        "isolationLevel": "Serializable",
        "isBlindAppend": is_blind,
        "operationMetrics": metrics,
        "userMetadata": note.user_metadata,
        "engineInfo": f"replctl/{replctl.__version__}",
        "txnId": str(uuid4()),
    }


def create_version(folder: TableFolder, version: int, actions: Iterable[Mapping[str, Any]]) -> bool:
    """Commit actions as a version of a table on a local disk.  Return False if another program has
    committed this version.

    Raises:
        OSError: the file cannot be written.
    """
    log = "".join(f"{_json(action)}\n" for action in actions)
    like = version_path(version - 1) if version else None
    return folder.create(version_path(version), log.encode(), like=like)


def create_checksum(folder: TableFolder, version: int, checksum: Mapping[str, Any]) -> None:
    """Write the checksum of a version that this process has committed.

    If there is a checksum already, it is of an earlier version with this number, which was removed.

    Raises:
        OSError: the file cannot be written.
    """
    content = _json(checksum).encode()
    folder.create(checksum_path(version), content, like=version_path(version), replaces=True)


def stored_type(column: TableColumn) -> DeltaType:
    """Return the type in which Spark stores a column."""
    found = parsed(storage_type(column.type, column.typmod))
    assert found is not None
    return found


def features_of(types: Iterable[DeltaType]) -> list[str]:
    """Return the features of tables with columns of some types, which readers and writers of such a
    table must support.
    """
    kept = list(types)
    return [
        feature
        for name, feature in _TYPE_FEATURES.items()
        if any(_contains(type_, name) for type_ in kept)
    ]


def _contains(type_: DeltaType, name: str) -> bool:
    """Return whether a type is, or contains, a simple type."""
    return type_.name == name or any(_contains(part, name) for _label, part in type_.parts)


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
