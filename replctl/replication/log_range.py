"""Define a range of a publisher's log, and which of its changes a subscription needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.catalog.pg_subscription import Subscription
from replctl.record import dataclass
from replctl.relation_name import RelationName


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of the log: the commits in (from_lsn, to_lsn].

    Attributes:
        publications: the range has only the changes that these publications publish.
        positions: the required relations, by schema and name, each with the LSN after which its
            changes are required.
        origin: `none` if changes that were replicated to the publisher are not required, else
            `any`.
    """

    from_lsn: int
    to_lsn: int
    publications: Sequence[str]
    positions: Mapping[RelationName, int]
    origin: str

    @classmethod
    def of_subscription(
        cls,
        subscription: Subscription,
        positions: Mapping[RelationName, int],
        to_lsn: int,
        from_lsn: int | None = None,
    ) -> LogRange:
        """Return a range with the changes that a subscription requires.

        Args:
            from_lsn: None for the range with all required changes up to `to_lsn`.
        """
        if from_lsn is None:
            from_lsn = min(positions.values(), default=to_lsn)
        return cls(from_lsn, to_lsn, subscription.publications, positions, subscription.origin)

    def wants(self, relation: RelationName | None, commit_lsn: int, origin: str | None) -> bool:
        """Return whether a change is required.

        Args:
            relation: the relation under whose name the change is published; None if it is not
                published.
            origin: the origin from which the change was replicated to the publisher; None if it was
                not.
        """
        start = None if relation is None else self.positions.get(relation)
        is_of_origin = self.origin.lower() != "none" or origin is None
        return start is not None and is_of_origin and commit_lsn > start
