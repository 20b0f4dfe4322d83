"""Describe one commit of a Delta table, and count the rows that it changes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from replctl.lake.commit_mark import CommitMark
from replctl.record import dataclass

#: Operations, and their metrics that count changed rows: first Spark's names, then those of
#: delta-rs.
_ROW_METRICS = {
    "WRITE": ("numOutputRows",),  # delta-rs does not count the rows that an overwrite removes
    "UPDATE": ("numUpdatedRows", "num_updated_rows"),
    "DELETE": ("numDeletedRows", "num_deleted_rows"),
    "MERGE": (
        "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted",
        "num_target_rows_inserted", "num_target_rows_updated", "num_target_rows_deleted",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One version of a table.

    Attributes:
        version: Delta's number of the version.
        timestamp: milliseconds since 1970 by the writer's clock, or the time of the version's file
            if the writer recorded none.
        operation: Delta's name of the operation, such as WRITE, MERGE, TRUNCATE or CREATE TABLE.
        digest: SHA-256 of the version's file.
        user_metadata: the writer's `userMetadata`, of any type.
        changes_data: the commit adds or removes rows, or its change data feed is unreadable.
        changes_schema: the commit has a metaData action.
        metrics: the writer's metrics, by Delta's names.
        file_rows: rows in the files that the commit adds and removes, or in the deletion vectors
            that it changes; None if the writer did not count them.
        outside: a path outside the table's directory that the commit names; None if it names none.
        feed_size: bytes of the files of the commit's change data feed.
        has_feed: Delta can read the commit's change data feed, according to the commit.  If not,
            replctl compares the versions before and after (feed_choice.with_feeds).
        metadata: the commit's metaData action; None if it has none.
        parameters: the operation's parameters, by Delta's names.
        file_state: number, size and time of the version's file; they change if it is replaced.
        mark: replctl's mark of its own commit (commit_log.commits_since); None for other writers.
    """

    version: int
    digest: str
    timestamp: int
    operation: str
    user_metadata: object
    changes_data: bool
    changes_schema: bool
    metrics: dict[str, str] = field(default_factory=dict, hash=False)
    file_rows: int | None = 0
    feed_size: int = 0
    outside: str | None = None
    has_feed: bool = True
    metadata: dict[str, Any] | None = field(default=None, hash=False)
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)
    file_state: str | None = None
    mark: CommitMark | None = None

    @property
    def is_silent(self) -> bool:
        """Return whether the commit is replctl's own and must not be decoded."""
        return self.mark is not None and self.mark.silent

    @property
    def undoes(self) -> tuple[int, ...]:
        """Return the versions that the commit undoes; none if it is not replctl's own."""
        return () if self.mark is None else self.mark.undoes

    def is_of(self, xid: int) -> bool:
        """Return whether the commit belongs to this transaction of replctl."""
        return self.mark is not None and self.mark.xid == xid

    @property
    def changed_rows(self) -> int | None:
        """Return the number of rows that the commit inserts, updates and deletes; None if the
        writer did not count them.

        For replaceWhere, return the number of added or of removed rows, whichever is larger: the
        metrics do not say how many of the added rows are new versions of removed ones.
        """
        names = _ROW_METRICS.get(self.operation, ())
        counts = [int(self.metrics[name]) for name in names if name in self.metrics]
        if not counts:
            return None
        if self.operation == "WRITE":  # replaceWhere also outputs rows outside of its condition
            written = sum(counts) - int(self.metrics.get("numCopiedRows", 0))
            return max(written, int(self.metrics.get("numDeletedRows", 0)))
        return sum(counts)

    @property
    def decoded_rows(self) -> int | None:
        """Estimate the maximum number of changes that decoding yields; None if unknown.

        The metrics of a commit that replaces rows count only the new ones.
        """
        if self.operation == "WRITE" and self.file_rows is not None:
            return self.file_rows
        return self.file_rows if self.changed_rows is None else self.changed_rows
