"""Append few rows to a Delta table without Spark: write a data file, a commit and its checksum.

Spark appends in these cases:

- The table has features or properties that this module does not support.
- Its newest version has no checksum.
- The number of the next version is a multiple of ten.  Spark writes these versions with a
  checkpoint.

Delta's protocol, sections "Add File and Remove File", "Commit Provenance Information", "Domain
Metadata", "Row Tracking" and "Version Checksum File".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from replctl import spark
from replctl.errors import IoError
from replctl.injection_point import injection_point
from replctl.lake.delta_actions import BrokenLogError, parse_checksum, parse_columns
from replctl.lake.delta_names import checksum_path, version_path
from replctl.lake.own_commit import (
    commit_info,
    create_checksum,
    create_version,
    now,
    stored_type,
)
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import TableState, table_state
from replctl.session import Session
from replctl.spark import (
    CommitNote,
    Leaf,
    LeafChange,
    Outcome,
    WritePath,
    WrittenFile,
)

#: The features that do not affect an append, or that this module supports.
_FEATURES = frozenset(
    (
        *("appendOnly", "invariants", "changeDataFeed", "deletionVectors", "timestampNtz"),
        *("domainMetadata", "rowTracking"),
    )
)
#: The properties of Delta that do not affect an append.
_PROPERTIES = frozenset(
    (
        *("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableDeletionVectors"),
        *("delta.enableRowTracking", "delta.enableExpiredLogCleanup", "delta.isolationLevel"),
        *("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"),
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
)
#: The feature whose writers number all rows, even if the property delta.enableRowTracking is off,
#: and its metadata domain.
_NUMBERS_ROWS, _ROW_TRACKING = "rowTracking", "delta.rowTracking"
#: The parameters of the operation, by Delta's names.
_APPEND = {"mode": "Append", "partitionBy": "[]"}
#: Spark writes a checkpoint with each version that is a multiple of this number.
_CHECKPOINT_INTERVAL = 10
#: Maximum number of files that a checksum lists, and of bytes of a checksum to read.
_MOST_FILES, _MOST_BYTES = 50, 1 << 20
#: Maximum number of attempts, each after another program has committed.
_ATTEMPTS = 5


def write_leaf(
    session: Session,
    outcome: Outcome,
    number: int,
    leaf: Leaf,
    change: LeafChange,
    note: CommitNote,
) -> None:
    """Write an outcome's rows of one leaf partition, in one commit.  If these are few new rows of a
    simple table on a local disk, write them without Spark.

    Args:
        number: the leaf's index in the outcome's target.
        leaf: the leaf with its current storage.

    Raises:
        IoError: the table cannot be written.
    """
    if not _is_appended(session, outcome, number, leaf, change, note):
        spark.jobs.write_leaf(session.engine(), outcome, number, leaf, change, note)


def _is_appended(
    session: Session,
    outcome: Outcome,
    number: int,
    leaf: Leaf,
    change: LeafChange,
    note: CommitNote,
) -> bool:
    """Append an outcome's rows, and return True; return False if Spark has to write them."""
    location = leaf.source.location
    assert location is not None
    folder = TableFolder.of(location)
    if (
        not folder.is_local
        or not outcome.rows.is_small
        or change.inserted > int(session.setting("replctl.small_table_rows"))
        or spark.jobs.write_path(outcome, change) is not WritePath.APPEND
        or leaf.source.left_out
        or any(column.is_assigned for column in outcome.target.columns)
    ):
        return False
    try:
        return _append(folder, outcome, number, leaf, note)
    except OSError as error:
        raise IoError(f'could not write the Delta table at "{location}": {error}') from error


def _append(
    folder: TableFolder, outcome: Outcome, number: int, leaf: Leaf, note: CommitNote
) -> bool:
    """Write a data file, and commit it.  Return False if Spark has to do it.

    After an error, the data file stays, because the commit may have succeeded.  If it failed, the
    next write removes the file.
    """
    written: WrittenFile | None = None
    path = f"part-00000-{uuid4()}-c000.snappy.parquet"
    for _attempt in range(_ATTEMPTS):
        state = table_state(folder.location)
        checksum = _checksum_of(folder, state)
        if checksum is None or not _is_simple(state, leaf) or _is_repeated(checksum, note):
            break
        if written is None:
            columns, name = leaf.source.columns, f"{folder.location}/{path}"
            written = spark.write_file(outcome, number, columns, name)
        if written is None:
            return False
        folder.copy_mode(version_path(state.version), path)
        injection_point("append.after-file")
        if _is_committed(folder, state, checksum, path, written, note):
            return True
    if written is not None:
        folder.delete(path)
    return False


def _checksum_of(folder: TableFolder, state: TableState) -> dict[str, Any] | None:
    """Return the checksum of a version; None if it has none, or if Spark has to write the next
    version."""
    if (state.version + 1) % _CHECKPOINT_INTERVAL == 0:
        return None
    try:
        path = checksum_path(state.version)
        _number, size, _time = folder.state(path)
        found = parse_checksum(folder.read(path)) if size <= _MOST_BYTES else {}
        is_usable = found.keys() >= _NEEDED and _high_water_mark(found["domainMetadata"]) >= -1
    except (OSError, BrokenLogError):  # Spark writes without a checksum, too
        return None
    return found if is_usable else None


#: The parts of a checksum that the next one needs.
_NEEDED = frozenset(
    ("tableSizeBytes", "numFiles", "setTransactions", "domainMetadata", "metadata", "protocol")
)


def _is_simple(state: TableState, leaf: Leaf) -> bool:
    """Return whether this module supports the features, properties and columns of a table."""
    readers, writers = (state.protocol.get(f"min{who}Version") for who in ("Reader", "Writer"))
    features = {
        *(state.protocol.get("readerFeatures") or ()),
        *(state.protocol.get("writerFeatures") or ()),
    }
    properties = {name for name in state.properties if name.startswith("delta.")}
    if (
        readers not in (1, 3)
        or writers not in (1, 2, 7)
        or not features <= _FEATURES
        or not properties <= _PROPERTIES
        or state.metadata.get("partitionColumns")
    ):
        return False
    try:
        fields = {field["name"]: field for field in parse_columns(state.metadata)}
    except BrokenLogError:  # Spark reports it
        return False
    is_plain = all(
        field.get("nullable") is True and not {*field.get("metadata", {})} - {"comment"}
        for field in fields.values()
    )
    return is_plain and all(
        fields.get(column.storage_name or "", {}).get("type") == stored_type(column).declaration
        for column in leaf.source.columns
    )


def _is_repeated(checksum: Mapping[str, Any], note: CommitNote) -> bool:
    """Return whether an earlier attempt of the same write may have committed."""
    return any(
        step.get("appId") == note.application and step.get("version", 0) >= (note.step or 0)
        for step in checksum["setTransactions"]
    )


def _is_committed(
    folder: TableFolder,
    state: TableState,
    checksum: dict[str, Any],
    path: str,
    written: WrittenFile,
    note: CommitNote,
) -> bool:
    """Commit a data file as the next version.  Return False if there is such a version already."""
    version = state.version + 1
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": written.size,
        "modificationTime": written.modified,
        "dataChange": True,
        "stats": written.statistics,
    }
    domains = []
    if _NUMBERS_ROWS in (state.protocol.get("writerFeatures") or ()):
        first = _high_water_mark(checksum["domainMetadata"]) + 1
        add |= {"baseRowId": first, "defaultRowCommitVersion": version}
        domains.append(_row_ids(first + written.rows - 1))
    steps = []
    if note.application is not None:
        steps.append({"appId": note.application, "version": note.step, "lastUpdated": now()})
    metrics = {
        "numFiles": "1",
        "numOutputRows": str(written.rows),
        "numOutputBytes": str(written.size),
    }
    info = commit_info("WRITE", _APPEND, metrics, note, state.version)
    actions = [
        {"commitInfo": info},
        *({"txn": step} for step in steps),
        {"add": add},
        *({"domainMetadata": domain} for domain in domains),
    ]
    if not create_version(folder, version, actions):
        return False
    injection_point("append.after-commit")
    following = _following(checksum, info["txnId"], steps, add, domains)
    # Without a checksum, readers read the log
    with suppress(OSError):
        create_checksum(folder, version, following)
    return True


def _following(
    checksum: dict[str, Any],
    transaction: str,
    steps: Sequence[dict[str, Any]],
    add: dict[str, Any],
    domains: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the checksum of the next version, which has these actions.

    Spark writes a checksum without histograms of the files, too, and computes them when it needs
    them.

    Args:
        checksum: the known parts of the checksum before.
    """
    files = [*checksum.get("allFiles", ()), {**add, "dataChange": False}]
    following = checksum | {
        "txnId": transaction,
        "tableSizeBytes": checksum["tableSizeBytes"] + add["size"],
        "numFiles": checksum["numFiles"] + 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": _replaced(checksum["setTransactions"], steps, "appId"),
        "domainMetadata": _replaced(checksum["domainMetadata"], domains, "domain"),
        "allFiles": files,
    }
    if "allFiles" not in checksum or len(files) > _MOST_FILES:
        following.pop("allFiles")
    return following


def _high_water_mark(domains: Iterable[Mapping[str, Any]]) -> int:
    """Return the greatest row id that a table has assigned; -1 if there is none.

    Raises:
        BrokenLogError: the domain does not have Delta's form.
    """
    for domain in domains:
        if domain["domain"] == _ROW_TRACKING:
            try:
                return int(json.loads(domain["configuration"])["rowIdHighWaterMark"])
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
                raise BrokenLogError("it has no rowIdHighWaterMark") from error
    return -1


def _row_ids(greatest: int) -> dict[str, Any]:
    """Return the metadata domain of row tracking."""
    configuration = {"rowIdHighWaterMark": greatest, "domainName": _ROW_TRACKING}
    text = json.dumps(configuration, separators=(",", ":"))
    return {"domain": _ROW_TRACKING, "configuration": text, "removed": False}


def _replaced(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], key: str
) -> list[dict[str, Any]]:
    """Return the items of a checksum after a commit, whose items replace those with the same
    key."""
    names = {item[key] for item in after}
    return [*(item for item in before if item.get(key) not in names), *after]
