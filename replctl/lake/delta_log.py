"""Read the log of a Delta table without Spark: its versions and their commits.

Delta's protocol, sections "Delta Log Entries", "Checkpoints" and "Actions".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from replctl.errors import (
    DataCorrupted,
    FeatureNotSupported,
    InsufficientPrivilege,
    IoError,
    ObjectNotInPrerequisiteState,
    UndefinedFile,
    UndefinedTable,
)
from replctl.lake.delta_actions import (
    BrokenLogError,
    check_row,
    commit_time,
    counted_rows,
    counts_in,
    file_key,
    file_uris,
    is_readable,
    parse_actions,
    parse_checkpoint,
    parse_columns,
)
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_names import LOG_FOLDER, SIDECAR_FOLDER, version_path
from replctl.lake.delta_protocol import check_protocol
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_paths import TablePaths

#: Errors of tables that replctl cannot read or must not read.
UNREADABLE = (
    DataCorrupted,
    FeatureNotSupported,
    InsufficientPrivilege,
    IoError,
    ObjectNotInPrerequisiteState,
    UndefinedTable,
)

#: The columns of a checkpoint about files.
FILE_COLUMNS = [
    "add.path",
    "add.size",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "add.deletionVector.offset",
    "remove.path",
    "remove.deletionVector.storageType",
    "remove.deletionVector.pathOrInlineDv",
    "remove.deletionVector.offset",
]
_SIDECARS = SIDECAR_FOLDER.removeprefix(f"{LOG_FOLDER}/")
_COMMIT_FILE = re.compile(r"(\d{20})\.json", re.ASCII)
_CHECKPOINT_FILE = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|(\.[\w-]{36})?\.(?:parquet|json))",
    re.ASCII,
)


def latest_version(location: str) -> int | None:
    """Return the newest version of the table at `location`, by listing its log; None if there is no
    table.
    """
    return max(log_versions(location), default=None)


def readable_after(location: str, version: int) -> int:
    """Return the version after which all commits of a table can be read: `version`, or a later
    version if the commits directly after `version` were removed from the log.
    """
    newer = [number for number in log_versions(location) if number > version]
    return min(newer, default=version + 1) - 1


def last_unsupported(location: str, version: int) -> int | None:
    """Return the last version of a table that needs an unsupported protocol; None if the newest
    version still needs it, or if no version does.

    Args:
        version: look only at newer versions.
    """
    last, is_supported = None, True
    for number in sorted(n for n in log_versions(location) if n > version):
        for action in read_actions(location, number):
            if "protocol" in action:
                try:
                    check_protocol(action["protocol"], location, number)
                    is_supported = True
                except FeatureNotSupported:
                    is_supported = False
        last = last if is_supported else number
    return last if is_supported else None


def commits_after(location: str, version: int) -> Iterator[DeltaCommit]:
    """Yield the commits newer than `version`, oldest first.

    Raises:
        UndefinedFile: the table is missing, although it once had `version`.
        ObjectNotInPrerequisiteState: the first of these commits is no longer in the log.
        DataCorrupted: a commit is broken, or missing between two versions (XX001).
        IoError: the log cannot be read.
    """
    versions = log_versions(location)
    if version >= 0 and not versions:
        raise UndefinedFile(f'could not find the Delta table "{location}"')
    newer = sorted(number for number in versions if number > version)
    if newer and newer[0] != version + 1:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" no longer has version {version + 1}',
            hint="Restore its file from a backup.",
        )
    for expected, number in enumerate(newer, start=version + 1):
        if number != expected:
            raise _broken(location, expected, "it is missing")
        yield read_commit(location, number)


def read_commit(location: str, version: int) -> DeltaCommit:
    """Return the commit of one version of a table.

    Raises:
        ObjectNotInPrerequisiteState: the version is not in the log.
        DataCorrupted, IoError: the version is broken (XX001), or cannot be read.
        IoError: a file that the version names is no regular file (58030).
        FeatureNotSupported: the version requires a protocol that replctl does not know.
    """
    info: dict[str, Any] = {}
    metadata: dict[str, Any] | None = None
    changes_data, has_feed = False, True
    files: list[dict[str, Any]] = []
    change_files: list[dict[str, Any]] = []
    state = file_state_of(location, version)  # before the file is read: it may be replaced
    content = _read_version(location, version)
    for action in _actions(content, location, version):
        if "commitInfo" in action:
            info = info or action["commitInfo"]
            has_feed = has_feed and is_readable(action["commitInfo"])
        elif "metaData" in action:
            metadata = action["metaData"]
            columns_of(action["metaData"], location, version)
        elif "protocol" in action:
            check_protocol(action["protocol"], location, version)
        elif "add" in action or "remove" in action:
            body = action["add"] if "add" in action else action["remove"]
            changes_data = changes_data or body["dataChange"]
            files.append(body)
        elif "cdc" in action:
            changes_data = True
            change_files.append(action["cdc"])
    _check_regular(location, files + change_files)
    operation, parameters = info.get("operation"), info.get("operationParameters")
    return DeltaCommit(
        version,
        hashlib.sha256(content).hexdigest(),
        commit_time(info) or _file_time(location, version),
        operation if isinstance(operation, str) else "",
        info.get("userMetadata"),
        changes_data or not has_feed,  # a feed must not be read across this version
        metadata is not None,
        counts_in(info),
        _file_rows(files),
        sum(body.get("size", 0) for body in change_files or files),
        _outside(location, files + change_files),
        has_feed,
        metadata,
        parameters if isinstance(parameters, dict) else {},
        state,
    )


def _file_time(location: str, version: int) -> int:
    try:
        _number, _size, changed = TableFolder.of(location).state(version_path(version))
    except OSError as error:
        raise _unreadable(location, error) from error
    return changed // 1_000_000


def outside_checkpoint(location: str, since: int) -> str | None:
    """Return a path outside the table's directory that the newest checkpoint names.

    Args:
        since: ignore a checkpoint that is older than this version.

    Returns:
        the first such path; None if there is none.

    Raises:
        IoError: a file that the checkpoint names is no regular file (58030).
    """
    newest = max(checkpoints(log_names(location)), default=-1)
    if newest < max(since, 0):
        return None
    rows = read_checkpoint(location, newest, FILE_COLUMNS)
    bodies = [row[kind] for row in rows for kind in ("add", "remove") if row[kind] is not None]
    _check_regular(location, bodies)
    sidecars = [row["sidecar"] for row in rows if row["sidecar"] is not None]
    bodies += [sidecar for sidecar in sidecars if "/" in unquote(sidecar["path"])]
    return _outside(location, bodies)


def _outside(location: str, bodies: Sequence[dict[str, Any]]) -> str | None:
    paths = TablePaths(location)
    return next((uri for body in bodies for uri in file_uris(body) if paths.leads_out(uri)), None)


def _check_regular(location: str, bodies: Sequence[dict[str, Any]]) -> None:
    """Check that the files that actions name are regular files if they exist.  Spark would wait for
    a pipe without end, and its thread cannot be interrupted.

    Raises:
        IoError: one is not (58030).
    """
    paths = TablePaths(location)
    for uri in (uri for body in bodies for uri in file_uris(body)):
        if paths.is_special(uri):
            raise IoError(
                f'could not read file "{uri}" of the Delta table "{location}": not a regular file'
            )


def _file_rows(files: Sequence[dict[str, Any]]) -> int | None:
    """Return DeltaCommit.file_rows.  A file that a commit both removes and adds has got a new
    deletion vector.
    """
    rows: dict[str, int] = {}
    for body in files:
        alive = counted_rows(body)
        if alive is None:
            return None
        path, _vector = file_key(body)
        rows[path] = abs(alive - rows.get(path, 0))
    return sum(rows.values())


def version_state(location: str, version: int) -> tuple[int, int, int] | None:
    """Return the state of a version's file, which changes if the file is replaced
    (TableFolder.state).  Return None if the version is not in the log.

    Raises:
        IoError: the file cannot be examined.
    """
    try:
        return TableFolder.of(location).state(version_path(version))
    except FileNotFoundError:  # the version is new, or a cleanup has removed it
        return None
    except OSError as error:
        raise _unreadable(location, error) from error


def metadata_of(location: str, version: int) -> dict[str, Any] | None:
    """Return the metaData action of one version; None if it has none.

    Raises:
        The errors of `read_actions`.
    """
    return actions_of_kinds(location, version, ("metaData",)).get("metaData")


def actions_of_kinds(
    location: str, version: int, kinds: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the actions of some kinds in one version, at most one of each kind.

    Raises:
        The errors of `read_actions`.
    """
    content = _read_version(location, version)
    # Most versions have no such action, and need not be parsed
    if b"\\u" not in content and not any(f'"{kind}"'.encode() in content for kind in kinds):
        return {}
    actions = _actions(content, location, version)
    return {kind: action[kind] for action in actions for kind in kinds if kind in action}


def checkpoint_metadata(location: str, version: int) -> dict[str, Any] | None:
    """Return the metaData action of the checkpoint at a version; None if there is no checkpoint.

    Raises:
        The errors of `read_checkpoint`.
    """
    return checkpoint_action(location, version, "metaData")


def checkpoint_action(location: str, version: int | None, kind: str) -> dict[str, Any] | None:
    """Return an action of a kind from a checkpoint; None if it has no such action.

    Args:
        version: the version of the checkpoint; None for the newest checkpoint.

    Raises:
        The errors of `read_checkpoint`.
    """
    rows = read_checkpoint(location, version, [kind])
    return next((dict(row[kind]) for row in rows if row[kind] is not None), None)


def file_state_of(location: str, version: int) -> str | None:
    """Return number, size and time of a version's file as a text; None if it is not in the log."""
    try:
        return ":".join(map(str, TableFolder.of(location).state(version_path(version))))
    except FileNotFoundError:  # a cleanup has removed the version
        return None
    except OSError as error:
        raise _unreadable(location, error) from error


def version_digest(location: str, version: int) -> str | None:
    """Return the SHA-256 of a version's file; None if it is not in the log.

    The file is read again only if its number, size or time changes.
    """
    folder, name = TableFolder.of(location), version_path(version)
    try:
        return _digest(folder, name, folder.state(name))
    except FileNotFoundError:  # a cleanup has removed the version
        return None
    except OSError as error:
        raise _unreadable(location, error) from error


@lru_cache(maxsize=4096)
def _digest(folder: TableFolder, name: str, _state: tuple[int, int, int]) -> str:
    return hashlib.sha256(folder.read(name)).hexdigest()


def schema_at(location: str) -> dict[str, Any]:
    """Return the newest metaData action of the log: schema, partition columns and properties.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    found = _newest_action(location, "metaData")
    return {**found, "configuration": found.get("configuration", {})}


def stored_columns(location: str) -> list[dict[str, Any]]:
    """Return the columns of a table in the form of Delta's schema: each has a name and a type.

    Raises:
        UndefinedTable: there is no Delta table.
        DataCorrupted: the newest metaData action has no schema in Delta's form (XX001).
    """
    return columns_of(schema_at(location), location, None)


def columns_of(
    metadata: Mapping[str, Any], location: str, version: int | None
) -> list[dict[str, Any]]:
    """Return the columns in a version's metaData action, in the form of `stored_columns`.

    Raises:
        DataCorrupted: the action has no schema in Delta's form (XX001).
    """
    try:
        return parse_columns(metadata)
    except BrokenLogError as error:
        raise _broken(location, version, str(error)) from error


def protocol_at(location: str) -> dict[str, Any]:
    """Return the newest protocol action of the log: the requirements for readers and writers.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    return _newest_action(location, "protocol")


def _newest_action(location: str, kind: str) -> dict[str, Any]:
    for version in sorted(log_versions(location), reverse=True):
        for action in read_actions(location, version):
            if kind in action:
                return dict(action[kind])
    found = checkpoint_action(location, None, kind)  # older commits were removed from the log
    if found is not None:
        return found
    raise UndefinedTable(f'there is no Delta table at "{location}"')


def table_properties(location: str) -> dict[str, str]:
    """Return the properties that are set for a table.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    found: dict[str, str] = schema_at(location)["configuration"]
    return found


def stored_names(location: str) -> set[str]:
    """Return the names of a table's columns in lower case: Delta ignores case.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    return {column["name"].lower() for column in stored_columns(location)}


def written_step(location: str, application: str) -> int | None:
    """Return the newest transaction version of `application` in a table's log; None if the log has
    none.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    newest = max(checkpoints(log_names(location)), default=-1)
    bodies = [row["txn"] for row in read_checkpoint(location, None, ["txn"])]
    for version in sorted(number for number in log_versions(location) if number > newest):
        bodies += [action.get("txn") for action in read_actions(location, version)]
    steps = [int(body["version"]) for body in bodies if body and body["appId"] == application]
    return max(steps, default=None)


def applied_step(location: str, application: str, version: int) -> int | None:
    """Return the transaction version of `application` in a version of the table; None if that
    version has none.
    """
    for action in read_actions(location, version):
        txn = action.get("txn")
        if txn is not None and txn["appId"] == application:
            return int(txn["version"])
    return None


def read_actions(location: str, version: int) -> list[dict[str, Any]]:
    """Return the actions of one version.

    Raises:
        ObjectNotInPrerequisiteState: the version is not in the log.
        DataCorrupted: the version is broken (XX001).
    """
    return _actions(_read_version(location, version), location, version)


def _read_version(location: str, version: int) -> bytes:
    try:
        return TableFolder.of(location).read(version_path(version))
    except FileNotFoundError:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" no longer has version {version}'
        ) from None
    except OSError as error:
        raise _unreadable(location, error) from error


def _actions(content: bytes, location: str, version: int) -> list[dict[str, Any]]:
    try:
        return parse_actions(content)
    except BrokenLogError as error:
        raise _broken(location, version, str(error)) from error


def _broken(location: str, version: int | None, what: str) -> DataCorrupted:
    place = "Its newest state" if version is None else f"Version {version}"
    return DataCorrupted(
        f'the log of the Delta table "{location}" is broken',
        detail=f"{place} is not valid: {what}.",
    )


def read_checkpoint(
    location: str,
    version: int | None,
    columns: list[str],
    paths: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a checkpoint; no rows if there is no such checkpoint.

    Args:
        version: the version of the checkpoint; None for the newest checkpoint.
        columns: the paths of the columns to read, such as `add.path`.
        paths: in Parquet files, read only rows with one of these `add.path`, and rows with paths in
            an unusual form; None for all rows.

    Raises:
        ObjectNotInPrerequisiteState: another program removes the checkpoint now (55000).
        DataCorrupted, IoError: the checkpoint is broken (XX001), or cannot be read.
    """
    found = checkpoints(log_names(location))
    newest = max(found, default=None) if version is None else version
    names = found.get(-1 if newest is None else newest, ())
    try:
        rows = [row for name in names for row in _checkpoint_rows(location, name, columns, paths)]
        return rows + [
            row
            for sidecar in _sidecars(rows)
            for row in _checkpoint_rows(location, f"{_SIDECARS}/{sidecar}", columns, paths)
        ]
    except FileNotFoundError as error:
        raise shortened(location) from error
    except OSError as error:
        raise _unreadable(location, error) from error


def sidecars_of(location: str, version: int) -> set[str]:
    """Return the names of the sidecars to which the checkpoint (V2) at a version refers."""
    return set(_sidecars(read_checkpoint(location, version, ["sidecar.path"])))


def _sidecars(rows: list[dict[str, Any]]) -> list[str]:
    found = [row["sidecar"] for row in rows]
    return [str(sidecar["path"]).rpartition("/")[2] for sidecar in found if sidecar is not None]


def _checkpoint_rows(
    location: str, name: str, columns: list[str], paths: Collection[str] | None
) -> list[dict[str, Any]]:
    """Return the rows of one file of a checkpoint, with a key for each requested action."""
    folder, wanted = TableFolder.of(location), [*columns, "sidecar.path"]
    nothing = dict.fromkeys(column.partition(".")[0] for column in wanted)
    try:
        if name.endswith(".json"):
            return [nothing | row for row in parse_checkpoint(folder.read(f"{LOG_FOLDER}/{name}"))]
        rows = folder.read_parquet(f"{LOG_FOLDER}/{name}", wanted, paths)
        return [nothing | check_row(row) for row in rows]
    except BrokenLogError as error:
        raise DataCorrupted(
            f'the log of the Delta table "{location}" is broken',
            detail=f'Its checkpoint "{name}" is not valid: {error}.',
        ) from error


def checkpoints(names: list[str]) -> dict[int, list[str]]:
    """Return the complete checkpoints of a log by version, each as the names of its files."""
    parts: dict[tuple[int, int, str], list[str]] = {}
    for name in names:
        match = _CHECKPOINT_FILE.fullmatch(name)
        if match is not None:
            key = (int(match[1]), int(match[3] or 1), match[4] or "")
            parts.setdefault(key, []).append(name)
    return {key[0]: found for key, found in parts.items() if len(found) == key[1]}


def log_names(location: str) -> list[str]:
    """Return the names of the files of a table's log; empty if there is no table.

    Raises:
        IoError: the log cannot be listed.
    """
    try:
        return TableFolder.of(location).names(LOG_FOLDER)
    except (FileNotFoundError, NotADirectoryError):  # no table is there yet
        return []
    except OSError as error:
        raise IoError(f'could not list the log of the Delta table "{location}": {error}') from error


def log_versions(location: str) -> list[int]:
    """Return the versions whose commits are in a table's log, in no order."""
    return versions_in(log_names(location))


def versions_in(names: Sequence[str]) -> list[int]:
    """Return the versions whose commits are among files of a log, in no order."""
    return [int(match[1]) for name in names if (match := _COMMIT_FILE.fullmatch(name))]


def shortened(location: str) -> ObjectNotInPrerequisiteState:
    """Return the error if a listed file of a log is gone when it is read."""
    return ObjectNotInPrerequisiteState(
        f'another program has removed files from the log of the Delta table "{location}"'
    )


def _unreadable(location: str, error: OSError) -> IoError:
    return IoError(f'could not read the log of the Delta table "{location}": {error}')
