"""Decode a whole database: turn the commit log and the change feeds of all tables into transactions
for an output plugin (logical.c, reorderbuffer.c).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import ceil

from replctl import spark
from replctl.catalog.pg_class import Column, Relation, load_relations
from replctl.catalog.pg_type import type_oid
from replctl.catalog.pg_wal import (
    BREAK,
    CHANGE,
    MESSAGE,
    TRUNCATE,
    Commit,
    LogEntry,
    commits_between,
    messages_between,
    numbered,
)
from replctl.catalog.relation_kind import RelKind, RelPersistence
from replctl.catalog.transaction import Catalog
from replctl.errors import UndefinedObject
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.lake.catalog_name import check_names
from replctl.lake.change_source import change_source, feed_version, sent_entry
from replctl.lake.column_fault import check_listable
from replctl.lake.feed_choice import chosen_feeds
from replctl.lake.file_access import check_readable
from replctl.lake.formerly_published import formerly_published
from replctl.lake.pending import decoded_rows
from replctl.lake.recovery import recover
from replctl.lake.small_feed import with_small_feeds
from replctl.lake.table_read import relation_at
from replctl.lake.version_chain import replaced
from replctl.record import dataclass
from replctl.replication.output_plugin import (
    Change,
    DecodedColumn,
    DecodedRelation,
    DecodedTransaction,
    Message,
    RowChange,
    TruncateChange,
)
from replctl.replication.published_relation import PublicationSet, PublishedRelation
from replctl.replication.replica_identity import identity_columns
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import SentColumn

#: Maximum number of transactions that are read together.
_COMMITS_AT_ONCE = 100
#: Usual minimum of result rows per transaction: one each for its begin, a change and its end.
_ROWS_OF_COMMIT = 3


def decode(
    session: Session,
    slot_name: str,
    from_lsn: int,
    to_lsn: int,
    publications: Sequence[str] | None = None,
    wanted: int = 0,
) -> Iterator[DecodedTransaction | Message]:
    """Yield the transactions committed in (from_lsn, to_lsn], in order.  Also yield the messages
    outside of transactions, each at its position.

    Args:
        slot_name: the slot that is read, for hints.
        publications: decode only what these publications publish; None: decode everything.
        wanted: the number of rows after which decoding may stop, so that a reader of few rows does
            not wait.

    Raises:
        UndefinedObject: a publication did not exist when a table was changed (42704).
        DataError: several rows of a table have the same primary key.
        ObjectNotInPrerequisiteState: a table was replaced (55000).
        UndefinedColumn, DatatypeMismatch: a column was dropped or has another type (42703, 42804).
    """
    with session.read() as catalog:
        commits = commits_between(catalog, from_lsn, to_lsn)
        messages = [
            Message(lsn, prefix, content, is_transactional=False, origin=origin)
            for lsn, prefix, content, origin in messages_between(catalog, from_lsn, to_lsn)
        ]
    decoded = [commit for commit in commits if commit.entries or commit.changes_catalog]
    start, size = 0, min(ceil(wanted / _ROWS_OF_COMMIT) or _COMMITS_AT_ONCE, _COMMITS_AT_ONCE)
    while start < len(decoded):
        batch = _Batch(session, slot_name, decoded[start : start + size], publications)
        start, size = start + size, min(2 * size, _COMMITS_AT_ONCE)
        for transaction in batch.transactions():
            while messages and messages[0].lsn < transaction.commit_lsn:
                yield messages.pop(0)
            yield transaction
    yield from messages


@dataclass(frozen=True, slots=True)
class _Table:
    """A relation under one definition, with its description for the plugin."""

    published: PublishedRelation
    decoded: DecodedRelation


class _Batch:
    """Some transactions, and the definitions at each commit of the tables that they change."""

    def __init__(
        self,
        session: Session,
        slot_name: str,
        commits: Sequence[Commit],
        publications: Sequence[str] | None,
    ) -> None:
        self._session = session
        self._slot_name = slot_name
        self._publications = publications
        self._commits = commits
        self._tables: list[_Table] = []
        self._places: dict[int, int] = {}  # LSN of an entry -> index in _tables
        with session.read() as catalog:
            self._load(catalog)
            oids = {table.published.relation.oid for table in self._tables}
            check_readable(catalog, load_relations(catalog, oids).values())
        check_names(session, oids)

    def transactions(self) -> Iterator[DecodedTransaction]:
        """Yield the transactions with their changes, except internal transactions."""
        rows = self._row_changes()
        for commit in self._commits:
            if commit.is_internal:
                continue
            yield DecodedTransaction(
                commit.xid,
                commit.commit_lsn,
                commit.commit_time,
                commit.origin,
                commit.origin_lsn,
                tuple(self._changes(commit, rows)),
            )

    def _load(self, catalog: Catalog) -> None:
        """Load the tables of all entries.  Definitions are read again only if they have changed."""
        first, last = self._commits[0].commit_lsn, self._commits[-1].commit_lsn
        changed = set(catalog.changes_between(first, last))
        known: dict[int, PublishedRelation] = {}
        places: dict[tuple[int, tuple[Column, ...]], int] = {}
        for commit in self._commits:
            if commit.commit_lsn in changed:
                known, places = {}, {}
            entries = [entry for entry in commit.entries if entry.action != MESSAGE]
            then = catalog.as_of(commit.commit_lsn)
            relids = {entry.relid for entry in entries}
            known |= self._published_of(then, relids.difference(known))
            find = partial(self._published_of, must_exist=False)
            former, until = formerly_published(catalog, entries, relids.difference(known), find)
            before = catalog.as_of(commit.commit_lsn - 1)
            for entry in entries:
                if entry.relid in known:
                    self._place(entry, known[entry.relid], then, places)
                elif entry.relid in former and entry.lsn <= until:
                    self._place(entry, former[entry.relid], before, places)
        self._commits = [
            replace(commit, entries=tuple(map(self._sent, commit.entries)))
            for commit in self._commits
        ]

    def _place(
        self,
        entry: LogEntry,
        published: PublishedRelation,
        then: Catalog,
        places: dict[tuple[int, tuple[Column, ...]], int],
    ) -> None:
        """Note the table of an entry.  `places` has the tables that are already known."""
        table = _as_changed(published, entry)
        place = (entry.relid, table.relation.columns)
        if place not in places:
            places[place] = len(self._tables)
            decoded = _decoded_relation(self._session.environment(then), table)
            self._tables.append(_Table(table, decoded))
        self._places[entry.lsn] = places[place]

    def _published_of(
        self, then: Catalog, relids: Collection[int], *, must_exist: bool = True
    ) -> dict[int, PublishedRelation]:
        """Return the published relations among some relations at a time, by OID.

        Args:
            must_exist: all publications must exist at this time.
        """
        found = {
            oid: self._published(then, relation, must_exist=must_exist)
            for oid, relation in load_relations(then, relids).items()
        }
        return {oid: item for oid, item in found.items() if item is not None}

    def _published(
        self, then: Catalog, relation: Relation, *, must_exist: bool
    ) -> PublishedRelation | None:
        if self._publications is None:
            if (
                relation.kind == RelKind.MATERIALIZED_VIEW
                or relation.persistence != RelPersistence.PERMANENT
            ):
                return None  # not in PostgreSQL's WAL, or ignored there (REFRESH fills a new heap)
            attnums = tuple(column.attnum for column in relation.columns)
            no_filters: dict[Action, tuple[nodes.Expr, ...]] = {
                action: () for action in Action if action is not Action.TRUNCATE
            }
            return PublishedRelation(relation, relation, frozenset(Action), no_filters, attnums)
        publication_set = PublicationSet.of_names(then, self._publications)
        found = {publication.name for publication in publication_set.publications}
        for name in self._publications:
            if must_exist and name not in found:
                raise UndefinedObject(f'publication "{name}" does not exist')
        return publication_set.changes_of(relation)

    def _table(self, entry: LogEntry) -> _Table | None:
        """Return the table of an entry; None if the table is not published."""
        place = self._places.get(entry.lsn)
        return None if place is None else self._tables[place]

    def _sent(self, entry: LogEntry) -> LogEntry:
        """Return an entry in the form in which it is sent."""
        table = self._table(entry)
        return entry if table is None else sent_entry(entry, table.published)

    def _changes(self, commit: Commit, rows: dict[int, list[RowChange]]) -> Iterator[Change]:
        groups: defaultdict[int, list[LogEntry]] = defaultdict(list)
        for position, entry in numbered(commit.entries):
            groups[position].append(entry)
        for entries in groups.values():
            first = entries[0]
            if first.action == CHANGE:
                changes = [change for entry in entries for change in rows[entry.lsn]]
                # A row that moves to another partition is deleted first
                is_moved = len(entries) > 1
                yield from sorted(changes, key=lambda c: is_moved and c.action != Action.DELETE)
            elif first.action == TRUNCATE:
                relations = tuple(self._truncated(entries))
                if relations:
                    yield TruncateChange(
                        first.lsn,
                        relations,
                        bool(first.detail.get("cascade")),
                        bool(first.detail.get("restart_identity")),
                    )
            else:
                prefix, content = str(first.detail["prefix"]), str(first.detail["content"])
                yield Message(first.lsn, prefix, bytes.fromhex(content), is_transactional=True)

    def _truncated(self, entries: Sequence[LogEntry]) -> Iterator[DecodedRelation]:
        """Yield the tables for which a TRUNCATE is sent.  A TRUNCATE of a partition is sent only if
        the partition is published under its own name.
        """
        for table in map(self._table, entries):
            if table is None or Action.TRUNCATE not in table.published.actions:
                continue
            if not table.published.is_part:
                yield table.decoded

    def _row_changes(self) -> dict[int, list[RowChange]]:
        """Return the changed rows of each entry, by its LSN.  Run one query per table and
        definition.
        """
        groups: dict[int, list[LogEntry]] = defaultdict(list)
        for commit in self._commits:
            for entry in commit.entries:
                place = self._places.get(entry.lsn)
                if place is None:
                    continue
                if entry.action == BREAK:
                    relation = self._tables[place].published.relation
                    raise replaced(relation, entry.detail)
                if entry.action == CHANGE:
                    groups[place].append(entry)
        oids = {self._tables[place].published.relation.oid for place in groups}
        recover(self._session, sorted(oids))
        result: dict[int, list[RowChange]] = defaultdict(list)
        for place, entries in groups.items():
            for change in self._rows_of(self._tables[place], entries):
                result[change.lsn].append(change)
        return result

    def _rows_of(self, table: _Table, entries: Sequence[LogEntry]) -> Iterator[RowChange]:
        versions = [feed_version(entry, entry.lsn) for entry in entries]
        relation = table.published.relation
        numbers = [version.version for version in versions]
        count = sum(decoded_rows(entry, {relation.oid: relation}) for entry in entries)
        check_listable(self._session, table.published, numbers, self._slot_name)
        place = self._session.engine().place_log
        source = change_source(table.published, chosen_feeds(relation, versions, place))
        sent = [SentColumn(c.name, c.type, c.typmod) for c in table.decoded.columns]
        with ExitStack() as stack:
            source = with_small_feeds(self._session, relation, source, stack)
            rows = spark.jobs.listed_changes(self._session.engine(), source, sent, count)
        for lsn, letter, *values in rows:
            assert letter is not None
            action = Action(letter)
            old, new = tuple(values[: len(sent)]), tuple(values[len(sent) :])
            yield RowChange(
                int(lsn or 0),
                table.decoded,
                action,
                None if action is Action.INSERT else old,
                None if action is Action.DELETE else new,
            )


def _as_changed(published: PublishedRelation, entry: LogEntry) -> PublishedRelation:
    """Return a table with the column types that were valid when an entry's rows changed.  The same
    transaction may have changed the types later.
    """
    if entry.version is None:
        return published
    relation = relation_at(published.relation, entry.version)
    if relation is published.relation:
        return published
    is_own = published.published_as.oid == relation.oid
    return replace(
        published,
        relation=relation,
        published_as=relation if is_own else published.published_as,
    )


def _decoded_relation(environment: Environment, published: PublishedRelation) -> DecodedRelation:
    relation = published.published_as
    listed = [column for column in relation.columns if column.attnum in published.columns]
    columns = tuple(
        DecodedColumn(
            column.name,
            column.type,
            environment.format_type(column.declared_type),
            type_oid(column.declared_type),
            column.typmod,
            bool(column.domain or column.user_type),
        )
        for column in listed
    )
    identity = identity_columns(relation)
    places = None
    if identity is not None:
        places = frozenset(i for i, column in enumerate(listed) if column.attnum in identity)
    return DecodedRelation(
        relation.oid,
        relation.schema,
        relation.name,
        columns,
        relation.replica_identity,
        places,
    )
