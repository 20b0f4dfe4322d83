"""A Delta table of another owner, as a log without data files, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAPPING = "delta.columnMapping.physicalName"


def field(
    name: str,
    physical: str | None = None,
    type_: Any = "string",
    *,
    nullable: bool = True,
    id_: int | None = None,
) -> dict[str, Any]:
    """Return a column of a Delta schema, or a field of a STRUCT.

    Args:
        physical: its name in data files under column mapping; None without column mapping.
        id_: its id under column mapping.
    """
    metadata: dict[str, Any] = {} if physical is None else {_MAPPING: physical}
    if id_ is not None:
        metadata["delta.columnMapping.id"] = id_
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of a STRUCT."""
    return {"type": "struct", "fields": list(fields)}


@dataclass
class OwnersLog:
    """The log of a table.

    Attributes:
        is_mapped: the table has column mapping by name.
        last_id: the last id of a column under column mapping.
    """

    location: Path
    is_mapped: bool = True
    last_id: int | None = None

    def commit(
        self,
        fields: Sequence[Mapping[str, Any]] | None = None,
        *,
        partitioned_by: Sequence[str] = (),
        added: Iterable[Mapping[str, str | None]] = (),
        removed: Iterable[str] = (),
    ) -> int:
        """Write the next version, and return its number.

        Args:
            fields: its columns; None if they stay.
            added: the partition values of added files, which are <version>-<number>.parquet.
            removed: the paths of removed files.
        """
        log = self.location / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        version = len(list(log.glob("*.json")))
        actions: list[dict[str, Any]] = []
        if version == 0:
            reader, writer = (2, 5) if self.is_mapped else (1, 2)
            actions.append({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}})
        if fields is not None:
            configuration = {"delta.columnMapping.mode": "name"} if self.is_mapped else {}
            if self.last_id is not None:
                configuration["delta.columnMapping.maxColumnId"] = str(self.last_id)
            metadata = {
                "id": "an id",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(struct(*fields)),
                "partitionColumns": list(partitioned_by),
                "configuration": configuration,
            }
            actions.append({"metaData": metadata})
        actions += [
            {
                "add": {
                    "path": f"{version}-{number}.parquet",
                    "partitionValues": values,
                    "size": 1,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            }
            for number, values in enumerate(added)
        ]
        actions += [{"remove": {"path": path, "dataChange": True}} for path in removed]
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
        return version
