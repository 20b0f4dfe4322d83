"""Choose for each version of a table whether to decode its change data feed, or to compare the rows
before and after.

replctl decodes the feed if Delta can read it.  Each version's metadata says whether writers kept a
feed.  Later, the feed's files may be missing, or the table's schema may differ from the feed's.

If a version has no files with a feed, Delta computes the feed from the `add` and `remove` actions.
It believes them: it inserts the rows of a file that the table already had, deletes the rows of a
file that the table did not have, and fails if a `remove` has only its required fields.  So replctl
lets Delta compute the feed of a plain append only, and compares the files of other versions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from replctl.catalog.pg_class import Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.column_changes import has_renamings
from replctl.lake.compared_files import ComparedFiles, compared_files
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import appends_among, has_feed_files, has_row_files
from replctl.lake.delta_log import latest_version, metadata_of
from replctl.lake.table_metadata import TableMetadata, metadata_at
from replctl.lake.table_paths import TablePaths
from replctl.lake.version_range import joined_versions
from replctl.spark import ChangedFiles, FeedVersion


def with_feeds(location: str, commits: Iterable[DeltaCommit]) -> list[DeltaCommit]:
    """Return successive commits, oldest first, with `has_feed` set from the metadata valid at each.
    `has_feed` is false if the log no longer has this metadata.

    Raises:
        DataCorrupted, IoError: an older version is broken (XX001), or cannot be read.
    """
    result = []
    metadata: TableMetadata | None = None
    for commit in commits:
        before = metadata
        if commit.metadata is not None:
            metadata = TableMetadata.of(commit.version, commit.metadata, location)
        if not commit.changes_data:
            result.append(commit)
            continue
        if metadata is None:
            metadata = _known_metadata(location, commit.version)
        has_feed = commit.has_feed and metadata is not None and metadata.has_feed
        if has_feed and metadata is not None and commit.metadata is not None and commit.version:
            before = before or _known_metadata(location, commit.version - 1)
            has_feed = before is not None and before.is_readable_as(metadata)
        result.append(replace(commit, has_feed=has_feed))
    return result


def _known_metadata(location: str, version: int) -> TableMetadata | None:
    """Return a table's metadata at a version; None if the log has lost it."""
    try:
        return metadata_at(location, version)
    except ObjectNotInPrerequisiteState:  # the caller compares files instead
        return None


def chosen_feeds(
    relation: Relation,
    versions: Sequence[FeedVersion],
    place: Callable[[str], str | None],
    *,
    are_joined: bool = False,
    is_shared: bool = False,
) -> tuple[FeedVersion, ...]:
    """Return versions of a relation's table, oldest first, each with the way to read its changes
    now.

    Args:
        place: creates a Delta table from a log (Engine.place_log); returns None if Spark cannot
            read it.  Then the whole table before and after a version is compared.
        are_joined: intermediate states do not matter.  So one compared version may include the
            changes of the versions before it.
        is_shared: another program has committed to the table.  The catalog may not say so yet.

    Raises:
        ObjectNotInPrerequisiteState: a version is no longer in the log, or the files with its
            changes are missing (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    if storage is None:
        return tuple(versions)
    # If nobody else writes a table, replctl's VACUUM and ALTER TABLE preserve its feeds.  But if a
    # column was removed, older feeds may be unreadable: Delta reads feeds by the newest schema
    is_shared = is_shared or storage.is_adopted or storage.has_foreign
    may_be_unreadable = is_shared or has_renamings(storage)
    chosen = _readable(storage.location, versions) if may_be_unreadable else versions
    if are_joined:
        chosen = joined_versions(storage.location, chosen)
    places, result = TablePaths(storage.location), []
    for version in chosen:
        if not version.is_compared:
            result.append(version)
            continue
        logs = compared_files(storage.location, version.version, version.first)
        if not all(places.has(uri) for uri in logs.files):
            raise _removed(relation, storage.location, version.version)
        result.append(_with_files(version, logs, place))
    return tuple(result)


def _removed(relation: Relation, location: str, version: int) -> ObjectNotInPrerequisiteState:
    """Return the error for a version whose files are missing."""
    return ObjectNotInPrerequisiteState(
        f'changes of table "{relation.qualified_name}" were removed before they were read',
        detail=f'Files that version {version} of the Delta table "{location}" added or removed'
        " are missing.",
    )


def _readable(location: str, versions: Sequence[FeedVersion]) -> list[FeedVersion]:
    """Return the versions.  Mark a version to be compared if Delta refuses or misreads its feed, or
    if files of the feed are missing.
    """
    newest = metadata_at(location, latest_version(location) or 0)
    appends = appends_among(location, {v.version for v in versions if not v.is_compared})
    result: list[FeedVersion] = []
    run, previous = 0, None
    for version in versions:
        has_moved_keys = version.changes_keys and _has_row_ids(location, version.version)
        if (
            version.is_compared
            or has_moved_keys  # row ids pair images whose key has changed
            or not metadata_at(location, version.version).is_readable_as(newest)
            or not _has_feed(location, version.version, appends)
        ):
            result.append(replace(version, is_compared=True))
            continue
        if previous is not None and _changes_metadata(location, previous, version.version):
            run += 1
        result.append(replace(version, run=run))
        previous = version.version
    return result


def _with_files(
    version: FeedVersion, logs: ComparedFiles, place: Callable[[str], str | None]
) -> FeedVersion:
    """Return a compared version with the two tables of the files that it changed."""
    before = None if logs.before is None else place(logs.before)
    after = None if logs.after is None else place(logs.after)
    is_placed = (before is None, after is None) == (logs.before is None, logs.after is None)
    files = ChangedFiles(before, after) if is_placed else None
    return replace(version, files=files, has_row_ids=logs.has_row_ids)


def _has_feed(location: str, version: int, appends: Collection[int]) -> bool:
    """Return whether the files exist from which Delta reads or rightly computes a version's feed.

    Args:
        appends: the versions that only append.
    """
    has_files = has_row_files if version in appends else has_feed_files
    return has_files(location, version)


def _has_row_ids(location: str, version: int) -> bool:
    """Return whether the log says that rows have row ids before and after a version."""
    both = (_known_metadata(location, version - 1), _known_metadata(location, version))
    return all(metadata is not None and metadata.has_row_ids for metadata in both)


def _changes_metadata(location: str, after: int, until: int) -> bool:
    """Return whether a version in (after, until] has metadata of its own.  Return True if the log
    lacks one of these versions.
    """
    try:
        return any(metadata_of(location, v) is not None for v in range(after + 1, until + 1))
    except ObjectNotInPrerequisiteState:  # a version that is gone may have changed it
        return True
