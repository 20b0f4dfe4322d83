"""ALTER TABLE: add and drop columns; change their defaults and NOT NULL (tablecmds.c)."""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.heap import insert_column, update_column
from replctl.catalog.native_column import have_one_type
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import Generated, RelKind
from replctl.commands.column_definition import (
    ColumnDraft,
    check_column_name,
    check_type,
    column_draft,
)
from replctl.commands.constraint import add_check_below, add_checks, sorted_constraints
from replctl.commands.ddl import Ddl, without_position
from replctl.commands.dependency import drop_objects
from replctl.commands.filled import FilledColumns
from replctl.commands.foreign_key import add_foreign_key
from replctl.commands.index import define_index, require_not_null
from replctl.commands.object_address import Object
from replctl.commands.sequence import sequence_of_column
from replctl.commands.table_expression import contains_volatile, default_expression
from replctl.commands.value import constant_value
from replctl.does_not_exist import no_column
from replctl.errors import (
    CollationMismatch,
    DatatypeMismatch,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.lake.left_out import check_not_left_out
from replctl.lake.storage_place import give_storage_column
from replctl.parser import ast
from replctl.types.builtin import system_columns

_NOT_ONLY = "Do not specify the ONLY keyword."


# ---------------------------------------------------------------------------------------------
# ADD COLUMN


def add_column(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool) -> None:
    """Add a column to a table and its child tables (ATExecAddColumn).

    Raises:
        DuplicateColumn: the table has a column of that name.
        WrongObjectType: the table is a partition.
        InvalidTableDefinition: ONLY excludes child tables, or these would inherit an identity
            column.
        FeatureNotSupported: the values of existing rows cannot be computed.
    """
    definition = command.column
    assert definition is not None
    if relation.is_partition:
        raise WrongObjectType("cannot add column to a partition")
    draft = column_draft(ddl.environment, definition, relation.name)
    if relation.column(definition.name) is not None:
        message = f'column "{definition.name}" of relation "{relation.name}" already exists'
        if not command.missing_ok:
            raise DuplicateColumn(message)
        ddl.notice(f"{message}, skipping", sqlstate=DuplicateColumn.sqlstate)
        return
    if relation.kind != RelKind.COMPOSITE_TYPE:
        check_column_name(definition.name)
    check_not_left_out(ddl.catalog, relation, definition.name)
    check_type(ddl.environment, definition)
    children = children_of(ddl.catalog, relation.oid)
    if draft.column.identity and children and recurses and not relation.is_partitioned:
        raise InvalidTableDefinition(
            "cannot recursively add identity column to table that has child tables"
        )
    if children and not recurses:
        raise InvalidTableDefinition("column must be added to child tables too")
    _add_to(ddl, relation, draft)
    current = ddl.relation(relation.oid)
    names = [column.name for column in current.columns]
    drafts = sorted_constraints(relation.name, draft.constraints, names)
    for index in drafts.indexes:
        define_index(ddl, ddl.relation(relation.oid), index)
    _add_checks(ddl, relation.oid, drafts.checks)
    for constraint in drafts.foreign_keys:
        add_foreign_key(ddl, ddl.relation(relation.oid), constraint)


def _add_to(ddl: Ddl, relation: Relation, draft: ColumnDraft) -> None:
    """Add a column to a table, then to its children.  If a child has the column, merge the two."""
    attnum = max([0, *(c.attnum for c in relation.columns), *relation.dropped_attnums]) + 1
    column = replace(draft.column, attnum=attnum)
    raw = draft.default
    if draft.sequence is not None:
        raw = sequence_of_column(ddl, relation, column, draft.sequence)
    if raw is not None:
        whole = replace(relation, columns=(*relation.columns, column))
        with without_position():
            default = default_expression(ddl.environment, whole, column, raw, ddl.now)
        column = replace(column, default=default)
    place, default = None, column.filled
    if ddl.has_rows(relation) and default is not None:
        if column.generated or contains_volatile(ddl.environment, default):
            ddl.filling = ddl.filling or FilledColumns(ddl)
            place = ddl.filling.add(relation, replace(column, default=default))
        else:
            what = "the default of a column that is added to rows"
            column = replace(column, missing_value=constant_value(ddl, default, what))
    insert_column(ddl.catalog, relation.oid, column)
    if relation.storage is not None:
        give_storage_column(ddl.catalog, relation, column, place)
    if column.not_null:
        require_not_null(ddl, ddl.relation(relation.oid), column)
    for child_oid in children_of(ddl.catalog, relation.oid):
        child = ddl.own_child(child_oid)
        existing = child.column(column.name)
        if existing is None:
            below = replace(draft.column, is_local=False, inherited_count=1)
            _add_to(ddl, child, ColumnDraft(below, raw))
            continue
        _check_alike(child, existing, column)
        merged = replace(existing, inherited_count=existing.inherited_count + 1)
        update_column(ddl.catalog, child.oid, merged)
        ddl.notice(f'merging definition of column "{column.name}" for child "{child.name}"')


def _check_alike(child: Relation, existing: Column, column: Column) -> None:
    if not have_one_type(existing, column):
        raise DatatypeMismatch(
            f'child table "{child.name}" has different type for column "{column.name}"'
        )
    if existing.collation != column.collation:
        raise CollationMismatch(
            f'child table "{child.name}" has different collation for column "{column.name}"',
            detail=f'"{existing.collation}" versus "{column.collation}"',
        )


def _add_checks(ddl: Ddl, oid: int, checks: tuple[ast.Constraint, ...]) -> None:
    relation = ddl.relation(oid)
    with without_position():
        added = add_checks(ddl, relation, checks, merges=False)
    for made in added:
        add_check_below(ddl, relation, made)


# ---------------------------------------------------------------------------------------------
# DROP COLUMN


def drop_column(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Drop a column of a table and of its child tables (ATExecDropColumn).

    Raises:
        UndefinedColumn: there is no such column.
        InvalidTableDefinition: the column is inherited, or part of the partition key.
        DependentObjectsStillExist: an object uses the column.
    """
    name = command.name or ""
    if relation.column(name) is None and name not in system_columns() and command.missing_ok:
        ddl.notice(f'column "{name}" of relation "{relation.name}" does not exist, skipping')
        return
    objects: list[Object] = []
    _collect_drops(ddl, relation, name, objects, recurses=recurses, is_below=False)
    drop_objects(ddl, objects, command.behavior)


def _collect_drops(
    ddl: Ddl,
    relation: Relation,
    name: str,
    objects: list[Object],
    *,
    recurses: bool,
    is_below: bool,
) -> None:
    if name in system_columns():
        raise FeatureNotSupported(f'cannot drop system column "{name}"')
    column = existing_column(relation, name)
    if column.inherited_count > 0 and not is_below:
        raise InvalidTableDefinition(f'cannot drop inherited column "{name}"')
    key = relation.partition_key
    if key is not None and column.attnum in key.attnums:
        raise InvalidTableDefinition(
            f'cannot drop column "{name}" because it is part of the partition key of relation'
            f' "{relation.name}"'
        )
    children = [ddl.relation(oid) for oid in children_of(ddl.catalog, relation.oid)]
    if children and not recurses and relation.is_partitioned:
        raise InvalidTableDefinition(
            "cannot drop column from only the partitioned table when partitions exist",
            hint=_NOT_ONLY,
        )
    for child in children:
        below = existing_column(child, name)
        if recurses and below.inherited_count == 1 and not below.is_local:
            child = ddl.own_child(child.oid)
            _collect_drops(ddl, child, name, objects, recurses=True, is_below=True)
            continue
        left = replace(
            below,
            inherited_count=below.inherited_count - 1,
            is_local=below.is_local or not recurses,
        )
        update_column(ddl.catalog, child.oid, left)
    objects.append(Object("column", relation.oid, column.attnum))


def existing_column(relation: Relation, name: str) -> Column:
    """Return the column that an action names.

    Raises:
        UndefinedColumn: there is no such column.
        FeatureNotSupported: the column is a system column.
    """
    column = relation.column(name)
    if column is not None:
        return column
    if name in system_columns():
        raise FeatureNotSupported(f'cannot alter system column "{name}"')
    raise no_column(name, relation.name)


# ---------------------------------------------------------------------------------------------
# DEFAULT and NOT NULL


def set_default(
    ddl: Ddl, relation: Relation, name: str, raw: ast.RawExpr | None, *, recurses: bool
) -> None:
    """Set or drop the default of a column (ATExecColumnDefault).

    Raises:
        SqlSyntaxError: the column is a generated column.
        PostgresError: the expression is wrong.
    """
    column = existing_column(relation, name)
    if column.identity:
        raise SqlSyntaxError(
            f'column "{name}" of relation "{relation.name}" is an identity column',
            hint=None
            if raw is not None
            else "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.",
        )
    if column.generated:
        raise SqlSyntaxError(
            f'column "{name}" of relation "{relation.name}" is a generated column',
            hint="Use ALTER TABLE ... ALTER COLUMN ... SET EXPRESSION instead."
            if raw is not None
            else "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.",
        )
    default = None
    if raw is not None:
        with without_position():
            default = default_expression(ddl.environment, relation, column, raw, ddl.now)
    update_column(ddl.catalog, relation.oid, replace(column, default=default))
    if recurses:
        for oid in children_of(ddl.catalog, relation.oid):
            set_default(ddl, ddl.own_child(oid), name, raw, recurses=True)


def drop_expression(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Make an ordinary column of a generated column, which keeps its values
    (ATPrepDropExpression, ATExecDropExpression).

    Raises:
        FeatureNotSupported: ONLY excludes child tables.
        InvalidTableDefinition: the column is inherited.
        ObjectNotInPrerequisiteState: the column is not a generated column.
    """
    if not recurses and children_of(ddl.catalog, relation.oid):
        raise FeatureNotSupported(
            "ALTER TABLE / DROP EXPRESSION must be applied to child tables too"
        )
    name = command.name or ""
    column = existing_column(relation, name)
    if column.inherited_count:
        raise InvalidTableDefinition("cannot drop generation expression from inherited column")
    if not column.generated:
        message = f'column "{name}" of relation "{relation.name}" is not a stored generated column'
        if not command.missing_ok:
            raise ObjectNotInPrerequisiteState(message)
        ddl.notice(f"{message}, skipping")
        return
    _drop_expression(ddl, relation, name)


def _drop_expression(ddl: Ddl, relation: Relation, name: str) -> None:
    column = existing_column(relation, name)
    if column.generated:
        ordinary = replace(column, generated=Generated.NONE, default=None)
        update_column(ddl.catalog, relation.oid, ordinary)
    for oid in children_of(ddl.catalog, relation.oid):
        _drop_expression(ddl, ddl.own_child(oid), name)


def set_not_null(ddl: Ddl, relation: Relation, name: str, *, recurses: bool) -> None:
    """Forbid NULL in a column (ATExecSetNotNull).

    Raises:
        NotNullViolation: a row has NULL in the column.
    """
    column = existing_column(relation, name)
    if not column.not_null:
        require_not_null(ddl, relation, column)
        update_column(ddl.catalog, relation.oid, replace(column, not_null=True))
    for oid in children_of(ddl.catalog, relation.oid):
        asks_child = not column.not_null if relation.is_partitioned else recurses
        child = ddl.own_child(oid) if asks_child else ddl.relation(oid)
        if recurses:
            set_not_null(ddl, child, name, recurses=True)
        elif relation.is_partitioned and not existing_column(child, name).not_null:
            raise InvalidTableDefinition(
                "constraint must be added to child tables too",
                detail=f'Column "{name}" of relation "{child.name}" is not already NOT NULL.',
                hint=_NOT_ONLY,
            )


def drop_not_null(ddl: Ddl, relation: Relation, name: str, *, recurses: bool) -> None:
    """Allow NULL in a column (ATExecDropNotNull).

    Raises:
        InvalidTableDefinition: the primary key, the replica identity or the parent table requires
            NOT NULL.
    """
    column = existing_column(relation, name)
    children = children_of(ddl.catalog, relation.oid)
    if children and not recurses and relation.is_partitioned:
        raise InvalidTableDefinition(
            "cannot remove constraint from only the partitioned table when partitions exist",
            hint=_NOT_ONLY,
        )
    if column.identity:
        raise SqlSyntaxError(f'column "{name}" of relation "{relation.name}" is an identity column')
    for index in relation.indexes:
        if column.attnum in index.key and index.is_primary:
            raise InvalidTableDefinition(f'column "{name}" is in a primary key')
        if column.attnum in index.key and index.is_replica_identity:
            raise InvalidTableDefinition(f'column "{name}" is in index used as replica identity')
    if relation.is_partition:
        parent = ddl.relation(relation.parents[0])
        above = parent.column(name)
        if above is not None and above.not_null:
            raise InvalidTableDefinition(f'column "{name}" is marked NOT NULL in parent table')
    update_column(ddl.catalog, relation.oid, replace(column, not_null=False))
    if recurses:
        for oid in children:
            drop_not_null(ddl, ddl.own_child(oid), name, recurses=True)
