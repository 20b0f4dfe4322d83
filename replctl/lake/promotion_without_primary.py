"""Recover the lost end of the commit log from the tables: to promote a standby without the
primary's catalog, or to accept a catalog that was restored from a backup.

Delta's logs contain commits of transactions that this catalog does not know.  A commit that was the
only one of its transaction becomes a committed transaction.  The commit records of other
transactions are lost, so replctl undoes these transactions as after a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_nonce import hand_over_nonces
from replctl.catalog.intent import Intent, insert_abandoned, intents_of, writers_of
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.pg_control import check_recovers
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_wal import last_logged_version
from replctl.catalog.promotion import become_primary, database_oids, skip_lost_numbers
from replctl.catalog.relation_kind import WITH_DELTA_TABLE
from replctl.catalog.storage import note_storage
from replctl.catalog.transaction import Catalog, next_xid
from replctl.errors import IoError, PostgresError, UndefinedFile
from replctl.lake import commit_log
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_log import UNREADABLE, latest_version, stored_names
from replctl.lake.lost_values import FoundSequence, advance_sequences
from replctl.lake.undo import floor_of, pending_commits
from replctl.lake.version_chain import Chain, relation_chain
from replctl.record import dataclass

#: Maximum number of tables named in a message.
_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class FoundTable:
    """The end of a lost log for one table.

    Attributes:
        database: the name of the table's database.
        name: the table's name, with its schema.
        known: the newest version that the catalog knew; None if it knew none.
        newest: the newest version of the table; None if the table is missing or cannot be read.
        entered: number of lost versions that now are in committed transactions.
        undone: number of transactions that will be undone before the table is used again.
        is_broken: the table lacks versions that the catalog knew.
        error: the message of the error if the table cannot be read; else None.
    """

    database: str
    name: str
    known: int | None
    newest: int | None
    entered: int = 0
    undone: int = 0
    is_broken: bool = False
    error: str | None = None

    @property
    def is_as_known(self) -> bool:
        """Return whether the catalog knew the table's current state."""
        return self.newest == self.known and not (self.entered or self.undone or self.is_broken)


@dataclass(frozen=True, slots=True)
class FoundInStorage:
    """The part of a lost commit log that a promotion has found in the logs of the tables.

    Attributes:
        entered: number of lost versions of tables that the commit log now has as committed.
        undone: number of transactions that will be undone before their tables are used again.
        tables: the result for each table.
        sequences: the sequences that may have given values that the catalog does not know.
    """

    entered: int
    undone: int
    tables: tuple[FoundTable, ...] = field(default=(), compare=False)
    sequences: tuple[FoundSequence, ...] = field(default=(), compare=False)


def promote_without_primary(standby: Cluster, *, without_tables: bool = False) -> FoundInStorage:
    """Promote a standby whose primary is no longer readable.

    Args:
        without_tables: continue even if tables are missing or cannot be read.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby.
        UndefinedFile, IoError: Delta tables are missing, or cannot be read (58P01, 58030).
    """
    with standby.begin(write=True, in_recovery=True) as connection:
        check_recovers(connection)
        found = _look_up(standby, Catalog(connection, 0), without_tables=without_tables)
        become_primary(connection)
    return found


def accept_restored_catalog(cluster: Cluster, *, without_tables: bool = False) -> FoundInStorage:
    """Record the versions of tables that a catalog restored from a backup does not know.

    Args:
        without_tables: continue even if tables are missing or cannot be read.

    Raises:
        ReadOnlySqlTransaction: the cluster is a standby.
        UndefinedFile, IoError: Delta tables are missing, or cannot be read (58P01, 58030).
    """
    with cluster.begin(write=True) as connection:
        return _look_up(cluster, Catalog(connection, 0), without_tables=without_tables)


@dataclass(frozen=True, slots=True)
class _Database:
    """The tables of a database that have been written.

    Attributes:
        oid: the database.
        name: its name.
        stored: the tables that can be read, by OID.
        commits: the commits of each table that the commit log lacks, by OID.
        missing: the tables whose Delta tables are missing.
        unreadable: the tables whose logs cannot be read, with the errors.
    """

    oid: int
    name: str
    stored: dict[int, Relation] = field(default_factory=dict)
    commits: dict[int, list[DeltaCommit]] = field(default_factory=dict)
    missing: list[Relation] = field(default_factory=list)
    unreadable: list[tuple[Relation, PostgresError]] = field(default_factory=list)

    def leave_out(self, relation: Relation, error: PostgresError) -> None:
        """Record that a table cannot be read."""
        self.unreadable.append((relation, error))
        self.stored.pop(relation.oid, None)


def _look_up(cluster: Cluster, catalog: Catalog, *, without_tables: bool) -> FoundInStorage:
    """Record complete lost transactions as committed, and record the others to be undone.

    Leave out the tables that are missing or cannot be read: their commits stay unknown.

    Args:
        catalog: a catalog that is not bound to a database.  Its transaction covers all databases.
    """
    connection = catalog.connection
    lost = _LostNumbers(next_xid(connection))
    databases = [
        _learned(cluster, Catalog(connection, oid), lost) for oid in database_oids(connection)
    ]
    if not without_tables:
        _check_storage(databases)
    half_done: dict[int, list[Intent]] = {}
    for database in databases:
        catalog = Catalog(connection, database.oid)
        half_done |= _note_half_done(catalog, database, lost)
        half_done |= _abandoned(cluster, catalog, database, half_done)
    skip_lost_numbers(connection)
    undone = Counter(intent.relid for intents in half_done.values() for intent in intents)
    tables: list[FoundTable] = []
    sequences: list[FoundSequence] = []
    for database in databases:
        catalog = Catalog(connection, database.oid, backend=cluster.backend)
        entered = _enter_complete(cluster, catalog, database, undone)
        tables += [*_left_out(catalog, database), *entered.values()]
        unknown = {oid for oid, table in entered.items() if table.is_broken}
        unknown |= {table.oid for table in database.missing}
        unknown |= {table.oid for table, _error in database.unreadable}
        commits = {oid: database.commits[oid] for oid in entered}
        sequences += advance_sequences(catalog, commits, unknown)
    count = sum(table.entered for table in tables)
    return FoundInStorage(count, len(half_done), tuple(tables), tuple(sequences))


def _learned(cluster: Cluster, catalog: Catalog, lost: _LostNumbers) -> _Database:
    """Accept lost commits of a database's tables as the cluster's own, and return the tables."""
    database = _Database(catalog.database_oid, current_database(catalog))
    relations = load_relations(catalog, relation_oids(catalog, WITH_DELTA_TABLE))
    for oid, relation in relations.items():
        storage = relation.storage
        if storage is None:
            continue
        try:
            with catalog.connection.begin_nested(), commit_log.reading_log(catalog, relation):
                if latest_version(storage.location) is not None:
                    commit_log.learn_marks(catalog, cluster, relation, lost)
                    commits = commit_log.unlogged_commits(catalog, cluster, relation)
                    database.commits[oid] = commits
                    database.stored[oid] = relation
                elif storage.is_made:
                    database.missing.append(relation)
        except UNREADABLE as error:  # the other tables need no repair
            database.leave_out(relation, error)
    return database


def _check_storage(databases: Sequence[_Database]) -> None:
    """Check that all tables exist and can be read.

    Raises:
        UndefinedFile, IoError: there are other tables (58P01, 58030).
    """
    missing = [_place(table) for database in databases for table in database.missing]
    unreadable = [
        f"{_place(table)}: {error.message}"
        for database in databases
        for table, error in database.unreadable
    ]
    if not (missing or unreadable):
        return
    verb, kind = ("read", IoError) if unreadable else ("find", UndefinedFile)
    count = len(missing) + len(unreadable)
    told = (("Missing", missing), ("Unreadable", unreadable))
    raise kind(
        f"could not {verb} the Delta tables of {count} tables"
        if count > 1
        else f"could not {verb} the Delta table of a table",
        detail=" ".join(f"{word}: {_listed(places)}." for word, places in told if places),
        hint="Restore their storage at these paths, and promote again. Or promote without these"
        " tables: --without-tables. You can then only drop them.",
    )


def _place(table: Relation) -> str:
    assert table.storage is not None
    return f'"{table.qualified_name}" in "{table.storage.location}"'


def _listed(places: Sequence[str]) -> str:
    shown = ", ".join(places[:_MOST_SHOWN])
    more = len(places) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


class _LostNumbers(dict[int, int]):
    """Maps the old numbers of lost transactions to new ones.  Other transactions may have the old
    numbers: this catalog may have used them again.
    """

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, xid: int) -> int:
        self[xid] = self._first + len(self)
        return self[xid]


def _note_half_done(
    catalog: Catalog, database: _Database, lost: _LostNumbers
) -> dict[int, list[Intent]]:
    """Record all transactions that may be incomplete as one transaction of a dead process, so that
    they are undone.  They must be undone together, because they may have overwritten each other's
    rows.

    Returns:
        the writes of these transactions, by transaction number.
    """
    intents: dict[int, list[Intent]] = {}
    for oid in database.stored:
        for commit in database.commits[oid]:
            mark = commit.mark
            if mark is None or mark.silent or mark.whole or mark.xid not in lost.values():
                continue
            tables = {intent.relid for intent in intents.get(mark.xid, ())}
            if oid not in tables:
                intent = Intent(oid, commit.version - 1, is_whole=False)
                intents.setdefault(mark.xid, []).append(intent)
    if not intents:
        return intents
    first, *others = sorted(intents)
    for xid in others:
        hand_over_nonces(catalog.connection, xid, first, database.stored)
    oldest: dict[int, Intent] = {}
    for intent in (intent for written in intents.values() for intent in written):
        known = oldest.setdefault(intent.relid, intent)
        if floor_of(intent.version) < floor_of(known.version):
            oldest[intent.relid] = intent
    insert_abandoned(catalog, first, list(oldest.values()))
    return intents


def _abandoned(
    cluster: Cluster, catalog: Catalog, database: _Database, others: Collection[int]
) -> dict[int, list[Intent]]:
    """Return the unfinished transactions of dead processes that have commits to undo: their writes
    of tables with such commits, by transaction number.

    Args:
        others: leave out these transactions.
    """
    stored = database.stored
    found: dict[int, list[Intent]] = {}
    for xid, backend in writers_of(catalog.connection, cluster.backend, stored).items():
        if xid in others or cluster.is_alive(backend):
            continue
        for intent in intents_of(catalog.connection, xid):
            if intent.is_whole or intent.relid not in stored:
                continue
            relation = stored[intent.relid]
            commits = commit_log.commits_since(catalog, cluster, relation, intent.version)
            if pending_commits(commit for commit in commits if commit.is_of(xid)):
                found.setdefault(xid, []).append(intent)
    return found


def _left_out(catalog: Catalog, database: _Database) -> Iterator[FoundTable]:
    """Yield the results for the tables that are missing or cannot be read."""
    left_out: list[tuple[Relation, PostgresError | None]] = [
        *((table, None) for table in database.missing),
        *database.unreadable,
    ]
    for table, error in left_out:
        known = last_logged_version(catalog.connection, table.oid)
        reason = None if error is None else error.message
        yield FoundTable(database.name, table.qualified_name, known, None, error=reason)


def _enter_complete(
    cluster: Cluster, catalog: Catalog, database: _Database, undone: Mapping[int, int]
) -> dict[int, FoundTable]:
    """Record the unknown commits of a database's tables that need no undo.  In each table, stop
    before the first commit that must be undone.

    Record a break if a table lacks known versions.  Return the result for each table, by OID.

    Args:
        undone: the number of transactions to undo, by the OIDs of tables.
    """
    found: dict[int, FoundTable] = {}
    for oid, relation in list(database.stored.items()):
        try:
            with catalog.connection.begin_nested(), commit_log.reading_log(catalog, relation):
                found[oid] = _entered(cluster, catalog, database, relation, undone[oid])
        except UNREADABLE as error:  # the other tables need no repair
            database.leave_out(relation, error)
    return found


def _entered(
    cluster: Cluster, catalog: Catalog, database: _Database, relation: Relation, undone: int
) -> FoundTable:
    assert relation.storage is not None
    oid, connection = relation.oid, catalog.connection
    newest = latest_version(relation.storage.location)
    known = last_logged_version(connection, oid)
    is_broken = relation_chain(catalog, relation) is Chain.BROKEN
    commits = [] if is_broken else database.commits[oid]
    if commits:
        _note_storage(catalog, relation, commits)
    if commits or is_broken:
        commit_log.enter_versions(catalog, cluster, relation)
    last = last_logged_version(connection, oid)
    entered = sum(
        commit.changes_data and not commit.is_silent and commit.version <= (last or 0)
        for commit in commits
    )
    name = relation.qualified_name
    return FoundTable(database.name, name, known, newest, entered, undone, is_broken)


def _note_storage(catalog: Catalog, relation: Relation, commits: list[DeltaCommit]) -> None:
    """Record that a Delta table and its columns exist: a transaction that was lost with the primary
    may have created them before it changed rows.
    """
    storage = relation.storage
    assert storage is not None
    names = stored_names(storage.location)
    numbers = [
        column.number
        for column in storage.columns.values()
        if column.since_version is None and column.name.lower() in names
    ]
    if numbers or not storage.is_made:
        made = [commit.version for commit in commits if commit.is_silent]
        note_storage(catalog.connection, relation.oid, numbers, max(made, default=0))
