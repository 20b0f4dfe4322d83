"""Find the writes of a subscription's batch or copy in the logs of its targets.

A process that completes an interrupted batch or copy leaves out what is already written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from replctl.catalog.apply_step import WriteStep
from replctl.catalog.pg_class import Relation
from replctl.lake.commit_log import commits_since
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_log import applied_step, latest_version, written_step
from replctl.lake.replacement import replacement, replacement_sentence
from replctl.record import dataclass
from replctl.session import Session


@dataclass(frozen=True, slots=True)
class _WrittenStep:
    """A step in the log of its target.

    Attributes:
        replacement: a sentence about the first later commit of another program that replaces all
            rows; None if there is none.
    """

    is_undone: bool
    replacement: str | None


class WrittenSteps:
    """The steps of a batch or copy that are in the logs of its targets, now.

    Args:
        targets: the version before the write and the step of each target, by OID.
        application: returns Delta's transaction identifier for a table.
    """

    def __init__(
        self,
        session: Session,
        tables: Mapping[int, Relation],
        targets: Mapping[int, WriteStep],
        application: Callable[[int], str],
    ) -> None:
        self._tables, self._targets, self._application = tables, targets, application
        self._steps = {
            relid: step for relid in targets if (step := self._found(session, relid)) is not None
        }

    def __bool__(self) -> bool:
        """Return whether the log of a target has its step, even if it was undone."""
        return bool(self._steps)

    @property
    def leaves(self) -> dict[int, int | None]:
        """Return the targets that are written, with their versions before the write."""
        return {
            relid: self._targets[relid].version
            for relid, step in self._steps.items()
            if not step.is_undone
        }

    @property
    def replaced(self) -> dict[int, str]:
        """Return the written targets whose rows another program has replaced since, each with a
        sentence that says how.
        """
        return {
            relid: step.replacement
            for relid, step in self._steps.items()
            if step.replacement is not None and not step.is_undone
        }

    def undone(self) -> set[int]:
        """Return the targets that need a new step to be written: their step was written and then
        undone, or the subscription has written a later one.

        Two tables of a subscription may share a leaf partition.  Delta skips a step that is smaller
        than the newest one.
        """
        passed = {
            relid
            for relid in self._targets.keys() - self._steps.keys()
            if _is_passed(self._tables.get(relid), self._targets[relid], self._application(relid))
        }
        return passed | {relid for relid, step in self._steps.items() if step.is_undone}

    def _found(self, session: Session, relid: int) -> _WrittenStep | None:
        version, step = self._targets[relid]
        storage = self._tables[relid].storage if relid in self._tables else None
        if storage is None or latest_version(storage.location) is None:
            return None
        with session.cluster.read(session.database_oid) as catalog:
            commits = commits_since(
                catalog, session.cluster, self._tables[relid], version, reads_files=False
            )
        undone = {number for commit in commits for number in commit.undoes}
        result = None
        for place, commit in enumerate(commits):
            found = applied_step(storage.location, self._application(relid), commit.version)
            if commit.mark is not None and found == step:
                later = commits[place + 1 :]
                result = _WrittenStep(
                    commit.version in undone, _replacement(storage.location, later)
                )
        return result


def _is_passed(table: Relation | None, write: WriteStep, application: str) -> bool:
    """Return whether a table has a later step than the one that will write it."""
    storage = None if table is None else table.storage
    if storage is None:
        return False
    newest = latest_version(storage.location)
    if newest is None or newest == write.version:
        return False
    found = written_step(storage.location, application)
    return found is not None and found > write.number


def _replacement(location: str, commits: Sequence[DeltaCommit]) -> str | None:
    for commit in commits:
        what = replacement(location, commit) if commit.mark is None else None
        if what is not None:
            return replacement_sentence(what, location, commit.version)
    return None
