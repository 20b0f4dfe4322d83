"""Read the change data feeds of small commits in this process, and send their rows to Spark.

For the feed of one row, Delta and Spark need several jobs that read the log and the files.  They
take longer than the rest of decoding.  If keys have changed, Spark would also read the whole table
before and after the commit, to pair the images of a row by row id.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_files import ROW_KINDS, changed_bodies
from replctl.lake.delta_log import read_actions
from replctl.lake.small_table import are_plain, data_files, hidden_columns, is_plain
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import table_state
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import (
    ChangeSource,
    FeedVersion,
    LocalRows,
    TableSource,
    VersionFiles,
    feed_columns,
    late_view,
    update_columns,
)


def with_small_feeds(
    session: Session, relation: Relation, changes: ChangeSource, stack: ExitStack
) -> ChangeSource:
    """Return `changes` with the rows of small commits, which this process reads.  It does so only
    for tables that no other program writes.  Only the calling thread may use the result, until
    `stack` closes.

    Raises:
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    most, source = int(session.setting("replctl.small_table_rows")), changes.source
    if not most or not _is_simple(relation, source):
        return changes
    feeds, updates = LocalRows(feed_columns(source)), LocalRows(update_columns(source))
    here = set[int]()
    for version in changes.versions:
        found = _rows_here(source, version, most) if most > 0 else None
        if found is not None:
            most -= len(found.feed) + len(found.updates)
            feeds.add(found.feed)
            updates.add(found.updates)
            here.add(version.version)
    if not here:
        return changes
    feed, updated = (
        stack.enter_context(late_view(session.engine(), rows.table, rows.columns))
        for rows in (feeds, updates)
    )
    versions = (
        replace(v, feed=feed, updates=updated) if v.version in here else v for v in changes.versions
    )
    return replace(changes, versions=tuple(versions))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a version for Spark: its feed, and the updated rows if row ids pair them."""

    feed: list[list[str | None]]
    updates: list[list[str | None]]


def _rows_here(source: TableSource, version: FeedVersion, most: int) -> _Rows | None:
    """Return the rows of a version; None if Spark has to read them.

    Args:
        most: the maximum number of rows in the files, and of rows to return.
    """
    if version.is_compared:
        return None
    is_paired = version.changes_keys and source.has_row_tracking
    files = _version_files(source, version.version, with_rows=is_paired)
    if files is None:
        return None
    feed, updates = spark.jobs.feed_rows(source, files, most), list[list[str | None]]()
    if feed is not None and is_paired:
        assert source.location is not None
        hidden = hidden_columns(table_state(source.location))
        found = spark.jobs.updated_rows(source, files, hidden, most)
        if found is None:
            return None
        updates = found
    return None if feed is None or len(feed) + len(updates) > most else _Rows(feed, updates)


def _is_simple(relation: Relation, source: TableSource) -> bool:
    """Return whether this process can read all files that replctl has written into a table."""
    storage = relation.storage
    if storage is None or storage.is_adopted or storage.has_foreign or source.location is None:
        return False
    is_local = TableFolder.of(source.location).is_local
    return is_local and are_plain(source) and is_plain(table_state(source.location))


def _version_files(source: TableSource, version: int, *, with_rows: bool) -> VersionFiles | None:
    """Return the files of a version's feed; None if Spark has to read it.

    Args:
        with_rows: also return the data files if there are change data files.
    """
    assert source.location is not None
    folder = TableFolder.of(source.location)
    try:
        actions = read_actions(source.location, version)
    except ObjectNotInPrerequisiteState:  # decoding reports it
        return None
    changes = changed_bodies(actions, ("cdc",))
    is_enough = changes and not with_rows
    adds, removes = ([], []) if is_enough else (changed_bodies(actions, [k]) for k in ROW_KINDS)
    changed, removed, added = (data_files(folder, bodies) for bodies in (changes, removes, adds))
    if changed is None or removed is None or added is None:
        return None
    return VersionFiles(version, changed, removed, added)
