"""INHERITS and PARTITION OF: the columns and checks that a table inherits (MergeAttributes in
tablecmds.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.native_column import have_one_type
from replctl.catalog.pg_class import Column, Constraint, Relation
from replctl.catalog.relation_kind import TABLE_KINDS, Identity
from replctl.commands.column_definition import ColumnDraft
from replctl.commands.constraint import renumbered_check
from replctl.commands.ddl import Ddl
from replctl.errors import (
    CollationMismatch,
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    DuplicateTable,
    InsufficientPrivilege,
    InvalidColumnDefinition,
    UndefinedColumn,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.types.builtin import SystemRelation
from replctl.types.delta_type import is_native, native_text


def find_parents(ddl: Ddl, names: Sequence[ast.RangeVar]) -> list[Relation]:
    """Return the tables that INHERITS names.

    Raises:
        UndefinedTable: a table does not exist.
        WrongObjectType: a relation is not a table.
        DuplicateTable: a table is named twice.
    """
    parents: list[Relation] = []
    for name in names:
        parent = open_relation(ddl.environment, replace(name, pos=-1), or_sequence=True)
        if isinstance(parent, SystemRelation):
            raise InsufficientPrivilege(f'permission denied: "{parent.name}" is a system catalog')
        if parent.kind not in TABLE_KINDS:
            raise WrongObjectType(
                f'inherited relation "{parent.name}" is not a table or foreign table'
            )
        ddl.privileges.check_relation_owner(parent)
        if parent.oid in {other.oid for other in parents}:
            raise DuplicateTable(f'relation "{parent.name}" would be inherited from more than once')
        parents.append(parent)
    return parents


def check_parent(parent: Relation) -> None:
    """Check that other tables may inherit from a table.

    Raises:
        WrongObjectType: the table is partitioned or a partition.
    """
    if parent.is_partitioned:
        raise WrongObjectType(f'cannot inherit from partitioned table "{parent.name}"')
    if parent.is_partition:
        raise WrongObjectType(f'cannot inherit from partition "{parent.name}"')


def check_own_columns(drafts: Sequence[ColumnDraft]) -> None:
    """Check that no column name occurs twice.

    Raises:
        DuplicateColumn: a name occurs twice.
    """
    names: set[str] = set()
    for draft in drafts:
        if draft.column.name in names:
            raise DuplicateColumn(f'column "{draft.column.name}" specified more than once')
        names.add(draft.column.name)


def merged_columns(
    ddl: Ddl, parents: Sequence[Relation], own: Sequence[ColumnDraft]
) -> list[ColumnDraft]:
    """Return the numbered columns of a table with parents: first the inherited columns, then its
    own.  Merge columns of the same name.

    Raises:
        DatatypeMismatch, CollationMismatch, InvalidColumnDefinition: columns of the same name
            differ.
    """
    columns: list[ColumnDraft] = []
    places: dict[str, int] = {}
    conflicting: set[str] = set()
    for parent in parents:
        check_parent(parent)
        attnums: dict[int, int] = {}
        for column in parent.columns:
            place = places.get(column.name)
            if place is None:
                places[column.name] = place = len(columns)
                columns.append(ColumnDraft(_without_identity(_inherited(column, place + 1))))
            else:
                ddl.notice(f'merging multiple inherited definitions of column "{column.name}"')
                current = columns[place].column
                _check_alike(ddl, current, column, f'inherited column "{column.name}"')
                if current.default is None:
                    current = replace(current, default=column.default)
                elif column.default not in (None, current.default):
                    conflicting.add(column.name)
                merged = replace(
                    current,
                    not_null=current.not_null or column.not_null,
                    inherited_count=current.inherited_count + 1,
                )
                columns[place] = replace(columns[place], column=merged)
            attnums[column.attnum] = place + 1
        _renumber_generated(columns, parent, attnums)
    for number, draft in enumerate(own, start=1):
        place = places.get(draft.column.name)
        if place is None:
            columns.append(replace(draft, column=replace(draft.column, attnum=len(columns) + 1)))
            continue
        columns[place] = _merged_with_own(ddl, columns[place], draft, is_moved=place + 1 != number)
        if draft.default is not None:
            conflicting.discard(draft.column.name)
    for draft in columns:
        if draft.column.name in conflicting:
            raise InvalidColumnDefinition(
                f'column "{draft.column.name}" inherits conflicting default values',
                hint="To resolve the conflict, specify a default explicitly.",
            )
    return columns


def partition_columns(parent: Relation, options: Sequence[ColumnDraft]) -> list[ColumnDraft]:
    """Return the columns of a partition: the columns of its parent, with the options in the
    partition's definition.

    Raises:
        UndefinedColumn: the parent does not have a column for which there is an option.
    """
    attnums = {column.attnum: i for i, column in enumerate(parent.columns, start=1)}
    columns = [ColumnDraft(_inherited(c, attnums[c.attnum])) for c in parent.columns]
    _renumber_generated(columns, parent, attnums)
    places = {column.name: i for i, column in enumerate(parent.columns)}
    for option in options:
        place = places.get(option.column.name)
        if place is None:
            raise UndefinedColumn(f'column "{option.column.name}" does not exist')
        column = columns[place].column
        merged = replace(column, not_null=column.not_null or option.column.not_null)
        if option.default is not None:
            _check_default(column, option.column)
            merged = replace(merged, default=None)
        columns[place] = ColumnDraft(merged, option.default)
    return columns


def inherited_checks(parents: Sequence[Relation], child: Relation) -> list[Constraint]:
    """Return the CHECKs that a new table inherits, with the column numbers of the new table.

    Raises:
        DuplicateObject: parents have different CHECKs of the same name.
    """
    checks: dict[str, Constraint] = {}
    for parent in parents:
        for check in parent.checks():
            if check.no_inherit:
                continue
            mine = renumbered_check(check, parent, child)
            other = checks.get(check.name)
            if other is None:
                checks[check.name] = replace(mine, is_local=False, inherited_count=1, parent_oid=0)
            elif other.check == mine.check:
                checks[check.name] = replace(other, inherited_count=other.inherited_count + 1)
            else:
                raise DuplicateObject(
                    f'check constraint name "{check.name}" appears multiple times but with'
                    " different expressions"
                )
    return list(checks.values())


def _inherited(column: Column, attnum: int) -> Column:
    return replace(
        column,
        attnum=attnum,
        is_local=False,
        inherited_count=1,
        missing_value=None,
        statistics=None,
        options={},
    )


def _without_identity(column: Column) -> Column:
    """Return a column without its identity.  Only partitions inherit identity columns."""
    return replace(column, identity=Identity.NONE, default=None) if column.identity else column


def _renumber_generated(
    columns: list[ColumnDraft], parent: Relation, attnums: dict[int, int]
) -> None:
    """Renumber the columns to which inherited generation expressions refer."""
    for column in parent.columns:
        if column.generated and column.default is not None:
            place = attnums[column.attnum] - 1
            expr = nodes.renumber(column.default, attnums)
            draft = columns[place]
            if draft.column.default == column.default:
                columns[place] = replace(draft, column=replace(draft.column, default=expr))


def _merged_with_own(
    ddl: Ddl, inherited: ColumnDraft, own: ColumnDraft, *, is_moved: bool
) -> ColumnDraft:
    name = own.column.name
    if is_moved:
        ddl.notice(
            f'moving and merging column "{name}" with inherited definition',
            detail="User-specified column moved to the position of the inherited column.",
        )
    else:
        ddl.notice(f'merging column "{name}" with inherited definition')
    _check_alike(ddl, inherited.column, own.column, f'column "{name}"')
    column = replace(
        inherited.column,
        is_local=True,
        not_null=inherited.column.not_null or own.column.not_null,
    )
    if inherited.column.generated and own.column.identity:
        raise InvalidColumnDefinition(
            f'column "{name}" inherits from generated column but specifies identity'
        )
    if own.default is not None:
        _check_default(inherited.column, own.column)
        column = replace(column, default=None)
    return replace(own, column=column)


def _check_default(inherited: Column, own: Column) -> None:
    """Check that a column is generated both in the parent and in the child, or in neither."""
    name = own.name
    if inherited.generated and not own.generated:
        raise InvalidColumnDefinition(
            f'column "{name}" inherits from generated column but specifies default'
        )
    if own.generated and not inherited.generated:
        raise InvalidColumnDefinition(
            f'child column "{name}" specifies generation expression',
            hint="A child table column cannot be generated unless its parent column is.",
        )


def _check_alike(ddl: Ddl, one: Column, other: Column, what: str) -> None:
    if not have_one_type(one, other):
        shown = [_shown_type(ddl, column) for column in (one, other)]
        message, detail = f"{what} has a type conflict", f"{shown[0]} versus {shown[1]}"
        if is_native(one.type) and not what.startswith("inherited"):  # it cannot be declared
            raise DatatypeMismatch(
                message,
                detail=detail,
                hint=f'Leave column "{one.name}" out: the table inherits it.',
            )
        raise DatatypeMismatch(message, detail=detail)
    if one.collation != other.collation:
        raise CollationMismatch(
            f"{what} has a collation conflict",
            detail=f'"{one.collation}" versus "{other.collation}"',
        )
    if one.generated != other.generated and what.startswith("inherited"):
        raise InvalidColumnDefinition(f"{what} has a generation conflict")


def _shown_type(ddl: Ddl, column: Column) -> str:
    """Return the type of a column in messages; the Delta type of a native column."""
    if is_native(column.type):
        return f"Delta type {native_text(column.type)}"
    return ddl.environment.format_type(column.declared_type, column.declared_typmod)
