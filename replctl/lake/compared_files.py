"""Present the files that versions of a Delta table removed and added as two small Delta tables.
The difference between the two tables is the change that the versions made.

Each of the two tables consists only of a log, whose `add` actions refer to the existing files.  So
Spark reads old rows with the old schema and new rows with the new schema.  This includes column
mapping, widened types, deletion vectors and row ids.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_actions import VectorStorage, file_uris
from replctl.lake.delta_files import files_by_key, row_actions
from replctl.lake.delta_log import metadata_of
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_metadata import MAPPING_MODE, ROW_TRACKING, metadata_at
from replctl.lake.table_paths import has_scheme
from replctl.record import dataclass

_FEATURES = ["columnMapping", "timestampNtz", "typeWidening", "variantShredding", "variantType"]
#: With this feature, each query of a table looks for deletion vectors in the table's whole log.
_VECTORS = "deletionVectors"
#: Properties that describe how files store rows.  Other properties are omitted: Delta refuses them
#: if the protocol lacks their feature.
_PROPERTIES = (MAPPING_MODE, "delta.columnMapping.maxColumnId")
_ROW_ID_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
#: Prefixes of the keys in a column's metadata that describe how files store the column.
_COLUMN_NOTES = ("delta.columnMapping.", "delta.typeChanges", "__CHAR_VARCHAR_TYPE_STRING")
#: A file of a table (`file_key`), and its entry in the log.
_Key: TypeAlias = tuple[str, str]
_Body: TypeAlias = dict[str, Any]
#: An action of a log: its kind (add or remove), its file, its fields.
_Change: TypeAlias = tuple[str, _Key, _Body]
_KEPT = ("partitionValues", "size", "baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True, slots=True)
class ComparedFiles:
    """The logs of two small Delta tables, with the removed and the added files.  Each log consists
    of one commit.

    Attributes:
        before: the log of the removed files; None if there are none.
        after: the log of the added files; None if there are none.
        has_row_ids: rows of all these files have row ids.
        files: the paths of all these files and of their deletion vectors, as in the table's log.
    """

    before: str | None
    after: str | None
    has_row_ids: bool
    files: frozenset[str]


def compared_files(location: str, version: int, first: int | None = None) -> ComparedFiles:
    """Return the files changed by versions of a table as the logs of two tables.

    Added files do not count if they existed before with the same deletion vector, or if a later
    version removed them.  A removed file has the fields of the `add` action that added it, because
    a `remove` action may lack some of them.

    Args:
        version: the last of the versions.
        first: the first of the versions; None if there is only one.  No later version may have
            metadata of its own.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer says which files these were (55000).
        DataCorrupted, IoError: the log is broken (XX001) or unreadable.
    """
    first = version if first is None else first
    changes = [
        change for number in range(first, version + 1) for change in row_actions(location, number)
    ]
    removed, added = _net_files(changes, _earlier_files(location, first, changes))
    own = metadata_of(location, first)
    is_first = own is None or first == 0
    before = metadata_at(location, version if is_first else first - 1).action
    after = before if own is None else own
    bodies = [*removed, *added]
    has_row_ids = all("baseRowId" in body for body in bodies) and all(
        action.get("configuration", {}).get(ROW_TRACKING, "").lower() == "true"
        for action in (before, after)
    )
    places = _Places(location)
    old, new = (
        _log(_metadata(action, has_row_ids=has_row_ids), files, places) if files else None
        for action, files in ((before, removed), (after, added))
    )
    return ComparedFiles(
        old, new, has_row_ids, frozenset(uri for body in bodies for uri in file_uris(body))
    )


def _earlier_files(
    location: str, first: int, changes: Sequence[_Change]
) -> dict[_Key, _Body] | None:
    """Return the files that existed before the version `first` and that the changes name.

    Returns:
        the files by `file_key`; None if the log no longer contains the earlier version, but the
        `remove` actions have all fields.
    """
    paths = {path for _kind, (path, _vector), _body in changes}
    try:
        return files_by_key(location, first - 1, paths)
    except ObjectNotInPrerequisiteState:  # a cleanup has removed the version
        removes = [body for kind, _key, body in changes if kind == "remove"]
        if not all(remove.get("extendedFileMetadata") for remove in removes):
            raise
        return None


def _net_files(
    changes: Iterable[_Change], earlier: Mapping[_Key, _Body] | None
) -> tuple[list[_Body], list[_Body]]:
    """Return the files removed and the files added by successive actions in total.

    Args:
        changes: the actions, oldest first.
        earlier: the named files that existed before; None if the log does not say.
    """
    gone: dict[_Key, _Body] = {}
    come: dict[_Key, _Body] = {}
    for kind, key, body in changes:
        if kind == "remove":
            if come.pop(key, None) is None and (earlier is None or key in earlier):
                gone[key] = body if earlier is None else earlier[key]
        elif gone.pop(key, None) is None and (earlier is None or key not in earlier):
            come[key] = body
    return list(gone.values()), list(come.values())


def _log(metadata: dict[str, Any], bodies: Iterable[Mapping[str, Any]], places: _Places) -> str:
    """Return the text of a log whose only commit adds these files."""
    adds = [_add(body, places) for body in bodies]
    # Delta also caches the state of tables by their ids
    content = json.dumps([metadata, adds], sort_keys=True)
    shown = metadata | {"id": str(uuid.uuid5(uuid.NAMESPACE_URL, content))}
    features = [*_FEATURES, *([_VECTORS] if any(map(_has_vector, adds)) else [])]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": [*features, "domainMetadata", "rowTracking"],
    }
    actions = [{"protocol": protocol}, {"metaData": shown}, *({"add": add} for add in adds)]
    return "".join(f"{json.dumps(action)}\n" for action in actions)


def _metadata(action: Mapping[str, Any], *, has_row_ids: bool) -> dict[str, Any]:
    configuration = action.get("configuration", {})
    names = list(_PROPERTIES)
    if has_row_ids:
        names += [ROW_TRACKING, *_ROW_ID_COLUMNS]
    return {
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_stored_type(json.loads(action["schemaString"]))),
        "partitionColumns": list(action.get("partitionColumns", ())),
        "configuration": {name: configuration[name] for name in names if name in configuration},
    }


def _stored_type(declared: Any) -> Any:
    """Return a Delta type without the constraints and defaults of its columns."""
    if isinstance(declared, list):
        return [_stored_type(item) for item in declared]
    if not isinstance(declared, dict):
        return declared
    found = {name: _stored_type(value) for name, value in declared.items() if name != "metadata"}
    if "metadata" in declared:
        notes = declared["metadata"].items()
        found["metadata"] = {n: value for n, value in notes if n.startswith(_COLUMN_NOTES)}
    if "nullable" in declared:
        found["nullable"] = True  # NOT NULL needs a feature of its own (invariants)
    return found


def _add(body: Mapping[str, Any], places: _Places) -> dict[str, Any]:
    data, *vectors = file_uris(body)
    add = {name: body[name] for name in _KEPT if name in body}
    add |= {"path": places.uri(data), "dataChange": True, "size": body.get("size", 0)}
    add["modificationTime"] = body.get("modificationTime", 0)
    add["partitionValues"] = body.get("partitionValues", {})
    vector = body.get("deletionVector")
    if vector:
        add["deletionVector"] = dict(vector)
    if vector and vectors:
        placed = {"storageType": VectorStorage.PATH, "pathOrInlineDv": places.uri(vectors[0])}
        add["deletionVector"] = {**vector, **placed}
    return add


def _has_vector(add: Mapping[str, Any]) -> bool:
    return "deletionVector" in add


class _Places:
    """The locations of a table's files.

    Args:
        location: the table's directory, a path or a URI.
    """

    def __init__(self, location: str) -> None:
        folder = TableFolder.of(location)
        self._scheme = "file://" if folder.is_local else ""
        self._root = f"{self._scheme}{quote(folder.location) if folder.is_local else location}"

    def uri(self, path: str) -> str:
        """Return the absolute URI for a path in the table's log."""
        if has_scheme(path):
            return path
        if path.startswith("/"):
            return f"{self._scheme}{path}"
        return f"{self._root.rstrip('/')}/{path}"
