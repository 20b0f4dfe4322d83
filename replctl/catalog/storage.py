"""Record facts about relations' Delta tables: where they are, and who writes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)

from replctl.catalog import schema, state_schema
from replctl.catalog.pg_type import type_name
from replctl.catalog.storage_column import (
    FIRST_STORAGE_NUMBER,
    FormerColumn,
    StorageColumn,
    storage_column_of,
)
from replctl.catalog.table_home import TableHome
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass

#: The storage parameter that turns deletion vectors on or off, because some readers do not support
#: them.
DELETION_VECTORS = "deletion_vectors"

#: The storage parameter that says how replctl changes the columns of a Delta table: it rewrites all
#: rows, or changes only metadata.
SCHEMA_CHANGES = "schema_changes"

#: The storage parameter that allows an adopted table to have files anywhere, as a shallow clone
#: has.
FOREIGN_FILES = "foreign_files"

#: The storage parameter for a table's name in the catalogs of Spark.
CATALOG_TABLE = "catalog_table"

#: The storage parameter for the time zone of timestamps among the partition values in the Delta
#: log.
PARTITION_TIMEZONE = "partition_timezone"


@dataclass(frozen=True, slots=True)
class Storage:
    """A relation's Delta table.  `columns` is by attnum, and `former` is sorted from old to new.

    Attributes:
        has_location: the user chose the location (LOCATION).
        was_empty: the directory was empty before replctl created the table there; None if replctl
            has not begun to create it.
        has_foreign: another program has committed to the table.
        is_read_only: this cluster is a copy, and the table belongs to the original cluster.
        has_row_ids: the rows of the newest version in the log have row ids.
        taken_over: the last time when a process finished or undid the writes of a dead process, in
            microseconds since 1970.
        last_renaming: the last version that renamed, widened or dropped columns, including columns
            that no longer belong to the relation; -1 if there is none.
        unused: names of the columns that replctl has created in the Delta table, and that the
            relation no longer has.
        others: names of the columns that other programs have created in the Delta table, and that
            the relation does not have.
        reserved: names of the columns that an ALTER TABLE of replctl may have created in the Delta
            table before it failed or its process died.
    """

    location: str
    is_adopted: bool
    is_made: bool
    columns: dict[int, StorageColumn] = field(default_factory=dict, hash=False)
    former: tuple[FormerColumn, ...] = ()
    has_location: bool = False
    was_empty: bool | None = None
    has_foreign: bool = False
    taken_over: int | None = None
    is_read_only: bool = False
    has_row_ids: bool = True
    last_renaming: int = -1
    unused: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the names of the table owner's columns that the relation does not have."""
        return tuple(sorted((*self.others, *self.unused))) if self.is_adopted else self.others

    @property
    def has_own_row_ids(self) -> bool:
        """Return whether row ids identify rows at every version.  For adopted tables this is
        unknown, so the result is False.
        """
        return self.has_row_ids and not self.is_adopted

    @property
    def is_in_base(self) -> bool:
        """Return whether replctl chose the directory.  Then the directory has no other files."""
        return not self.is_adopted and not self.has_location and not self.is_read_only


def wants_metadata_changes(options: Mapping[str, str]) -> bool:
    """Return whether storage parameters say that changes of columns change only metadata."""
    return options.get(SCHEMA_CHANGES, "").lower() == "metadata"


def load_storage(
    catalog: Catalog, oids: list[int], attributes: Sequence[Row[Any]]
) -> dict[int, Storage]:
    table, column = state_schema.storage_table, state_schema.storage_column
    numbers = {
        (int(row.attrelid), int(row.attfilenode)): int(row.attnum)
        for row in attributes
        if row.attfilenode != 0
    }
    current = {(relid, attnum): number for (relid, number), attnum in numbers.items()}
    columns: dict[int, dict[int, StorageColumn]] = defaultdict(dict)
    former: dict[int, list[FormerColumn]] = defaultdict(list)
    renamed: dict[int, int] = defaultdict(lambda: -1)
    used = {
        (int(row.attrelid), int(row.attfilenode or row.attnum))
        for row in attributes
        if not row.attisdropped
    }
    unused: dict[int, list[str]] = defaultdict(list)
    others: dict[int, list[str]] = defaultdict(list)
    reserved: dict[int, list[str]] = defaultdict(list)
    for row in catalog.select_in(column.c.relid, oids, column.c.attnum):
        relid, number = int(row.relid), int(row.attnum)
        stored = storage_column_of(row)
        renamed[relid] = max(renamed[relid], row.renamed_version or -1)
        is_own = number > 0 or row.owner is not None  # numbers of others are below 0, too
        is_there = stored.since_version is not None and not stored.is_dropped
        if is_there and (relid, number) not in used:
            (unused if is_own else others)[relid].append(stored.name)
        elif number < 0 and not stored.is_dropped:
            reserved[relid].append(stored.name)
        if (relid, number) in numbers:
            columns[relid][numbers[relid, number]] = stored
        elif (relid, number) not in current and 0 < number < FIRST_STORAGE_NUMBER:
            columns[relid][number] = stored
        elif row.owner is not None and 0 < number < current.get((relid, row.owner), 0):
            kind = type_name(int(row.atttypid))
            former[relid].append(FormerColumn(int(row.owner), kind, int(row.atttypmod), stored))
    home = catalog.cached("table home", lambda: TableHome(catalog.connection))
    return {
        int(row.relid): Storage(
            home.located(str(row.location)),
            bool(row.is_adopted),
            bool(row.is_made),
            columns[int(row.relid)],
            tuple(former[int(row.relid)]),
            bool(row.has_location),
            row.was_empty,
            bool(row.has_foreign),
            row.taken_over,
            bool(row.is_read_only),
            bool(row.has_row_ids),
            renamed[int(row.relid)],
            tuple(sorted(unused[int(row.relid)])),
            tuple(sorted(others[int(row.relid)])),
            tuple(sorted(reserved[int(row.relid)])),
        )
        for row in catalog.select_in(table.c.relid, oids)
    }


def insert_storage(
    catalog: Catalog, relid: int, location: str, *, is_adopted: bool, has_location: bool
) -> None:
    """Record where a relation's Delta table is, or will be.  An adopted table exists already."""
    catalog.insert(
        state_schema.storage_table,
        relid=relid,
        location=location,
        is_adopted=is_adopted,
        is_made=is_adopted,
        has_location=has_location,
        has_row_ids=not is_adopted,
    )


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation with a present or future Delta table.

    Attributes:
        name: the name without a schema.
        is_here: the relation belongs to the catalog's own database.
    """

    name: str
    is_here: bool
    location: str


def stored_relations(catalog: Catalog) -> list[StoredRelation]:
    """Return the relations of all databases that have storage, except dropped ones."""
    names = {int(row.oid): str(row.relname) for row in catalog.select_everywhere(schema.pg_class)}
    home = TableHome(catalog.connection)
    return [
        StoredRelation(
            names[int(row.relid)],
            int(row.dbid) == catalog.database_oid,
            home.located(str(row.location)),
        )
        for row in catalog.connection.execute(select(state_schema.storage_table))
        if int(row.relid) in names
    ]


def storage_locations(
    connection: Connection, *, adopted_only: bool = False
) -> list[tuple[int, int, str]]:
    """Return OID, database and location of the Delta tables of all databases, even of dropped
    relations.
    """
    table, home = state_schema.storage_table, TableHome(connection)
    query = select(table).where(table.c.is_adopted) if adopted_only else select(table)
    return [
        (int(row.relid), int(row.dbid), home.located(str(row.location)))
        for row in connection.execute(query)
    ]


def relations_with_storage(connection: Connection) -> set[int]:
    """Return the OIDs of all relations with a present or future Delta table, in all databases, also
    of dropped relations.
    """
    return set(connection.execute(select(state_schema.storage_table.c.relid)).scalars())


def abandon_storage(connection: Connection) -> list[str]:
    """Remove the records of columns and tables whose definitions were undone.

    A column that exists in the Delta table stays recorded under a number below 0, so that no other
    column gets its name.  `owner` is then the attnum of the relation's column to which it belonged.
    A table that replctl has begun to create stays recorded, like a dropped table, so that VACUUM
    removes its files.

    Returns:
        The directories that users chose (LOCATION) for such tables.  Their files stay.
    """
    column, table = state_schema.storage_column, state_schema.storage_table
    attribute, relation = schema.pg_attribute, schema.pg_class
    is_defined = exists().where(
        attribute.c.attrelid == column.c.relid,
        or_(attribute.c.attnum == column.c.attnum, attribute.c.attfilenode == column.c.attnum),
    )
    orphaned = (column.c.attnum > 0, ~is_defined)
    connection.execute(delete(column).where(*orphaned, column.c.since_version.is_(None)))
    connection.execute(
        update(column)
        .where(*orphaned)
        .values(
            attnum=-literal_column("storage_column.rowid"),
            owner=func.coalesce(column.c.owner, column.c.attnum),
        )
    )
    has_relation = exists().where(relation.c.oid == table.c.relid)
    connection.execute(delete(table).where(~has_relation, table.c.was_empty.is_(None)))
    left = select(table.c.location).where(~has_relation, table.c.has_location, table.c.is_made)
    locations = [str(location) for location in connection.execute(left).scalars()]
    connection.execute(delete(table).where(~has_relation, table.c.has_location))
    return locations


def begin_storage(connection: Connection, relid: int, *, is_empty: bool) -> None:
    """Record, before replctl creates a relation's Delta table, whether its directory is empty.
    Keep the record of an earlier attempt.
    """
    table = state_schema.storage_table
    connection.execute(
        update(table)
        .where(table.c.relid == relid, table.c.was_empty.is_(None))
        .values(was_empty=is_empty)
    )


def note_takeover(connection: Connection, relids: Collection[int], time: int) -> None:
    """Record when a process finished or undid the writes of a dead process.  Spark may still be
    working on these writes.
    """
    table = state_schema.storage_table
    connection.execute(update(table).where(table.c.relid.in_(list(relids))).values(taken_over=time))


def note_foreign_commit(connection: Connection, relid: int) -> None:
    """Record that another program has committed to a relation's Delta table."""
    table = state_schema.storage_table
    connection.execute(
        update(table).where(table.c.relid == relid, ~table.c.has_foreign).values(has_foreign=True)
    )


def note_metadata(connection: Connection, relid: int, table_id: str, *, has_row_ids: bool) -> None:
    """Record the Delta table (metaData.id) of a relation's newest version in the log, and whether
    its rows have row ids.
    """
    table = state_schema.storage_table
    change = update(table).where(table.c.relid == relid)
    connection.execute(change.values(table_id=table_id, has_row_ids=has_row_ids))


def known_table_id(connection: Connection, relid: int) -> str | None:
    """Return the metaData.id that `note_metadata` has recorded; None if there is none."""
    table = state_schema.storage_table
    query = select(table.c.table_id).where(table.c.relid == relid)
    return connection.execute(query).scalar_one_or_none()


def forget_foreign_commit(connection: Connection, relid: int) -> None:
    """Record that the only commit without a mark is replctl's own compaction."""
    table = state_schema.storage_table
    connection.execute(update(table).where(table.c.relid == relid).values(has_foreign=False))


def keep_versions(connection: Connection, relid: int, version: int) -> None:
    """Record that a relation's Delta table ends at a version; -1 if there is no table. replctl must
    create columns of later versions again.
    """
    column, table = state_schema.storage_column, state_schema.storage_table
    is_later = (column.c.relid == relid, column.c.since_version > version)
    again = {"since_version": None, "physical_name": None, "renamed_version": None}
    connection.execute(update(column).where(*is_later).values(**again, is_dropped=False))
    if version < 0:
        connection.execute(update(table).where(table.c.relid == relid).values(is_made=False))


def note_storage(
    connection: Connection,
    relid: int,
    numbers: Collection[int],
    version: int,
    physical: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Record that a relation's Delta table exists, and has these columns (storage_column.attnum)
    since `version`.

    Args:
        physical: the names in data files of columns for which they differ, by the columns' names.
    """
    column, table = state_schema.storage_column, state_schema.storage_table
    connection.execute(
        update(column)
        .where(column.c.relid == relid, column.c.attnum.in_(list(numbers)))
        .values(since_version=version)
    )
    for name, physical_name in physical.items():
        is_meant = (column.c.relid == relid, column.c.attnum.in_(list(numbers)))
        connection.execute(
            update(column)
            .where(*is_meant, column.c.name == name)
            .values(physical_name=physical_name)
        )
    connection.execute(update(table).where(table.c.relid == relid).values(is_made=True))


def set_acceptance(connection: Connection, relid: int, *, accepts: bool) -> None:
    """Record whether a table's commits with unknown marks count as commits of another writer."""
    table = state_schema.storage_table
    change = update(table).where(table.c.relid == relid)
    connection.execute(change.values(accepts_marks=accepts))


def adopt_again(connection: Connection, relid: int) -> None:
    """Record that a table of the original now belongs to this copy of its cluster, like an adopted
    table: replctl writes it, and does not remove its files.
    """
    table = state_schema.storage_table
    change = update(table).where(table.c.relid == relid)
    changes = {"is_read_only": False, "has_location": True, "has_foreign": True}
    connection.execute(change.values(**changes))


def accepts_marks(connection: Connection, relid: int) -> bool:
    """Return whether a table's commits with unknown marks count as commits of another writer."""
    table = state_schema.storage_table
    query = select(table.c.accepts_marks).where(table.c.relid == relid)
    return bool(connection.execute(query).scalar_one_or_none())
