"""Check the LOCATION of tables: it must not belong to another table or to a cluster."""

from __future__ import annotations

from pathlib import Path

from replctl.catalog.cluster import Cluster
from replctl.catalog.storage import storage_locations, stored_relations
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    DuplicateObject,
    InvalidObjectDefinition,
    IoError,
    ObjectNotInPrerequisiteState,
)
from replctl.lake.delta_names import LOG_FOLDER
from replctl.lake.table_folder import TableFolder

_HINT = "Choose a directory that nothing else uses."


def check_is_empty(location: str) -> None:
    """Check that the directory of a new table is empty.

    Raises:
        ObjectNotInPrerequisiteState: the directory is not empty (55000).
        IoError: the directory cannot be listed.
    """
    try:
        is_empty = TableFolder.of(location).is_empty()
    except NotADirectoryError:  # a file has the name
        is_empty = False
    except OSError as error:
        raise IoError(f'could not list "{location}": {error}') from error
    if not is_empty:
        raise ObjectNotInPrerequisiteState(
            f'directory "{location}" exists but is not empty',
            hint="A new table needs a directory of its own: choose one that is empty or does not"
            " exist.",
        )


def check_location(catalog: Catalog, location: str) -> None:
    """Check that a location does not belong to another table or to a cluster.

    Raises:
        DuplicateObject: another relation of the database uses this Delta table.  Both would record
            its commits.
        InvalidObjectDefinition: the location is inside the directory of another table or of a
            cluster, or contains another table's directory (42P17).
    """
    folder = TableFolder.of(location)
    place = folder.canonical()
    parents = list(folder.parents())
    for parent in (TableFolder(place, is_local=True), *parents) if folder.is_local else ():
        if Cluster.exists(Path(parent.location)):
            raise _inside(location, f'of the cluster in "{parent.location}"')
    names = {parent.canonical() for parent in parents}
    for other in stored_relations(catalog):
        other_folder = TableFolder.of(other.location)
        other_place = other_folder.canonical()
        if other_place == place and other.is_here:
            raise DuplicateObject(
                f'the Delta table at "{location}" is relation "{other.name}" already'
            )
        if other_place in names:
            raise _inside(location, f'of table "{other.name}"')
        if place in {parent.canonical() for parent in other_folder.parents()}:
            raise InvalidObjectDefinition(
                f'the directory of table "{other.name}" is inside location "{location}"',
                hint=_HINT,
            )
    for parent in parents:
        if _has_log(parent):
            raise _inside(location, f'of the Delta table at "{parent.location}"')


def adopters_of(catalog: Catalog, relid: int, location: str) -> dict[int, int]:
    """Return the other relations that have adopted the Delta table of a relation, also dropped
    ones: a dict from OID to database.
    """
    adopted = storage_locations(catalog.connection, adopted_only=True)
    if not adopted:
        return {}
    place = TableFolder.of(location).canonical()
    return {
        oid: database_oid
        for oid, database_oid, other in adopted
        if oid != relid and TableFolder.of(other).canonical() == place
    }


def _has_log(folder: TableFolder) -> bool:
    """Return whether a folder is a Delta table; False if the folder cannot be listed.  Users of a
    part of a bucket often may not list the other parts.
    """
    try:
        return folder.has(LOG_FOLDER)
    except OSError:  # no right to look: the check only prevents mistakes
        return False


def _inside(location: str, whose: str) -> InvalidObjectDefinition:
    return InvalidObjectDefinition(
        f'location "{location}" is inside the directory {whose}',
        hint=_HINT,
    )
