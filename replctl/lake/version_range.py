"""Join successive versions of a table that are compared: read only the files of the first and the
last state.

This saves work but hides intermediate changes, for example an INSERT that a later version undoes.
So the caller must know that intermediate versions do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.lake.delta_log import read_actions
from replctl.replication.published_relation import PublishedRelation
from replctl.replication.update_transformation import Action
from replctl.spark import FeedVersion


def is_sent_whole(published: PublishedRelation) -> bool:
    """Return whether all changes of a table are sent.  In this case the net effect of several
    versions may be sent instead of each change.
    """
    return published.actions.issuperset(Action) and not any(published.filters.values())


def joined_versions(location: str, versions: Sequence[FeedVersion]) -> list[FeedVersion]:
    """Join adjacent compared versions of a table.

    A version is not joined if it has metadata of its own.  It is not joined either if the log marks
    one of its files as changing no row, because replctl does not compare such files of other
    programs.  Joined versions have successive numbers.

    Args:
        versions: the versions, oldest first.

    Raises:
        ObjectNotInPrerequisiteState: a version is no longer in the log (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    result: list[FeedVersion] = []
    may_continue = False
    for version in versions:
        is_plain = version.is_compared and _is_plain(location, version.version)
        last = result[-1] if result else None
        if last is not None and may_continue and is_plain and last.version + 1 == version.version:
            first = last.version if last.first is None else last.first
            result[-1] = replace(
                version, first=first, changes_keys=last.changes_keys or version.changes_keys
            )
        else:
            result.append(version)
        may_continue = is_plain
    return result


def _is_plain(location: str, version: int) -> bool:
    """Return whether all `add` and `remove` actions of a version change rows, and it has no
    metadata of its own.
    """
    actions = read_actions(location, version)
    bodies = [action.get("add") or action.get("remove") for action in actions]
    return all("metaData" not in action for action in actions) and all(
        body["dataChange"] for body in bodies if body is not None
    )
