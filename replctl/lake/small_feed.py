"""Read the change data feeds of small commits in this process, and send their rows to Spark.

For the feed of one row, Delta and Spark need several jobs that read the log and the files.  They
take longer than the rest of decoding.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_files import ROW_KINDS, changed_bodies
from replctl.lake.delta_log import read_actions
from replctl.lake.small_table import are_plain, data_files, is_plain
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import table_state
from replctl.session import Session
from replctl.spark import (
    ChangeSource,
    FeedVersion,
    LocalRows,
    TableSource,
    VersionFiles,
    feed_columns,
    late_view,
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
    rows, here = LocalRows(feed_columns(source)), set[int]()
    for version in changes.versions:
        is_here = most > 0 and not _needs_spark(source, version)
        files = _version_files(source, version.version) if is_here else None
        found = None if files is None else spark.jobs.feed_rows(source, files, most)
        if found is not None and len(found) <= most:
            most -= len(found)
            rows.add(found)
            here.add(version.version)
    if not here:
        return changes
    feed = stack.enter_context(late_view(session.engine(), rows.table, rows.columns))
    versions = (replace(v, feed=feed) if v.version in here else v for v in changes.versions)
    return replace(changes, versions=tuple(versions))


def _is_simple(relation: Relation, source: TableSource) -> bool:
    """Return whether this process can read all files that replctl has written into a table."""
    storage = relation.storage
    if storage is None or storage.is_adopted or storage.has_foreign or source.location is None:
        return False
    is_local = TableFolder.of(source.location).is_local
    return is_local and are_plain(source) and is_plain(table_state(source.location))


def _needs_spark(source: TableSource, version: FeedVersion) -> bool:
    """Return whether a version has no feed, or its old and new rows must be paired by row id."""
    return version.is_compared or (version.changes_keys and source.has_row_tracking)


def _version_files(source: TableSource, version: int) -> VersionFiles | None:
    """Return the files of a version's feed; None if Spark has to read it."""
    assert source.location is not None
    folder = TableFolder.of(source.location)
    try:
        actions = read_actions(source.location, version)
    except ObjectNotInPrerequisiteState:  # decoding reports it
        return None
    changes = changed_bodies(actions, ("cdc",))
    # If a version has files with changes, its other files do not count
    adds, removes = ([], []) if changes else (changed_bodies(actions, [k]) for k in ROW_KINDS)
    changed, removed, added = (data_files(folder, bodies) for bodies in (changes, removes, adds))
    if changed is None or removed is None or added is None:
        return None
    return VersionFiles(version, changed, removed, added)
