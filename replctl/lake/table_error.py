"""Add the names of table and database to Spark's errors about a file."""

from __future__ import annotations

from copy import copy

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_subscription import Subscription, subscription_relations
from replctl.catalog.storage import storage_locations
from replctl.errors import (
    ConnectionFailure,
    DataCorrupted,
    DiskFull,
    FileAccessDenied,
    PostgresError,
    UndefinedFile,
    UnreadableColumn,
)
from replctl.lake.delta_files import files_at
from replctl.lake.delta_log import latest_version
from replctl.lake.delta_names import LOG_FOLDER
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_paths import TablePaths
from replctl.lake.version_chain import restore_hint
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.refresh_hint import offer_reconcile, refresh_hint
from replctl.session import Session

#: Errors that do not concern the file's content.
_NOT_THE_FILE_S = (ConnectionFailure, DiskFull, FileAccessDenied)


@dataclass(frozen=True, slots=True)
class _Place:
    """A file of a relation's table.

    Attributes:
        path: the file's path relative to the table; None for the table itself.
    """

    relation: Relation
    location: str
    database_oid: int
    database: str
    path: str | None

    @property
    def is_missing(self) -> bool:
        return self.path is not None and not TableFolder.of(self.location).has(self.path)


def named(
    session: Session, error: PostgresError, subscription: Subscription | None = None
) -> PostgresError:
    """Add the names of the table and the database to an error about a file.  Return other errors
    unchanged.

    Args:
        subscription: the subscription in which the error occurred; None for a statement.
    """
    if error.path is None:
        return error
    try:
        place = _place_of(session, error.path)
        if place is None:
            return error
        named_error = _with_table(place, error)
        if named_error.hint is None and isinstance(named_error, FileAccessDenied):
            named_error.hint = (
                f'Allow replctl and its Spark to write the files in "{place.location}".'
            )
        if named_error.hint is None:
            _advise(session, named_error, place, subscription)
    except PostgresError:  # the catalog or the log cannot be read
        return error
    named_error.context = error.context
    return named_error


def _with_table(place: _Place, error: PostgresError) -> PostgresError:
    table = f'table "{place.relation.qualified_name}" of database "{place.database}"'
    stored = f'The table is stored at "{place.location}".'
    if place.path is None or isinstance(error, _NOT_THE_FILE_S):
        named_error = copy(error)
        named_error.detail = f"It concerns {table}." + (f" {error.detail}" if error.detail else "")
        return named_error
    if place.is_missing:
        return UndefinedFile(f'file "{place.path}" of {table} does not exist', detail=stored)
    reason = error.detail or error.message
    kind = UnreadableColumn if isinstance(error, UnreadableColumn) else DataCorrupted
    return kind(f'could not read file "{place.path}" of {table}', detail=f"{stored} {reason}")


def _advise(
    session: Session, error: PostgresError, place: _Place, subscription: Subscription | None
) -> None:
    """Add a HINT to an error, if the user can do something about it."""
    if place.path is None:
        if latest_version(place.location) is None:
            with session.read() as catalog:
                error.hint = restore_hint(catalog, place.relation)
        return
    is_log = place.path.startswith(f"{LOG_FOLDER}/")
    table = None if subscription is None or is_log else _member(session, place, subscription)
    name, option = (None, "") if table is None else table
    if subscription is not None and name is not None and option:
        error.hint = refresh_hint(subscription, name, option)
    elif isinstance(error, UnreadableColumn):  # a new copy would read the same file
        error.hint = (
            "The file is complete. Ask the table's owner to rewrite it with the types of the"
            " table's schema. Until then, read only the other columns."
        )
    elif subscription is not None and name is not None:
        offer_reconcile(error, subscription, name)
    elif is_log or not place.is_missing:
        error.hint = "Restore the file from a backup."
    else:
        error.hint = (
            "Restore the file from a backup. Or remove the file and its rows from Delta's log, in"
            f' Python: deltalake.DeltaTable("{place.location}").repair()'
        )


def _member(
    session: Session, place: _Place, subscription: Subscription
) -> tuple[RelationName, str] | None:
    """Return the table of a subscription for which REFRESH TABLE helps, with the statement's
    option; None if there is none.

    If the unreadable file belongs to a target, its rows must be replaced.  If it belongs to a
    published table, REFRESH TABLE helps if that table's newest version is complete.
    """
    with session.cluster.read(place.database_oid) as catalog:
        above = {place.relation.oid, *ancestors_of(catalog, place.relation.oid)}
        names = {r.relation_name for r in load_relations(catalog, above).values()}
    with session.cluster.read(subscription.database_oid) as catalog:
        members = {m.relid for m in subscription_relations(catalog, subscription.oid)}
        targets = load_relations(catalog, members)
    if place.database_oid == subscription.database_oid and members & above:
        root = targets[min(members & above)]
        return root.relation_name, "replace = true"
    if not _is_complete(place.location):
        return None
    found = [
        (t.relation_name, "")
        for t in targets.values()
        if subscription.table_map.published(t.relation_name) in names
    ]
    return min(found, default=None)


def _is_complete(location: str) -> bool:
    """Return whether all files of a table's newest version exist."""
    newest = latest_version(location)
    folder, paths = TableFolder.of(location), TablePaths(location)
    if newest is None:
        return False
    found = [paths.relative(body["path"]) for body in files_at(location, newest)]
    return all(path is None or folder.has(path) for path in found)


def _place_of(session: Session, path: str) -> _Place | None:
    """Return the table to which a file belongs, in any database.  If directories of tables are
    nested, return the innermost table.
    """
    with session.cluster.begin(write=False) as connection:
        tables = storage_locations(connection)
    found: list[tuple[str, int, int, str | None]] = []
    for relid, database_oid, location in tables:
        relative = TablePaths(location).relative(path)
        is_itself = path.rstrip("/").removeprefix("file:").rstrip("/") == location.rstrip("/")
        if relative is not None or is_itself:
            found.append((location, relid, database_oid, relative))
    for location, relid, database_oid, relative in sorted(
        found, key=lambda item: len(item[0]), reverse=True
    ):
        with session.cluster.read(database_oid) as catalog:
            relation = load_relations(catalog, [relid]).get(relid)
        if relation is not None:
            database = session.cluster.database_name(database_oid)
            return _Place(relation, location, database_oid, database, relative)
    return None
