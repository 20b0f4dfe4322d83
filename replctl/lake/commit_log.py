"""Keep the commit log, which maps Delta versions of relations to transactions, and orders them.

Within a relation, LSNs always have the order of Delta's versions.  Therefore replctl first records
versions of other writers.  It reads them from Delta's own log, without Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_nonce import find_nonces, insert_nonces
from replctl.catalog.heap import has_changed_columns
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_wal import (
    BREAK,
    CHANGE,
    NONE,
    TRUNCATE,
    EnteredVersion,
    LoggedTable,
    enter,
    entered_marks,
    entered_versions,
    has_entered,
    is_logged_in_progress,
    known_origin_lsn,
    last_entered_version,
    last_logged_version,
    logged_tables,
)
from replctl.catalog.storage import (
    accepts_marks,
    note_foreign_commit,
    note_metadata,
    set_acceptance,
)
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.errors import (
    DataCorrupted,
    FeatureNotSupported,
    IoError,
    PostgresError,
    SerializationFailure,
    UndefinedFile,
)
from replctl.lake.column_changes import follow_columns, follow_own_columns
from replctl.lake.commit_mark import CommitMark, mark_of, signed_text
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import has_files_elsewhere, is_empty_at
from replctl.lake.delta_log import (
    UNREADABLE,
    columns_of,
    commits_after,
    latest_version,
    outside_checkpoint,
    readable_after,
)
from replctl.lake.empty_partition import check_empty_values
from replctl.lake.feed_choice import with_feeds
from replctl.lake.foreign_files import has_foreign_files, leads_out, trust_hint
from replctl.lake.owners_comment import follow_comments
from replctl.lake.partition_zone import check_partition_zones
from replctl.lake.replacement import keeps_files, replaces_table
from replctl.lake.table_metadata import has_row_ids
from replctl.lake.target_fault import note_replacement
from replctl.lake.unknown_mark import check_mark
from replctl.lake.version_chain import (
    Chain,
    chain_of,
    enter_break,
    enter_cleaning,
    enter_unsupported,
    relation_chain,
    replaced,
    restore_hint,
    supported_after,
)


def has_unlogged_versions(catalog: Catalog, relation: Relation) -> bool:
    """Return whether Delta's log of a relation has versions that the commit log lacks, or lacks
    versions that the commit log has.  To find out, list the log and check the newest known version.

    Raises:
        UndefinedFile: the Delta table is missing (58P01).
        IoError: Delta's log cannot be listed.
    """
    storage = relation.storage
    if storage is None or not storage.is_made:
        return False
    table = last_entered_version(catalog.connection, relation.oid, storage.location)
    return _lacks(table, _newest_version(table))


def tables_behind(catalog: Catalog, relids: Collection[int] | None = None) -> list[int]:
    """Return the tables with versions that the commit log lacks, and the tables whose log cannot be
    listed.

    Args:
        relids: check only these tables; None for all tables of the database.
    """
    behind = []
    for table in logged_tables(catalog, relids):
        try:
            if _lacks(table, _newest_version(table)):
                behind.append(table.relid)
        except IoError:  # the caller's read raises the error
            behind.append(table.relid)
    return behind


def _newest_version(table: LoggedTable) -> int:
    newest = latest_version(table.location)
    if newest is None:
        raise UndefinedFile(f'could not find the Delta table "{table.location}"')
    return newest


def _lacks(table: LoggedTable, newest: int) -> bool:
    """Return whether the commit log lacks a version of a table, or has one that the table lacks."""
    if table.version is None or newest > table.version:
        return True
    return chain_of(table, newest) is not Chain.WHOLE


def newest_versions(
    catalog: Catalog, relations: Mapping[int, Relation]
) -> dict[int, tuple[int, list[DeltaCommit]]]:
    """Check that versions that the commit log lacks are readable, before Spark reads the relations.

    Returns:
        the newest version of each table, and the commits that the commit log lacks, by OID.

    Raises:
        PostgresError: a version cannot be read (see `commits_since`).
    """
    found = {}
    for table in logged_tables(catalog, relations):
        relation = relations[table.relid]
        with reading_log(catalog, relation):
            newest = _newest_version(table)
            commits = []
            if _lacks(table, newest):
                version = -1 if table.version is None else table.version
                if relation_chain(catalog, relation) is Chain.CLEANED:
                    version = readable_after(table.location, version)
                try:
                    commits = _read_commits(catalog, relation, version)
                except FeatureNotSupported:
                    version = supported_after(table.location, version)
                    commits = _read_commits(catalog, relation, version)
            found[table.relid] = (commits[-1].version if commits else newest), commits
    return found


def enter_readable(
    catalog: Catalog,
    cluster: Cluster,
    relations: Iterable[Relation],
    own_xid: int | None = None,
    *,
    ends: bool = False,
) -> dict[int, PostgresError]:
    """Call `enter_versions` for each of the relations that has unlogged versions.

    Returns:
        the errors of unreadable relations, by OID.  They only stop statements that need these
        relations.
    """
    broken: dict[int, PostgresError] = {}
    for relation in relations:
        try:
            with reading_log(catalog, relation):
                if has_unlogged_versions(catalog, relation):
                    enter_versions(catalog, cluster, relation, own_xid, ends=ends)
        except UNREADABLE as error:  # the error stops only readers of the relation
            broken[relation.oid] = error
    return broken


@contextmanager
def reading_log(catalog: Catalog, relation: Relation) -> Iterator[None]:
    """Add the table's name to errors raised in the `with` block."""
    try:
        yield
    except UNREADABLE as error:
        database = current_database(catalog)
        assert relation.storage is not None
        place = (
            f'Table "{relation.qualified_name}" of database "{database}" is stored at'
            f' "{relation.storage.location}".'
        )
        if place not in (error.detail or ""):
            error.detail = place if error.detail is None else f"{place} {error.detail}"
        if isinstance(error, UndefinedFile) and error.hint is None:
            error.hint = restore_hint(catalog, relation)
        raise


def unlogged_commits(catalog: Catalog, cluster: Cluster, relation: Relation) -> list[DeltaCommit]:
    """Return the commits of a relation that the commit log lacks, in the form that `commits_since`
    returns.
    """
    return commits_since(
        catalog, cluster, relation, last_logged_version(catalog.connection, relation.oid)
    )


def commits_since(
    catalog: Catalog,
    cluster: Cluster,
    relation: Relation,
    version: int | None,
    *,
    reads_files: bool = True,
) -> list[DeltaCommit]:
    """Read the commits of a relation, and recognise replctl's own by their mark.

    A commit is replctl's own if the commit log says so and its file has not changed.  A commit that
    the commit log lacks is replctl's own if all of this is true: its mark is signed, the catalog
    knows the mark's nonce for this relation, and no earlier commit has the same mark.

    Args:
        version: read only newer versions; None for all versions.
        reads_files: the caller will read the files that the commits name.  If false, these files
            may be outside the table's directory.

    Returns:
        the commits, oldest first.

    Raises:
        UndefinedFile: the Delta table is missing (58P01).
        ObjectNotInPrerequisiteState: a commit is no longer in Delta's log, or has the mark of a
            newer copy of this catalog (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
        CannotConnectNow: a standby that was promoted writes the table (57P03).
    """
    if relation.storage is None:
        return []
    first = -1 if version is None else version
    logged = last_logged_version(catalog.connection, relation.oid)
    start = first if logged is None else min(first, logged)
    commits = _read_commits(catalog, relation, start, reads_files=reads_files)
    marks = {
        commit.version: mark
        for commit in commits
        if (mark := mark_of(commit.user_metadata, cluster.signing_key, relation.oid)) is not None
    }
    if marks:
        known = start if logged is None else logged
        own = _own_marks(catalog, cluster, relation, commits, marks, known)
        commits = [replace(commit, mark=own.get(commit.version)) for commit in commits]
    newer = [commit for commit in commits if commit.version > first]
    with reading_log(catalog, relation):
        return with_feeds(relation.storage.location, newer)


def _read_commits(
    catalog: Catalog, relation: Relation, version: int, *, reads_files: bool = True
) -> list[DeltaCommit]:
    """Return the commits of a relation that are newer than a version.

    Raises:
        The errors of `commits_since`.
        ForeignFiles: a commit or the newest checkpoint names a file outside the table's directory,
            the newest version has such files, and the table was not adopted with foreign_files
            (42501).
    """
    assert relation.storage is not None
    location = relation.storage.location
    with reading_log(catalog, relation):
        commits = list(commits_after(location, version))
        if commits:
            check_partition_zones(relation)
            check_empty_values(relation, [commit.version for commit in commits])
        if not commits or not reads_files or has_foreign_files(relation):
            return commits
        found = next((commit for commit in commits if commit.outside is not None), None)
        outside, what = outside_checkpoint(location, version), "Its newest checkpoint"
        if found is not None:
            outside, what = found.outside, f"Version {found.version}"
        if outside is not None and has_files_elsewhere(location):
            raise leads_out(relation, outside, what, hint=trust_hint(catalog, relation))
    return commits


def _own_marks(
    catalog: Catalog,
    cluster: Cluster,
    relation: Relation,
    commits: Sequence[DeltaCommit],
    marks: Mapping[int, CommitMark],
    logged: int,
) -> dict[int, CommitMark]:
    """Return the signed marks that are replctl's own, by version.  Each has the number of
    its transaction in this catalog.  This number may differ from the one in the commit, because a
    restored catalog gives new numbers to lost transactions.

    Args:
        logged: the newest version in the commit log.
    """
    own: dict[int, CommitMark] = {}
    entered = entered_versions(catalog.connection, relation.oid, min(marks) - 1)
    known = find_nonces(catalog.connection, {mark.nonce for mark in marks.values()})
    new = {version: mark for version, mark in marks.items() if version > logged}
    seen = entered_marks(catalog.connection, relation.oid, {mark.place for mark in new.values()})
    for commit in commits:
        mark = marks.get(commit.version)
        if mark is None:
            continue
        relid, xid = known.get(mark.nonce, (None, mark.xid))
        if commit.version <= logged:
            as_own = EnteredVersion(commit.digest, mark.place)
            # If VACUUM has removed the entry, the mark was checked when the entry was made
            is_own = entered.get(commit.version, as_own) == as_own
        else:
            is_known = relid is not None
            check_mark(catalog, relation, commit.version, mark, cluster.path, is_known=is_known)
            is_own = relid == relation.oid and mark.place not in seen
            seen.add(mark.place)
        if is_own:
            own[commit.version] = replace(mark, xid=xid)
    return own


def marked_text(cluster: Cluster, mark: CommitMark, relid: int) -> str:
    """Return the `userMetadata` for one of replctl's own commits."""
    timeline = cluster.control().timeline
    key = cluster.signing_key
    return signed_text(replace(mark, timeline=timeline), cluster.system_identifier, key, relid)


def check_written(
    cluster: Cluster, relation: Relation, mark: CommitMark, before: int | None
) -> None:
    """Check that Delta has made a requested commit.

    Delta silently skips a commit if the table already has a larger step for the same transaction
    identifier.  That step comes from this subscription, or is forged.

    Args:
        before: the newest version of the table before the write.

    Raises:
        DataCorrupted: no later version has the mark (XX001).
    """
    assert relation.storage is not None
    location = relation.storage.location
    for commit in commits_after(location, -1 if before is None else before):
        found = mark_of(commit.user_metadata, cluster.signing_key, relation.oid)
        if found is not None and found.place == mark.place:
            return
    raise not_carried_out(relation)


def not_carried_out(relation: Relation) -> DataCorrupted:
    """Return the error of a write that Delta skipped as a repetition."""
    assert relation.storage is not None
    return DataCorrupted(
        f'a write into table "{relation.qualified_name}" was not carried out',
        detail=f'Delta\'s log of "{relation.storage.location}" does not have the commit: another'
        " writer has used the transaction identifier of this subscription.",
        hint="Use DROP SUBSCRIPTION, then CREATE SUBSCRIPTION ... WITH (copy_data = reconcile).",
    )


def learn_marks(
    catalog: Catalog, cluster: Cluster, relation: Relation, numbers: Mapping[int, int]
) -> None:
    """Accept commits of a newer state of this catalog as the cluster's own.  There are such commits
    if the catalog was restored from a backup, or belongs to a standby.

    Args:
        numbers: new numbers of lost transactions, by the transactions' numbers in the marks.
    """
    if relation.storage is None or latest_version(relation.storage.location) is None:
        return
    logged = last_logged_version(catalog.connection, relation.oid)
    commits = commits_after(relation.storage.location, -1 if logged is None else logged)
    texts = [commit.user_metadata for commit in commits]
    found = [mark_of(text, cluster.signing_key, relation.oid) for text in texts]
    marks = [mark for mark in found if mark is not None]
    known = find_nonces(catalog.connection, {mark.nonce for mark in marks})
    lost = {mark.nonce: numbers[mark.xid] for mark in marks if mark.nonce not in known}
    insert_nonces(catalog.connection, [(nonce, relation.oid, xid) for nonce, xid in lost.items()])


def enter_versions(
    catalog: Catalog,
    cluster: Cluster,
    relation: Relation,
    own_xid: int | None = None,
    undone_xid: int | None = None,
    *,
    ends: bool = False,
    statement: int | None = None,
    to_truncation: bool = False,
) -> bool:
    """Record the versions of a relation that the commit log lacks, oldest first.

    Versions of `own_xid` are recorded as part of this transaction.  Versions of `undone_xid`, and
    versions that their own transaction has undone, are recorded as changing nothing.  Each version
    of another writer becomes a transaction of its own.  But after a version of `own_xid`, it
    becomes a part of that transaction, because entries are decoded in order.

    Recording stops before a version of another transaction in progress: later versions must not be
    visible yet.  It also stops before another program's schema if this transaction has changed
    columns, which may yet be undone.  Columns that other programs added belong to the relation from
    their commit on.  Renamed columns are read by their new names.

    If the table no longer has the newest version of the commit log, a break is recorded.  Faults
    that stop the subscriptions of the table are also recorded (target_fault).

    Args:
        ends: `own_xid` has finished writing.  Later commits of other writers are not recorded now.
        statement: the number of the statement of `own_xid` that has written this relation and
            others.
        to_truncation: record only the versions up to the first TRUNCATE of `own_xid`; none if there
            is no TRUNCATE.

    Returns:
        True if `to_truncation` is true and the TRUNCATE is recorded.

    Raises:
        The errors of `commits_since`.
        ObjectNotInPrerequisiteState: the table was replaced while the transaction `own_xid` wrote
            it (55000).
        SerializationFailure: the transaction `own_xid` has changed columns, and another program has
            changed the schema before it wrote the table (40001).
    """
    storage = relation.storage
    if storage is None:
        return False
    if is_logged_in_progress(catalog, relation.oid, but=own_xid or undone_xid):
        return False
    with reading_log(catalog, relation):
        chain = relation_chain(catalog, relation)
    if chain is Chain.CLEANED:
        enter_cleaning(catalog, relation, cluster.system_identifier)
    if chain is Chain.BROKEN:
        if own_xid is not None and has_entered(catalog.connection, relation.oid, own_xid):
            raise replaced(relation)
        enter_break(catalog, relation)
        return False
    try:
        commits = unlogged_commits(catalog, cluster, relation)
    except FeatureNotSupported:
        enter_unsupported(catalog, relation, cluster.system_identifier)
        commits = unlogged_commits(catalog, cluster, relation)
    taken_back = {version for commit in commits for version in commit.undoes}
    own = [] if own_xid is None else [c.version for c in commits if c.is_of(own_xid)]
    last = -1
    if to_truncation:
        last = _first_truncation(commits, own, taken_back)
        commits = [commit for commit in commits if commit.version <= last]
    is_within = own_xid is not None and has_entered(catalog.connection, relation.oid, own_xid)
    is_reached = False
    for commit in commits:
        xid = None if commit.mark is None else commit.mark.xid
        if xid is not None and xid == own_xid:
            is_undone = commit.version in taken_back
            _enter(catalog, xid, relation, commit, is_undone=is_undone, statement=statement)
            is_within, is_reached = True, commit.version == last
            continue
        if is_within and ends and commit.version > max(own, default=-1):
            break
        if xid is not None and xid != undone_xid and xid in catalog.snapshot.in_progress:
            break
        if xid is None and commit.metadata and has_changed_columns(catalog, relation.oid):
            if commit.version < max(own, default=-1):
                raise SerializationFailure("could not serialize access due to concurrent update")
            break
        if xid is None:
            note_foreign_commit(catalog.connection, relation.oid)
            note_replacement(catalog, relation, commit)
        if commit.metadata is not None:
            note_metadata(
                catalog.connection,
                relation.oid,
                commit.metadata["id"],
                has_row_ids=has_row_ids(commit.metadata),
            )
            if xid is None:
                found = columns_of(commit.metadata, storage.location, commit.version)
                is_replaced = replaces_table(storage.location, commit)
                follow_columns(
                    catalog,
                    relation.oid,
                    found,
                    commit.version,
                    replaces_rows=is_replaced,
                    keeps_files=partial(keeps_files, storage.location, commit.version),
                )
                follow_comments(catalog, relation.oid, commit.version)
        if xid is None and own_xid is not None and is_within:
            _enter(catalog, own_xid, relation, commit)
            continue
        new_xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
        if undone_xid is None:
            _enter(catalog, new_xid, relation, commit)
        else:
            is_undone = xid == undone_xid
            _enter(catalog, new_xid, relation, commit, is_undone=is_undone, by_row=True)
        commit_transaction(
            catalog.connection,
            new_xid,
            changes_catalog=False,
            commit_time=commit.timestamp * 1000,
            origin=None if commit.mark is None else commit.mark.origin,
            origin_lsn=None if xid is None else known_origin_lsn(catalog, xid),
        )
    if commits and accepts_marks(catalog.connection, relation.oid):
        set_acceptance(catalog.connection, relation.oid, accepts=False)
    return is_reached


def _first_truncation(
    commits: Iterable[DeltaCommit], own: Collection[int], taken_back: Collection[int]
) -> int:
    """Return the first version with a TRUNCATE that is not taken back; -1 if there is none."""
    found = (c.version for c in commits if c.mark is not None and c.mark.truncates)
    return next((version for version in found if version in own and version not in taken_back), -1)


def _enter(
    catalog: Catalog,
    xid: int,
    relation: Relation,
    commit: DeltaCommit,
    *,
    is_undone: bool = False,
    by_row: bool = False,
    statement: int | None = None,
) -> None:
    """Record a version in the commit log.

    Args:
        is_undone: record the version as changing nothing.
        statement: see `enter_versions`.
        by_row: record another writer's TRUNCATE as the removal of the rows that existed then.  This
            is needed while a transaction is undone: rows that it removed earlier come back.
    """
    assert relation.storage is not None
    if commit.mark is not None:
        follow_own_columns(catalog, relation.oid, commit.mark, commit.version)
    action = NONE if is_undone else _action(relation.storage.location, commit)
    if commit.outside is not None and not has_foreign_files(relation):
        action = BREAK  # the files no longer belong to the table, and must not be read
    enter(
        catalog,
        xid,
        relation.oid,
        commit.version,
        CHANGE if by_row and action == TRUNCATE else action,
        _detail(commit, statement),
        digest=commit.digest,
        file_state=commit.file_state,
        mark=None if commit.mark is None else commit.mark.place,
    )


def _action(location: str, commit: DeltaCommit) -> str:
    """Return the effect of a commit on rows.  If another writer calls its operation TRUNCATE, it
    counts as one only if the table is empty afterwards.
    """
    if not commit.changes_data:
        return NONE
    if commit.mark is not None:
        return NONE if commit.mark.silent or commit.mark.truncates else CHANGE
    is_truncation = commit.operation == "TRUNCATE" and is_empty_at(location, commit.version)
    return TRUNCATE if is_truncation else CHANGE


def _detail(commit: DeltaCommit, statement: int | None) -> dict[str, object] | None:
    """Return how to read the changes of a commit.

    Returns:
        True for each key that applies; None if none applies.  `changes_keys`: update images must be
        paired by row id.  replctl's mark says whether this is necessary.  For an UPDATE or MERGE of
        another writer, replctl assumes it.  `compared`: the rows before and after the version must
        be compared, because the commit has no change data feed.  `statement`: the number of the
        statement, if it has written several tables.
    """
    may_change_keys = (
        commit.operation in ("UPDATE", "MERGE") if commit.mark is None else commit.mark.changes_keys
    )
    ways = {"changes_keys": may_change_keys, "compared": not commit.has_feed}
    detail: dict[str, object] = {way: True for way, is_needed in ways.items() if is_needed}
    return detail | ({} if statement is None else {"statement": statement}) or None
