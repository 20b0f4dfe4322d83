"""Read the current requirements of a Delta table for writers: the protocol and the metadata of its
newest version.

Delta's protocol, sections "Protocol Evolution" and "Change Metadata": an action replaces the
previous one of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replctl.catalog.storage import Storage
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedFile
from replctl.lake.delta_log import (
    actions_of_kinds,
    checkpoint_action,
    checkpoints,
    file_state_of,
    log_names,
    versions_in,
)
from replctl.record import dataclass

_KINDS = ("protocol", "metaData")
#: Maximum number of cached tables.
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class TableState:
    """The protocol and the metadata of a table's newest version.

    Attributes:
        version: the number of that version.
        file_state: the state of the version's file, which changes if the file is replaced
            (delta_log.file_state_of).
        protocol, metadata: the actions.
    """

    version: int
    file_state: str | None
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the properties that are set for the table."""
        found: Mapping[str, str] = self.metadata.get("configuration", {})
        return found

    def is_on(self, name: str) -> bool:
        """Return whether a property is true."""
        return self.properties.get(name, "").lower() == "true"


def has_foreign_rules(storage: Storage) -> bool:
    """Return whether another program may have set requirements for writers of the table."""
    return storage.is_made and (storage.is_adopted or storage.has_foreign)


_remembered: dict[str, TableState] = {}


def table_state(location: str) -> TableState:
    """Return the state of the table at `location`.  To find it, list the log and read the commits
    that are newer than the cached state.

    Raises:
        UndefinedFile: there is no Delta table (58P01).
        ObjectNotInPrerequisiteState: the log no longer has one of the two actions (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    names = log_names(location)
    versions = sorted(versions_in(names), reverse=True)
    if not versions:
        raise UndefinedFile(f'could not find the Delta table "{location}"')
    known = _remembered.get(location)
    if known is not None and file_state_of(location, known.version) != known.file_state:
        known = None
    if known is not None and known.version == versions[0]:
        return known
    newest = versions[0], file_state_of(location, versions[0])  # before the file is read
    found: dict[str, Mapping[str, Any]] = {}
    whole = checkpoints(names)
    # The log may begin with a checkpoint and the commits after it
    for version in (*versions, versions[-1] - 1):
        if known is not None and version <= known.version:
            found = {"protocol": known.protocol, "metaData": known.metadata} | found
            break
        if version >= versions[-1]:
            found = actions_of_kinds(location, version, _KINDS) | found
        if len(found) < len(_KINDS) and version in whole:
            found = _in_checkpoint(location, version) | found
        if len(found) == len(_KINDS):
            break
    _check_complete(location, found)
    state = TableState(*newest, found["protocol"], found["metaData"])
    if len(_remembered) >= _REMEMBERED:
        _remembered.clear()
    _remembered[location] = state
    return state


def _check_complete(location: str, found: Mapping[str, object]) -> None:
    missing = [kind for kind in _KINDS if kind not in found]
    if missing:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" is not complete',
            detail=f"It has no action {missing[0]}.",
        )


def _in_checkpoint(location: str, version: int) -> dict[str, Mapping[str, Any]]:
    actions = {kind: checkpoint_action(location, version, kind) for kind in _KINDS}
    return {kind: action for kind, action in actions.items() if action is not None}
