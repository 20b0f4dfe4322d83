"""The chain of a table's versions: whether the versions that our log has are still those that the
table has.

Delta's log only grows.  A table whose newest version that we know is gone, or has another content,
was put back from a backup, replaced or overwritten outside of Delta: what differs is not known.
"""

from __future__ import annotations

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_wal import (
    BREAK,
    LoggedTable,
    enter,
    entered_versions,
    forget_versions,
    last_entered_version,
)
from replctl.catalog.storage import note_foreign_commit
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.adopt import adopt_new_columns
from replctl.lake.delta_log import latest_version, stored_columns, version_digest


def is_unbroken(table: LoggedTable, newest: int | None) -> bool:
    """Return whether a table still has the newest version that our log has of it.

    A version that was cleaned out of Delta's log while later ones are there is believed; that there
    is no table at all is another error.

    Args:
        newest: the newest version that the table has; None, if there is no table.
    """
    if table.version is None or newest is None:
        return True
    if newest < table.version:
        return False
    found = version_digest(table.location, table.version)
    return found is None or table.digest is None or found == table.digest


def is_broken(catalog: Catalog, relation: Relation) -> bool:
    """Return whether a relation's table does not have the newest version of our log any more."""
    assert relation.storage is not None
    version, digest = last_entered_version(catalog.connection, relation.oid) or (None, None)
    table = LoggedTable(relation.oid, relation.storage.location, version, digest)
    return not is_unbroken(table, latest_version(table.location))


def enter_break(catalog: Catalog, relation: Relation) -> None:
    """Enter a break: our log forgets the versions that the table does not have any more, and takes
    those that it has instead as they are.

    Subscriptions that are not past it cannot be sent what has changed.
    """
    assert relation.storage is not None
    location, oid = relation.storage.location, relation.oid
    newest = latest_version(location)
    assert newest is not None
    common = _common_version(catalog, relation)
    forget_versions(catalog.connection, oid, after=common)
    note_foreign_commit(catalog.connection, oid)
    adopt_new_columns(catalog, oid, stored_columns(location), newest)
    xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    version = newest if newest > common else None
    digest = version_digest(location, newest) if newest > common else None
    enter(catalog, xid, oid, version, BREAK, digest=digest)
    commit_transaction(catalog.connection, xid, changes_catalog=False)


def _common_version(catalog: Catalog, relation: Relation) -> int:
    """Return the newest version that our log and the table have in common; -1, if none."""
    assert relation.storage is not None
    entered = entered_versions(catalog.connection, relation.oid, -1)
    for version in sorted(entered, reverse=True):
        found = version_digest(relation.storage.location, version)
        if found is not None and found == entered[version].digest:
            return version
    return -1


def replaced(relation: Relation) -> ObjectNotInPrerequisiteState:
    """Return the error of changes that reach over a break."""
    assert relation.storage is not None
    return ObjectNotInPrerequisiteState(
        f'table "{relation.qualified_name}" was replaced or put back by another program',
        detail=f'The Delta table "{relation.storage.location}" does not have the versions any more'
        " that were read before, so it is not known which rows have changed.",
    )
