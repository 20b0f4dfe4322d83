"""Write the statements of a dump that differ between replctl and PostgreSQL: replctl adopts a Delta
table again, and has storage parameters that PostgreSQL does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from replctl.catalog.file_layout import LAYOUT, delta_properties
from replctl.catalog.pg_class import Column, Constraint, Relation
from replctl.catalog.ruleutils import constraint_definition, get_expr, own_collation
from replctl.catalog.storage import (
    CATALOG_TABLE,
    DELETION_VECTORS,
    FOREIGN_FILES,
    PARTITION_TIMEZONE,
    SCHEMA_CHANGES,
)
from replctl.catalog.storage_column import storage_columns
from replctl.dump.source import Source, with_options
from replctl.lake.adopt import collation_of, readable_column
from replctl.lake.delta_log import UNREADABLE, stored_columns
from replctl.lake.table_metadata import physical_name
from replctl.replication.table_definition import native_statement
from replctl.types.delta_type import is_native, native_text
from replctl.types.quote import quote_identifier, quote_string

#: Sets the variable is_replctl, so that psql and replctl know to which of the two they restore a
#: dump.
QUESTION = "SELECT pg_catalog.version() LIKE '%(replctl)%' AS is_replctl \\gset\n"
#: Storage parameters that are set when a table is adopted.
_ADOPTED = (FOREIGN_FILES, PARTITION_TIMEZONE)
#: Storage parameters that PostgreSQL does not have.
_OWN = (CATALOG_TABLE, DELETION_VECTORS, SCHEMA_CHANGES, *LAYOUT, *_ADOPTED)
IF_REPLCTL, ELSE, END = "\\if :is_replctl\n", "\\else\n", "\\endif\n"


def is_adopted(table: Relation) -> bool:
    """Return whether a table is an adopted Delta table."""
    return table.storage is not None and table.storage.is_adopted


def created(
    source: Source, table: Relation, checks: Sequence[Constraint], head: str, tail: str
) -> str:
    """Return CREATE TABLE, with a separate version for replctl if it differs from PostgreSQL's.

    Args:
        head: CREATE TABLE up to WITH.
        tail: the statements after it.
    """

    def with_(options: Mapping[str, str]) -> str:
        return f"{head}{with_options(options).replace(' ', chr(10), 1)};\n{tail}"

    own_names = {*_OWN, *delta_properties(table.options)}
    portable = with_({k: v for k, v in table.options.items() if k not in own_names})
    if is_adopted(table):
        assert table.storage is not None
        location = " ".join(quote_string(table.storage.location).split("\n"))
        comment = f"-- The table is the Delta table at {location}: replctl reads it there.\n"
        return comment + both_dialects(_adopting(source, table, checks), portable)
    native = [
        native_statement(table.quoted_name, column.name, native_text(column.type))
        for column in table.columns
        if is_native(column.type)
    ]
    own = with_(table.options) + "".join(f"{statement};\n" for statement in native)
    return both_dialects(own, portable)


def added(constraint: Constraint, text: str) -> str:
    """Return the statement that adds a key to a table.

    For a key that is not enforced, only PostgreSQL gets the statement.  In replctl the key is part
    of CREATE TABLE, because adding it later would check the rows.
    """
    return text if constraint.is_enforced else both_dialects("", text)


def _believed_keys(table: Relation) -> Iterator[str]:
    """Yield the keys of an adopted table that are not enforced, with the columns' names in its
    Delta table.
    """
    assert table.storage is not None
    stored = table.storage.columns
    indexes = {index.oid: index for index in table.indexes}
    for constraint in table.constraints:
        if not constraint.is_enforced:
            index = indexes[constraint.index_oid]
            key, including = (
                ", ".join(quote_identifier(stored[attnum].name) for attnum in attnums)
                for attnums in (index.key, index.including)
            )
            tail = f" INCLUDE ({including})" if including else ""
            yield (
                f"CONSTRAINT {quote_identifier(constraint.name)} PRIMARY KEY ({key}){tail}"
                " NOT ENFORCED"
            )


def both_dialects(own: str, text: str) -> str:
    """Return one text if both are equal, else both in a condition on is_replctl."""
    return text if own == text else f"{IF_REPLCTL}{own}{ELSE}{text}{END}"


def renamings(names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the steps that rename columns, so that two columns never have the same name.

    [(w, v), (v, v_1)]  ->  [(v, v_1), (w, v)]
    [(a, b), (b, a)]  ->  [(a, b_1), (b, a), (b_1, b)]

    Args:
        names: the old and the new name of each column.
    """
    steps: list[tuple[str, str]] = []
    rest = [(old, new) for old, new in names if old != new]
    taken = {old for old, _new in names}
    while rest:
        free = next(((old, new) for old, new in rest if new not in taken), None)
        if free is None:  # the remaining columns exchange names
            old, new = rest.pop(0)
            number = next(n for n in count(1) if f"{new}_{n}" not in taken)
            between = f"{new}_{number}"
            rest.append((between, new))
        else:
            old, between = free
            rest.remove(free)
        steps.append((old, between))
        taken = taken - {old} | {between}
    return steps


def _columns_there(table: Relation) -> list[tuple[str, Column]]:
    """Return the columns that an adopted table still has, each with its name in the Delta table."""
    assert table.storage is not None
    stored = table.storage.columns
    found = [(stored[column.attnum], column) for column in table.columns]
    return [(known.name, column) for known, column in found if not known.is_dropped]


def _column_list(source: Source, table: Relation) -> Iterator[str]:
    """Yield the items of the column list for adopting a table again; nothing if an adoption without
    a list gives the same columns.
    """
    there = _columns_there(table)
    own = [(name, c.type, c.typmod, c.collation) for name, c in there]
    if own == _found_columns(source, table):
        return
    for name, column in there:
        type_ = source.environment.format_type(column.declared_type, column.declared_typmod)
        collation = own_collation(source.environment, column)
        tail = "" if collation is None else f" COLLATE pg_catalog.{quote_identifier(collation)}"
        yield f"{quote_identifier(name)} {type_}{tail}"


def _found_columns(
    source: Source, table: Relation
) -> list[tuple[str, str, int, str | None]] | None:
    """Return the columns that an adoption without a list gives: name, type, typmod and collation.
    Columns that the catalog does not know yet are omitted.  Return None if the Delta log cannot be
    read.
    """
    assert table.storage is not None
    known = {c.identity for c in storage_columns(source.catalog.connection, table.oid)}
    try:
        fields = stored_columns(table.storage.location)
    except UNREADABLE:  # a dump needs no files of Delta tables
        return None
    readable = [readable_column(f) for f in fields if (physical_name(f) or f["name"]) in known]
    return [(c.name, c.type, c.typmod, collation_of(c.type)) for c in readable if c is not None]


def _adopting(source: Source, table: Relation, checks: Sequence[Constraint]) -> str:
    assert table.storage is not None
    catalog_table = table.options.get(CATALOG_TABLE)
    word = "LOCATION" if catalog_table is None else "TABLE"
    place = quote_string(catalog_table or table.storage.location)
    name = table.quoted_name
    foreign = {k: v for k, v in table.options.items() if k in _ADOPTED}
    elements = ", ".join((*_column_list(source, table), *_believed_keys(table)))
    own = f"CREATE TABLE {name}{f' ({elements})' if elements else ''}"
    own += f" USING delta {word} {place}{with_options(foreign)};\n"
    there = _columns_there(table)
    for old, new in renamings([(old, column.name) for old, column in there]):
        shown = f"{quote_identifier(old)} TO {quote_identifier(new)}"
        own += f"ALTER TABLE ONLY {name} RENAME COLUMN {shown};\n"
    for _old, column in there:
        action = f"ALTER TABLE ONLY {name} ALTER COLUMN {quote_identifier(column.name)}"
        if column.default is not None:
            expr = get_expr(source.environment, table, column.default)
            own += f"{action} SET DEFAULT {expr};\n"
        if column.not_null:
            own += f"{action} SET NOT NULL;\n"
    for check in checks:
        definition = constraint_definition(source.environment, table, check)
        constraint = quote_identifier(check.name)
        own += f"ALTER TABLE {name} ADD CONSTRAINT {constraint} {definition};\n"
    return own
