"""One commit of a Delta table, and how many rows it changes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from replctl.lake.commit_mark import CommitMark
from replctl.record import dataclass

#: Operations, and their metrics that count changed rows: those of Spark, then those of delta-rs.
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
        version: Delta's number.
        timestamp: milliseconds since 1970 by the writer's clock, or the time of the version's file
            if the writer recorded none.
        operation: Delta's name for it: WRITE, UPDATE, MERGE, TRUNCATE, OPTIMIZE, CREATE TABLE ...
        digest: SHA-256 of the version's file.
        user_metadata: the writer's note.
        changes_data: it adds or removes rows, as far as known.
        changes_schema: it has a metaData action.
        metrics: the writer's metrics, by Delta's names.
        file_rows: rows in the files that it adds and removes, or in the deletion vectors that it
            changes; None if the writer did not count them.
        outside: a path outside the table's directory that it names; None if there is none.
        feed_size: bytes of the files of its change feed.
        has_feed: the commit says that Delta can read its change feed.  Otherwise the versions
            before and after are compared (change_feed.with_feeds).
        metadata: its metaData action; None, if it has none.
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
        """The versions that it undoes, if it is replctl's own."""
        return () if self.mark is None else self.mark.undoes

    def is_of(self, xid: int) -> bool:
        """Return whether the commit belongs to this transaction of replctl."""
        return self.mark is not None and self.mark.xid == xid

    @property
    def changed_rows(self) -> int | None:
        """The number of rows it inserts, updates and deletes; None if the writer did not count
        them.

        For replaceWhere it is the larger of the rows added and removed: the metrics do not say how
        many of them are new versions of others.
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
        """The estimated maximum number of changes from decoding the commit; None if unknown.

        Commits that replace rows have only counted the new ones.
        """
        if self.operation == "WRITE" and self.file_rows is not None:
            return self.file_rows
        return self.file_rows if self.changed_rows is None else self.changed_rows
