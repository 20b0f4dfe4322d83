"""Assign storage to relations: a location for the Delta table, and a name in it for each column.

This module does not create the Delta table; the first write does (table_write.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from replctl.catalog.heap import replace_storage_column
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.storage import insert_storage
from replctl.catalog.storage_column import (
    StorageColumn,
    insert_storage_column,
    next_storage_number,
    release_storage_name,
    storage_names,
)
from replctl.catalog.table_home import located, relative_location
from replctl.catalog.transaction import Catalog
from replctl.lake.delta_log import latest_version
from replctl.lake.table_metadata import physical_names
from replctl.spark import NO_COLUMN

#: Characters that Delta refuses in the names of columns and fields without column mapping.
REFUSED_IN_NAMES = " ,;{}()\n\t="
_NOT_IN_NAMES = re.compile(f"[{REFUSED_IN_NAMES}`]")  # Delta cannot handle a backquote
_RESERVED = frozenset(
    {"_change_type", "_commit_version", "_commit_timestamp", "_metadata", NO_COLUMN}
)


def give_storage(catalog: Catalog, relation: Relation) -> None:
    """Assign a location to a relation that contains rows, and names in storage to its columns."""
    wanted = relative_location(catalog.database_oid, relation.oid)
    location = _free_location(catalog, wanted)
    insert_storage(catalog, relation.oid, location, is_adopted=False, has_location=False)
    taken = storage_names(catalog, relation.oid)
    for column in relation.columns:
        name = free_name(column.name, taken)
        taken.add(name.lower())
        insert_storage_column(catalog, relation.oid, column.attnum, name)


def _free_location(catalog: Catalog, wanted: str) -> str:
    """Return a location without a Delta table.  There may be one at the wanted location, because a
    restored catalog may assign the same numbers again.
    """
    location, number = wanted, 0
    while latest_version(located(catalog.connection, location)) is not None:
        number += 1
        location = f"{wanted}_{number}"
    return location


def give_storage_column(
    catalog: Catalog, relation: Relation, column: Column, place: tuple[str, int] | None = None
) -> None:
    """Assign a name in storage to a column: its own name, or a similar one that no column of the
    table has had.

    Args:
        place: if the Delta table already has the column: its name, and the first version with it.
    """
    relid = relation.oid
    name, since_version = place or (free_name(column.name, storage_names(catalog, relid)), None)
    if place is not None:
        release_storage_name(catalog, relid, name)
    physical = _physical_name(relation, name, since_version)
    insert_storage_column(catalog, relid, column.attnum, name, since_version, physical)


def renew_storage_column(
    catalog: Catalog,
    relation: Relation,
    former: Column,
    name: str | None = None,
    since_version: int | None = None,
) -> None:
    """Assign a new column in storage to a column whose values will be stored differently.

    Args:
        relation, former: the relation and its column before the change.
        name, since_version: if the Delta table already has the new column: its name, and the first
            version with it.
    """
    chosen = name or free_name(former.name, storage_names(catalog, relation.oid))
    number = next_storage_number(catalog, relation.oid)
    physical = _physical_name(relation, chosen, since_version)
    stored = StorageColumn(chosen, since_version, number, physical)
    replace_storage_column(catalog, relation, former, stored)


def _physical_name(relation: Relation, name: str, version: int | None) -> str | None:
    """Return a column's name in data files if it differs from the column's name; None also for a
    column that the Delta table does not have yet."""
    if version is None or relation.storage is None:
        return None
    return physical_names(relation.storage.location, version).get(name)


def own_names(relation: Relation, others: Collection[str] = ()) -> dict[int, str]:
    """Return the names that columns should have in a Delta table, by attnum: their names in the
    relation, or similar names that Delta allows.

    Args:
        others: the names of other columns of the Delta table.
    """
    assert relation.storage is not None
    stored = {c.attnum: relation.storage.columns[c.attnum].name for c in relation.columns}
    wanted = {column.attnum: free_name(column.name, ()) for column in relation.columns}
    taken = {name.lower() for name in others}
    names: dict[int, str] = {}
    for attnum in sorted(wanted, key=lambda attnum: wanted[attnum] != stored[attnum]):
        if wanted[attnum].lower() not in taken:
            names[attnum] = wanted[attnum]
            taken.add(wanted[attnum].lower())
    for column in relation.columns:
        if column.attnum not in names:
            known = stored[column.attnum]
            name = free_name(column.name, taken) if known.lower() in taken else known
            names[column.attnum] = name
            taken.add(name.lower())
    return names


def differing_names(relation: Relation) -> dict[int, str]:
    """Return the names of `own_names` that differ from the present names, by attnum."""
    assert relation.storage is not None
    columns = relation.storage.columns
    names = own_names(relation).items()
    return {attnum: name for attnum, name in names if name != columns[attnum].name}


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return a name similar to `wanted` that is free in storage.

    Args:
        taken: names in use, in lower case.
    """
    base = _NOT_IN_NAMES.sub("_", wanted)
    name, number = base, 0
    while name.lower() in taken or name.lower() in _RESERVED:
        number += 1
        name = f"{base}_{number}"
    return name
