"""When the owner's retention takes changes of an adopted table that are still to be read.

Delta cleans a log by the age of its commits (`delta.logRetentionDuration`), at its next checkpoint.
VACUUM takes a file when its remove action is older than `delta.deletedFileRetentionDuration`, and a
file of changes when it is that old itself.  A file that the table still has is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from replctl.lake.delta_files import has_changes
from replctl.lake.delta_log import log_versions, read_actions, table_properties
from replctl.record import dataclass

LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_DEFAULTS = {LOG: "interval 30 days", FILES: "interval 1 week"}
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_INTERVAL = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)
#: Versions that are looked at: what comes later is taken later.
_MOST_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class Outlook:
    """How long changes of a table can be read.

    Attributes:
        is_lost: some are gone already.
        until: when the first of them may be taken, in seconds since 1970; None: not yet foreseen.
        setting: the table's property that says so.
        retention: its seconds.
    """

    is_lost: bool
    until: float | None = None
    setting: str = ""
    retention: float = 0.0

    def is_before(self, other: Outlook) -> bool:
        """Return whether this is worse."""
        if self.is_lost or other.is_lost:
            return self.is_lost and not other.is_lost
        return self.until is not None and (other.until is None or self.until < other.until)

    def is_over(self, now: float) -> bool:
        """Return whether they may be taken at any moment."""
        return self.until is not None and now >= self.until

    def is_near(self, now: float, part: float) -> bool:
        """Return whether more than a part of the retention is over."""
        return self.until is not None and self.until - now < (1 - part) * self.retention


def outlook(location: str, first: int, time: float, now: float) -> Outlook:
    """Return how long the changes of a table from a version on can be read.

    Args:
        time: of that version, in seconds since 1970.

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
    # Looking for all files takes long where they are far away
    asked = [version for version, _actions in read] if found.is_over(now) else [first]
    return found if all(has_changes(location, version) for version in asked) else Outlook(True)


def retention_of(properties: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of the retentions that bound for how long a table can be read."""
    found = {name: seconds(properties.get(name, text)) for name, text in _DEFAULTS.items()}
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        del found[LOG]
    return found


def _taken_since(read: Iterable[tuple[int, list[dict[str, Any]]]], time: float) -> Iterable[float]:
    """Yield since when files that some versions need count as not the table's any more, in seconds
    since 1970.

    Args:
        read: the versions, with their actions.
        time: of the first of them.
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
            if is_read or body["path"] in added:
                taken = body.get("deletionTimestamp")
                yield time if taken is None else taken / 1000
        if not changes:
            added |= {a["add"]["path"] for a in actions if "add" in a and a["add"]["dataChange"]}


def seconds(interval: str) -> float:
    """`interval 1 week 2 days`  ->  777600"""
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in _INTERVAL.findall(interval))


def shown(length: float) -> str:
    """Return a length of time in its largest unit that fits: 90000  ->  `1 day`"""
    for unit in ("day", "hour", "minute", "second"):
        amount = int(length // _UNITS[unit])
        if amount:
            return f"{amount} {unit}" if amount == 1 else f"{amount} {unit}s"
    return "0 seconds"
