"""Batches of changes, decoded from a database's log."""

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
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.pg_wal import BREAK, CHANGE, TRUNCATE, LogEntry, entries_between
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    DataError,
    FeatureNotSupported,
    IntegrityError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedObject,
)
from replctl.lake.change_feed import chosen_feeds
from replctl.lake.change_source import (
    change_source,
    changed_types,
    feed_version,
    pieces_by_type,
    text_source,
    with_texts,
)
from replctl.lake.column_fault import check_decodable
from replctl.lake.delta_log import log_versions
from replctl.lake.file_access import check_readable
from replctl.lake.pending import batch_ends, decoded_rows, pending_changes
from replctl.lake.recovery import recover
from replctl.lake.remote_relation import (
    check_filters,
    relation_name,
    remote_changes,
    remote_relation,
    sent_columns,
)
from replctl.lake.version_chain import replaced
from replctl.lake.version_range import is_sent_whole
from replctl.lane import Lane, lanes, side_by_side
from replctl.record import dataclass
from replctl.replication.conflict import DecodingFailure
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
from replctl.replication.refresh_hint import unique_key_hint
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import FeedVersion, SharedFeeds, cancel_jobs

#: So many changes a commit counts for whose writer has not counted them.
_MANY = 1_000_000


class BatchDecoding:
    """The changes that a session's database publishes (replication.node.Decoding).

    Args:
        feeds: what others read of its tables, too.
    """

    def __init__(self, session: Session, feeds: SharedFeeds | None = None) -> None:
        self._session = session
        self._feeds = feeds

    def definition_changes(
        self, publications: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn) at which what these publications publish becomes
        another."""
        with self._session.read() as catalog:
            entries = entries_between(catalog, from_lsn, to_lsn)
            commits = [e.commit_lsn for e in entries]
            if not commits:
                return []
            result = []
            relids = {e.relid for e in entries}
            previous = _definitions(catalog.as_of(commits[0]), publications, relids)
            for lsn in _between_commits(catalog.changes_between(from_lsn, to_lsn), commits):
                current = _definitions(catalog.as_of(lsn), publications, relids)
                if current != previous:
                    result.append(lsn)
                previous = current
        return result

    def commits(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs of the commits in (from_lsn, to_lsn] that change rows, in order."""
        with self._session.read() as catalog:
            entries = entries_between(catalog, from_lsn, to_lsn)
        return sorted({entry.commit_lsn for entry in entries})

    def batch_ends(
        self,
        publications: Sequence[str],
        from_lsn: int,
        to_lsn: int,
        starts: dict[tuple[str, str], int],
        origin: str,
        max_changes: int,
    ) -> list[int]:
        """Return the LSNs at which to end batches of so many changes, by the statistics of Delta's
        log."""
        return batch_ends(
            self._session, publications, from_lsn, to_lsn, starts, origin, max_changes
        )

    def pending(
        self,
        publications: Sequence[str],
        starts: dict[tuple[str, str], int],
        origin: str,
        to_lsn: int,
    ) -> dict[tuple[str, str], PendingChanges]:
        """Return what the log has up to an LSN of relations that are published; nothing is
        decoded."""
        return pending_changes(self._session, publications, starts, origin, to_lsn)

    @contextmanager
    def changes(
        self,
        publications: Sequence[str],
        from_lsn: int,
        to_lsn: int,
        starts: dict[tuple[str, str], int],
        origin: str,
        opens: Callable[[RemoteRelation], bool],
        max_parallel: int,
        joins: Callable[[RemoteRelation], bool] | None = None,
    ) -> Iterator[ChangeBatch]:
        """Yield the changes committed in (from_lsn, to_lsn], under the definitions in force there.

        Raises:
            UndefinedObject: there is no such publication (42704); one that was made later did not
                publish anything then.
            DecodingFailure: a row filter fails for a row, or the publications list different
                columns of a table that changes.
        """
        with self._session.read() as current:
            entries = entries_between(current, from_lsn, to_lsn)
            time = entries[0].commit_lsn if entries else to_lsn  # they are the same for all entries
            definitions = _definitions(
                current.as_of(time), publications, {entry.relid for entry in entries}
            )
            known = {publication.name for publication in list_publications(current)}
        missing = set(publications) - definitions.publications - known
        if missing and entries:
            raise UndefinedObject(f'publication "{min(missing)}" does not exist')
        if definitions.problems:
            raise DecodingFailure(definitions.problems[0])
        published = definitions.relations
        refused = {
            relation_name(item.published_as)
            for item in published.values()
            if relation_name(item.published_as) not in starts
            and not opens(remote_relation(item.published_as, item.columns))
        }
        starts = {**starts, **dict.fromkeys(refused, from_lsn)}
        wanted = [
            entry
            for entry in entries
            if (item := published.get(entry.relid)) is not None
            and entry.commit_lsn > starts.get(relation_name(item.published_as), to_lsn)
            and not (origin.lower() == "none" and entry.origin is not None)
            and (item.filters or entry.action != CHANGE)
        ]
        for entry in wanted:
            if entry.action == BREAK:
                item = published[entry.relid]
                error = replaced(item.relation, entry.detail.get("cleaned"))
                raise DecodingFailure(error, relation_name(item.published_as))
        for relid, versions in _versions_to_read(wanted).items():
            item = published[relid]
            _check_in_log(item.relation, versions, relation_name(item.published_as))
        recover(self._session, [entry.relid for entry in wanted])
        groups: dict[int, list[_Placed]] = defaultdict(list)
        for placed in _placed(wanted):
            if placed.entry.action == CHANGE:
                groups[published[placed.entry.relid].published_as.oid].append(placed)
        truncates = any(entry.action == TRUNCATE for entry in wanted)
        with lanes(len(groups), max_parallel) as chosen, ExitStack() as stack:
            decoding = []
            for lane, (_oid, group) in zip(chosen, sorted(groups.items()), strict=True):
                item = published[group[0].entry.relid]
                has_one_leaf = len({placed.entry.relid for placed in group}) == 1
                are_joined = (
                    joins is not None
                    and not truncates
                    and has_one_leaf  # rows may move between leaves
                    and is_sent_whole(item)
                    and joins(remote_changes(item))
                )
                decoded = self._relation_changes(published, group, lane, are_joined=are_joined)
                decoding.append((lane, partial(stack.enter_context, decoded)))
            changes = side_by_side(decoding, cancel_jobs)
            yield ChangeBatch(
                from_lsn,
                to_lsn,
                _transactions(wanted),
                tuple(item for item, _is_joined in changes),
                tuple(_truncations(wanted, published)),
                is_joined=any(is_joined for _item, is_joined in changes),
            )

    @contextmanager
    def _relation_changes(
        self,
        published: dict[int, PublishedRelation],
        entries: Sequence[_Placed],
        lane: Lane,
        *,
        are_joined: bool,
    ) -> Iterator[tuple[RelationChanges, bool]]:
        """Decode the changes of one published relation, which may lie in several leaves.

        Args:
            are_joined: versions may be, as far as they are compared; the result says whether some
                are.
        """
        by_leaf: dict[int, list[_Placed]] = defaultdict(list)
        for placed in entries:
            by_leaf[placed.entry.relid].append(placed)
        first = published[entries[0].entry.relid]
        remote = remote_changes(first)
        remote = replace(
            remote,
            has_other_writers=any(
                _has_other_writers(published[relid].relation) for relid in by_leaf
            ),
        )
        sources = []
        retyped: set[str] = set()
        joined: tuple[int, ...] = ()
        for relid, leaf_entries in by_leaf.items():
            item = published[relid]
            for filters in item.filters.values():
                check_filters(self._session, item.published_as, filters)
            place = self._session.engine().place_log
            try:
                versions = _feed_versions(leaf_entries)
                feeds = chosen_feeds(item.relation, versions, place, are_joined=are_joined)
            except ObjectNotInPrerequisiteState as error:
                raise DecodingFailure(error, relation_name(item.published_as)) from error
            if len(feeds) < len(versions):
                joined = tuple(feed.position for feed in feeds)
            for piece, own in pieces_by_type(item, feeds):
                check_decodable(self._session, piece, [version.version for version in own])
                sources.append(change_source(piece, own))
                retyped |= changed_types(item.relation, piece.relation)
        if retyped:
            remote = with_texts(remote, retyped)
            sources = [text_source(source, first.published_as, retyped) for source in sources]
        with self._session.read() as current:
            check_readable(current, load_relations(current, by_leaf).values())
        relations = {relid: published[relid].relation for relid in by_leaf}
        count = sum(decoded_rows(placed.entry, relations, _MANY) for placed in entries)
        with ExitStack() as stack:
            try:
                rows = stack.enter_context(
                    spark.jobs.decoded(
                        self._session.engine(), sources, sent_columns(remote), count, self._feeds
                    )
                )
            except DataError as error:
                raise DecodingFailure(error) from error
            except IntegrityError as error:  # rows that others have written
                raise self._key_fault(error, remote) from error
            positions = joined or tuple(placed.position for placed in entries)
            yield RelationChanges(remote, Rows(rows), positions, lane), bool(joined)

    def _key_fault(self, error: IntegrityError, remote: RemoteRelation) -> DecodingFailure:
        """Return the failure of changes of rows that have no key, or one that others have, too."""
        with self._session.read() as catalog:
            database = current_database(catalog)
        error.detail = f'{error.detail} The table is in database "{database}".'
        hint = partial(unique_key_hint, schema=remote.schema, table=remote.name)
        return DecodingFailure(error, hint=hint)


@dataclass(frozen=True, slots=True)
class _Definitions:
    """The publications that exist of those asked for, and what they send of which table; the faults
    of others."""

    publications: frozenset[str]
    relations: dict[int, PublishedRelation]
    problems: tuple[PostgresError, ...]


def _definitions(
    catalog: Catalog, publications: Sequence[str], relids: Collection[int]
) -> _Definitions:
    """Return the definitions in force of tables that change; they are found by their own OIDs."""
    publication_set = PublicationSet.of_names(catalog, publications)
    found: dict[int, PublishedRelation] = {}
    problems: list[PostgresError] = []
    for oid, relation in load_relations(catalog, relids).items():
        try:
            published = publication_set.changes_of(relation)
        except FeatureNotSupported as error:
            problems.append(error)
            continue
        if published is not None:
            found[oid] = published
    names = frozenset(publication.name for publication in publication_set.publications)
    return _Definitions(names, found, tuple(problems))


def _between_commits(definition_lsns: Sequence[int], commits: Sequence[int]) -> Iterator[int]:
    """Of the LSNs at which definitions change: the last one behind each commit of rows, up to the
    next, which may change definitions itself."""
    for before, after in pairwise(commits):
        between = [lsn for lsn in definition_lsns if before < lsn <= after]
        if between:
            yield between[-1]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A log entry with its position in a batch."""

    position: int
    entry: LogEntry


def _placed(entries: Sequence[LogEntry]) -> list[_Placed]:
    """Entries in the order of commits, numbered from 1."""
    return [_Placed(position, entry) for position, entry in enumerate(entries, start=1)]


def _transactions(entries: Sequence[LogEntry]) -> tuple[RemoteTransaction, ...]:
    by_xid: dict[int, list[_Placed]] = defaultdict(list)
    for placed in _placed(entries):
        by_xid[placed.entry.xid].append(placed)
    return tuple(
        RemoteTransaction(
            xid,
            group[0].entry.commit_lsn,
            group[0].entry.commit_time,
            group[0].position,
            group[-1].position,
            group[0].entry.origin,
        )
        for xid, group in by_xid.items()
    )


def _truncations(
    entries: Sequence[LogEntry], published: dict[int, PublishedRelation]
) -> Iterator[Truncation]:
    """TRUNCATEs that are sent: of a partition only if it is published as itself."""
    by_statement: dict[int, list[_Placed]] = defaultdict(list)
    for placed in _placed(entries):
        entry = placed.entry
        item = published[entry.relid]
        is_sent = Action.TRUNCATE in item.actions and item.published_as.oid == entry.relid
        if entry.action == TRUNCATE and is_sent:
            by_statement[entry.statement_lsn].append(placed)
    for group in by_statement.values():
        detail = group[0].entry.detail
        yield Truncation(
            group[0].position,
            tuple(relation_name(published[placed.entry.relid].relation) for placed in group),
            bool(detail.get("cascade")),
            bool(detail.get("restart_identity")),
        )


def _versions_to_read(entries: Sequence[LogEntry]) -> dict[int, list[int]]:
    """Return the versions of each table, by OID, whose changes are to be decoded."""
    found: dict[int, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.action == CHANGE and entry.version is not None:
            found[entry.relid].append(entry.version)
    return found


def _check_in_log(relation: Relation, versions: Sequence[int], name: tuple[str, str]) -> None:
    """Check that versions of a table can be decoded.

    Args:
        name: of the published table.

    Raises:
        DecodingFailure: one was cleaned out of the table's log.
    """
    assert relation.storage is not None
    there = set(log_versions(relation.storage.location))
    missing = [version for version in versions if version not in there]
    if missing:
        raise DecodingFailure(replaced(relation, min(missing) - 1), name)


def _has_other_writers(leaf: Relation) -> bool:
    """Return whether programs write a table that do not keep its key."""
    return leaf.storage is not None and (leaf.storage.is_adopted or leaf.storage.has_foreign)


def _feed_versions(entries: Sequence[_Placed]) -> tuple[FeedVersion, ...]:
    return tuple(
        feed_version(placed.entry, placed.position)
        for placed in entries
        if placed.entry.version is not None
    )
