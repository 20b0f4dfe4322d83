"""Write relations: lock them, record intents, create storage on first use, and finally record the
commits in the commit log.

A statement's Delta commits become one transaction of the commit log.  If a process dies, the next
process that writes its tables first undoes or records its unfinished writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial

from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.file_layout import delta_properties
from replctl.catalog.intent import Intent, delete_intents, insert_intent, intents_of, move_intent
from replctl.catalog.lock import LockMode, object_lock
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_replication_slots import commit_with_origin
from replctl.catalog.pg_wal import TRUNCATE, enter, last_logged_version, take_back
from replctl.catalog.storage import DELETION_VECTORS, Storage, begin_storage, note_storage
from replctl.catalog.storage_column import name_columns
from replctl.catalog.transaction import Catalog, commit_transaction, insert_lsn, next_insert_lsn
from replctl.errors import DuplicateObject, SerializationFailure
from replctl.injection_point import injection_point
from replctl.lake import commit_log
from replctl.lake.catalog_registration import missing_registration, register
from replctl.lake.column_fault import check_columns
from replctl.lake.commit_mark import CommitMark
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_log import latest_version, stored_names
from replctl.lake.delta_rules import check_can_be_undone
from replctl.lake.durable_version import sync_versions
from replctl.lake.file_access import check_writable
from replctl.lake.file_layout import wanted_layout
from replctl.lake.leftovers import removing_leftovers
from replctl.lake.location import check_is_empty
from replctl.lake.new_table import create_table
from replctl.lake.recovery import recover, undo_or_leave
from replctl.lake.retry import repeated
from replctl.lake.small_definition import add_columns
from replctl.lake.small_rewrite import set_columns
from replctl.lake.spark_ability import check_spark_can_write
from replctl.lake.storage_place import differing_names
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_metadata import physical_names
from replctl.lake.table_read import table_source
from replctl.lake.undo import (
    commits_since,
    floor_of,
    pending_commits,
    storage_of,
    undo_commits,
    undo_since,
)
from replctl.record import dataclass
from replctl.relation_lock import lock_relations
from replctl.session import Session
from replctl.spark import CommitNote, TableColumn, TableSource, literal
from replctl.types.boolean import bool_in


@dataclass
class TableWriter:
    """A transaction that writes relations, from its locks to its entry in the commit log.

    Attributes:
        session: the writing session.
        xid: the transaction.
        relations: the relations in their current state, by OID.
        base_versions: the relations' Delta versions before the transaction.
        read_versions: the versions that were read.  The written rows do not include later changes
            of other writers.
        origin, origin_lsn: the origin of replicated changes, and their LSN there.
        truncations: the details of the log entries for TRUNCATE, by OID of the relation.
        written: the relations that are prepared for writing.
        nonces: the nonces that mark the commits to each relation.
        is_whole: the transaction consists of one commit of rows.
        commit_lsn: the LSN of the commit; None before.
    """

    session: Session
    xid: int
    relations: dict[int, Relation]
    base_versions: dict[int, int | None]
    read_versions: dict[int, int | None]
    origin: str | None = None
    origin_lsn: int | None = None
    truncations: dict[int, dict[str, object]] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    nonces: dict[int, str] = field(default_factory=dict)
    is_whole: bool = False
    commit_lsn: int | None = None
    _numbers: Counter[int] = field(default_factory=Counter)

    @contextmanager
    def commit_to(
        self,
        relid: int,
        *,
        silent: bool = False,
        truncates: bool = False,
        changes_keys: bool = False,
        removes: Sequence[str] = (),
        renames: Sequence[tuple[int, str]] = (),
        widens: Sequence[int] = (),
        application: str | None = None,
        step: int | None = None,
        may_be_nothing: bool = False,
    ) -> Iterator[CommitNote]:
        """Yield the note for one Delta commit to a relation.  Afterwards check that Delta has made
        the commit.

        Args:
            silent: replctl must neither decode nor undo the commit.
            truncates: the commit empties the table.  The commit log has a separate entry for this.
            changes_keys: the commit updates keys, or rows without a key, so images must be
                paired by row id.
            removes: the names in storage of the columns that the commit removes from the table.
            renames: the columns that the commit renames: their numbers in storage, and new names.
            widens: the numbers in storage of the columns to which the commit gives wider types.
            application, step: Delta's transaction identifier and its version.  With them, Delta
                skips the commit if it was already made.
            may_be_nothing: Delta may make no commit, because no row may change.

        Raises:
            DataCorrupted: the commit is missing in the table's log after the write (XX001).
        """
        origin_at = None
        origin = self.origin
        if origin is None and self.session.origin is not None:
            at = self.session.origin
            origin, origin_at = at.name, (at.lsn, at.timestamp)
        self._numbers[relid] += 1
        mark = CommitMark(
            self.nonces[relid],
            self._numbers[relid],
            self.xid,
            silent=silent,
            whole=self.is_whole and not silent,
            truncates=truncates,
            changes_keys=changes_keys,
            removes=tuple(removes),
            renames=tuple(renames),
            widens=tuple(widens),
            origin=origin,
            origin_at=origin_at,
        )
        location = storage_of(self.relations[relid]).location
        before = latest_version(location)
        yield CommitNote(
            commit_log.marked_text(self.session.cluster, mark, relid), application, step
        )
        if not may_be_nothing:
            commit_log.check_written(self.session.cluster, self.relations[relid], mark, before)
        sync_versions(location, before)

    def source(self, relid: int) -> TableSource:
        """Return the source for reading the newest state of one of the relations."""
        return table_source(self.relations[relid])

    def prepare(self, relid: int) -> TableSource:
        """Prepare a relation for writing, as far as necessary: create its Delta table, add columns
        that DDL has added since the last write, and register the table in the catalogs of Spark.
        """
        self.written.add(relid)
        check_columns(self.session, self.relations[relid])
        name = missing_registration(self.session, self.relations[relid])
        self.make_storage(relid)
        if name is not None:
            register(self.session, self.relations[relid], name)
        return self.source(relid)

    def make_storage(self, relid: int) -> None:
        """Create a relation's Delta table, or add columns that DDL has added since the last
        write.
        """
        relation = self._with_own_names(self.relations[relid])
        storage = storage_of(relation)
        missing = [
            TableColumn(c.attnum, c.type, c.typmod, storage.columns[c.attnum].name, c.missing_value)
            for c in relation.columns
            if storage.columns[c.attnum].since_version is None
        ]
        if missing or not storage.is_made:
            self._bring_up_to_date(relation, storage, missing)

    def _with_own_names(self, relation: Relation) -> Relation:
        """Give columns that the Delta table still lacks their own names in storage, and return the
        relation with these names.  DDL may have renamed a column after it got its name in storage.
        """
        storage = storage_of(relation)
        names = {
            attnum: name
            for attnum, name in differing_names(relation).items()
            if storage.columns[attnum].since_version is None
        }
        if not names or storage.is_adopted:
            return relation
        if storage.is_made:
            present = stored_names(storage.location)
        elif storage.was_empty is None:
            present = set()
        else:  # a dead process may have created the table with these names
            return relation
        columns = dict(storage.columns)
        for attnum, name in names.items():
            if present.isdisjoint((name.lower(), columns[attnum].name.lower())):
                columns[attnum] = replace(columns[attnum], name=name)
        if len({columns[c.attnum].name.lower() for c in relation.columns}) < len(relation.columns):
            return relation  # columns of the table must be renamed first
        with self.session.cluster.begin(write=True) as connection:
            name_columns(connection, relation.oid, columns.values())
        return replace(relation, storage=replace(storage, columns=columns))

    def has_foreign_commits(self, relid: int) -> bool:
        """Return whether another writer has committed to a relation since this transaction
        began."""
        commits = self._commits_since(relid, self.base_versions[relid])
        return any(not commit.is_of(self.xid) for commit in commits)

    def check_unchanged(self, relid: int) -> None:
        """Check that no other writer has changed a relation's rows since they were read.

        Raises:
            SerializationFailure: another writer has changed rows (40001).
        """
        if self._foreign_changes(relid):
            raise _overtaken()

    def check_not_overtaken(self, relid: int) -> None:
        """Check after a write that no other writer committed changes between the read version and
        the write.

        Raises:
            SerializationFailure: another writer committed changes (40001).
        """
        own = [commit.version for commit in self._own_changes(relid)]
        if own and any(version < max(own) for version in self._foreign_changes(relid)):
            raise _overtaken()

    def _foreign_changes(self, relid: int) -> list[int]:
        return [
            commit.version
            for commit in self._commits_since_read(relid)
            if commit.changes_data and not commit.is_of(self.xid)
        ]

    def _own_changes(self, relid: int) -> list[DeltaCommit]:
        return pending_commits(
            commit for commit in self._commits_since_read(relid) if commit.is_of(self.xid)
        )

    def _commits_since_read(self, relid: int) -> list[DeltaCommit]:
        return self._commits_since(relid, self.read_versions[relid])

    def _commits_since(self, relid: int, version: int | None) -> list[DeltaCommit]:
        return commits_since(self.session, self.relations[relid], version)

    def _bring_up_to_date(
        self, relation: Relation, storage: Storage, missing: Sequence[TableColumn]
    ) -> None:
        if not storage.is_made:
            self._begin_storage(relation, storage)
        if storage.is_made or latest_version(storage.location) is not None:  # by a dead process
            self._add_columns(relation.oid, storage.location, missing)
        else:
            vectors = bool_in(relation.options.get(DELETION_VECTORS, "true"))
            with self.commit_to(relation.oid, silent=True) as note:
                create_table(
                    self.session,
                    storage.location,
                    missing,
                    note,
                    has_deletion_vectors=vectors,
                    layout=wanted_layout(relation),
                    properties=delta_properties(relation.options),
                )
            injection_point("storage.after-create")
        version = latest_version(storage.location) or 0
        columns = dict(storage.columns)
        columns |= {c.attnum: replace(columns[c.attnum], since_version=version) for c in missing}
        self.note_storage(relation.oid, [columns[c.attnum].number for c in missing], version)
        self.relations[relation.oid] = replace(
            relation, storage=replace(storage, is_made=True, columns=columns)
        )

    def _begin_storage(self, relation: Relation, storage: Storage) -> None:
        """Record whether the directory for a new table is empty.

        Raises:
            DuplicateObject: another program has created a Delta table at this location.
            ObjectNotInPrerequisiteState: the directory is a LOCATION, and is not empty (55000).
        """
        with self.session.read() as catalog:
            commits = commit_log.commits_since(catalog, self.session.cluster, relation, None)
        if any(commit.mark is None for commit in commits[:1]):
            raise DuplicateObject(
                f'there is a Delta table at "{storage.location}" already',
                detail=f'replctl cannot create table "{relation.qualified_name}" there.',
            )
        if storage.was_empty is not None:  # a dead process had begun to create it
            return
        if storage.has_location:
            check_is_empty(storage.location)
        is_empty = storage.has_location or TableFolder.of(storage.location).is_empty()
        with self.session.cluster.begin(write=True) as connection:
            begin_storage(connection, relation.oid, is_empty=is_empty)

    def _add_columns(self, relid: int, location: str, missing: Sequence[TableColumn]) -> None:
        present = stored_names(location)  # a dead process may have added some
        new = [c for c in missing if (c.storage_name or "").lower() not in present]
        if new:
            with self.commit_to(relid, silent=True) as note:
                add_columns(self.session, location, new, note)
        filled = [column for column in missing if column.missing_value is not None]
        if filled:
            values = {
                c.storage_name or "": literal(c.type, c.typmod, c.missing_value) for c in filled
            }
            with self.commit_to(relid, silent=True, may_be_nothing=True) as note:
                set_columns(self.session, location, filled, values, note)

    def note_storage(self, relid: int, numbers: Sequence[int], version: int) -> None:
        """Record newly created storage.  The storage stays even if the transaction fails.  So the
        transaction's base version becomes the one with the new storage, unless the transaction has
        already changed rows.
        """
        has_changed_rows = bool(self._pending(relid))
        location = storage_of(self.relations[relid]).location
        physical = physical_names(location, version) if numbers else {}
        with self.session.cluster.begin(write=True) as connection:
            note_storage(connection, relid, numbers, version, physical)
            if not has_changed_rows:
                move_intent(connection, self.xid, relid, version)
        if not has_changed_rows:
            self.base_versions[relid] = version

    def _pending(self, relid: int) -> list[DeltaCommit]:
        if relid not in self.base_versions:  # the write of an apply worker, which is never undone
            return []
        commits = self._commits_since(relid, self.base_versions[relid])
        return pending_commits(commit for commit in commits if commit.is_of(self.xid))


@contextmanager
def writing(
    session: Session,
    relations: Sequence[Relation],
    *,
    is_whole: bool,
    guarded: Collection[int] = (),
) -> Iterator[TableWriter]:
    """Yield a writer that writes relations in one transaction.  Commit at the end of the `with`
    block, and undo the writes on an exception.  In a transaction block, the writes are part of the
    block's transaction, which is undone as a whole.

    Args:
        relations: all relations that may be written: ordinary tables and leaf partitions.
        is_whole: the transaction makes at most one Delta commit of rows, which completes it.
        guarded: OIDs of relations that other sessions must not write meanwhile.

    Raises:
        LockNotAvailable: another session writes one of the relations, or changes its definition,
            for longer than lock_timeout.
        UnfinishedBatch: a relation has partly written changes of a subscription.
    """
    oids = sorted({relation.oid for relation in relations})
    with ExitStack() as stack:
        lock_relations(session, {*oids, *guarded}, stack, written=oids)
        yield stack.enter_context(writing_locked(session, oids, is_whole=is_whole))


@contextmanager
def writing_locked(
    session: Session, oids: Sequence[int], *, is_whole: bool
) -> Iterator[TableWriter]:
    """Yield a writer like `writing`.  The caller already holds the relations' locks."""
    recover(session, oids)
    check_rules(session, oids)
    writer, log_lsn = _begin(session, oids, is_whole)
    leftovers = removing_leftovers(session, writer.relations, writer.read_versions)
    if session.block is not None:
        try:
            with leftovers:
                yield writer
        except SerializationFailure:
            _undo_statement(writer, log_lsn)
            raise
        _enter(writer)
        return
    try:
        injection_point("write.after-intent")
        with leftovers:
            yield writer
        injection_point("write.before-log")
        commit(writer)
    except BaseException:
        undo_or_leave(session, writer.xid)
        raise
    injection_point("write.after-log")


def check_rules(session: Session, relids: Collection[int]) -> None:
    """Check that Spark can write tables and, in a transaction block, that the writes can be undone.

    Raises:
        ObjectNotInPrerequisiteState: a table cannot be written, or a write cannot be undone
            (55000).
        PostgresError: the log of a table cannot be read.
    """
    with session.read() as catalog:
        relations = load_relations(catalog, relids).values()
        for relation in relations:
            with commit_log.reading_log(catalog, relation):
                if session.block is not None:
                    check_can_be_undone(relation)
    for relation in relations:
        check_spark_can_write(session, relation)


# ---------------------------------------------------------------------------------------------
# One transaction


def _begin(
    session: Session,
    oids: Sequence[int],
    is_whole: bool,
) -> tuple[TableWriter, int]:
    """Begin the transaction.  Return its writer, and the end of the commit log before it."""
    cluster, block = session.cluster, session.block
    with cluster.write(session.database_oid, session.xids) as catalog:
        catalog.lock({object_lock(session.database_oid, oid, LockMode.USE) for oid in oids})
        for relation in load_relations(catalog, oids).values():
            commit_log.enter_versions(catalog, cluster, relation, own_xid=catalog.xids.top)
        relations = load_relations(catalog, oids)
        check_writable(catalog, relations.values())
        versions = {oid: last_logged_version(catalog.connection, oid) for oid in oids}
        xid = catalog.top_xid
        known = {intent.relid: intent.version for intent in intents_of(catalog.connection, xid)}
        for oid in set(oids).difference(known):
            intent = Intent(oid, versions[oid], is_whole and block is None)
            insert_intent(catalog.connection, xid, intent)
        nonces = make_nonces(catalog.connection, xid, oids)
        log_lsn = insert_lsn(catalog.connection)
    if block is not None:
        block.xids = catalog.xids
    writer = TableWriter(
        session,
        xid,
        relations,
        {**versions, **known},
        versions,
        nonces=nonces,
        is_whole=is_whole and block is None,
    )
    return writer, log_lsn


def commit(
    writer: TableWriter, then: Callable[[Catalog, int], None] = lambda catalog, lsn: None
) -> None:
    """Record a transaction's versions and its commit in one transaction of the catalog.

    Args:
        then: does further work in the catalog's transaction.  It gets the catalog and the LSN of
            the commit.
    """
    session = writer.session
    with session.cluster.write(session.database_oid) as catalog:
        _enter_into(catalog, writer, ends=True)
        delete_intents(catalog.connection, writer.xid)
        if writer.origin is None:
            lsn = commit_with_origin(
                catalog.connection, writer.xid, session.origin, changes_catalog=False
            )
        else:
            lsn = commit_transaction(
                catalog.connection,
                writer.xid,
                changes_catalog=False,
                origin=writer.origin,
                origin_lsn=writer.origin_lsn,
            )
        writer.commit_lsn = lsn
        then(catalog, writer.commit_lsn)


def _enter(writer: TableWriter) -> None:
    """Record the versions of a statement in a transaction block.  They become valid when the block
    commits.
    """
    session = writer.session
    with session.cluster.write(session.database_oid, session.xids) as catalog:
        _enter_into(catalog, writer)


def _enter_into(catalog: Catalog, writer: TableWriter, *, ends: bool = False) -> None:
    """Record the versions and the TRUNCATEs of a statement or a batch.

    A TRUNCATE follows the versions that it has emptied.  Other programs may have committed before
    it, or between two of them: a retry truncates again.
    """
    is_first = True
    while writer.truncations:
        is_reached = _enter_versions(catalog, writer, to_truncation=True)
        if not (is_first or is_reached):
            break
        statement = {"statement": next_insert_lsn(catalog.connection)}
        for relid, detail in writer.truncations.items():
            enter(catalog, writer.xid, relid, None, TRUNCATE, detail | statement)
        is_first = False
    _enter_versions(catalog, writer, ends=ends)


def _enter_versions(
    catalog: Catalog, writer: TableWriter, *, ends: bool = False, to_truncation: bool = False
) -> bool:
    """Record versions of all relations, and return whether a TRUNCATE of one is among them.

    Args:
        ends, to_truncation: see `commit_log.enter_versions`.
    """
    has_several = len(writer.relations) > 1
    statement = next_insert_lsn(catalog.connection) if has_several else None
    reached = [
        commit_log.enter_versions(
            catalog,
            writer.session.cluster,
            relation,
            own_xid=writer.xid,
            ends=ends,
            statement=statement,
            to_truncation=to_truncation,
        )
        for relation in writer.relations.values()
    ]
    return any(reached)


def _undo_statement(writer: TableWriter, log_lsn: int) -> None:
    """Undo the writes of one statement of a transaction block before its retry.

    Args:
        log_lsn: the end of the log before the statement.
    """
    session, xid = writer.session, writer.xid
    floors = {oid: floor_of(version) for oid, version in writer.read_versions.items()}
    relations = undo_commits(session, xid, floors, only=floors)
    with session.cluster.write(session.database_oid, session.xids) as catalog:
        for relation in relations.values():
            commit_log.enter_versions(catalog, session.cluster, relation, own_xid=xid)
        take_back(catalog, xid, log_lsn)


def undo_relation(writer: TableWriter, relid: int) -> None:
    """Undo the writes that a transaction made into one table after it read the table."""
    floor = floor_of(writer.read_versions[relid])
    relation = writer.relations[relid]
    # Programs other than replctl ignore the table's lock, and may commit first
    repeated(partial(undo_since, writer.session, writer.xid, relation, floor))


def _overtaken() -> SerializationFailure:
    return SerializationFailure("could not serialize access due to concurrent update")
