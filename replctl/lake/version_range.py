"""Successive versions of a table that are compared together: only the files of their two ends are
read.

That is less work, but it hides what happened between: an INSERT that a later version takes back is
not seen.  So who decodes must know that the versions between do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.lake.delta_log import read_actions
from replctl.replication.published_relation import PublishedRelation
from replctl.replication.update_transformation import Action
from replctl.spark import FeedVersion


def is_sent_whole(published: PublishedRelation) -> bool:
    """Return whether all changes of a table are sent, so that what several versions send follows
    from what they do together."""
    return published.actions.issuperset(Action) and not any(published.filters.values())


def joined_versions(location: str, versions: Sequence[FeedVersion]) -> list[FeedVersion]:
    """Return versions of a table, oldest first, those that are compared joined with the ones right
    before them.

    A version stands alone that has metadata of its own, or says of a file that it changes no row:
    what others may do to such files is not compared.  No version between two that are joined is
    missing.

    Raises:
        ObjectNotInPrerequisiteState: one of them is not in the log any more (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    result: list[FeedVersion] = []
    may_go_on = False
    for version in versions:
        is_plain = version.is_compared and _is_plain(location, version.version)
        last = result[-1] if result else None
        if last is not None and may_go_on and is_plain and last.version + 1 == version.version:
            first = last.version if last.first is None else last.first
            result[-1] = replace(
                version, first=first, changes_keys=last.changes_keys or version.changes_keys
            )
        else:
            result.append(version)
        may_go_on = is_plain
    return result


def _is_plain(location: str, version: int) -> bool:
    """Return whether a version consists of files that come and go with their rows."""
    actions = read_actions(location, version)
    bodies = [action.get("add") or action.get("remove") for action in actions]
    return all("metaData" not in action for action in actions) and all(
        body["dataChange"] for body in bodies if body is not None
    )
