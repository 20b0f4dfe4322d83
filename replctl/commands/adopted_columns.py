"""Choose the columns of a Delta table to adopt: the columns in the statement's column list, or all
columns whose type PostgreSQL has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from replctl.catalog.pg_class import Column, Relation
from replctl.commands.ddl import Ddl
from replctl.commands.own_table import define_columns
from replctl.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    FeatureNotSupported,
    UndefinedColumn,
)
from replctl.lake.adopt import DeltaColumn, delta_type_shown, readable_column, relation_column
from replctl.lake.column_name import column_names
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.delta_type import is_native, shown_type
from replctl.types.type_modifier import is_wider

#: A column of a Delta schema.
_Field = Mapping[str, Any]
#: Types that columns of Delta strings, or of arrays of strings, may have.
_TEXTS = frozenset(("text", "varchar", "_text", "_varchar"))


@dataclass(frozen=True, slots=True)
class AdoptedColumns:
    """The columns of an adopted table.

    Attributes:
        columns: the columns of the relation.
        stored: the columns of the Delta table, in the same order.
        left_out: the other columns of the Delta table.
        constraints: the constraints of the column list.
        not_null: the columns that the list declares NOT NULL, but the Delta table does not.
        is_listed: the statement has a column list.
    """

    columns: tuple[Column, ...]
    stored: tuple[DeltaColumn, ...]
    left_out: tuple[_Field, ...]
    constraints: tuple[ast.Constraint, ...] = ()
    not_null: tuple[str, ...] = ()
    is_listed: bool = False


def all_columns(
    ddl: Ddl, relation: Relation, fields: Sequence[_Field], location: str
) -> AdoptedColumns:
    """Return all columns whose type PostgreSQL has.  Report a notice for each other column, and for
    each column that has another name in the relation.

    Raises:
        DuplicateColumn: a name occurs twice.
        FeatureNotSupported: PostgreSQL has no type for any of the columns.
    """
    delta_names: list[str] = []
    columns: list[Column] = []
    stored: list[DeltaColumn] = []
    left_out = []
    for field in fields:
        found = readable_column(field)
        if found is None:
            left_out.append(field)
            continue
        if found.name in delta_names:
            raise DuplicateColumn(f'column "{found.name}" specified more than once')
        delta_names.append(found.name)
        stored.append(found)
        columns.append(relation_column(found, len(stored)))
    if left_out and not stored:
        raise _unreadable(left_out[0], location)
    for field in left_out:
        ddl.notice(
            f'column "{field["name"]}" of the Delta table "{location}" is left out',
            detail=f"PostgreSQL has no counterpart of the type {delta_type_shown(field)}.",
        )
    names = column_names(delta_names)
    for wanted, name in names.items():
        if wanted != name:
            ddl.notice(
                f'column "{wanted}" of the Delta table "{location}" is named "{name}" in relation'
                f' "{relation.name}"'
            )
    named = (replace(column, name=names[column.name]) for column in columns)
    return AdoptedColumns(tuple(named), tuple(stored), tuple(left_out))


def listed_columns(
    ddl: Ddl,
    relation: Relation,
    statement: ast.CreateTable,
    fields: Sequence[_Field],
    location: str,
) -> AdoptedColumns:
    """Return the columns that a column list names, in the order of the list.

    Raises:
        UndefinedColumn: the Delta table lacks a column.
        DatatypeMismatch: a column has another type in the Delta table.
        FeatureNotSupported: PostgreSQL has no type for a column, or the list declares a generated
            column.
        PostgresError: a definition is wrong.
    """
    found = _readable_columns(statement, fields, location)
    defined, constraints = define_columns(ddl, relation, statement)
    columns, stored, not_null = [], [], []
    for column in defined.columns:
        known = found[column.name]
        _check_definition(ddl, column, known, location)
        if column.not_null and not known.not_null:
            not_null.append(column.name)
        stored.append(known)
        type_ = known.type if is_native(known.type) else column.type
        column = replace(column, not_null=known.not_null, field_names=known.field_names)
        columns.append(replace(column, type=type_))
    names = {column.name for column in stored}
    return AdoptedColumns(
        tuple(columns),
        tuple(stored),
        tuple(field for field in fields if field["name"] not in names),
        tuple(constraints),
        tuple(not_null),
        is_listed=True,
    )


def _readable_columns(
    statement: ast.CreateTable, fields: Sequence[_Field], location: str
) -> dict[str, DeltaColumn]:
    """Return the columns of a Delta table that a column list names, by the names of the list.

    The list has a name that PostgreSQL does not allow in the form of `column_names`.
    """
    by_name = {field["name"]: field for field in fields}
    known = by_name | {name: by_name[wanted] for wanted, name in column_names(by_name).items()}
    found = {}
    for element in statement.elements:
        if not isinstance(element, ast.ColumnDef):
            continue
        field = known.get(element.name)
        if field is None:
            raise UndefinedColumn(
                f'column "{element.name}" of the Delta table "{location}" does not exist'
            )
        readable = readable_column(field)
        if readable is None:
            raise _unreadable(field, location)
        found[element.name] = readable
    return found


def _check_definition(ddl: Ddl, column: Column, known: DeltaColumn, location: str) -> None:
    """Check that a Delta column has the type that a column list declares for it."""
    if column.generated:
        raise FeatureNotSupported(
            f'column "{column.name}" of the Delta table "{location}" cannot be a generated column,'
            " because its values are there already"
        )
    is_same = column.type == shown_type(known.type) or {column.type, known.type} <= _TEXTS
    is_array = column.type.startswith("_") == known.type.startswith("_")
    is_of_users = column.domain or column.user_type
    has_length = column.typmod == known.typmod or (
        known.type in _TEXTS and is_wider(known.type, known.typmod, column.typmod)
    )
    if not is_same or not is_array or not has_length or is_of_users:
        shown = ddl.environment.format_type
        raise DatatypeMismatch(
            f'column "{column.name}" of the Delta table "{location}" has type'
            f" {shown(known.type, known.typmod)}, not"
            f" {shown(column.declared_type, column.declared_typmod)}"
        )


def _unreadable(field: _Field, location: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'column "{field["name"]}" of the Delta table "{location}" has the type'
        f" {delta_type_shown(field)}, which has no counterpart in PostgreSQL"
    )
