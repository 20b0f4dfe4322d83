"""The files of a Delta table: how large they are, and which of them nothing needs any more that
starts at a version (Delta's VACUUM and its clean-up of expired logs, but by versions instead of
times).

A file is needed if the table at that version consists of it, or a later commit has added it, or it
holds changes of a later commit.  So every version from there on can be read, and every change
behind it; the versions before cannot.  Nothing here asks what the time is, but for files that no
commit knows: their commit may be on its way.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from replctl.errors import IoError, ObjectNotInPrerequisiteState
from replctl.lake.delta_log import (
    LOG_FOLDER,
    checkpoints,
    log_names,
    read_actions,
    read_checkpoint,
)
from replctl.lake.table_folder import TableFolder

_VERSION = re.compile(r"(\d{20})\.(?:(\d{20})\.compacted\.)?.+")
_CHECKPOINT_COLUMNS = [
    "add.path",
    "add.size",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "sidecar.path",
]
_BASE85 = {
    letter: value
    for value, letter in enumerate(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
}
_UUID_LENGTH = 20  # of 16 bytes in base 85


def unneeded_files(location: str, version: int, before: float) -> list[str]:
    """The data files, files of changes and deletion vectors that no version from `version` on
    needs, and that were last changed before a time (seconds since 1970).

    Raises:
        ObjectNotInPrerequisiteState: the log does not say what the table was at that version, or
            says it in a way that is not known here.
        IoError: the files cannot be listed.
    """
    needed = _needed_files(location, version)
    try:
        found = list(TableFolder.of(location).data_files())
    except OSError as error:
        raise IoError(f'could not list the Delta table "{location}": {error}') from error
    return sorted(path for path, changed in found if changed < before and path not in needed)


def table_size(location: str) -> int:
    """Bytes of the files that a table consists of now; 0, where there is no table.

    Raises:
        ObjectNotInPrerequisiteState: as `unneeded_files`.
    """
    names = log_names(location)
    newest = max(_commits(names), default=None)
    if newest is None:
        return 0
    return sum(int(body["size"]) for body in _files_of(location, names, newest))


def has_changes(location: str, version: int) -> bool:
    """Whether the files are still there that tell what a version has changed."""
    actions = read_actions(location, version)
    bodies = [action["cdc"] for action in actions if "cdc" in action]
    if not bodies:
        bodies = [
            action[kind] for action in actions for kind in ("add", "remove") if kind in action
        ]
    folder = TableFolder.of(location)
    paths = {_relative(path, folder.location) for body in bodies for path in _paths(body)}
    return all(folder.has(path) for path in paths)


def unneeded_log(location: str, version: int) -> list[str]:
    """The files of the log that the versions from `version` on can be read without, oldest first:
    what is older than the newest checkpoint that is not behind it."""
    names = log_names(location)
    start = _checkpoint_before(names, version)
    if start is None:
        return []
    old = []
    for name in names:
        match = _VERSION.fullmatch(name)
        if match is not None and int(match[2] or match[1]) < start:
            old.append(f"{LOG_FOLDER}/{name}")
    return sorted(old)


def _needed_files(location: str, version: int) -> set[str]:
    names = log_names(location)
    active = _files_of(location, names, version)
    needed = {path for body in active for path in _paths(body)}
    for number in sorted(number for number in _commits(names) if number > version):
        for action in read_actions(location, number):
            body = action.get("add") or action.get("cdc") or action.get("remove")
            if body is not None:
                needed.update(_paths(body))
    root = TableFolder.of(location).location
    return {_relative(path, root) for path in needed}


def _files_of(location: str, names: list[str], version: int) -> list[dict[str, Any]]:
    """The files that a table consists of at a version, as the log describes them.

    Args:
        names: of the files of its log.
    """
    start = _checkpoint_before(names, version)
    active: dict[tuple[str, str], dict[str, Any]] = {}
    if start is not None:
        for row in read_checkpoint(location, start, _CHECKPOINT_COLUMNS):
            if row.get("sidecar") is not None:
                raise ObjectNotInPrerequisiteState(
                    f'the checkpoints of the Delta table "{location}" are in several levels (V2)'
                )
            if row["add"] is not None:
                active[_key(row["add"])] = row["add"]
    versions = _commits(names)
    first = 0 if start is None else start + 1
    if any(number not in versions for number in range(first, version + 1)):
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" is not complete up to version {version}'
        )
    for number in range(first, version + 1):
        for action in read_actions(location, number):
            if "remove" in action:
                active.pop(_key(action["remove"]), None)
            elif "add" in action:
                active[_key(action["add"])] = action["add"]
    return list(active.values())


def _checkpoint_before(names: list[str], version: int) -> int | None:
    return max((number for number in checkpoints(names) if number <= version), default=None)


def _commits(names: list[str]) -> set[int]:
    return {int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name)}


def _key(body: dict[str, Any]) -> tuple[str, str]:
    """What identifies a file of a table: the same data with other deletion vectors is another."""
    vector = body.get("deletionVector")
    return body["path"], "" if not vector else f"{vector['storageType']}{vector['pathOrInlineDv']}"


def _paths(body: dict[str, Any]) -> Iterator[str]:
    yield unquote(body["path"])
    vector = body.get("deletionVector")
    if not vector:
        return
    written = vector["pathOrInlineDv"]
    if vector["storageType"] == "p":
        yield unquote(written)
    elif vector["storageType"] == "u":
        prefix, encoded = written[:-_UUID_LENGTH], written[-_UUID_LENGTH:]
        name = f"deletion_vector_{uuid.UUID(bytes=_decoded(encoded))}.bin"
        yield f"{prefix}/{name}" if prefix else name


def _decoded(text: str) -> bytes:
    """Base 85 as in ZeroMQ's RFC 32: five letters are four bytes."""
    result = b""
    for start in range(0, len(text), 5):
        number = 0
        for letter in text[start : start + 5]:
            number = number * 85 + _BASE85[letter]
        result += number.to_bytes(4, "big")
    return result


def _relative(path: str, root: str) -> str:
    """A path of the log as one within the table, where it is absolute."""
    plain = unquote(urlsplit(path).path) if path.startswith("file:") else path
    return plain[len(root) + 1 :] if plain.startswith(f"{root}/") else plain
