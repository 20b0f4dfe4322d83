"""Estimate when the owner's retention removes changes of an adopted table that must still be read.

Delta cleans a log by the age of its commits (`delta.logRetentionDuration`), at its next checkpoint.
VACUUM removes a data file when its remove action is older than
`delta.deletedFileRetentionDuration`, and a change file when the file itself is older.  It keeps
current files of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from replctl.lake.delta_actions import file_key
from replctl.lake.delta_files import has_changes
from replctl.lake.delta_log import log_versions, read_actions, table_properties
from replctl.record import dataclass

LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_DEFAULTS = {LOG: "interval 30 days", FILES: "interval 1 week"}
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_INTERVAL = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)
#: Maximum number of versions to examine.  Later versions are removed later.
_MOST_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class Outlook:
    """The time for which changes of a table stay readable.

    Attributes:
        is_lost: some of the changes are already removed.
        until: the time when the first change may be removed, in seconds since 1970; None: unknown.
        setting: the table's property that determines this time.
        retention: the value of this property in seconds.
    """

    is_lost: bool
    until: float | None = None
    setting: str = ""
    retention: float = 0.0

    def is_before(self, other: Outlook) -> bool:
        """Return whether the changes of this outlook may be removed before those of another one."""
        if self.is_lost or other.is_lost:
            return self.is_lost and not other.is_lost
        return self.until is not None and (other.until is None or self.until < other.until)

    def is_over(self, now: float) -> bool:
        """Return whether the changes may be removed at any moment."""
        return self.until is not None and now >= self.until

    def is_near(self, now: float, part: float) -> bool:
        """Return whether more than a given fraction of the retention has passed."""
        return self.until is not None and self.until - now < (1 - part) * self.retention


def outlook(location: str, first: int, time: float, now: float) -> Outlook:
    """Return how long the changes of a table from a version on stay readable.

    Args:
        time: the time of that version, in seconds since 1970.

    Raises:
        PostgresError: the table's log cannot be read.
    """
    versions = {number for number in log_versions(location) if number >= first}
    if first not in versions:
        return Outlook(True)
    retentions = retention_of(table_properties(location))
    read = [(v, read_actions(location, v)) for v in sorted(versions)[:_MOST_VERSIONS]]
    ends = [(t + retentions[FILES], FILES) for t in _taken_since(read, time)]
    if LOG in retentions:
        ends.append((time + retentions[LOG], LOG))
    until, setting = min(ends, default=(None, ""))
    found = Outlook(False, until, setting, retentions.get(setting, 0.0))
    # Checking all files takes long on remote storage
    checked = [version for version, _actions in read] if found.is_over(now) else [first]
    return found if all(has_changes(location, version) for version in checked) else Outlook(True)


def retention_of(properties: Mapping[str, str]) -> dict[str, float]:
    """Return the properties that limit how long old versions of a table stay readable, with their
    values in seconds.
    """
    found = {name: seconds(properties.get(name, text)) for name, text in _DEFAULTS.items()}
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        del found[LOG]
    return found


def _taken_since(read: Iterable[tuple[int, list[dict[str, Any]]]], time: float) -> Iterable[float]:
    """Yield the times, in seconds since 1970, at which the retention of needed files begins.  A
    file is needed if it contains changes of the read versions.

    Args:
        read: the versions, with their actions.
        time: the time of the first version.
    """
    added: set[str] = set()
    for _version, actions in read:
        changes = [action["cdc"] for action in actions if "cdc" in action]
        if changes:
            yield time
        for action in actions:
            body = action.get("remove")
            if body is None:
                continue
            is_read = body["dataChange"] and not changes
            if is_read or file_key(body)[0] in added:
                taken = body.get("deletionTimestamp")
                yield time if taken is None else taken / 1000
        if not changes:
            adds = (action["add"] for action in actions if "add" in action)
            added |= {file_key(add)[0] for add in adds if add["dataChange"]}


def seconds(interval: str) -> float:
    """Return the seconds of an interval: `interval 1 week 2 days`  ->  777600"""
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in _INTERVAL.findall(interval))


def shown(length: float) -> str:
    """Return a duration in its largest unit: 90000  ->  `1 day`"""
    for unit in ("day", "hour", "minute", "second"):
        amount = int(length // _UNITS[unit])
        if amount:
            return f"{amount} {unit}" if amount == 1 else f"{amount} {unit}s"
    return "0 seconds"
