"""What is known of relations' Delta tables: where they lie, and which columns they have by now."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, exists, func, insert, literal_column, or_, select, update

from replctl.catalog import schema
from replctl.catalog.pg_class import FIRST_STORAGE_NUMBER
from replctl.catalog.transaction import Catalog


def storage_names(catalog: Catalog, relid: int) -> set[str]:
    """The names, in lower case, that columns of a relation have or have had in storage."""
    table = schema.storage_column
    query = select(table.c.name).where(table.c.relid == relid)
    return {str(name).lower() for name in catalog.connection.execute(query).scalars()}


def next_storage_number(catalog: Catalog, relid: int) -> int:
    """A number for one more column in storage of a relation's column (storage_column.attnum)."""
    table = schema.storage_column
    query = select(func.max(table.c.attnum)).where(table.c.relid == relid)
    return max((catalog.connection.execute(query).scalar_one() or 0) + 1, FIRST_STORAGE_NUMBER)


def reserve_storage_name(connection: Connection, relid: int, name: str) -> None:
    """Note that a relation's Delta table is going to have a column that is none of the relation
    yet, under a number of its own."""
    column = schema.storage_column
    connection.execute(insert(column).values(relid=relid, attnum=0, name=name))
    connection.execute(
        update(column)
        .where(column.c.relid == relid, column.c.attnum == 0)
        .values(attnum=-literal_column("storage_column.rowid"))
    )


def relations_at(catalog: Catalog, location: str) -> list[int]:
    """OIDs of the relations, dropped ones too, whose Delta table lies or lay at `location`."""
    table = schema.storage_table
    query = select(table.c.relid).where(table.c.location == location)
    return [int(relid) for relid in catalog.connection.execute(query).scalars()]


def relations_with_storage(connection: Connection) -> set[int]:
    """OIDs of the relations of all databases, dropped ones too, that have a Delta table or are
    going to."""
    return set(connection.execute(select(schema.storage_table.c.relid)).scalars())


def abandon_storage(connection: Connection) -> None:
    """Columns and tables whose definitions were taken back: what was not made yet is forgotten; a
    column that is there keeps its name, so that no other one gets it, under a number of its own."""
    column, table = schema.storage_column, schema.storage_table
    attribute, relation = schema.pg_attribute, schema.pg_class
    is_defined = exists().where(
        attribute.c.attrelid == column.c.relid,
        or_(attribute.c.attnum == column.c.attnum, attribute.c.attfilenode == column.c.attnum),
    )
    orphaned = (column.c.attnum > 0, ~is_defined)
    connection.execute(delete(column).where(*orphaned, column.c.since_version.is_(None)))
    connection.execute(
        update(column).where(*orphaned).values(attnum=-literal_column("storage_column.rowid"))
    )
    has_relation = exists().where(relation.c.oid == table.c.relid)
    connection.execute(delete(table).where(~has_relation))


def note_storage(
    connection: Connection, relid: int, numbers: Collection[int], version: int
) -> None:
    """A relation's Delta table is there, with these columns (storage_column.attnum) since
    `version`."""
    column, table = schema.storage_column, schema.storage_table
    connection.execute(
        update(column)
        .where(column.c.relid == relid, column.c.attnum.in_(list(numbers)))
        .values(since_version=version)
    )
    connection.execute(update(table).where(table.c.relid == relid).values(is_made=True))


def set_acceptance(connection: Connection, relid: int, *, accepts: bool) -> None:
    """Note whether commits to a table with marks that the catalog does not know are another
    writer's."""
    table = schema.storage_table
    change = update(table).where(table.c.relid == relid)
    connection.execute(change.values(accepts_marks=accepts))


def accepts_marks(connection: Connection, relid: int) -> bool:
    """Return whether commits to a table with unknown marks are another writer's."""
    table = schema.storage_table
    query = select(table.c.accepts_marks).where(table.c.relid == relid)
    return bool(connection.execute(query).scalar_one_or_none())
