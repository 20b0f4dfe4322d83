"""Find the files of a Delta table, their size, and the files that no reader needs from a version
on.  Delta's VACUUM and log clean-up also do this, but by time instead of version.

A file is needed if it belongs to the table at that version, if a later commit added it, or if it
contains changes of a later commit.  So this version, every later version and every later change
stay readable; older versions do not.

There are two kinds of unneeded files: files that the table's own log names, and old files with
Delta's names that no log names.  Recent files of the second kind are kept, because the commit that
names them may still follow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil
from typing import Any
from urllib.parse import unquote

from replctl.errors import IoError, ObjectNotInPrerequisiteState
from replctl.lake.delta_actions import file_key, file_uris
from replctl.lake.delta_log import (
    FILE_COLUMNS,
    checkpoints,
    log_names,
    read_actions,
    read_checkpoint,
    shortened,
    sidecars_of,
)
from replctl.lake.delta_names import (
    LAST_CHECKPOINT,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    is_data_name,
    is_log_name,
    is_unfinished_name,
    last_version,
    version_path,
)
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_paths import TablePaths
from replctl.record import dataclass

#: The actions that change rows.
ROW_KINDS = ("add", "remove")
#: The columns of a checkpoint that describe an existing file.
_WHOLE_ADD = [
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.modificationTime",
    "add.deletionVector",
    "add.baseRowId",
    "add.defaultRowCommitVersion",
]
_WHOLE_FILES = [*_WHOLE_ADD, *(name for name in FILE_COLUMNS if name.startswith("remove."))]


def unneeded_files(location: str, version: int, untracked_before: float | None) -> list[str]:
    """Return the data files, change files and deletion vectors that neither `version` nor a later
    version needs.

    Args:
        untracked_before: also return files that the log does not name, if they have Delta's names
            and were last changed before this time (seconds since 1970).  None: omit such files.

    Raises:
        ObjectNotInPrerequisiteState: the log does not say which files the table had at that
            version.
        IoError: the files cannot be listed.
    """
    files = _logged_files(location, version)
    found = []
    for path, changed in _data_files(location):
        if path in files.needed or path.rpartition("/")[2] in files.needed_elsewhere:
            continue
        if path in files.named or (
            untracked_before is not None and changed < untracked_before and is_data_name(path)
        ):
            found.append(path)
    return sorted(found)


def untracked_files(location: str, version: int, since: float) -> list[str]:
    """Return the files of failed writes: files with Delta's names that were changed at or after
    `since` (seconds since 1970), and that the log does not name.

    A file that the log names can also look new: the clock was set back, or the file came from a
    machine whose clock is ahead.

    Args:
        version: the version before the writes; -1 for a new table.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer says which files `version` had.
        IoError: the files, or the log, cannot be read.
    """
    new = [
        path
        for path, changed in _data_files(location)
        if changed >= since and is_data_name(path) and not path.endswith(".crc")
    ]
    unfinished = [
        path
        for path, changed in _list(TableFolder.of(location).files_in(LOG_FOLDER), location)
        if changed >= since and is_unfinished_name(path.rpartition("/")[2])
    ]
    if not new or not _commits(log_names(location)):
        return unfinished + sorted(new)
    files = _logged_files(location, max(version, 0))
    named = {_last_name(path) for path in files.named | files.needed} | files.needed_elsewhere
    return unfinished + sorted(path for path in new if _last_name(path) not in named)


def _data_files(location: str) -> list[tuple[str, float]]:
    return _list(TableFolder.of(location).data_files(), location)


def _list(files: Iterator[tuple[str, float]], location: str) -> list[tuple[str, float]]:
    try:
        return list(files)
    except OSError as error:
        raise IoError(f'could not list the Delta table "{location}": {error}') from error


def table_size(location: str) -> int:
    """Return the size of a table's current files in bytes; 0 if there is no table.

    Raises:
        ObjectNotInPrerequisiteState: see `unneeded_files`.
    """
    names = log_names(location)
    newest = max(_commits(names), default=None)
    if newest is None:
        return 0
    return sum(body.get("size", 0) for body in _files_of(location, names, newest))


def superfluous_files(location: str, size: int) -> int:
    """Return the number of files that OPTIMIZE would save.  OPTIMIZE makes files of up to `size`
    bytes, each with rows of one partition.

    Raises:
        ObjectNotInPrerequisiteState: see `unneeded_files`.
    """
    names = log_names(location)
    newest = max(_commits(names), default=None)
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for body in [] if newest is None else _files_of(location, names, newest):
        if body.get("size", 0) < size:
            sizes[repr(body.get("partitionValues"))].append(body.get("size", 0))
    return sum(len(small) - max(1, ceil(sum(small) / size)) for small in sizes.values())


def files_at(location: str, version: int) -> list[dict[str, Any]]:
    """Return the files of a table at a version, in the form of the log's `add` actions.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer has the files of the version.
    """
    return _files_of(location, log_names(location), version)


def whole_files_at(location: str, version: int) -> list[dict[str, Any]]:
    """Return the files like `files_at`, with all fields of the log except statistics.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer has the files of the version.
    """
    return _files_of(location, log_names(location), version, columns=_WHOLE_FILES)


def log_size(location: str) -> int:
    """Return the size in bytes of the part of a log that says which files the table has now.  This
    part is the newest checkpoint, without its sidecars, and the commits after it.

    Raises:
        ObjectNotInPrerequisiteState: another program removes a part now (55000).
        IoError: the log cannot be read.
    """
    names, folder = log_names(location), TableFolder.of(location)
    whole = checkpoints(names)
    start = max(whole, default=-1)
    later = [name for name in names if name.endswith(".json") and (last_version(name) or 0) > start]
    try:
        return sum(
            folder.state(f"{LOG_FOLDER}/{name}")[1] for name in (*whole.get(start, ()), *later)
        )
    except FileNotFoundError as error:
        raise shortened(location) from error
    except OSError as error:
        raise IoError(f'could not read the log of the Delta table "{location}": {error}') from error


def has_files_elsewhere(location: str) -> bool:
    """Return whether a table's newest version has files outside the table's directory.

    Raises:
        ObjectNotInPrerequisiteState: the log does not say which files the table has.
    """
    newest, paths = max(_commits(log_names(location)), default=0), TablePaths(location)
    bodies = files_at(location, newest)
    return any(paths.leads_out(uri) for body in bodies for uri in file_uris(body))


def is_empty_at(location: str, version: int) -> bool:
    """Return whether a table has no files at a version; False if the log does not say."""
    try:
        return not files_at(location, version)
    except ObjectNotInPrerequisiteState:  # the log no longer has the version
        return False


def has_changes(location: str, version: int) -> bool:
    """Return whether the files with a version's changes still exist: the files with its change data
    feed, or the files that it added and removed.

    Raises:
        ObjectNotInPrerequisiteState: the version is no longer in the log (55000).
    """
    return has_feed_files(location, version) or has_row_files(location, version)


def has_row_files(location: str, version: int) -> bool:
    """Return whether the files that a version added and removed still exist.

    Raises:
        ObjectNotInPrerequisiteState: the version is no longer in the log (55000).
    """
    return _are_there(location, changed_bodies(read_actions(location, version), ROW_KINDS))


def has_feed_files(location: str, version: int) -> bool:
    """Return whether a version has files with a change data feed, and they still exist.

    Raises:
        ObjectNotInPrerequisiteState: the version is no longer in the log (55000).
    """
    bodies = changed_bodies(read_actions(location, version), ("cdc",))
    return bool(bodies) and _are_there(location, bodies)


def appends_among(location: str, versions: Collection[int]) -> set[int]:
    """Return the versions, among some versions, that only append: they only add files, without
    deletion vectors, that the table provably did not have before.

    The table may have had a file if it had the file before the first of the versions, or if the log
    names the file since then.  It may have had all files if the log no longer says.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    if not versions:
        return set()
    first, named, adding = min(versions), dict[int, set[str]](), set[int]()
    try:
        for version in range(first, max(versions) + 1):
            actions = read_actions(location, version)
            bodies = [action[kind] for action in actions for kind in ROW_KINDS if kind in action]
            named[version] = {file_key(body)[0] for body in bodies}
            if version in versions and _only_adds(actions):
                adding.add(version)
        added = {path for version in adding for path in named[version]}
        known = files_by_key(location, first - 1, added) if added else ()
    except ObjectNotInPrerequisiteState:  # a cleanup has removed versions
        return set()
    found, seen = set[int](), {path for path, _vector in known}
    for version, paths in named.items():
        if version in adding and seen.isdisjoint(paths):
            found.add(version)
        seen |= paths
    return found


def _only_adds(actions: Sequence[dict[str, Any]]) -> bool:
    """Return whether a version adds whole files, each once, and does nothing else with files."""
    if any("remove" in action or "cdc" in action for action in actions):
        return False
    adds = [action["add"] for action in actions if "add" in action]
    paths = {file_key(add)[0] for add in adds}
    return len(paths) == len(adds) and all(
        add["dataChange"] and not add.get("deletionVector") for add in adds
    )


def changed_bodies(actions: Iterable[dict[str, Any]], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return the actions of some kinds that change rows."""
    return [
        action[kind]
        for action in actions
        for kind in kinds
        if kind in action and (kind == "cdc" or action[kind]["dataChange"])
    ]


def row_actions(location: str, version: int) -> list[tuple[str, tuple[str, str], dict[str, Any]]]:
    """Return the `add` and `remove` actions of a version that change rows, in the order of the log,
    each as its kind, `file_key` and fields.

    If a version both adds and removes a file, the last of the two actions counts (Delta's protocol,
    section "Action Reconciliation").  It also says whether rows change.

    Raises:
        ObjectNotInPrerequisiteState: the version is no longer in the log (55000).
    """
    found = [
        (kind, file_key(action[kind]), action[kind])
        for action in read_actions(location, version)
        for kind in ROW_KINDS
        if kind in action
    ]
    last = {key: body for _kind, key, body in found}
    return [(kind, key, body) for kind, key, body in found if last[key]["dataChange"]]


def _are_there(location: str, bodies: Iterable[dict[str, Any]]) -> bool:
    places = TablePaths(location)
    return all(places.has(uri) for uri in {uri for body in bodies for uri in file_uris(body)})


def remove_versions(location: str, first: int) -> None:
    """Remove the versions from `first` on from a table's log, the newest first.  Their data files
    stay.

    Raises:
        IoError: a file cannot be removed.
    """
    folder = TableFolder.of(location)
    found = [(last_version(name), name) for name in log_names(location)]
    # A version's commit is the last of its files, so that an interrupted attempt can be repeated
    later = sorted(
        ((v, name) for v, name in found if v is not None and v >= first),
        key=lambda item: (item[0], f"{LOG_FOLDER}/{item[1]}" != version_path(item[0])),
    )
    try:
        for name in (LAST_CHECKPOINT, *(name for _version, name in reversed(later))):
            folder.delete(f"{LOG_FOLDER}/{name}")
    except OSError as error:
        raise IoError(f'could not remove commits of "{location}": {error}') from error


def unneeded_log(location: str, version: int, before: float) -> list[str]:
    """Return the unneeded log files: the ones older than the newest checkpoint at or before
    `version`, and the sidecars to which neither this checkpoint nor a later one refers.

    Args:
        before: return only sidecars last changed before this time (seconds since 1970).  A
            checkpoint that refers to newer sidecars may still follow.
    """
    names = log_names(location)
    start = _checkpoint_before(names, version)
    if start is None:
        return []
    entries, sidecars = [], []
    for path, changed in _list(TableFolder.of(location).files_in(LOG_FOLDER), location):
        folder, _, name = path.rpartition("/")
        newest = last_version(name)
        if folder == LOG_FOLDER and newest is not None and newest < start:
            entries.append(path)
        elif folder == SIDECAR_FOLDER and changed < before and is_log_name(path):
            sidecars.append(path)
    if sidecars:
        kept = [number for number in checkpoints(names) if number >= start]
        referred = {name for number in kept for name in sidecars_of(location, number)}
        sidecars = [path for path in sidecars if path.rpartition("/")[2] not in referred]
    return sorted(entries) + sorted(sidecars)


@dataclass(frozen=True, slots=True)
class _LoggedFiles:
    """The files that a log names, by their paths relative to the table.

    Attributes:
        named: all files that the log names.
        needed: the files that `version` or a later version needs.
        needed_elsewhere: the last path components of other needed files: it is unknown if these
            files are below the table's directory.
    """

    named: set[str]
    needed: set[str]
    needed_elsewhere: set[str]


def _logged_files(location: str, version: int) -> _LoggedFiles:
    names = log_names(location)
    seen: list[dict[str, Any]] = []
    needed = {
        path for body in _files_of(location, names, version, seen) for path in file_uris(body)
    }
    named = {path for body in seen for path in file_uris(body)}
    start = _checkpoint_before(names, version) or 0
    for number in sorted(_commits(names)):
        if start < number <= version:
            continue  # seen
        paths = [path for action in read_actions(location, number) for path in _action_uris(action)]
        named.update(paths)
        if number > version:
            needed.update(paths)
    places = TablePaths(location)
    resolved = {uri: places.relative(uri) for uri in named | needed}
    return _LoggedFiles(
        {path for path in resolved.values() if path is not None},
        {path for uri in needed if (path := resolved[uri]) is not None},
        {_last_name(uri) for uri in needed if resolved[uri] is None},
    )


def _action_uris(action: dict[str, Any]) -> Iterator[str]:
    body = action.get("add") or action.get("cdc") or action.get("remove")
    if body is not None:
        yield from file_uris(body)


def _files_of(
    location: str,
    names: list[str],
    version: int,
    seen: list[dict[str, Any]] | None = None,
    columns: list[str] = FILE_COLUMNS,
) -> list[dict[str, Any]]:
    """Return the files of a table at a version, in the form of the log's `add` actions.

    Args:
        names: the names of the table's log files.
        seen: the list to which every file is added that the read part of the log names.
        columns: the columns to read from a checkpoint.
    """
    met: list[dict[str, Any]] = [] if seen is None else seen
    start = _checkpoint_before(names, version)
    active: dict[tuple[str, str], dict[str, Any]] = {}
    if start is not None:
        for row in read_checkpoint(location, start, columns):
            met += [row[kind] for kind in ("add", "remove") if row[kind] is not None]
            if row["add"] is not None:
                active[file_key(row["add"])] = row["add"]
    versions = _commits(names)
    first = 0 if start is None else start + 1
    if any(number not in versions for number in range(first, version + 1)):
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" is not complete up to version {version}'
        )
    for number in range(first, version + 1):
        for action in read_actions(location, number):
            met += [action[kind] for kind in ("add", "remove", "cdc") if kind in action]
            if "remove" in action:
                active.pop(file_key(action["remove"]), None)
            elif "add" in action:
                active[file_key(action["add"])] = action["add"]
    return list(active.values())


def files_by_key(
    location: str, version: int, paths: Collection[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the files of a table at a version that have one of these paths, by `file_key`.

    Args:
        paths: paths as in `file_key`.

    Raises:
        ObjectNotInPrerequisiteState: the log lacks a commit up to that version (55000).
    """
    names = log_names(location)
    start = _checkpoint_before(names, version)
    first = 0 if start is None else start + 1
    found: dict[tuple[str, str], dict[str, Any]] = {}
    rows = [] if start is None else read_checkpoint(location, start, _WHOLE_ADD, paths)
    for row in rows:
        if row["add"] is not None and (key := file_key(row["add"]))[0] in paths:
            found[key] = row["add"]
    for number in range(first, version + 1):
        for action in read_actions(location, number):
            body = action.get("add") or action.get("remove")
            if body is None or (key := file_key(body))[0] not in paths:
                continue
            if "add" in action:
                found[key] = body
            else:
                found.pop(key, None)
    return found


def _checkpoint_before(names: list[str], version: int) -> int | None:
    return max((number for number in checkpoints(names) if number <= version), default=None)


def _commits(names: list[str]) -> set[int]:
    return {int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name)}


def _last_name(uri: str) -> str:
    return unquote(uri).rpartition("/")[2]
