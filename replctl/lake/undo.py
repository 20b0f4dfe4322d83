"""Undo the writes of transactions with inverse commits, which replctl does not decode."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter

from replctl import spark
from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.intent import Intent, intents_of
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.relation_kind import Identity
from replctl.catalog.storage import Storage
from replctl.catalog.transaction import BlockXids, xids_of_block
from replctl.errors import PostgresError
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.commit_mark import CommitMark
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.durable_version import sync_versions
from replctl.lake.feed_choice import chosen_feeds
from replctl.lake.retry import repeated
from replctl.lake.small_definition import restore
from replctl.lake.table_read import written_source
from replctl.replication.replica_identity import target_key
from replctl.session import Session
from replctl.spark import CommitNote, FeedVersion
from replctl.types.quote import quote_identifier


def undo_commits(
    session: Session,
    xid: int,
    floors: Mapping[int, int] | None = None,
    only: Collection[int] | None = None,
    kept: BlockXids | None = None,
) -> dict[int, Relation]:
    """Undo the writes of a transaction with inverse commits, which replctl does not decode.

    Args:
        floors: versions, by OID, up to which the transaction's writes stay.
        only: OIDs of the relations to undo; None for all.
        kept: the numbers of the transaction whose definitions stay; None for none of them.

    Returns:
        the relations that the transaction intended to write, limited to `only`.
    """
    intents, relations = written_tables(session, xid, kept)
    if only is not None:
        relations = {oid: relation for oid, relation in relations.items() if oid in only}
    for intent in intents:
        if intent.relid in relations:
            floor = max(floor_of(intent.version), (floors or {}).get(intent.relid, -1))
            # Programs other than replctl ignore the table's lock, and may commit first
            repeated(partial(undo_since, session, xid, relations[intent.relid], floor))
    return relations


def undo_since(session: Session, xid: int, relation: Relation, floor: int) -> None:
    """Undo the writes that a transaction made into a relation after version `floor`."""
    location = storage_of(relation).location
    commits = commits_since(session, relation, floor)
    own = [commit for commit in commits if commit.is_of(xid)]
    pending = pending_commits(own)
    if not pending:
        return
    injection_point("undo.before-restore")
    has_made_columns = any(commit.is_silent and not commit.undoes for commit in own)
    if len(own) == len(commits) and not has_made_columns:
        with _undoing(session, xid, relation, [commit.version for commit in pending]) as note:
            restore(session, location, floor, note)
    else:
        _undo_by_inverse(
            session,
            xid,
            relation,
            [_feed_version(commit) for commit in pending],
            [_feed_version(c) for c in commits if c.changes_data and not c.is_of(xid)],
            is_renamed=any(_may_hide_feeds(commit, xid) for commit in commits),
        )
    injection_point("undo.after-restore")


def _undo_by_inverse(
    session: Session,
    xid: int,
    relation: Relation,
    own: Sequence[FeedVersion],
    foreign: Sequence[FeedVersion],
    *,
    is_renamed: bool,
) -> None:
    """Undo versions of a table between which other writers committed.  If rows have a key, undo the
    versions together.  Without a key, undo them one by one, the newest first.

    Args:
        own: the versions to undo.
        foreign: the versions of other writers that change rows.
        is_renamed: the schema has changed since.  Delta may refuse to read feeds across such a
            change, and columns may have had other names.
    """
    storage, engine = storage_of(relation), session.engine()
    versions = [version.version for version in own]
    read: list[int] = []
    if is_renamed or foreign:
        both = sorted([*own, *foreign], key=attrgetter("version"))
        feeds = chosen_feeds(relation, both, engine.place_log, is_shared=True)
        chosen = {version.version: version for version in feeds}
        own, foreign = ([chosen[v.version] for v in part] for part in (own, foreign))
        read = list(chosen) if is_renamed else []
    source = written_source(relation, versions[0], read)
    numbers = {column.attnum for column in source.columns}
    key = [storage.columns[attnum].number for attnum in target_key(relation)]
    if key and numbers.issuperset(key):
        with _undoing(session, xid, relation, versions, may_be_nothing=True) as note:
            spark.jobs.revert(engine, source, key, own, foreign, note)
        return
    for version in reversed(own):
        with _undoing(session, xid, relation, [version.version], may_be_nothing=True) as note:
            source = written_source(relation, version.version, read)
            spark.jobs.revert(engine, source, (), [version], (), note)


def _may_hide_feeds(commit: DeltaCommit, xid: int) -> bool:
    """Return whether Delta may refuse to read feeds across a commit, because it changes the
    schema.  The transaction itself only adds columns, which is harmless, or widens types.
    """
    is_harmless = commit.mark is not None and commit.is_of(xid) and not commit.mark.widens
    return commit.changes_schema and not is_harmless


def _feed_version(commit: DeltaCommit) -> FeedVersion:
    return FeedVersion(commit.version, 1, is_compared=not commit.has_feed)


def pending_commits(own: Iterable[DeltaCommit]) -> list[DeltaCommit]:
    """Return those commits of a transaction that change rows and are not undone yet."""
    commits = list(own)
    undone = {version for commit in commits for version in commit.undoes}
    return [
        commit
        for commit in commits
        if commit.changes_data and not commit.is_silent and commit.version not in undone
    ]


@contextmanager
def _undoing(
    session: Session,
    xid: int,
    relation: Relation,
    versions: Sequence[int],
    *,
    may_be_nothing: bool = False,
) -> Iterator[CommitNote]:
    """Yield the note for the commit that undoes versions of a table.  The commit has a nonce of its
    own, because the process that wrote the versions may have died.

    Args:
        may_be_nothing: a missing commit is no error: Delta makes none if other writers have
            replaced all changed rows.
    """
    cluster = session.cluster
    with cluster.begin(write=True) as connection:
        nonce = make_nonces(connection, xid, [relation.oid])[relation.oid]
    mark = CommitMark(nonce, 1, xid, silent=True, undoes=tuple(versions))
    yield CommitNote(commit_log.marked_text(cluster, mark, relation.oid))
    if not may_be_nothing:
        commit_log.check_written(cluster, relation, mark, max(versions))
    sync_versions(storage_of(relation).location, max(versions))


def warn_of_undo(session: Session, xid: int, error: PostgresError) -> None:
    """Warn of a transaction that cannot be undone now.  Suggest statements that undo it later."""
    intents = written_tables(session, xid)[0]
    with session.cluster.read(session.database_oid) as catalog:
        relations = load_relations(catalog, [intent.relid for intent in intents])
    writes = [_empty_write(item) for _oid, item in sorted(relations.items())]
    session.notice(
        f"transaction {xid} could not be undone yet",
        severity="WARNING",
        detail=error.message,
        hint=f"When the cause is gone, use {' '.join(writes)}" if writes else None,
    )


def written_tables(
    session: Session, xid: int, kept: BlockXids | None = None
) -> tuple[list[Intent], dict[int, Relation]]:
    """Return the intents of a transaction, and their relations that have storage, by OID.

    The relations have the definitions of the transaction.  A relation that the transaction has
    dropped has the definition that an undo restores, and is missing if the undo does not restore
    it.

    Args:
        kept: the numbers of the transaction whose definitions an undo keeps; None for none of them.
    """
    with session.cluster.begin(write=False) as connection:
        intents = intents_of(connection, xid)
        own = BlockXids([xids_of_block(connection, xid)])
    relids = {intent.relid for intent in intents}
    relations: dict[int, Relation] = {}
    for visible in (own, kept):
        if relids - relations.keys():  # most transactions drop no table that they have written
            with session.cluster.read(session.database_oid, visible) as catalog:
                relations |= load_relations(catalog, relids - relations.keys())
    return intents, {
        oid: relation for oid, relation in relations.items() if relation.storage is not None
    }


def commits_since(session: Session, relation: Relation, version: int | None) -> list[DeltaCommit]:
    """Return the commits of a relation after a version (`commit_log.commits_since`)."""
    with session.cluster.read(session.database_oid) as catalog:
        return commit_log.commits_since(catalog, session.cluster, relation, version)


def storage_of(relation: Relation) -> Storage:
    """Return the storage of a relation that has storage."""
    assert relation.storage is not None, relation.name
    return relation.storage


def floor_of(version: int | None) -> int:
    """Return the version before a transaction's first write; -1 if there was no table."""
    return -1 if version is None else version


def _empty_write(relation: Relation) -> str:
    """Return a statement that writes no row into a table.  It also works for append-only tables and
    tables without a replica identity.
    """
    name = relation.quoted_name
    given = next(
        (c for c in relation.columns if not c.generated and c.identity != Identity.ALWAYS), None
    )
    if given is None:
        return f"DELETE FROM {name} WHERE false;"
    return f"INSERT INTO {name} ({quote_identifier(given.name)}) SELECT NULL WHERE false;"
