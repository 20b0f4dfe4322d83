"""Record the columns of relations' Delta tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from replctl.catalog import state_schema
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass

#: The first number for additional columns in storage, which a relation's column gets when its type
#: changes.
FIRST_STORAGE_NUMBER = 2**15


@dataclass(frozen=True, slots=True)
class StorageColumn:
    """A column of a Delta table.

    Attributes:
        name: the newest name.
        since_version: the version since which the table has the column; None if it does not yet.
        number: identifies the column: the attnum of the relation's column, or a separate number if
            the type of the relation's column was changed.
        physical_name: the name in files, if it differs from `name` (column mapping).
        renamed_version: the last version that renamed, widened, dropped or restored the column.
        is_dropped: the table no longer has the column.
        is_followed: the relation's column was dropped with this column, and is restored with it.
        is_void: the relation lacks the column only because its type is void.
        former_identities: the former values of `identity`, oldest first, each with the first
            version that has another one.  The identity changes if column mapping ends or the table
            is replaced.
    """

    name: str
    since_version: int | None
    number: int
    physical_name: str | None = None
    renamed_version: int | None = None
    is_dropped: bool = False
    is_followed: bool = False
    is_void: bool = False
    former_identities: tuple[tuple[str, int], ...] = ()

    @property
    def identity(self) -> str:
        """Return the name that does not change when column mapping renames the column."""
        return self.physical_name or self.name

    def identity_at(self, version: int) -> str:
        """Return the identity of the column at a version."""
        former = (identity for identity, end in self.former_identities if version < end)
        return next(former, self.identity)


@dataclass(frozen=True, slots=True)
class FormerColumn:
    """A column of a Delta table that belonged to a relation's column before its type changed."""

    attnum: int
    type: str
    typmod: int
    stored: StorageColumn


def storage_column_of(row: Row[Any]) -> StorageColumn:
    """Return a column from a row of storage_column."""
    return StorageColumn(
        str(row.name),
        row.since_version,
        int(row.attnum),
        row.physical_name,
        row.renamed_version,
        bool(row.is_dropped),
        bool(row.is_followed),
        bool(row.is_void),
        tuple((str(name), int(end)) for name, end in json.loads(row.former_identities or "[]")),
    )


def insert_storage_column(
    catalog: Catalog,
    relid: int,
    number: int,
    name: str,
    since_version: int | None = None,
    physical_name: str | None = None,
) -> None:
    """Add a column in storage; `number` is the value of storage_column.attnum."""
    catalog.insert(
        state_schema.storage_column,
        relid=relid,
        attnum=number,
        name=name,
        since_version=since_version,
        physical_name=physical_name,
    )


def storage_names(catalog: Catalog, relid: int) -> set[str]:
    """Return the present and former names of a relation's columns in storage, in lower case."""
    columns = storage_columns(catalog.connection, relid)
    return {name.lower() for column in columns for name in (column.name, column.identity)}


def storage_columns(connection: Connection, relid: int) -> list[StorageColumn]:
    """Return the columns of a relation's Delta table, including dropped ones and reserved ones
    (numbers below 0).
    """
    table = state_schema.storage_column
    query = select(table).where(table.c.relid == relid).order_by(table.c.attnum)
    return list(map(storage_column_of, connection.execute(query)))


def note_removal(
    connection: Connection,
    relid: int,
    version: int,
    *,
    names: Collection[str] = (),
    numbers: Collection[int] = (),
) -> None:
    """Record that a version of a relation's Delta table no longer has the columns with these names,
    nor the columns with these numbers.
    """
    table = state_schema.storage_column
    is_meant = or_(table.c.name.in_(list(names)), table.c.attnum.in_(list(numbers)))
    is_reserved = and_(table.c.since_version.is_(None), table.c.attnum < 0)
    connection.execute(
        update(table)
        .where(table.c.relid == relid, is_meant, ~table.c.is_dropped)
        .where(or_(table.c.since_version <= version, is_reserved))
        .values(is_dropped=True, renamed_version=version)
    )


def note_widening(
    connection: Connection, relid: int, version: int, numbers: Collection[int]
) -> None:
    """Record that a version of a relation's Delta table gave columns wider types.  Delta may then
    refuse to read feeds of earlier versions, as it does after a renaming.
    """
    table = state_schema.storage_column
    if numbers:
        is_meant = (table.c.relid == relid, table.c.attnum.in_(list(numbers)))
        connection.execute(update(table).where(*is_meant).values(renamed_version=version))


def note_renaming(connection: Connection, relid: int, column: StorageColumn) -> None:
    """Record that other programs have renamed, dropped or added a column of a relation's Delta
    table.
    """
    table = state_schema.storage_column
    connection.execute(
        update(table)
        .where(table.c.relid == relid, table.c.attnum == column.number)
        .values(
            name=column.name,
            physical_name=column.physical_name,
            since_version=column.since_version,
            renamed_version=column.renamed_version,
            is_dropped=column.is_dropped,
            is_followed=column.is_followed,
            former_identities=json.dumps(column.former_identities),
        )
    )


def name_columns(connection: Connection, relid: int, columns: Iterable[StorageColumn]) -> None:
    """Record the names of columns that a relation's Delta table does not have yet."""
    table = state_schema.storage_column
    for column in columns:
        connection.execute(
            update(table)
            .where(table.c.relid == relid, table.c.attnum == column.number)
            .where(table.c.since_version.is_(None))
            .values(name=column.name)
        )


def next_storage_number(catalog: Catalog, relid: int) -> int:
    """Return an unused number for an additional column in storage (storage_column.attnum)."""
    table = state_schema.storage_column
    query = select(func.max(table.c.attnum)).where(table.c.relid == relid)
    return max((catalog.connection.execute(query).scalar_one() or 0) + 1, FIRST_STORAGE_NUMBER)


def reserve_storage_name(
    connection: Connection,
    relid: int,
    name: str,
    since_version: int | None = None,
    physical_name: str | None = None,
    *,
    is_void: bool = False,
) -> None:
    """Record a present or future column of a relation's Delta table that does not belong to the
    relation.  Give it a number below 0.  `is_void`: see StorageColumn.
    """
    column = state_schema.storage_column
    known = {"name": name, "since_version": since_version, "physical_name": physical_name}
    connection.execute(insert(column).values(relid=relid, attnum=0, is_void=is_void, **known))
    connection.execute(
        update(column)
        .where(column.c.relid == relid, column.c.attnum == 0)
        .values(attnum=-literal_column("storage_column.rowid"))
    )


def release_storage_name(catalog: Catalog, relid: int, name: str) -> None:
    """Remove the reservation of a name, because a column of the relation gets it."""
    stored = state_schema.storage_column
    catalog.delete(stored, stored.c.relid == relid, stored.c.name == name, stored.c.attnum < 0)


def forget_storage_column(connection: Connection, relid: int, number: int) -> None:
    """Remove the record of a column of a relation's Delta table."""
    column = state_schema.storage_column
    connection.execute(delete(column).where(column.c.relid == relid, column.c.attnum == number))


def note_lost_columns(
    connection: Connection, relid: int, present: Collection[str], version: int
) -> None:
    """Record that another Delta table has replaced a relation's table.  The new table ends at
    `version`, and has only the columns in `present` (names in lower case). replctl must create the
    other columns again, unless they are recorded as dropped.
    """
    column = state_schema.storage_column
    rows = connection.execute(select(column).where(column.c.relid == relid)).all()
    for row in rows:
        if row.since_version is None or row.is_dropped:
            continue
        since = min(int(row.since_version), version) if row.name.lower() in present else None
        if since != row.since_version:
            this = (column.c.relid == relid, column.c.attnum == row.attnum)
            connection.execute(update(column).where(*this).values(since_version=since))
