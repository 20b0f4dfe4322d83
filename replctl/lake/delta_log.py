"""The log of a Delta table, read without Spark: which versions there are, and what each of them is.

Delta's protocol, sections "Delta Log Entries" and "Actions".  Only local paths can be listed yet; a
log elsewhere is read through pyarrow's file systems.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from replctl.errors import IoError, ObjectNotInPrerequisiteState, UndefinedTable

_COMMIT_FILE = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One version of a table.

    Attributes:
        version: Delta's number.
        timestamp: milliseconds since 1970, of the writer's clock.
        operation: Delta's name for it: WRITE, UPDATE, MERGE, TRUNCATE, OPTIMIZE, CREATE TABLE ...
        user_metadata: what the writer noted; replctl's is JSON with the key "replctl".
        changes_data: whether it adds or removes rows.
        changes_schema: whether it has a metaData action.
    """

    version: int
    timestamp: int
    operation: str
    user_metadata: str | None
    changes_data: bool
    changes_schema: bool

    @property
    def replctl(self) -> dict[str, Any]:
        """What replctl noted with the commit: xid, system identifier and such; {} for others'
        commits."""
        if not self.user_metadata or not self.user_metadata.startswith('{"replctl"'):
            return {}
        try:
            noted = json.loads(self.user_metadata)["replctl"]
        except (ValueError, KeyError):
            return {}
        return noted if isinstance(noted, dict) else {}


def latest_version(location: str) -> int | None:
    """The newest version of the table at `location`, by a listing; None where there is no table."""
    versions = _versions(location)
    return max(versions, default=None)


def commits_after(location: str, version: int) -> Iterator[DeltaCommit]:
    """The commits newer than `version`, oldest first.

    Raises:
        ObjectNotInPrerequisiteState: some of them are not in the log any more.
    """
    newer = sorted(number for number in _versions(location) if number > version)
    if newer and newer[0] != version + 1:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" does not have version {version + 1} any more',
            hint="Synchronize the table again: ALTER SUBSCRIPTION ... DROP PUBLICATION, then ADD"
            " PUBLICATION.",
        )
    for number in newer:
        yield read_commit(location, number)


def read_commit(location: str, version: int) -> DeltaCommit:
    """What one version of a table is.

    Raises:
        ObjectNotInPrerequisiteState: it is not in the log.
    """
    info: dict[str, Any] = {}
    changes_data = changes_schema = False
    for action in _actions(location, version):
        if "commitInfo" in action:
            info = action["commitInfo"]
        elif "metaData" in action:
            changes_schema = True
        elif "add" in action or "remove" in action:
            body = action.get("add") or action.get("remove") or {}
            changes_data = changes_data or bool(body.get("dataChange", True))
        elif "cdc" in action:
            changes_data = True
    return DeltaCommit(
        version,
        int(info.get("inCommitTimestamp") or info.get("timestamp") or 0),
        str(info.get("operation", "")),
        info.get("userMetadata"),
        changes_data,
        changes_schema,
    )


def schema_at(location: str) -> dict[str, Any]:
    """The newest metaData action of the log that is still there: schema, partition columns,
    properties.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    for version in sorted(_versions(location), reverse=True):
        for action in _actions(location, version):
            if "metaData" in action:
                return dict(action["metaData"])
    raise UndefinedTable(f'there is no Delta table at "{location}"')


def stored_names(location: str) -> set[str]:
    """The names of a table's columns, in lower case: Delta does not tell `A` from `a`.

    Raises:
        UndefinedTable: there is no Delta table.
    """
    declared = json.loads(schema_at(location)["schemaString"])
    return {str(field["name"]).lower() for field in declared["fields"]}


def applied_step(location: str, application: str, versions: range) -> int | None:
    """The highest transaction version that `application` has written in these versions of the
    table."""
    found = None
    for version in versions:
        for action in _actions(location, version):
            txn = action.get("txn")
            if txn is not None and txn.get("appId") == application:
                found = max(found or 0, int(txn["version"]))
    return found


def _actions(location: str, version: int) -> list[dict[str, Any]]:
    name = f"{version:020d}.json"
    try:
        content = _FileSystem.of(location).read(name)
    except FileNotFoundError:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" does not have version {version} any more'
        ) from None
    except OSError as error:
        raise IoError(f'could not read the log of the Delta table "{location}": {error}') from error
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def _versions(location: str) -> list[int]:
    try:
        names = _FileSystem.of(location).names()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise IoError(f'could not list the log of the Delta table "{location}": {error}') from error
    return [int(match[1]) for name in names if (match := _COMMIT_FILE.fullmatch(name))]


@dataclass(frozen=True, slots=True)
class _FileSystem:
    """The folder _delta_log of a table, wherever it lies."""

    folder: str
    is_local: bool

    @staticmethod
    def of(location: str) -> _FileSystem:
        parts = urlsplit(location)
        if parts.scheme in ("", "file"):
            path = unquote(parts.path) if parts.scheme else location
            return _FileSystem(os.path.join(path, "_delta_log"), is_local=True)
        return _FileSystem(location.rstrip("/") + "/_delta_log", is_local=False)

    def names(self) -> list[str]:
        if self.is_local:
            return os.listdir(self.folder)
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(self.folder)
        return [info.base_name for info in system.get_file_info(fs.FileSelector(path))]

    def read(self, name: str) -> str:
        if self.is_local:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read()
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(f"{self.folder}/{name}")
        with system.open_input_stream(path) as stream:
            return bytes(stream.read()).decode("utf-8")
