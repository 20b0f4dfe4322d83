"""Describe published tables, and write the statements that create equal tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.types.named_relation import NamedRelation
from replctl.types.quote import quote_identifier, quote_qualified_identifier, quote_string


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A published column.

    Attributes:
        type: the type in CREATE TABLE, with its schema: `numeric(10,2)`, `public.mood`.
        collation: None for the type's default.
        attnum: identifies the column at the publisher, even after a renaming; 0 if unknown.
        missing_value: the value in rows that are older than the column; None for NULL.
        is_computed: rows that are older than the column have values that were computed for each
            row.
        is_restored: another program dropped the column at the publisher and has restored it.  Rows
            may have their former values again.
        type_name, typmod: the type's name in typed expressions, and its modifier.
        delta_type: the Delta type of a native column in Spark's syntax; '' for other columns.
    """

    name: str
    type: str
    collation: str | None = None
    not_null: bool = False
    comment: str | None = None
    attnum: int = 0
    missing_value: str | None = None
    is_computed: bool = False
    is_restored: bool = False
    type_name: str = ""
    typmod: int = -1
    delta_type: str = ""

    @property
    def text(self) -> str:
        """Return the column as an item of CREATE TABLE."""
        text = f"{quote_identifier(self.name)} {self.type}"
        if self.collation is not None:
            text += f" COLLATE pg_catalog.{quote_identifier(self.collation)}"
        return text + (" NOT NULL" if self.not_null else "")

    @property
    def form(self) -> tuple[str, str | None, str]:
        """Return type, collation and Delta type."""
        return self.type, self.collation, self.delta_type


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """An enum or a domain that published columns use.

    Attributes:
        statements: the statements that create the type, without semicolons.
    """

    schema: str
    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableDefinition(NamedRelation):
    """A published table, as far as a subscriber needs it.

    Attributes:
        columns: the published columns, in their order.
        primary_key: name and columns of the primary key; None if there is none, or if a column of
            it is not published.
        identity: name and columns of the index that is the replica identity, if it is not the
            primary key.
        is_identified_by_row: the replica identity is FULL.
        types: the user-defined types of the columns, each after the types that it needs.
        oid: identifies the table at the publisher, even after a renaming; 0 if unknown.
        attnums: the numbers of all columns, published or not.
        cluster: the publisher's system identifier if the table is adopted, else 0.  Only columns of
            adopted tables have recorded origins (column_origin.py).
    """

    schema: str
    name: str
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, tuple[str, ...]] | None = None
    identity: tuple[str, tuple[str, ...]] | None = None
    is_identified_by_row: bool = False
    comment: str | None = None
    types: tuple[TypeDefinition, ...] = ()
    oid: int = 0
    attnums: frozenset[int] = frozenset()
    cluster: int = 0

    def statements(self, schema: str, name: str, table_options: str) -> Iterator[str]:
        """Yield the statements that create an equal table, each without its semicolon.

        Args:
            schema, name: the names of the new table.
            table_options: the storage parameters between the parentheses of WITH (...); "" for
                none.
        """
        table = quote_qualified_identifier(schema, name)
        items = [column.text for column in self.columns]
        if self.primary_key is not None:
            key_name, columns = self.primary_key
            items.append(f"CONSTRAINT {quote_identifier(key_name)} PRIMARY KEY ({_list(columns)})")
        text = f"CREATE TABLE {table} (" + ",".join(f"\n    {item}" for item in items) + "\n)"
        yield text + (f" WITH ({table_options})" if table_options else "")
        for column in self.columns:
            yield from native_statements(table, column)
        if self.identity is not None:
            index, columns = self.identity
            index_name = quote_identifier(index)
            yield f"CREATE UNIQUE INDEX {index_name} ON {table} ({_list(columns)})"
            yield f"ALTER TABLE {table} REPLICA IDENTITY USING INDEX {index_name}"
        if self.is_identified_by_row:
            yield f"ALTER TABLE {table} REPLICA IDENTITY FULL"
        if self.comment is not None:
            yield f"COMMENT ON TABLE {table} IS {quote_string(self.comment)}"
        for column in self.columns:
            if column.comment is not None:
                place = f"{table}.{quote_identifier(column.name)}"
                yield f"COMMENT ON COLUMN {place} IS {quote_string(column.comment)}"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A commit that changes definitions of published tables.

    Attributes:
        before, after: the definitions of all published tables, by schema and name.
    """

    lsn: int
    before: Mapping[RelationName, TableDefinition]
    after: Mapping[RelationName, TableDefinition]


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The changes of a published table's columns from one definition to the next.

    Attributes:
        dropped: the names of dropped columns.
        renamed: the old and the new name of each renamed column.
        retyped: the old and the new definition of each column with another type, collation or Delta
            type.
        nullable: the names of the columns that have lost NOT NULL.
        added: the new columns.
    """

    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    retyped: tuple[tuple[ColumnDefinition, ColumnDefinition], ...] = ()
    nullable: tuple[str, ...] = ()
    added: tuple[ColumnDefinition, ...] = ()


def column_changes(before: TableDefinition, after: TableDefinition) -> ColumnChanges:
    """Return how the columns of a table have changed.  Columns that were only added to a column
    list, or removed from it, do not count.
    """
    if before.oid != after.oid:
        return ColumnChanges()
    old = {column.attnum: column for column in before.columns}
    both = [(old[c.attnum], c) for c in after.columns if c.attnum in old]
    return ColumnChanges(
        tuple(c.name for c in before.columns if c.attnum not in after.attnums),
        tuple((a.name, b.name) for a, b in both if a.name != b.name),
        tuple((a, b) for a, b in both if a.form != b.form),
        tuple(b.name for a, b in both if a.not_null and not b.not_null),
        tuple(c for c in after.columns if c.attnum not in before.attnums),
    )


def native_statements(table: str, column: ColumnDefinition) -> Iterator[str]:
    """Yield the statement that makes a column of a new table native, if the published column is
    native.

    Args:
        table: the table's name in SQL.
    """
    if column.delta_type:
        yield native_statement(table, column.name, column.delta_type)


def native_statement(table: str, column: str, delta_type: str) -> str:
    """Return the statement that makes a jsonb column native, without its semicolon.

    Args:
        table: the table's name in SQL.
        delta_type: the Delta type in Spark's syntax.
    """
    name, type_ = quote_identifier(column), quote_string(delta_type)
    return f"ALTER TABLE {table} ALTER COLUMN {name} SET (delta_type = {type_})"


def schema_statement(name: str) -> str:
    """Return the statement that creates a schema, without its semicolon."""
    return f"CREATE SCHEMA {quote_identifier(name)}"


def _list(columns: Collection[str]) -> str:
    return ", ".join(map(quote_identifier, columns))
