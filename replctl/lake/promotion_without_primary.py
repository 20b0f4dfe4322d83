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
from replctl.catalog.storage import note_storage
from replctl.catalog.transaction import Catalog, next_xid
from replctl.errors import UndefinedFile
from replctl.lake import commit_log
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_log import latest_version, stored_names
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
        newest: the newest version of the table; None if the table is missing.
        entered: number of lost versions that now are in committed transactions.
        undone: number of transactions that will be undone before the table is used again.
        is_broken: the table lacks versions that the catalog knew.
    """

    database: str
    name: str
    known: int | None
    newest: int | None
    entered: int = 0
    undone: int = 0
    is_broken: bool = False

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
    """

    entered: int
    undone: int
    tables: tuple[FoundTable, ...] = field(default=(), compare=False)


def promote_without_primary(standby: Cluster, *, without_tables: bool = False) -> FoundInStorage:
    """Promote a standby whose primary is no longer readable.

    Args:
        without_tables: continue even if tables are missing.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby.
        UndefinedFile: Delta tables are missing (58P01).
    """
    with standby.begin(write=True, in_recovery=True) as connection:
        check_recovers(connection)
        found = _look_up(standby, Catalog(connection, 0), without_tables=without_tables)
        become_primary(connection)
    return found


def accept_restored_catalog(cluster: Cluster, *, without_tables: bool = False) -> FoundInStorage:
    """Record the versions of tables that a catalog restored from a backup does not know.

    Args:
        without_tables: continue even if tables are missing.  Do not look for their logs.

    Raises:
        ReadOnlySqlTransaction: the cluster is a standby.
        UndefinedFile: Delta tables are missing (58P01).
    """
    with cluster.begin(write=True) as connection:
        return _look_up(cluster, Catalog(connection, 0), without_tables=without_tables)


def _look_up(cluster: Cluster, catalog: Catalog, *, without_tables: bool) -> FoundInStorage:
    """Record complete lost transactions as committed, and record the others to be undone.

    Args:
        catalog: a catalog that is not bound to a database.  Its transaction covers all databases.
    """
    connection = catalog.connection
    oids = database_oids(connection)
    if not without_tables:
        _check_storage([table for oid in oids for table in _missing(Catalog(connection, oid))])
    half_done: dict[int, list[Intent]] = {}
    lost = _LostNumbers(next_xid(connection))
    for oid in oids:
        in_database = Catalog(connection, oid)
        half_done |= _note_half_done(cluster, in_database, lost)
        half_done |= _abandoned(cluster, in_database, half_done)
    skip_lost_numbers(connection)
    undone = Counter(intent.relid for intents in half_done.values() for intent in intents)
    tables = tuple(
        table
        for oid in oids
        for table in _enter_complete(
            cluster, Catalog(connection, oid, backend=cluster.backend), undone
        )
    )
    return FoundInStorage(sum(table.entered for table in tables), len(half_done), tables)


def _missing(catalog: Catalog) -> list[Relation]:
    """Return the tables of a database that have been written but are missing."""
    relations = load_relations(catalog, relation_oids(catalog, "rm"))
    return [relation for relation in relations.values() if _is_missing(relation)]


def _is_missing(relation: Relation) -> bool:
    storage = relation.storage
    return storage is not None and storage.is_made and latest_version(storage.location) is None


def _check_storage(missing: Sequence[Relation]) -> None:
    if not missing:
        return
    places = [
        f'"{table.qualified_name}" in "{table.storage.location}"'
        for table in missing
        if table.storage is not None
    ]
    shown = ", ".join(places[:_MOST_SHOWN])
    if len(places) > _MOST_SHOWN:
        shown += f" and {len(places) - _MOST_SHOWN} more"
    raise UndefinedFile(
        f"could not find the Delta tables of {len(places)} tables"
        if len(places) > 1
        else "could not find the Delta table of a table",
        detail=f"Missing: {shown}.",
        hint="Restore their storage at these paths, and promote again. Or promote without these"
        " tables: --without-tables. You can then only drop them.",
    )


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
    cluster: Cluster, catalog: Catalog, lost: _LostNumbers
) -> dict[int, list[Intent]]:
    """Record all transactions that may be incomplete as one transaction of a dead process, so that
    they are undone.  They must be undone together, because they may have overwritten each other's
    rows.

    Returns:
        the writes of these transactions, by transaction number.
    """
    intents: dict[int, list[Intent]] = {}
    stored = _stored_relations(catalog)
    for oid, relation in stored.items():
        commit_log.learn_marks(catalog, cluster, relation, lost)
        for commit in commit_log.unlogged_commits(catalog, cluster, relation):
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
        hand_over_nonces(catalog.connection, xid, first, stored)
    oldest: dict[int, Intent] = {}
    for intent in (intent for written in intents.values() for intent in written):
        known = oldest.setdefault(intent.relid, intent)
        if floor_of(intent.version) < floor_of(known.version):
            oldest[intent.relid] = intent
    insert_abandoned(catalog, first, list(oldest.values()))
    return intents


def _abandoned(
    cluster: Cluster, catalog: Catalog, others: Collection[int]
) -> dict[int, list[Intent]]:
    """Return the unfinished transactions of dead processes that have commits to undo: their writes
    of tables with such commits, by transaction number.

    Args:
        others: leave out these transactions.
    """
    stored = _stored_relations(catalog)
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


def _enter_complete(
    cluster: Cluster, catalog: Catalog, undone: Mapping[int, int]
) -> Iterator[FoundTable]:
    """Record the unknown commits of a database's tables that need no undo.  In each table, stop
    before the first commit that must be undone.

    Record a break if a table lacks known versions.  Yield the result for each table.

    Args:
        undone: the number of transactions to undo, by the OIDs of tables.
    """
    database = current_database(catalog)
    for missing in _missing(catalog):
        known = last_logged_version(catalog.connection, missing.oid)
        yield FoundTable(database, missing.qualified_name, known, None)
    for oid, relation in _stored_relations(catalog).items():
        assert relation.storage is not None
        newest = latest_version(relation.storage.location)
        if newest is None:  # the table was never created
            continue
        known = last_logged_version(catalog.connection, oid)
        is_broken = relation_chain(catalog, relation) is Chain.BROKEN
        commits = [] if is_broken else commit_log.unlogged_commits(catalog, cluster, relation)
        if commits:
            _note_storage(catalog, relation, commits)
        if commits or is_broken:
            commit_log.enter_versions(catalog, cluster, relation)
        last = last_logged_version(catalog.connection, oid)
        entered = sum(
            commit.changes_data and not commit.is_silent and commit.version <= (last or 0)
            for commit in commits
        )
        name = relation.qualified_name
        yield FoundTable(database, name, known, newest, entered, undone[oid], is_broken)


def _stored_relations(catalog: Catalog) -> dict[int, Relation]:
    relations = load_relations(catalog, relation_oids(catalog, "r"))
    return {
        oid: relation
        for oid, relation in relations.items()
        if relation.storage is not None and not _is_missing(relation)
    }


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
