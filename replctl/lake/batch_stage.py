"""Cut a part of a batch into stages, in which each leaf partition is written at most once.

The targets of two published tables may share a leaf partition, if one target is a partition of the
other one.  Their changes are then applied in the publisher's order, each to the rows that the
earlier ones have left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import RelationChanges, Truncation


@dataclass
class Run:
    """Changes of one published relation that are applied together.

    Attributes:
        first, last: the positions of the changes.
        emptied: OIDs of the leaf partitions that a TRUNCATE empties before the changes.
    """

    item: RelationChanges
    first: int
    last: int
    emptied: frozenset[int] = frozenset()


@dataclass
class Stage:
    """Work on different leaf partitions: each is truncated, then written by at most one run."""

    truncations: list[Truncation] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def stages_of(
    changes: Sequence[tuple[RelationChanges, int]],
    truncations: Iterable[Truncation],
    last: int,
    leaves: Mapping[RelationName, Collection[int]],
) -> tuple[Stage, ...]:
    """Return the stages of changes, in order; at least one.

    Args:
        changes: the changes of each relation, with the position that they start from.
        last: the position of the last change.
        leaves: the OIDs of the leaf partitions of each target, by the published relation's name.
            Relations that are missing here are left out.
    """
    truncations = list(truncations)
    names = [item.relation.relation_name for item, _start in changes]
    written = [leaf for name in names for leaf in leaves.get(name, ())]
    if not truncations and len(written) == len(set(written)):  # nearly always: skip the schedule
        return (Stage(runs=list(_whole_runs(changes, last, leaves))),)
    schedule = _Schedule(leaves)
    events: list[tuple[int, RelationChanges | Truncation]] = [
        (truncation.position, truncation)
        for truncation in truncations
        if leaves.keys() >= set(truncation.relations)
    ]
    for item, start in changes:
        if item.relation.relation_name in leaves:
            events += [(p, item) for p in item.positions if start <= p <= last]
    for position, event in sorted(events, key=lambda found: found[0]):
        if isinstance(event, Truncation):
            schedule.truncate(event)
        else:
            schedule.change(event, position)
    return tuple(schedule.stages) or (Stage(),)


def _whole_runs(
    changes: Sequence[tuple[RelationChanges, int]],
    last: int,
    leaves: Mapping[RelationName, Collection[int]],
) -> Iterator[Run]:
    """Yield one run for the changes of each relation."""
    for item, start in changes:
        positions = [position for position in item.positions if start <= position <= last]
        if positions and item.relation.relation_name in leaves:
            yield Run(item, min(positions), max(positions))


class _Schedule:
    """Assigns truncations and changes to stages, in the order of their positions.

    Args:
        leaves: see `stages_of`.
    """

    def __init__(self, leaves: Mapping[RelationName, Collection[int]]) -> None:
        self.stages: list[Stage] = []
        self._leaves = leaves
        #: The newest work of each leaf partition: its stage, and its run; None for a TRUNCATE.
        self._newest: dict[int, tuple[int, Run | None]] = {}
        self._runs: dict[RelationName, Run] = {}

    def truncate(self, truncation: Truncation) -> None:
        """Add a TRUNCATE."""
        leaves = {leaf for name in truncation.relations for leaf in self._leaves[name]}
        self._stage_for(leaves, None).truncations.append(truncation)

    def change(self, item: RelationChanges, position: int) -> None:
        """Add the changes of a relation at a position."""
        name = item.relation.relation_name
        leaves, run = self._leaves[name], self._runs.get(name)
        newest = {leaf: self._newest[leaf][1] for leaf in leaves if leaf in self._newest}
        if run is not None and all(found is run for found in newest.values()):
            run.last = position
            return
        emptied = frozenset(leaf for leaf, found in newest.items() if found is None)
        self._runs[name] = run = Run(item, position, position, emptied)
        self._stage_for(leaves, run).runs.append(run)

    def _stage_for(self, leaves: Collection[int], run: Run | None) -> Stage:
        """Return the first stage in which new work of leaf partitions is possible."""
        known = [self._newest[leaf] for leaf in leaves if leaf in self._newest]
        number = max((stage + (found is not None) for stage, found in known), default=0)
        while len(self.stages) <= number:
            self.stages.append(Stage())
        self._newest |= dict.fromkeys(leaves, (number, run))
        return self.stages[number]
