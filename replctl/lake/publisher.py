"""A database of a cluster as a publisher: its slots, snapshots of its tables, and its decoded
changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, pairwise

from replctl import spark
from replctl.catalog.commit_digest import LogPosition, digest_at, is_in_log
from replctl.catalog.pg_class import (
    Relation,
    find_relation_oid,
    leaf_partitions,
    load_relations,
    relation_names,
)
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_inherits import ancestors_of, descendants_of
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_policy import is_row_security_active, policies_of
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.pg_replication_slots import (
    advance_slot,
    alter_slot,
    check_database,
    delete_slot,
    find_slot,
    get_slot,
    note_publications,
)
from replctl.catalog.pg_subscription import subscriptions_of_relation
from replctl.catalog.pg_wal import (
    BREAK,
    CHANGE,
    TRUNCATE,
    LogEntry,
    broken_since,
    entries_between,
    last_committed_version,
)
from replctl.catalog.ruleutils import get_expr
from replctl.catalog.session_value import session_value
from replctl.catalog.slot_limits import check_decoding_requirements, create_slot_at_end
from replctl.catalog.slotsync import (
    check_alterable,
    check_creatable,
    check_droppable,
    check_not_synced,
)
from replctl.catalog.standby_slots import sendable_lsn
from replctl.catalog.transaction import Catalog, insert_lsn
from replctl.catalog.wal_availability import check_not_invalidated
from replctl.catalog.worker import (
    Walsender,
    check_inactive,
    claim_walsender,
    dismiss_walsender,
    release_walsender,
    report_walsender,
)
from replctl.errors import (
    ConnectionFailure,
    DataError,
    FeatureNotSupported,
    InsufficientPrivilege,
    IntegrityError,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedObject,
    UndefinedTable,
)
from replctl.expr import nodes, pg_node_tree
from replctl.lake.change_feed import chosen_feeds
from replctl.lake.column_fault import check_copyable, check_decodable
from replctl.lake.delta_files import table_size
from replctl.lake.delta_log import log_versions
from replctl.lake.file_access import check_readable
from replctl.lake.past_snapshot import past_snapshot
from replctl.lake.pending import batch_ends, decoded_rows, pending_changes
from replctl.lake.retention import check_slot, slot_retention
from replctl.lake.table_read import enter_foreign_versions, numbered_as, relation_at
from replctl.lake.table_write import recover
from replctl.lake.version_chain import replaced
from replctl.lake.version_range import is_sent_whole
from replctl.lane import Lane, lanes, side_by_side
from replctl.record import dataclass
from replctl.replication.conflict import DecodingFailure
from replctl.replication.node import (
    ChangeBatch,
    PendingChanges,
    RelationChanges,
    RemoteColumn,
    RemoteRelation,
    RemoteTransaction,
    Rows,
    Snapshot,
    TableRetention,
    Truncation,
)
from replctl.replication.published_relation import (
    PublicationSet,
    PublishedRelation,
    TableToCopy,
    applied_filters,
)
from replctl.replication.refresh_hint import unique_key_hint
from replctl.replication.replica_identity import identity_columns
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import (
    ChangeSource,
    CopySource,
    FeedVersion,
    SentColumn,
    SharedFeeds,
    cancel_jobs,
    copied_sql,
    untranslatable,
)
from replctl.types.guc import clean_ascii

#: So many changes a commit counts for whose writer has not counted them.
_MANY = 1_000_000


class LakePublisher:
    """The publisher that a session's database is (see replication.node.Publisher).

    Args:
        feeds: what others read of its tables, too.
    """

    def __init__(self, session: Session, feeds: SharedFeeds | None = None) -> None:
        self._session = session
        self._feeds = feeds

    # -- the log and slots

    def current_lsn(self, needed: Collection[tuple[str, str]] = ()) -> int:
        """Return the end of the log; what foreign writers have committed is entered first, without
        Spark.

        Raises:
            PostgresError: one of the tables that are needed cannot be read.
        """
        broken = enter_foreign_versions(self._session)
        if broken and needed:
            with self._session.read() as catalog:
                families = {oid: {oid, *ancestors_of(catalog, oid)} for oid in broken}
                names = relation_names(catalog, set().union(*families.values()))
            for oid, error in broken.items():
                if any(names.get(member) in needed for member in families[oid]):
                    raise error
        with self._session.cluster.begin(write=False) as connection:
            return insert_lsn(connection)

    def digest_at(self, lsn: int) -> str | None:
        """Return the digest of the newest commit at or before an LSN (catalog/commit_digest.py)."""
        with self._session.cluster.begin(write=False) as connection:
            return digest_at(connection, lsn)

    def has_position(self, position: LogPosition) -> bool:
        """Return whether a position that a subscription remembers is one of the log."""
        with self._session.cluster.begin(write=False) as connection:
            return is_in_log(connection, position)

    def applied_lsn(self, slot_name: str) -> int | None:
        """Return how far the subscription of a slot has said to be; 0, if it has not; None, if
        there is no slot.

        Raises:
            SlotInvalidated: it was invalidated (55000).
        """
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
        if slot is None:
            return None
        check_not_invalidated(slot, has_subscription=True)
        return slot.applied_lsn

    def sendable_lsn(self, slot_name: str, needed: Collection[tuple[str, str]] = ()) -> int:
        """Return the end of the log, or by a failover slot what the standbys that
        synchronized_standby_slots names have of it; a WARNING, if one does not follow."""
        end = self.current_lsn(needed)
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
            if slot is None or not slot.failover or read_control(connection).is_in_recovery:
                return end
            names = self._session.setting("synchronized_standby_slots")
            position, waiting = sendable_lsn(self._session.cluster, connection, names, end)
        if waiting is not None:
            self._session.notice(
                waiting.message, severity="WARNING", detail=waiting.detail, hint=waiting.hint
            )
        return position

    def create_slot(
        self, name: str, *, two_phase: bool, failover: bool, publications: Sequence[str]
    ) -> int:
        """Make a slot at the end of the log, for who subscribes to some publications, in the place
        of one that was invalidated.

        Raises:
            DuplicateObject: there is a slot of that name (42710).
            FeatureNotSupported: a standby is to make a failover slot.
            ObjectNotInPrerequisiteState, ConfigurationLimitExceeded: wal_level or
                max_replication_slots is too low for one more.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            check_creatable(connection, failover=failover)
            former = find_slot(connection, name)
            if former is not None and former.invalidation_reason is not None:
                delete_slot(connection, name)
            slot = create_slot_at_end(
                connection,
                self._session.setting,
                name,
                "pgoutput",
                self._session.database_oid,
                two_phase=two_phase,
                failover=failover,
            )
            note_publications(connection, name, publications)
        return slot.confirmed_flush_lsn

    def alter_slot(
        self, name: str, *, failover: bool | None = None, two_phase: bool | None = None
    ) -> None:
        """Change properties of a slot; None leaves one as it is.

        Raises:
            UndefinedObject: there is none of that name (42704).
            ObjectNotInPrerequisiteState, FeatureNotSupported: it is a standby's.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            check_alterable(connection, get_slot(connection, name), failover=bool(failover))
            alter_slot(connection, name, failover=failover, two_phase=two_phase)

    def drop_slot(self, name: str) -> None:
        """Drop a slot.

        Raises:
            UndefinedObject: there is none of that name (42704).
            ObjectInUse: a process reads it, or stands by (55006).
            ObjectNotInPrerequisiteState: a standby has it from its primary.
        """
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            check_inactive(self._session.cluster, connection, name)
            check_droppable(connection, get_slot(connection, name))
            delete_slot(connection, name)

    def start_replication(
        self, slot_name: str, client: str, application_name: str, publications: Sequence[str]
    ) -> None:
        """Hold a slot, for the subscription that `client` names, to some publications.

        Raises:
            ObjectInUse: another process does (55006).
            TooManyConnections: max_wal_senders others hold slots (53300).
        """
        role = self._session.role_oid
        name = clean_ascii(application_name)
        sender = Walsender(slot_name, client, name, role)
        maximum = int(self._session.setting("max_wal_senders"))
        claim_walsender(self._session.cluster, sender, maximum=maximum)
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            note_publications(connection, slot_name, publications)

    def report_end(self, slot_name: str) -> None:
        """The subscription that holds a slot is at the end of the log."""
        report_walsender(self._session.cluster, slot_name)

    def end_replication(self, slot_name: str, *, stays: bool) -> None:
        """Let go of a slot; who stays is still seen at it, and gives way to others."""
        release_walsender(self._session.cluster, slot_name, stays=stays)

    def dismiss(self, slot_name: str, client: str) -> None:
        """Nobody reads a slot for the subscription that `client` names any more."""
        dismiss_walsender(self._session.cluster, slot_name, client)

    def slot_position(self, name: str) -> int:
        """Return the LSN that a slot has confirmed.

        Raises:
            UndefinedObject: there is no such slot (42704).
            ObjectInUse: it belongs to another database.
            ObjectNotInPrerequisiteState: wal_level is too low, the slot was invalidated, or a
                standby has it from its primary.
        """
        check_decoding_requirements(self._session.setting)
        with self._session.cluster.begin(write=False) as connection:
            slot = get_slot(connection, name)
            check_database(slot, self._session.database_oid)
            check_not_synced(connection, slot)
        check_not_invalidated(check_slot(self._session, slot), has_subscription=True)
        return slot.confirmed_flush_lsn

    def retention(self, slot_name: str) -> list[TableRetention]:
        """Return what the owners of adopted tables do to what a slot needs, as far as the log has
        it."""
        with self._session.cluster.begin(write=False) as connection:
            slot = find_slot(connection, slot_name)
        return [] if slot is None else slot_retention(self._session, slot)

    def advance_slot(self, name: str, lsn: int) -> None:
        """Confirm changes up to `lsn`."""
        with self._session.cluster.begin(write=True, in_recovery=True) as connection:
            advance_slot(connection, name, lsn, is_applied=True)

    # -- what is published

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Return those of the publications that do not exist, in the order of `names`."""
        with self._session.read() as catalog:
            existing = {publication.name for publication in list_publications(catalog)}
        return [name for name in names if name not in existing]

    def publications_from_elsewhere(
        self, names: Sequence[str], known: Collection[tuple[str, str]]
    ) -> list[str]:
        """Return those of the publications, by name, with tables that subscriptions write into, or
        parts of which they do, or of which they are parts.

        Args:
            known: tables that do not matter.
        """
        with self._session.read() as catalog:
            return sorted(
                name
                for name in names
                if any(
                    _name(table.relation) not in known and _is_written(catalog, table.relation)
                    for table in PublicationSet.of_names(catalog, [name]).tables_to_copy()
                )
            )

    def published_relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """Return the relations of the publications.

        Raises:
            FeatureNotSupported: the publications list different columns of a table, or a row filter
                cannot be evaluated exactly.
        """
        with self._session.read() as catalog:
            tables = PublicationSet.of_names(catalog, names).tables_to_copy()
        for table in tables:
            self._check_filters(table.relation, table.filters)
        return [_remote_table(table) for table in tables]

    # -- copies

    def snapshot(self, schema_name: str, name: str) -> Snapshot:
        """Fix the LSN and the version of each leaf of a relation, in one transaction of the
        catalog."""
        relation = self._relation(schema_name, name)
        with self._session.read() as catalog:
            leaves = leaf_partitions(catalog, relation)
        oids = [leaf.oid for leaf in leaves]
        recover(self._session, oids)
        enter_foreign_versions(self._session, oids)
        with self._session.read() as catalog:
            versions = {str(oid): last_committed_version(catalog, oid) for oid in oids}
            lsn = insert_lsn(catalog.connection)
            return Snapshot(lsn, {"versions": versions}, digest_at(catalog.connection, lsn))

    def copy(
        self, publications: Sequence[str], schema_name: str, name: str, snapshot: Snapshot
    ) -> tuple[RemoteRelation, Rows]:
        """Return the rows to copy: any row filter of the publications lets them pass; `publish`
        does not matter.

        Raises:
            UndefinedTable: the relation is not published, or gone.
            ObjectNotInPrerequisiteState: it was replaced since the snapshot (55000).
        """
        enter_foreign_versions(self._session, [int(oid) for oid in snapshot.state["versions"]])
        with self._session.read() as current:
            catalog = current.as_of(snapshot.lsn)
            table = _find_table(PublicationSet.of_names(catalog, publications), schema_name, name)
            privileges = self._session.privileges(current)
            try:
                privileges.check_schema(table.relation.schema_oid, schema_name, "U")
                privileges.check_relation(table.relation, "r", table.columns)
                policies = self._policies(current, table.relation)
                leaves = leaf_partitions(catalog, table.relation)
                oids = [leaf.oid for leaf in leaves]
                check_readable(current, load_relations(current, oids).values())
            except (InsufficientPrivilege, FeatureNotSupported) as error:
                raise ConnectionFailure(
                    "could not start initial contents copy for table"
                    f' "{schema_name}.{name}": ERROR:  {error.message}'
                ) from error
            broken = broken_since(current, [leaf.oid for leaf in leaves], snapshot.lsn)
            if broken:
                raise replaced(next(leaf for leaf in leaves if leaf.oid in broken))
        self._check_filters(table.relation, table.filters)
        versions = {int(oid): version for oid, version in snapshot.state["versions"].items()}
        for leaf in leaves:
            check_copyable(self._session, table, leaf, versions.get(leaf.oid))
        sources = [
            CopySource(
                numbered_as(table.relation, leaf, versions[leaf.oid]),
                table.columns,
                table.filters,
                policies,
            )
            for leaf in leaves
            if versions.get(leaf.oid) is not None  # else it had no table, and so no rows, then
        ]
        remote = _remote_table(table)
        return remote, Rows(copied_sql(sources) if sources else _no_rows(table))

    def _policies(self, catalog: Catalog, relation: Relation) -> tuple[nodes.Expr, ...]:
        """Return the conditions that policies put on the rows that a copy reads.

        Raises:
            InsufficientPrivilege: there are some, and row_security is off.
            FeatureNotSupported: one of them reads tables.
        """
        privileges = self._session.privileges(catalog)
        now = load_relations(catalog, [relation.oid]).get(relation.oid, relation)
        setting = self._session.setting("row_security")
        if not is_row_security_active(privileges, now, setting):
            return ()
        policies = [p for p in policies_of(catalog, now.oid) if p.concerns("r", privileges)]
        for policy in policies:
            if policy.reads_other_tables:
                raise FeatureNotSupported(
                    f'policy "{policy.name}" for table "{now.name}" has a subquery, which is not'
                    " supported in an initial copy"
                )
        context = self._session.function_context(catalog)
        tests = {
            is_permissive: [
                nodes.transform(pg_node_tree.loads(policy.using), partial(session_value, context))
                for policy in policies
                if policy.is_permissive == is_permissive and policy.using is not None
            ]
            for is_permissive in (True, False)
        }
        if not tests[True]:
            return (nodes.Const("bool", "f"),)
        return (nodes.BoolExpr("or", tuple(tests[True])), *tests[False])

    def past_snapshot(self, schema_name: str, name: str, lsn: int) -> Snapshot:
        """Return the version of each leaf of a relation that an LSN has.

        Raises:
            UndefinedTable: there was no such relation.
        """
        return past_snapshot(self._session, schema_name, name, lsn)

    def relation_size(self, schema_name: str, name: str) -> int:
        """Return bytes of the files that a relation's rows are in now."""
        relation = self._relation(schema_name, name)
        with self._session.read() as catalog:
            leaves = leaf_partitions(catalog, relation)
        return sum(table_size(leaf.storage.location) for leaf in leaves if leaf.storage is not None)

    # -- changes

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
            _name(item.published_as)
            for item in published.values()
            if _name(item.published_as) not in starts
            and not opens(_remote(item.published_as, item.columns))
        }
        starts = {**starts, **dict.fromkeys(refused, from_lsn)}
        wanted = [
            entry
            for entry in entries
            if (item := published.get(entry.relid)) is not None
            and entry.commit_lsn > starts.get(_name(item.published_as), to_lsn)
            and not (origin.lower() == "none" and entry.origin is not None)
            and (item.filters or entry.action != CHANGE)
        ]
        for entry in wanted:
            if entry.action == BREAK:
                item = published[entry.relid]
                error = replaced(item.relation, entry.detail.get("cleaned"))
                raise DecodingFailure(error, _name(item.published_as))
        for relid, versions in _versions_to_read(wanted).items():
            item = published[relid]
            _check_in_log(item.relation, versions, _name(item.published_as))
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
                    and joins(_remote_changes(item))
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
        remote = _remote_changes(first)
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
                self._check_filters(item.published_as, filters)
            place = self._session.engine().place_log
            try:
                versions = _feed_versions(leaf_entries)
                feeds = chosen_feeds(item.relation, versions, place, are_joined=are_joined)
            except ObjectNotInPrerequisiteState as error:
                raise DecodingFailure(error, _name(item.published_as)) from error
            if len(feeds) < len(versions):
                joined = tuple(feed.position for feed in feeds)
            for piece, own in _pieces(item, feeds):
                check_decodable(self._session, piece, [version.version for version in own])
                sources.append(change_source(piece, own))
                retyped |= _changed_types(item.relation, piece.relation)
        if retyped:
            remote = _with_texts(remote, retyped)
            sources = [_text_source(source, first.published_as, retyped) for source in sources]
        with self._session.read() as current:
            check_readable(current, load_relations(current, by_leaf).values())
        relations = {relid: published[relid].relation for relid in by_leaf}
        count = sum(decoded_rows(placed.entry, relations, _MANY) for placed in entries)
        with ExitStack() as stack:
            try:
                rows = stack.enter_context(
                    spark.jobs.decoded(
                        self._session.engine(), sources, _sent(remote), count, self._feeds
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

    def _check_filters(self, relation: Relation, filters: Sequence[nodes.Expr]) -> None:
        """Refuse what cannot be evaluated exactly before a row is read."""
        for row_filter in filters:
            problem = untranslatable(row_filter)
            if problem is not None:
                with self._session.read() as catalog:
                    text = get_expr(self._session.environment(catalog), relation, row_filter)
                raise FeatureNotSupported(
                    f"{text} is not supported in a replctl row filter",
                    detail=f"{problem[0].upper()}{problem[1:]}. It is a row filter of table"
                    f' "{relation.qualified_name}".',
                )

    def _relation(self, schema_name: str, name: str) -> Relation:
        with self._session.read() as catalog:
            schema_oid = find_schema(catalog, schema_name)
            oid = None if schema_oid is None else find_relation_oid(catalog, name, schema_oid)
            relation = None if oid is None else load_relations(catalog, [oid])[oid]
        if relation is None:
            raise UndefinedTable(f'relation "{schema_name}.{name}" does not exist on the publisher')
        return relation


@dataclass(frozen=True, slots=True)
class _Definitions:
    """The publications that exist of those asked for, and what they send of which table; the faults
    of others."""

    publications: frozenset[str]
    relations: dict[int, PublishedRelation]
    problems: tuple[PostgresError, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A log entry with its position in a batch."""

    position: int
    entry: LogEntry


def _is_written(catalog: Catalog, relation: Relation) -> bool:
    """Return whether a subscription writes into a table, or into its partitions or what it is one
    of."""
    family = {*ancestors_of(catalog, relation.oid), *descendants_of(catalog, relation.oid)}
    return any(subscriptions_of_relation(catalog, relid) for relid in family | {relation.oid})


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


def _placed(entries: Sequence[LogEntry]) -> list[_Placed]:
    """Entries in the order of commits, numbered from 1."""
    return [_Placed(position, entry) for position, entry in enumerate(entries, start=1)]


def _find_table(publication_set: PublicationSet, schema_name: str, name: str) -> TableToCopy:
    for table in publication_set.tables_to_copy():
        if (table.relation.schema, table.relation.name) == (schema_name, name):
            return table
    raise UndefinedTable(
        f'could not fetch table info for table "{schema_name}.{name}" from publisher: table not'
        " found"
    )


def _feed_versions(entries: Sequence[_Placed]) -> tuple[FeedVersion, ...]:
    return tuple(
        feed_version(placed.entry, placed.position)
        for placed in entries
        if placed.entry.version is not None
    )


def _pieces(
    published: PublishedRelation, versions: Sequence[FeedVersion]
) -> list[tuple[PublishedRelation, tuple[FeedVersion, ...]]]:
    """Return the versions of a table, by the types that its columns had then."""
    relation, pieces = published.relation, []
    for types, group in groupby(versions, key=lambda v: relation_at(relation, v.version).columns):
        own = tuple(group)
        then = relation if types == relation.columns else relation_at(relation, own[0].version)
        pieces.append((replace(published, relation=then), own))
    return pieces


def _changed_types(relation: Relation, other: Relation) -> set[str]:
    """Return the names of the columns that have different types."""
    pairs = zip(relation.columns, other.columns, strict=True)
    return {a.name for a, b in pairs if (a.type, a.typmod) != (b.type, b.typmod)}


def _with_texts(remote: RemoteRelation, names: Collection[str]) -> RemoteRelation:
    """Return a relation whose columns of these names are sent as texts of different types."""
    columns = tuple(
        RemoteColumn(column.name, "text", -1) if column.name in names else column
        for column in remote.columns
    )
    return replace(remote, columns=columns)


def _text_source(source: ChangeSource, root: Relation, names: Collection[str]) -> ChangeSource:
    """Changes of a table, the columns of these names as texts.

    Raises:
        DecodingFailure: a row filter needs one of them.
    """
    attnums = {column.attnum for column in root.columns if column.name in names}
    for row_filter in chain.from_iterable(source.filters.values()):
        used = {node.attnum for node in nodes.walk(row_filter) if isinstance(node, nodes.Var)}
        if used & attnums:
            raise DecodingFailure(
                FeatureNotSupported(
                    f'a row filter of table "{source.name}" uses a column whose type was changed in'
                    " the transaction that has changed the rows"
                )
            )
    columns = tuple(c.as_text() if c.attnum in attnums else c for c in source.source.columns)
    return replace(source, source=replace(source.source, columns=columns))


def feed_version(entry: LogEntry, position: int) -> FeedVersion:
    """Return the version of a table that an entry of the log is."""
    assert entry.version is not None
    return FeedVersion(
        entry.version,
        position,
        bool(entry.detail.get("changes_keys")),
        bool(entry.detail.get("compared")),
    )


def change_source(published: PublishedRelation, versions: Sequence[FeedVersion]) -> ChangeSource:
    """Return what is to be decoded of a published table: some of its versions, oldest first."""
    relation, root = published.relation, published.published_as
    key = relation.primary_key or next((i for i in relation.indexes if i.is_replica_identity), None)
    names = tuple(column.name for column in relation.index_columns(key)) if key is not None else ()
    by_name = {column.name: column.attnum for column in root.columns}
    return ChangeSource(
        relation.qualified_name,
        numbered_as(root, relation, versions[-1].version, [v.version for v in versions]),
        tuple(versions),
        tuple(by_name[name] for name in names if name in by_name),
        names,
        published.columns,
        published.filters,
    )


def _remote(relation: Relation, attnums: Sequence[int]) -> RemoteRelation:
    columns = tuple(
        RemoteColumn(column.name, column.type, column.typmod)
        for column in relation.columns
        if column.attnum in attnums
    )
    identity = identity_columns(relation)
    names = (
        None if identity is None else tuple(relation.column_at(attnum).name for attnum in identity)
    )
    return RemoteRelation(relation.schema, relation.name, columns, names)


def _has_other_writers(leaf: Relation) -> bool:
    """Return whether programs write a table that do not keep its key."""
    return leaf.storage is not None and (leaf.storage.is_adopted or leaf.storage.has_foreign)


def _remote_table(table: TableToCopy) -> RemoteRelation:
    """Return a relation as it is copied, and what is published of its changes."""
    return replace(
        _remote(table.relation, table.columns),
        filters=applied_filters(table.relation, [table.filters]),
        actions=frozenset(action.value for action in table.actions),
    )


def _remote_changes(published: PublishedRelation) -> RemoteRelation:
    """Return a relation as its changes are sent; rows come by INSERT and UPDATE."""
    added = [
        filters
        for action, filters in published.filters.items()
        if action in (Action.INSERT, Action.UPDATE)
    ]
    return replace(
        _remote(published.published_as, published.columns),
        filters=applied_filters(published.published_as, added),
        actions=frozenset(action.value for action in published.actions),
    )


def _sent(remote: RemoteRelation) -> tuple[SentColumn, ...]:
    return tuple(SentColumn(column.name, column.type, column.typmod) for column in remote.columns)


def _no_rows(table: TableToCopy) -> str:
    """Return a copy of a table that nobody has written yet."""
    source = replace(numbered_as(table.relation, table.relation), location=None)
    return copied_sql([CopySource(source, table.columns, table.filters)])


def _name(relation: Relation) -> tuple[str, str]:
    return (relation.schema, relation.name)


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
            tuple(_name(published[placed.entry.relid].relation) for placed in group),
            bool(detail.get("cascade")),
            bool(detail.get("restart_identity")),
        )
