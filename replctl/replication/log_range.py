"""Define a range of a publisher's log, and which of its changes a subscription needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.record import dataclass
from replctl.relation_name import RelationName


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of the log: the commits in (from_lsn, to_lsn].

    Attributes:
        publications: the range has only the changes that these publications publish.
        starts: the required relations, by schema and name, each with the LSN after which its
            changes are required.
        origin: `none` if changes that were replicated to the publisher are not required, else
            `any`.
    """

    from_lsn: int
    to_lsn: int
    publications: Sequence[str]
    starts: Mapping[RelationName, int]
    origin: str

    @classmethod
    def from_starts(
        cls,
        starts: Mapping[RelationName, int],
        to_lsn: int,
        publications: Sequence[str],
        origin: str,
    ) -> LogRange:
        """Return the range up to `to_lsn` that has all required changes of the relations in
        `starts`.
        """
        return cls(min(starts.values(), default=to_lsn), to_lsn, publications, starts, origin)

    def wants(self, relation: RelationName | None, commit_lsn: int, origin: str | None) -> bool:
        """Return whether a change is required.

        Args:
            relation: the relation as which the change is published; None if it is not published.
            origin: the origin from which the change was replicated to the publisher; None if it was
                not.
        """
        start = None if relation is None else self.starts.get(relation)
        is_of_origin = self.origin.lower() != "none" or origin is None
        return start is not None and is_of_origin and commit_lsn > start
