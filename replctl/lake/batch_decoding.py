"""Decode batches of changes from a database's log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

from replctl import spark
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_publication import names_begun_after
from replctl.catalog.pg_wal import (
    BREAK,
    CHANGE,
    TRUNCATE,
    LogEntry,
    entries_between,
    numbered,
)
from replctl.catalog.transaction import Catalog, mixed_commits
from replctl.errors import (
    DataError,
    FeatureNotSupported,
    IntegrityError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedObject,
)
from replctl.lake.catalog_name import check_names
from replctl.lake.change_source import (
    change_source,
    changed_types,
    check_restored_columns,
    feed_version,
    pieces_by_type,
    sent_entry,
    text_source,
    with_texts,
)
from replctl.lake.column_fault import check_decodable
from replctl.lake.delta_log import log_versions
from replctl.lake.feed_choice import chosen_feeds
from replctl.lake.file_access import check_readable
from replctl.lake.formerly_published import formerly_published
from replctl.lake.pending import batch_ends, decoded_rows, pending_changes
from replctl.lake.recovery import recover
from replctl.lake.remote_relation import (
    check_filters,
    remote_changes,
    remote_relation,
    sent_columns,
)
from replctl.lake.small_feed import with_small_feeds
from replctl.lake.version_chain import replaced
from replctl.lake.version_range import is_sent_whole
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.log_range import LogRange
from replctl.replication.node import (
    ChangeBatch,
    PendingChanges,
    RelationChanges,
    RemoteRelation,
    RemoteTransaction,
    Rows,
    Truncation,
)
from replctl.replication.published_relation import PublicationSet, PublishedRelation
from replctl.replication.refresh_hint import unique_key_hint, value_hint
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.session_thread import SessionThread, in_parallel, session_threads
from replctl.spark import ChangeSource, FeedVersion, SharedFeeds, cancel_jobs


class BatchDecoding:
    """Decodes the changes that a session's database publishes (replication.node.Decoding).

    Args:
        feeds: feeds of the database's tables that several subscriptions share.
    """

    def __init__(self, session: Session, feeds: SharedFeeds | None = None) -> None:
        self._session = session
        self._feeds = feeds

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn) at which definitions of published tables change, in
        order.
        """
        with self._session.read() as catalog:
            entries = entries_between(catalog, from_lsn, to_lsn)
            commits = [e.commit_lsn for e in entries]
            if not commits:
                return []
            result = []
            relids = {e.relid for e in entries}
            previous = _definitions(catalog.as_of(commits[0]), publications, relids)
            changes = catalog.changes_between(from_lsn, to_lsn)
            mixed = mixed_commits(catalog, from_lsn, to_lsn) if changes else set()
            for lsn in _between_commits(changes, commits):
                current = _definitions(catalog.as_of(lsn), publications, relids)
                if current != previous or lsn in mixed:
                    result.append(lsn)
                previous = current
        return result

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""
        with self._session.read() as catalog:
            entries = entries_between(catalog, from_lsn, to_lsn)
        return sorted({entry.commit_lsn for entry in entries})

    def batch_ends(self, log: LogRange, max_changes: int) -> list[int]:
        """Return the LSNs at which to end batches of a given size, estimated from the statistics of
        Delta's log.
        """
        return batch_ends(self._session, log, max_changes)

    def pending(self, log: LogRange) -> dict[RelationName, PendingChanges]:
        """Summarize the pending changes of published relations from the log, without decoding."""
        return pending_changes(self._session, log)

    @contextmanager
    def changes(
        self,
        log: LogRange,
        has_target: Callable[[RemoteRelation], bool],
        max_parallel: int,
        joins: Callable[[RemoteRelation], bool] | None = None,
    ) -> Iterator[ChangeBatch]:
        """Yield the changes of a range of the log, under the definitions valid in it.

        Raises:
            UndefinedObject: a publication does not exist (42704).  A publication that was created
                after these changes is no error; it publishes none of them.
            DecodingFailure: a row filter fails for a row, or the publications list different
                columns of a table that changes.
        """
        entries, published = self._published(log)
        wanted = _wanted_entries(_with_refused(log, published, has_target), entries, published)
        _check_decodable(wanted, published)
        recover(self._session, [entry.relid for entry in wanted])
        groups = _by_relation(wanted, published)
        truncates = any(entry.action == TRUNCATE for entry in wanted)
        with session_threads(len(groups), max_parallel) as chosen, ExitStack() as stack:
            decoding = []
            for thread, group in zip(chosen, groups, strict=True):
                are_joined = (
                    joins is not None and not truncates and _may_join(group, published, joins)
                )
                decoded = self._relation_changes(published, group, thread, are_joined=are_joined)
                decoding.append((thread, partial(stack.enter_context, decoded)))
            changes = in_parallel(decoding, cancel_jobs)
            yield ChangeBatch(
                log.from_lsn,
                log.to_lsn,
                _transactions(wanted, published),
                tuple(item for item, _is_joined in changes),
                tuple(_truncations(wanted, published)),
                is_joined=any(is_joined for _item, is_joined in changes),
            )

    def _published(self, log: LogRange) -> tuple[list[LogEntry], dict[int, PublishedRelation]]:
        """Return the entries of a range, and the published relations of the tables that they
        change, by OID.
        """
        with self._session.read() as current:
            entries = entries_between(current, log.from_lsn, log.to_lsn)
            # Definitions are the same for all entries of the range.
            time = entries[0].commit_lsn if entries else log.to_lsn
            relids = {entry.relid for entry in entries}
            definitions = _definitions(current.as_of(time), log.publications, relids)
            left = relids - definitions.relations.keys()

            def find(then: Catalog, relids: Collection[int]) -> dict[int, PublishedRelation]:
                return _definitions(then, log.publications, relids).relations

            # Only the first transaction of a range can change definitions.
            former, until = formerly_published(current, entries, left, find)
            missing = set(log.publications) - definitions.publications
            # A subscription can be given a publication that was made after these changes
            missing -= names_begun_after(current, missing, time) if missing else frozenset()
        if missing and entries:
            raise UndefinedObject(f'publication "{min(missing)}" does not exist')
        if definitions.problems:
            raise DecodingFailure(definitions.problems[0])
        published = definitions.relations | former
        sent = [
            sent_entry(entry, published[entry.relid]) if entry.relid in published else entry
            for entry in entries
            if entry.relid not in former or entry.lsn <= until
        ]
        return sent, published

    @contextmanager
    def _relation_changes(
        self,
        published: dict[int, PublishedRelation],
        entries: Sequence[_Placed],
        thread: SessionThread,
        *,
        are_joined: bool,
    ) -> Iterator[tuple[RelationChanges, bool]]:
        """Yield the changes of one published relation, and whether some versions are joined.

        Args:
            are_joined: compared versions may be joined.
        """
        by_leaf = _by_leaf(entries)
        relations = {relid: published[relid].relation for relid in by_leaf}
        first = published[entries[0].entry.relid]
        has_others = any(map(_has_other_writers, relations.values()))
        remote = replace(
            remote_changes(first),
            has_other_writers=has_others,
            zone=self._session.value_format.zone,
        )
        sources: list[ChangeSource] = []
        sourced: list[Relation] = []
        retyped: set[str] = set()
        joined: tuple[int, ...] = ()
        for relid, leaf_entries in by_leaf.items():
            item = published[relid]
            feeds, has_joined = self._feeds_of(item, leaf_entries, are_joined=are_joined)
            if has_joined:
                joined = tuple(feed.position for feed in feeds)
            for piece, own in pieces_by_type(item, feeds):
                check_decodable(self._session, piece, [version.version for version in own])
                sources.append(change_source(piece, own))
                if not remote.replica_identity:
                    check_restored_columns(sources[-1], piece.published_as)
                sourced.append(piece.relation)
                retyped |= changed_types(relations[relid], piece.relation)
        if retyped:
            remote = with_texts(remote, retyped)
            sources = [text_source(source, first.published_as, retyped) for source in sources]
        with self._session.read() as current:
            check_readable(current, load_relations(current, by_leaf).values())
        check_names(self._session, by_leaf)
        count = sum(decoded_rows(placed.entry, relations) for placed in entries)
        with ExitStack() as stack:
            sources = [
                with_small_feeds(self._session, relation, source, stack)
                for relation, source in zip(sourced, sources, strict=True)
            ]
            rows = self._decoded(sources, remote, count, stack)
            positions = joined or tuple(dict.fromkeys(placed.position for placed in entries))
            yield RelationChanges(remote, rows, positions, thread), bool(joined)

    def _feeds_of(
        self, item: PublishedRelation, entries: Sequence[_Placed], *, are_joined: bool
    ) -> tuple[Sequence[FeedVersion], bool]:
        """Choose the sources of the changes of a leaf partition.

        Args:
            are_joined: versions may be joined.

        Returns:
            the feeds, and whether some versions are joined.
        """
        for filters in item.filters.values():
            check_filters(self._session, item.published_as, filters)
        place = self._session.engine().place_log
        try:
            versions = _feed_versions(entries)
            feeds = chosen_feeds(item.relation, versions, place, are_joined=are_joined)
        except ObjectNotInPrerequisiteState as error:
            raise DecodingFailure(error, item.published_as.relation_name) from error
        return feeds, len(feeds) < len(versions)

    def _decoded(
        self, sources: Sequence[ChangeSource], remote: RemoteRelation, count: int, stack: ExitStack
    ) -> Rows:
        """Decode the changes of a relation and keep them until `stack` closes.

        Args:
            count: estimated number of changes.
        """
        engine = self._session.engine()
        decoded = spark.jobs.decoded(engine, sources, sent_columns(remote), count, self._feeds)
        try:
            return Rows(stack.enter_context(decoded))
        except DataError as error:
            columns = [column for source in sources for column in source.source.columns]
            is_foreign = any(column.input_of is not None for column in columns)
            hint = partial(value_hint, published=remote.relation_name) if is_foreign else None
            raise DecodingFailure(error, hint=hint) from error
        except IntegrityError as error:  # rows written by other programs
            raise self._key_fault(error, remote) from error

    def _key_fault(self, error: IntegrityError, remote: RemoteRelation) -> DecodingFailure:
        """Return the error for rows without a key, or with the key of another row."""
        with self._session.read() as catalog:
            database = current_database(catalog)
        error.detail = f'{error.detail} The table is in database "{database}".'
        hint = partial(unique_key_hint, published=remote.relation_name)
        return DecodingFailure(error, hint=hint)


@dataclass(frozen=True, slots=True)
class _Definitions:
    """The existing publications among the requested ones, the relations that they publish, and
    errors for relations that cannot be published.
    """

    publications: frozenset[str]
    relations: dict[int, PublishedRelation]
    problems: tuple[PostgresError, ...]


def _definitions(
    catalog: Catalog, publications: Sequence[str], relids: Collection[int]
) -> _Definitions:
    """Return the definitions that the catalog has for changed tables, by the tables' own OIDs."""
    publication_set = PublicationSet.of_names(catalog, publications)
    found: dict[int, PublishedRelation] = {}
    problems: list[PostgresError] = []
    for oid, relation in load_relations(catalog, relids).items():
        try:
            published = publication_set.changes_of(relation)
        except FeatureNotSupported as error:  # the error stops only readers of this relation
            problems.append(error)
            continue
        if published is not None:
            found[oid] = published
    names = frozenset(publication.name for publication in publication_set.publications)
    return _Definitions(names, found, tuple(problems))


def _between_commits(definition_lsns: Sequence[int], commits: Sequence[int]) -> Iterator[int]:
    """Yield the LSN of the last change of definitions between each two commits of rows.  A commit
    of rows may also change definitions.
    """
    for before, after in pairwise(commits):
        between = [lsn for lsn in definition_lsns if before < lsn <= after]
        if between:
            yield between[-1]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A log entry with its position in a batch."""

    position: int
    entry: LogEntry


def _placed(entries: Sequence[LogEntry], published: dict[int, PublishedRelation]) -> list[_Placed]:
    found = numbered(entries, lambda entry: published[entry.relid].published_as.oid)
    return [_Placed(position, entry) for position, entry in found]


def _transactions(
    entries: Sequence[LogEntry], published: dict[int, PublishedRelation]
) -> tuple[RemoteTransaction, ...]:
    by_xid: dict[int, list[_Placed]] = defaultdict(list)
    for placed in _placed(entries, published):
        by_xid[placed.entry.xid].append(placed)
    return tuple(
        RemoteTransaction(
            xid,
            group[0].entry.commit_lsn,
            group[0].entry.commit_time,
            min(placed.position for placed in group),
            max(placed.position for placed in group),
            next((placed.entry.origin for placed in group if placed.entry.origin), None),
        )
        for xid, group in by_xid.items()
    )


def _truncations(
    entries: Sequence[LogEntry], published: dict[int, PublishedRelation]
) -> Iterator[Truncation]:
    """Yield the TRUNCATEs to send.  A TRUNCATE of a partition is sent only if the partition is
    published under its own name.
    """
    by_statement: dict[object, list[_Placed]] = defaultdict(list)
    for placed in _placed(entries, published):
        entry = placed.entry
        item = published[entry.relid]
        is_sent = Action.TRUNCATE in item.actions and not item.is_part
        if entry.action == TRUNCATE and is_sent:
            by_statement[entry.statement or entry.lsn].append(placed)
    for group in by_statement.values():
        detail = group[0].entry.detail
        yield Truncation(
            group[0].position,
            tuple(published[placed.entry.relid].relation.relation_name for placed in group),
            bool(detail.get("cascade")),
            bool(detail.get("restart_identity")),
        )


def _versions_to_read(entries: Sequence[LogEntry]) -> dict[int, list[int]]:
    """Return the versions whose changes must be decoded, by the table's OID."""
    found: dict[int, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.action == CHANGE and entry.version is not None:
            found[entry.relid].append(entry.version)
    return found


def _with_refused(
    log: LogRange,
    published: dict[int, PublishedRelation],
    has_target: Callable[[RemoteRelation], bool],
) -> LogRange:
    """Return the range extended by relations that have no table at the subscriber.  The subscriber
    must report them.
    """
    refused = {
        item.published_as.relation_name
        for item in published.values()
        if item.published_as.relation_name not in log.positions
        and not has_target(remote_relation(item.published_as, item.columns))
    }
    return replace(log, positions={**log.positions, **dict.fromkeys(refused, log.from_lsn)})


def _wanted_entries(
    log: LogRange, entries: Sequence[LogEntry], published: dict[int, PublishedRelation]
) -> list[LogEntry]:
    """Return the entries of a range that must be sent."""
    return [
        entry
        for entry in entries
        if (item := published.get(entry.relid)) is not None
        and log.wants(item.published_as.relation_name, entry.commit_lsn, entry.origin)
        and (item.filters or entry.action != CHANGE)
    ]


def _by_relation(
    wanted: Sequence[LogEntry], published: dict[int, PublishedRelation]
) -> list[list[_Placed]]:
    """Return the changes of rows, grouped by published relation."""
    groups: dict[int, list[_Placed]] = defaultdict(list)
    for placed in _placed(wanted, published):
        if placed.entry.action == CHANGE:
            groups[published[placed.entry.relid].published_as.oid].append(placed)
    return [group for _oid, group in sorted(groups.items())]


def _by_leaf(entries: Sequence[_Placed]) -> dict[int, list[_Placed]]:
    by_leaf: dict[int, list[_Placed]] = defaultdict(list)
    for placed in entries:
        by_leaf[placed.entry.relid].append(placed)
    return by_leaf


def _may_join(
    group: Sequence[_Placed],
    published: dict[int, PublishedRelation],
    joins: Callable[[RemoteRelation], bool],
) -> bool:
    """Return whether versions of a relation may be joined."""
    item = published[group[0].entry.relid]
    # Rows may move between leaves.
    has_one_leaf = len({placed.entry.relid for placed in group}) == 1
    return has_one_leaf and is_sent_whole(item) and joins(remote_changes(item))


def _check_decodable(wanted: Sequence[LogEntry], published: dict[int, PublishedRelation]) -> None:
    """Check that the logs of tables still contain the versions to decode.

    Raises:
        DecodingFailure: a table was replaced, or a version was removed from its log.
    """
    for entry in wanted:
        if entry.action == BREAK:
            item = published[entry.relid]
            error = replaced(item.relation, entry.detail)
            raise DecodingFailure(error, item.published_as.relation_name)
    for relid, versions in _versions_to_read(wanted).items():
        item = published[relid]
        _check_in_log(item.relation, versions, item.published_as.relation_name)


def _check_in_log(relation: Relation, versions: Sequence[int], name: RelationName) -> None:
    """Check that versions of a table can be decoded.

    Args:
        name: the name of the published table.

    Raises:
        DecodingFailure: a version was removed from the table's log.
    """
    assert relation.storage is not None
    there = set(log_versions(relation.storage.location))
    missing = [version for version in versions if version not in there]
    if missing:
        raise DecodingFailure(replaced(relation, {"cleaned": min(missing) - 1}), name)


def _has_other_writers(leaf: Relation) -> bool:
    """Return whether other programs write a table.  They do not enforce its key."""
    return leaf.storage is not None and (leaf.storage.is_adopted or leaf.storage.has_foreign)


def _feed_versions(entries: Sequence[_Placed]) -> tuple[FeedVersion, ...]:
    return tuple(
        feed_version(placed.entry, placed.position)
        for placed in entries
        if placed.entry.version is not None
    )
