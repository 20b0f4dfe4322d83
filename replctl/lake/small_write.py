"""Write few rows of a Delta table without Spark: append new rows, and replace or delete rows by
their keys.

A commit marks replaced and deleted rows in deletion vectors, and has one data file with the new
rows.  These are the actions that Spark commits for replaceWhere.

Spark writes if `small_commit.py` cannot commit.  Spark also replaces rows in tables that are not
small, or have no deletion vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any
from uuid import uuid4

from replctl import spark
from replctl.injection_point import injection_point
from replctl.lake.deletion_vector import write_vector
from replctl.lake.delta_names import version_path
from replctl.lake.small_commit import SmallCommit, writing_files
from replctl.lake.small_table import data_files
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import TableState
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import (
    CommitNote,
    Leaf,
    LeafChange,
    MatchedFile,
    Outcome,
    WritePath,
    WrittenFile,
)

#: Maximum number of attempts, each after another program has committed.
_ATTEMPTS = 5


def write_leaf(
    session: Session,
    outcome: Outcome,
    number: int,
    leaf: Leaf,
    change: LeafChange,
    note: CommitNote,
) -> None:
    """Write the rows of an outcome that belong to one leaf partition, in one commit.  Use no Spark
    for few rows of a simple table on a local disk.

    Args:
        number: the leaf's index in the outcome's target.
        leaf: the leaf with its current storage.

    Raises:
        IoError: the table cannot be written.
    """
    location = leaf.source.location
    assert location is not None
    most = int(session.setting("replctl.small_table_rows"))
    write = _SmallWrite(TableFolder.of(location), outcome, number, leaf, note, change, most)
    if not write.is_done():
        spark.jobs.write_leaf(session.engine(), outcome, number, leaf, change, note)


@dataclass(slots=True)
class _SmallWrite:
    """A write of few rows.

    After an error, the files that it has written stay, because the commit may have succeeded.  If
    it failed, the next write removes the files.

    Attributes:
        most: the maximum number of rows of a table in which rows are replaced.
        new: the path of the file with the new rows, and the file; None before it is written, and if
            there are no new rows.
        vectors: the paths of the deletion vectors of the current attempt.
    """

    folder: TableFolder
    outcome: Outcome
    number: int
    leaf: Leaf
    note: CommitNote
    change: LeafChange
    most: int
    new: tuple[str, WrittenFile] | None = None
    vectors: list[str] = field(default_factory=list)

    def is_done(self) -> bool:
        """Write the rows, and return True; return False if Spark has to do it.

        Raises:
            IoError: the table cannot be written.
        """
        if not self._is_small():
            return False
        with writing_files(self.folder):
            return self._is_written()

    def _is_small(self) -> bool:
        """Return whether this module supports the outcome; this does not check the table."""
        change = self.change
        return (
            self.folder.is_local
            and self.outcome.rows.is_small
            and change.inserted + change.updated + change.deleted <= self.most
            and spark.jobs.write_path(self.outcome, change) is not WritePath.MERGE
            and not self.leaf.source.left_out
            and not any(column.is_assigned for column in self.outcome.target.columns)
        )

    def _is_written(self) -> bool:
        """Write the rows, and return True; return False if Spark has to do it."""
        for _attempt in range(_ATTEMPTS):
            commit = SmallCommit.following(self.folder, self.note)
            if commit is None or not commit.has_types(self.leaf.source.columns):
                break
            replaced = self._replaced(commit)
            if replaced is None or not self._has_new_rows(commit.state):
                break
            injection_point("small.after-file")
            if self._is_committed(commit, replaced):
                return True
            self._delete(self.vectors)
        self._delete([*self.vectors, *(() if self.new is None else self.new[:1])])
        return False

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.folder.delete(path)
        self.vectors.clear()

    def _has_new_rows(self, state: TableState) -> bool:
        """Write the new rows to a file, unless this has been done or there are none.  Return False
        if Spark has to write them.
        """
        if self.new is not None or not (self.change.inserted or self.change.updated):
            return True
        path = f"part-00000-{uuid4()}-c000.snappy.parquet"
        written = spark.write_file(
            self.outcome, self.number, self.leaf.source.columns, f"{self.folder.location}/{path}"
        )
        if written is None:
            return False
        self.folder.copy_mode(version_path(state.version), path)
        self.new = path, written
        return True

    def _replaced(self, commit: SmallCommit) -> list[_Replaced] | None:
        """Return the files in which rows are replaced or deleted, after writing their deletion
        vectors; None if Spark has to do it.
        """
        state = commit.state
        if not (self.change.deleted or self.change.updated):
            return []
        if not state.is_on("delta.enableDeletionVectors"):
            return None
        adds = commit.files()
        files = None if adds is None else data_files(self.folder, adds)
        if adds is None or files is None:
            return None
        keys = spark.jobs.replaced_keys(self.outcome, self.number)
        source = replace(self.leaf.source, version=state.version)
        found = spark.matched_files(source, files, keys, self.most)
        if found is None or not any(file.matching for file in found):
            return None
        replaced = []
        for add, file in zip(adds, found, strict=True):
            if file.matching:
                after = self._with_vector(state, add, file)
                if after is None:
                    return None
                replaced.append(_Replaced(add, after or None, len(file.matching)))
        return replaced

    def _with_vector(
        self, state: TableState, add: dict[str, Any], file: MatchedFile
    ) -> dict[str, Any] | None:
        """Write the deletion vector of a file, and return the file's new `add` action, which is
        empty if all rows are deleted; None if Spark has to write the vector.
        """
        deleted = {*file.deleted, *file.matching}
        if len(deleted) == file.rows:
            return {}
        statistics = _loose(add.get("stats"))
        if statistics is None:
            return None
        path, vector = write_vector(self.folder.location, deleted)
        self.vectors.append(path)
        self.folder.copy_mode(version_path(state.version), path)
        return {**add, "dataChange": True, "stats": statistics, "deletionVector": vector}

    def _is_committed(self, commit: SmallCommit, replaced: Sequence[_Replaced]) -> bool:
        """Commit the files as the next version.  Return False if there is such a version
        already.
        """
        adds = [item.after for item in replaced if item.after is not None]
        domains: list[dict[str, Any]] = []
        if self.new is not None:
            added, domains = commit.added(*self.new)
            adds.insert(0, added)
        return commit.is_made(
            "WRITE",
            self._parameters(replaced),
            self._metrics(replaced),
            adds=adds,
            removed=[item.before for item in replaced],
            domains=domains,
            is_blind=not replaced,
        )

    def _parameters(self, replaced: Sequence[_Replaced]) -> dict[str, str | None]:
        """Return the parameters of the operation, by Delta's names."""
        if not replaced:
            return {"mode": "Append", "partitionBy": "[]"}
        columns = self.leaf.source.columns
        predicate = spark.jobs.key_predicate(self.outcome, self.number, columns)
        return {"mode": "Overwrite", "partitionBy": "[]", "predicate": predicate}

    def _metrics(self, replaced: Sequence[_Replaced]) -> dict[str, int]:
        """Return the metrics of the operation, by Delta's names."""
        written = None if self.new is None else self.new[1]
        metrics = {
            "numFiles": 0 if written is None else 1,
            "numOutputRows": 0 if written is None else written.rows,
            "numOutputBytes": 0 if written is None else written.size,
        }
        if replaced:
            metrics |= {
                "numRemovedFiles": sum(item.after is None for item in replaced),
                "numCopiedRows": 0,
                "numDeletedRows": sum(item.rows for item in replaced),
            }
        return metrics


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A file in which rows are replaced or deleted.

    Attributes:
        before: its `add` action.
        after: its `add` action afterwards; None if no row is left.
        rows: the number of rows that are replaced or deleted.
    """

    before: dict[str, Any]
    after: dict[str, Any] | None
    rows: int


def _loose(statistics: object) -> str | None:
    """Return the statistics of a file after rows are deleted: the minimum and maximum may be values
    of deleted rows.  Return None if the statistics do not count the rows, as Delta requires for a
    file with a deletion vector.
    """
    try:
        found = json.loads(statistics) if isinstance(statistics, str) else None
    except (ValueError, RecursionError):  # other writers may write anything here
        return None
    if not isinstance(found, dict) or not isinstance(found.get("numRecords"), int):
        return None
    return json.dumps({**found, "tightBounds": False}, separators=(",", ":"), ensure_ascii=False)
