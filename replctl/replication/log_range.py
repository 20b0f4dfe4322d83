"""A range of a publisher's log, and the part that a subscription needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.record import dataclass
from replctl.relation_name import RelationName


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of the log: the commits in (from_lsn, to_lsn].

    Attributes:
        publications: only changes published by these.
        starts: the required relations, by (schema, name), each with the LSN after which its changes
            count.
        origin: `any`; or `none` for changes that were not replicated to the publisher.
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
        """Return the range with all required changes of relations up to an LSN."""
        return cls(min(starts.values(), default=to_lsn), to_lsn, publications, starts, origin)

    def wants(self, relation: RelationName | None, commit_lsn: int, origin: str | None) -> bool:
        """Return whether a change is required, by its position in the log.

        Args:
            relation: the relation as which it is published; None if it is not.
            origin: the origin from which it was replicated to the publisher.
        """
        start = None if relation is None else self.starts.get(relation)
        is_of_origin = self.origin.lower() != "none" or origin is None
        return start is not None and is_of_origin and commit_lsn > start
