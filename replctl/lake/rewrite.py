"""Rewrite columns: fill a new column in storage.

A column whose type changes gets a new column in storage, with values from the old one.  ADD COLUMN
also fills a column in storage if its default is computed for each row.

replctl does not decode the commits of a rewrite, because no row changes.  The old column stays for
ROLLBACK, until the next write of the table removes it (schema_rewrite.py).  Nobody reads the new
column before the definition that names it is committed.  So if the process dies, only an unused
column remains, which the next write removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from replctl.catalog.nextval import values_after
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_sequence import Sequence
from replctl.catalog.storage_column import reserve_storage_name, storage_names
from replctl.catalog.unfinished_write import unfinished_writes
from replctl.errors import ObjectInUse, SerializationFailure
from replctl.expr.nextval_call import taken_by_calls
from replctl.injection_point import injection_point
from replctl.lake.delta_log import latest_version, stored_names
from replctl.lake.retry import repeated
from replctl.lake.small_definition import add_columns, restore
from replctl.lake.small_rewrite import fill_columns, set_columns
from replctl.lake.storage_place import free_name
from replctl.lake.table_write import TableWriter, writing_locked
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import TableColumn


@dataclass(frozen=True, slots=True)
class ColumnRewrite:
    """A column's new values.

    Attributes:
        attnum, name, type, typmod: the new definition of the column.
        value: the value as an expression in Spark's SQL, over the table's columns in storage.
    """

    attnum: int
    name: str
    type: str
    typmod: int
    value: str


@dataclass(frozen=True, slots=True)
class NewSequence:
    """A sequence that the statement creates.  No other session uses its values.

    Attributes:
        name: the sequence's name, for errors.
        sequence: the sequence's definition.  It has no OID yet.
        taken: the number of values that other tables of the statement have used.
    """

    name: str
    sequence: Sequence
    taken: int

    def values(self, count: int) -> range:
        """Return the values for a table.

        Raises:
            SequenceGeneratorLimitExceeded: the sequence has too few values (2200H).
        """
        first, known = self.sequence.start, self.taken + count
        return values_after(self.sequence, self.name, first, False, known)[self.taken :]


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """The columns of a relation that change together.

    Attributes:
        is_row_by_row: the values are computed once per row, in the order of the rows.
        calls: the sequence of each call of nextval() in the values: an OID, or a sequence that the
            statement creates.  In the values, call i has the name `row_number_name(i)`.
    """

    relid: int
    columns: tuple[ColumnRewrite, ...]
    is_row_by_row: bool = False
    calls: tuple[int | NewSequence, ...] = ()


@dataclass(frozen=True, slots=True)
class RewrittenTable:
    """The result of a rewrite.

    Attributes:
        names: the names of the new columns in storage, by attnum.
        version: the Delta version that has the new columns.
        rows: the number of rows, if the new values are computed row by row; else 0.
    """

    names: Mapping[int, str]
    version: int
    rows: int


def rewrite_table(session: Session, rewrite: TableRewrite) -> RewrittenTable:
    """Create and fill new columns.  The caller holds the relation's lock.

    Raises:
        ObjectInUse: an unfinished copy or batch of changes writes the table (55006).
        PostgresError: a row's value cannot be converted to the new type.
        SerializationFailure: other writers committed first each time (40001).
    """
    with writing_locked(session, [rewrite.relid], is_whole=False) as writer:
        check_rewritable(writer, rewrite.relid)
        relation = writer.relations[rewrite.relid]
        assert relation.storage is not None
        location = relation.storage.location
        names = {c.attnum: _reserved_name(session, relation, c.name) for c in rewrite.columns}
        added = [TableColumn(c.attnum, c.type, c.typmod, names[c.attnum]) for c in rewrite.columns]
        with writer.commit_to(relation.oid, silent=True) as note:
            add_columns(session, location, added, note)
        injection_point("rewrite.after-columns")
        values = {names[column.attnum]: column.value for column in rewrite.columns}
        # Programs other than replctl ignore the relation's lock, and may commit first
        version, rows = repeated(lambda: _fill(writer, rewrite, location, added, values))
        injection_point("rewrite.after-fill")
        writer.note_storage(relation.oid, [], version)
    return RewrittenTable(names, version, rows)


def _fill(
    writer: TableWriter,
    rewrite: TableRewrite,
    location: str,
    columns: list[TableColumn],
    values: Mapping[str, str],
) -> tuple[int, int]:
    """Fill new columns.  Return the version that has them, and the number of rows."""
    before, rows, session = latest_version(location), 0, writer.session
    with writer.commit_to(rewrite.relid, silent=True, may_be_nothing=True) as note:
        if rewrite.is_row_by_row:
            numbers = partial(_numbers, session, rewrite.calls)
            rows = fill_columns(session, location, columns, values, numbers, note)
        else:
            set_columns(session, location, columns, values, note)
    after = latest_version(location)
    if before is None or after is None or after > before + 1:
        if rows and after is not None:  # the rewrite has not read the rows of other writers
            with writer.commit_to(rewrite.relid, silent=True) as note:
                restore(session, location, after - 1, note)
        raise SerializationFailure("could not serialize access due to concurrent update")
    return after, rows


def _numbers(session: Session, calls: tuple[int | NewSequence, ...], rows: int) -> dict[str, range]:
    """Return the values of each call of nextval() for all rows, by `row_number_name`."""

    def take(called: int | NewSequence, count: int) -> range:
        if isinstance(called, NewSequence):
            return called.values(count)
        with session.read() as catalog:
            return session.sequences.take(catalog, called, count)

    taken = taken_by_calls(calls, take, rows) if rows else []
    return {row_number_name(i): values for i, values in enumerate(taken)}


def row_number_name(i: int) -> str:
    """Return the quoted name for the value of the i-th call of nextval().  No column of a table has
    this name.
    """
    return f"`replctl nextval {i}`"


def _reserved_name(session: Session, relation: Relation, wanted: str) -> str:
    """Return a unique name for a new column.  It stays reserved even if the rewrite fails."""
    assert relation.storage is not None
    stored = stored_names(relation.storage.location)
    with session.cluster.write(session.database_oid, session.xids) as catalog:
        name = free_name(wanted, storage_names(catalog, relation.oid) | stored)
        reserve_storage_name(catalog.connection, relation.oid, name)
    return name


def check_rewritable(writer: TableWriter, relid: int) -> None:
    """Check that no subscription has to finish a write of a table first.

    Raises:
        ObjectInUse: an unfinished copy or batch of changes writes the table (55006).
    """
    relation = writer.relations[relid]
    with writer.session.read() as catalog:
        unfinished = unfinished_writes(catalog)
    if any(relid in targets for _oid, targets in unfinished):
        raise ObjectInUse(
            f'cannot ALTER TABLE "{relation.name}" because a subscription has not finished writing'
            " it",
            hint="Synchronize the subscription first.",
        )
