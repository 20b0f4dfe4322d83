"""Commit to simple Delta tables on a local disk without Spark: write a version of the log, and its
checksum.

Spark commits in these cases:

- The table has features or properties that this module does not support.
- Its newest version has no checksum.
- The log needs a checkpoint, which Spark writes with each version whose number is a multiple of
  ten.

Delta's protocol, sections "Add File and Remove File", "Commit Provenance Information", "Domain
Metadata", "Row Tracking" and "Version Checksum File".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from replctl.errors import IoError, ObjectNotInPrerequisiteState
from replctl.injection_point import injection_point
from replctl.lake.delta_actions import BrokenLogError, file_key, parse_checksum, parse_columns
from replctl.lake.delta_files import whole_files_at
from replctl.lake.delta_log import actions_of_kinds, checkpoints, log_names
from replctl.lake.delta_names import checksum_path
from replctl.lake.own_commit import (
    commit_info,
    create_checksum,
    create_version,
    now,
    stored_type,
)
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import TableState, table_state
from replctl.record import dataclass
from replctl.spark import CommitNote, TableColumn, WrittenFile

#: The features that do not affect a commit of this module, or that it supports.
_FEATURES = frozenset(
    (
        *("appendOnly", "invariants", "changeDataFeed", "deletionVectors", "timestampNtz"),
        *("domainMetadata", "rowTracking"),
    )
)
#: The properties of Delta that do not affect a commit of this module.
_PROPERTIES = frozenset(
    (
        *("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableDeletionVectors"),
        *("delta.enableRowTracking", "delta.enableExpiredLogCleanup", "delta.isolationLevel"),
        *("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"),
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
)
#: The feature that makes writers number all rows, even if the property delta.enableRowTracking is
#: off; and the metadata domain of this feature.
_NUMBERS_ROWS, _ROW_TRACKING = "rowTracking", "delta.rowTracking"
#: Spark writes a checkpoint with each version that is a multiple of this number.
_CHECKPOINT_INTERVAL = 10
#: Maximum number of versions without a checkpoint.
_MOST_COMMITS = 50
#: Maximum number of files that a checksum lists, and of bytes of a checksum to read.
_MOST_FILES, _MOST_BYTES = 50, 1 << 20
#: The actions of a table's definition, by their names in a checksum.
_DEFINITION = {"metadata": "metaData", "protocol": "protocol"}
#: The parts of a checksum that the next one needs.
_NEEDED = frozenset(
    ("tableSizeBytes", "numFiles", "setTransactions", "domainMetadata", "metadata", "protocol")
)


@dataclass(frozen=True, slots=True)
class SmallCommit:
    """The next commit of a table.

    Attributes:
        state: the version before the commit.
        checksum: the known parts of the checksum of that version.
    """

    folder: TableFolder
    state: TableState
    checksum: dict[str, Any]
    note: CommitNote

    @staticmethod
    def following(folder: TableFolder, note: CommitNote) -> SmallCommit | None:
        """Return the commit after a table's newest version; None if Spark has to make it.

        Raises:
            PostgresError: the log cannot be read.
        """
        if not folder.is_local:
            return None
        state = table_state(folder.location)
        checksum = _checksum_of(folder, state)
        if (
            checksum is None
            or not _is_of(checksum, folder, state.version, state.metadata)
            or not is_simple(state)
            or is_repeated(checksum, note)
        ):
            return None
        return SmallCommit(folder, state, checksum, note)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the table's metaData action as JSON has it; a checkpoint has it in Parquet."""
        found: dict[str, Any] = self.checksum["metadata"]
        return found

    @property
    def version(self) -> int:
        """Return the number of the commit's version."""
        return self.state.version + 1

    def has_types(self, columns: Sequence[TableColumn]) -> bool:
        """Return whether the table has columns with the types in which Spark would store them."""
        types = {field["name"]: field["type"] for field in parse_columns(self.state.metadata)}
        return all(
            types.get(column.storage_name or "") == stored_type(column).declaration
            for column in columns
        )

    def files(self) -> Sequence[dict[str, Any]] | None:
        """Return the `add` actions of the table's files.  The commit may remove these files.

        Returns:
            the actions; None if the table is append-only, or if the checksum does not list the
            files of the log.  Any program may have written the checksum.
        """
        if self.state.is_on("delta.appendOnly"):
            return None
        return _listed_files(self.folder, self.checksum, self.state.version)

    def files_at(self, version: int) -> Sequence[dict[str, Any]] | None:
        """Return the `add` actions of the files of an earlier version.

        Returns:
            the actions; None if the table had other metadata then, or if the checksum of that
            version does not list the files of the log.
        """
        kinds, checksum = ("metaData", "protocol"), _read_checksum(self.folder, version)
        try:
            for later in range(version + 1, self.version):
                if actions_of_kinds(self.folder.location, later, kinds):
                    return None
            if checksum is None or not _is_of(checksum, self.folder, version, self.state.metadata):
                return None
        except ObjectNotInPrerequisiteState:  # the log no longer has one of the versions
            return None
        return _listed_files(self.folder, checksum, version)

    def added(self, path: str, written: WrittenFile) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the action that adds a file with new rows, and the metadata domain with their
        greatest row id, if the table has one.
        """
        add: dict[str, Any] = {
            "path": path,
            "partitionValues": {},
            "size": written.size,
            "modificationTime": written.modified,
            "dataChange": True,
            "stats": written.statistics,
        }
        if _NUMBERS_ROWS not in (self.state.protocol.get("writerFeatures") or ()):
            return add, []
        first = _high_water_mark(self.checksum["domainMetadata"]) + 1
        add |= {"baseRowId": first, "defaultRowCommitVersion": self.version}
        return add, [_row_ids(first + written.rows - 1)]

    def is_made(
        self,
        operation: str,
        parameters: Mapping[str, str | None],
        metrics: Mapping[str, int],
        *,
        adds: Sequence[dict[str, Any]] = (),
        removed: Sequence[dict[str, Any]] = (),
        domains: Sequence[dict[str, Any]] = (),
        metadata: dict[str, Any] | None = None,
        protocol: dict[str, Any] | None = None,
        is_blind: bool = False,
    ) -> bool:
        """Make the commit.  Return False if there is such a version already.

        Args:
            operation, parameters, metrics: by Delta's names.
            adds: the `add` actions of new files.
            removed: the `add` actions of the files to remove, as `files` returns them.
            domains: the metadata domains that change.
            metadata, protocol: the new metaData action and protocol action, if they change.
            is_blind: the commit does not depend on the table's rows.

        Raises:
            OSError: the commit cannot be written.
        """
        steps, note = [], self.note
        if note.application is not None:
            steps.append({"appId": note.application, "version": note.step, "lastUpdated": now()})
        counts = {name: str(count) for name, count in metrics.items()}
        based_on = self.state.version
        info = commit_info(operation, parameters, counts, note, based_on, is_blind=is_blind)
        changed = {"metadata": metadata, "protocol": protocol}
        definition = {name: body for name, body in changed.items() if body is not None}
        actions = [
            {"commitInfo": info},
            *({_DEFINITION[name]: body} for name, body in definition.items()),
            *({"txn": step} for step in steps),
            *({"add": add} for add in adds),
            *({"remove": _removal(body)} for body in removed),
            *({"domainMetadata": domain} for domain in domains),
        ]
        if not create_version(self.folder, self.version, actions):
            return False
        injection_point("small.after-version")
        following = _following(
            self.checksum | definition, info["txnId"], steps, adds, removed, domains
        )
        # Without a checksum, readers read the log
        with suppress(OSError):
            create_checksum(self.folder, self.version, following)
        return True


@contextmanager
def writing_files(folder: TableFolder) -> Iterator[None]:
    """Turn errors of the file system in the `with` block into errors about the table.

    Raises:
        IoError: the table cannot be written.
    """
    try:
        yield
    except OSError as error:
        location = folder.location
        raise IoError(f'could not write the Delta table at "{location}": {error}') from error


def _listed_files(
    folder: TableFolder, checksum: Mapping[str, Any], version: int
) -> list[dict[str, Any]] | None:
    """Return the `add` actions of the files of a version, as its checksum lists them; None if these
    are not the files of the log."""
    adds: list[dict[str, Any]] | None = checksum.get("allFiles")
    if adds is None:
        return None
    try:
        bodies = whole_files_at(folder.location, version)
    except ObjectNotInPrerequisiteState:  # another program is removing a part of the log
        return None
    return adds if sorted(map(_identity, adds)) == sorted(map(_identity, bodies)) else None


def _is_of(
    checksum: Mapping[str, Any], folder: TableFolder, version: int, metadata: Mapping[str, Any]
) -> bool:
    """Return whether a checksum, which may be of any writer, belongs to the version in the log: the
    metadata and the transaction identifier are the same.  A checksum may lack the identifier.

    Args:
        metadata: the metaData action of the version.
    """
    parts = ("id", "schemaString", "partitionColumns", "configuration")
    if any(checksum["metadata"].get(part) != metadata.get(part) for part in parts):
        return False
    infos = actions_of_kinds(folder.location, version, ("commitInfo",))
    return checksum.get("txnId") in (None, infos.get("commitInfo", {}).get("txnId"))


def _identity(add: dict[str, Any]) -> tuple[str, ...]:
    """Return what a file's `add` action says about its rows and their ids."""
    parts = ("size", "baseRowId", "defaultRowCommitVersion")
    return (*file_key(add), *(str(add.get(part)) for part in parts))


def _removal(add: Mapping[str, Any]) -> dict[str, Any]:
    """Return the action that removes a file."""
    kept = ("size", "deletionVector", "baseRowId", "defaultRowCommitVersion", "tags")
    return {
        "path": add["path"],
        "deletionTimestamp": now(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        **{name: add[name] for name in kept if name in add},
    }


def _checksum_of(folder: TableFolder, state: TableState) -> dict[str, Any] | None:
    """Return the checksum of a version; None if the version has none, or if Spark has to write the
    next version."""
    if _needs_checkpoint(folder, state.version + 1):
        return None
    return _read_checksum(folder, state.version)


def _read_checksum(folder: TableFolder, version: int) -> dict[str, Any] | None:
    """Return the checksum of a version; None if the version has none with all needed parts."""
    try:
        path = checksum_path(version)
        _number, size, _time = folder.state(path)
        found = parse_checksum(folder.read(path)) if size <= _MOST_BYTES else {}
        is_usable = found.keys() >= _NEEDED and _high_water_mark(found["domainMetadata"]) >= -1
    except (OSError, BrokenLogError):  # Spark also commits without a checksum
        return None
    return found if is_usable else None


def _needs_checkpoint(folder: TableFolder, version: int) -> bool:
    """Return whether Spark has to write a version, because the log needs a checkpoint there."""
    if version % _CHECKPOINT_INTERVAL:
        return False
    last = max(checkpoints(log_names(folder.location)), default=0)
    return version - last >= _MOST_COMMITS


def is_simple(state: TableState) -> bool:
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
        fields = parse_columns(state.metadata)
    except BrokenLogError:  # Spark reports it
        return False
    return all(
        field.get("nullable") is True and not {*field.get("metadata", {})} - {"comment"}
        for field in fields
    )


def is_repeated(checksum: Mapping[str, Any], note: CommitNote) -> bool:
    """Return whether an earlier attempt of the same write may have committed."""
    return any(
        step.get("appId") == note.application and step.get("version", 0) >= (note.step or 0)
        for step in checksum["setTransactions"]
    )


def _following(
    checksum: dict[str, Any],
    transaction: str,
    steps: Sequence[dict[str, Any]],
    adds: Sequence[dict[str, Any]],
    gone: Sequence[dict[str, Any]],
    domains: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the checksum of the next version, which has these actions.

    The checksum has no histograms of the files.  Spark also writes checksums without them, and
    computes them when it needs them.

    Args:
        checksum: the known parts of the previous checksum.
        gone: the `add` actions of the removed files, as the checksum has them.
    """
    following = checksum | {
        "txnId": transaction,
        "tableSizeBytes": checksum["tableSizeBytes"] + _total(adds) - _total(gone),
        "numFiles": checksum["numFiles"] + len(adds) - len(gone),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": _replaced(checksum["setTransactions"], steps, "appId"),
        "domainMetadata": _replaced(checksum["domainMetadata"], domains, "domain"),
    }
    files = checksum.get("allFiles")
    if files is not None:
        kept = [file for file in files if file not in gone]
        files = [*kept, *({**add, "dataChange": False} for add in adds)]
    if files is None or len(files) > _MOST_FILES:
        following.pop("allFiles", None)
    else:
        following["allFiles"] = files
    if gone or any("deletionVector" in add for add in adds):
        following |= _deleted(files)
    return following


def _total(adds: Iterable[dict[str, Any]]) -> int:
    return sum(int(add["size"]) for add in adds)


def _deleted(files: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the parts of a checksum about deleted rows."""
    assert files is not None  # rows are replaced only in files that the checksum lists
    vectors = [file["deletionVector"] for file in files if "deletionVector" in file]
    return {
        "numDeletedRecordsOpt": sum(vector.get("cardinality", 0) for vector in vectors),
        "numDeletionVectorsOpt": len(vectors),
    }


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
    """Return the items of a checksum after a commit.  Items of the commit replace the items with
    the same key."""
    names = {item[key] for item in after}
    return [*(item for item in before if item.get(key) not in names), *after]
