"""ALTER TABLE ... ALTER COLUMN ... TYPE (ATPrepAlterColumnType and ATExecAlterColumnType).

replctl checks the new types before it changes anything.  It rewrites rows only if their values are
stored differently (ATColumnChangeRequiresRewrite).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from replctl.catalog.heap import default_oid, update_column
from replctl.catalog.intent import intents_of
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of, descendants_of
from replctl.catalog.pg_publication import published_tables
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.storage import wants_metadata_changes
from replctl.commands.alter_column import existing_column
from replctl.commands.column_definition import check_stored_type, column_collation, typed
from replctl.commands.ddl import Ddl, without_position
from replctl.commands.dependency import describe, is_membership_of_column
from replctl.commands.file_layout import check_not_in_layout
from replctl.commands.object_address import Object, relation_object
from replctl.commands.retyped import Retyped
from replctl.commands.sequence import change_sequence
from replctl.commands.table_expression import columns_used, relation_scope
from replctl.commands.view_dependency import policies_of_column, views_of_column
from replctl.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnDefinition,
    InvalidTableDefinition,
)
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.coerce import ASSIGNMENT, Coercion, stripped_implicit
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.type_names import type_of
from replctl.expr.user_type import without_user_types
from replctl.functions.function_context import function_context
from replctl.functions.session_value import with_session_values
from replctl.functions.settings_form import in_form
from replctl.lake.column_fault import has_type
from replctl.lake.metadata_change import can_be_widened, widen_columns
from replctl.lake.rewrite import ColumnRewrite, TableRewrite
from replctl.lake.storage_place import renew_storage_column
from replctl.lake.table_read import table_source
from replctl.parser import ast
from replctl.record import dataclass
from replctl.spark import column_sql, storage_type, stored_sql, to_sql
from replctl.types.delta_type import is_native
from replctl.types.quote import quote_identifier
from replctl.types.type_modifier import is_wider


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A change of a column's type in one table.

    Attributes:
        column: the new definition, except for its default.
        value: the expression of the new value over the old columns.
        has_using: the statement gave the expression.
    """

    relid: int
    column: Column
    value: nodes.Expr
    has_using: bool = True


# ---------------------------------------------------------------------------------------------
# Checks before any change


def prepare_type(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> list[TypeChange]:
    """Return the type changes of an action in a table and its descendants.

    Raises:
        UndefinedColumn: there is no such column.
        InvalidTableDefinition: the column is inherited or part of a partition key, or ONLY excludes
            child tables.
        InvalidColumnDefinition: a generated column has USING.
        DatatypeMismatch: there is no such cast.
        PostgresError: the type or the expression is wrong.
    """
    value = None
    if command.expr is not None:
        value = _analyzer(ddl, relation).expr(command.expr)
        check_not_native(relation, EXPRESSIONS, columns_used(value))
    column = existing_column(relation, command.name or "")
    if value is not None and column.generated:
        raise InvalidColumnDefinition(
            "cannot specify USING when altering type of generated column",
            detail=f'Column "{column.name}" is a generated column.',
        )
    if column.inherited_count > 0:
        raise InvalidTableDefinition(f'cannot alter inherited column "{column.name}"')
    changes = [_change(ddl, relation, command, value)]
    if not recurses:
        if children_of(ddl.catalog, relation.oid):
            raise InvalidTableDefinition(
                f'type of inherited column "{column.name}" must be changed in child tables too'
            )
        return changes
    tree = descendants_of(ddl.catalog, relation.oid)
    for oid in tree[1:]:
        child = ddl.own_child(oid)
        below = existing_column(child, column.name)
        if below.inherited_count > len([parent for parent in child.parents if parent in tree]):
            raise InvalidTableDefinition(
                f'cannot alter inherited column "{column.name}" of relation "{child.name}"'
            )
        own_value = None if value is None else _value_of_child(value, relation, child)
        changes.append(_change(ddl, child, command, own_value))
    return changes


def _analyzer(ddl: Ddl, relation: Relation) -> Analyzer:
    scope = relation_scope(relation)
    return Analyzer(ddl.environment, scope, ExprContext.ALTER_TYPE, now=ddl.now)


def _value_of_child(value: nodes.Expr, relation: Relation, child: Relation) -> nodes.Expr:
    """Convert the expression of USING to the columns of a child, found by their names."""
    used = columns_used(value)
    if 0 in used:
        raise FeatureNotSupported(
            "cannot convert whole-row table reference",
            detail="USING expression contains a whole-row table reference.",
        )
    names = {attnum: relation.column_at(attnum).name for attnum in used if attnum > 0}
    attnums = {attnum: existing_column(child, name).attnum for attnum, name in names.items()}
    return nodes.renumber(value, attnums)


def _change(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, using: nodes.Expr | None
) -> TypeChange:
    environment, column = ddl.environment, existing_column(relation, command.name or "")
    key = relation.partition_key
    if key is not None and column.attnum in key.attnums:
        raise InvalidTableDefinition(
            f'cannot alter column "{column.name}" because it is part of the partition key of'
            f' relation "{relation.name}"'
        )
    check_not_in_layout(relation, column, "alter")
    assert command.type_name is not None
    with without_position():
        type_, typmod = type_of(environment, command.type_name)
        collation = column_collation(environment, command.collation, type_)
        check_stored_type(environment, column.name, type_)
    dimensions = len(command.type_name.array_bounds)
    changed = typed(environment, column, type_.name, typmod, collation, dimensions)
    if using is None and _needs_no_cast(relation, column, changed):
        there = nodes.Var(column.attnum, changed.declared_type, changed.declared_typmod, collation)
        return TypeChange(relation.oid, changed, there, has_using=False)
    check_not_native(relation, "conversions of", [column.attnum])
    value = using or nodes.Var(
        column.attnum, column.declared_type, column.declared_typmod, column.collation
    )
    coercion = Coercion(environment, ddl.now)
    coerced = coercion.to_target(value, type_.name, typmod, ASSIGNMENT)
    if coerced is None:
        shown = environment.format_type(type_.name)
        if using is not None:
            raise DatatypeMismatch(
                f'result of USING clause for column "{column.name}" cannot be cast automatically'
                f" to type {shown}",
                hint="You might need to add an explicit cast.",
            )
        wanted = f"{quote_identifier(column.name)}::{environment.format_type(type_.name, typmod)}"
        raise DatatypeMismatch(
            f'column "{column.name}" cannot be cast automatically to type {shown}',
            hint=None if column.generated else f'You might need to specify "USING {wanted}".',
        )
    has_using = using is not None
    return TypeChange(relation.oid, changed, assign_collations(environment, coerced), has_using)


def _needs_no_cast(relation: Relation, column: Column, changed: Column) -> bool:
    """Return whether there are no values of the old type (see also find_altered_composite())."""
    is_composite = relation.kind == RelKind.COMPOSITE_TYPE
    return is_composite or (is_native(column.type) and is_adopted_as(relation, changed))


def is_adopted_as(relation: Relation, column: Column) -> bool:
    """Return whether an adopted table's Delta table has a column with its new type already."""
    storage = relation.storage
    return storage is not None and storage.is_adopted and has_type(relation, column)


# ---------------------------------------------------------------------------------------------
# Changes


def change_types(ddl: Ddl, changes: Sequence[TypeChange]) -> None:
    """Perform all type changes of a statement, and create dependent objects again.

    Raises:
        FeatureNotSupported: a dependent object forbids the change, or a column is changed twice.
        UndefinedColumn: the same statement drops a column that it changes.
        PostgresError: a constraint, an index or a row does not fit the new types.
    """
    by_table: dict[int, list[TypeChange]] = defaultdict(list)
    for change in changes:
        by_table[change.relid].append(change)
    before = {oid: ddl.relation(oid) for oid in by_table}
    retyped = Retyped(ddl)
    for oid, own in by_table.items():
        for change in own:
            _change_column(ddl, before[oid], change, retyped)
    for oid, own in by_table.items():
        if rewrite_columns(ddl, before[oid], own):
            retyped.rewritten.add(oid)
    retyped.rebuild()


def _change_column(ddl: Ddl, before: Relation, change: TypeChange, retyped: Retyped) -> None:
    relation, attnum = ddl.relation(change.relid), change.column.attnum
    # The same statement may have dropped the column: that happens before types change.
    column = existing_column(relation, change.column.name)
    first = before.column_at(attnum)
    if (column.declared_type, column.typmod) != (first.declared_type, first.typmod):
        raise FeatureNotSupported(f'cannot alter type of column "{column.name}" twice')
    if column.identity:
        for sequence in owned_sequences(ddl.catalog, relation.oid, attnum):
            option = ast.DefElem("as", change.column.type)
            change_sequence(ddl, sequence, [option], is_identity=True)
    default = _default(ddl, column, change.column)
    check_type_unused(ddl, relation, column)
    retyped.remember(relation, attnum)
    changed = replace(
        column,
        type=change.column.type,
        typmod=change.column.typmod,
        domain=change.column.domain,
        user_type=change.column.user_type,
        domain_default=change.column.domain_default,
        collation=change.column.collation,
        dimensions=change.column.dimensions,
        default=default,
    )
    update_column(ddl.catalog, relation.oid, changed)


def _default(ddl: Ddl, column: Column, changed: Column) -> nodes.Expr | None:
    """Return a column's default, or its generation expression, in the new type."""
    if column.default is None:
        return None
    coercion = Coercion(ddl.environment, ddl.now)
    plain = stripped_implicit(column.default)
    coerced = coercion.to_target(plain, changed.declared_type, changed.declared_typmod, ASSIGNMENT)
    if coerced is None:
        what = "generation expression" if column.generated else "default"
        raise DatatypeMismatch(
            f'{what} for column "{column.name}" cannot be cast automatically to type'
            f" {ddl.environment.format_type(changed.declared_type)}"
        )
    return assign_collations(ddl.environment, coerced)


def check_type_unused(ddl: Ddl, relation: Relation, column: Column) -> None:
    """Check that all objects that depend on a column's type can be rebuilt
    (RememberAllDependentForRebuilding).
    """
    users = sorted(_type_users(ddl, relation, column))
    if users:
        _oid, what, detail = users[0]  # PostgreSQL finds the oldest dependency first
        raise FeatureNotSupported(f"cannot alter type of a column used {what}", detail=detail)


def _type_users(ddl: Ddl, relation: Relation, column: Column) -> Iterator[tuple[int, str, str]]:
    """Yield the OID, the kind for the error, and the DETAIL of each object that depends on a
    column's type and cannot be rebuilt.
    """
    name, attnum, catalog = column.name, column.attnum, ddl.catalog
    for view in views_of_column(catalog, relation.oid, attnum):
        shown = describe(ddl, relation_object(ddl.relation(view)))
        yield view, "by a view or rule", f'rule _RETURN on {shown} depends on column "{name}"'
    for policy in policies_of_column(catalog, relation.oid, attnum):
        shown = describe(ddl, Object("policy", policy))
        yield policy, "in a policy definition", f'{shown} depends on column "{name}"'
    for other in relation.columns:
        is_user = other.attnum != attnum and other.generated and other.default is not None
        if is_user and other.default and attnum in columns_used(other.default):
            detail = f'Column "{name}" is used by generated column "{other.name}".'
            oid = default_oid(catalog, relation.oid, other.attnum)
            yield oid, "by a generated column", detail
    for membership in published_tables(catalog, relids=[relation.oid]):
        if is_membership_of_column(membership, attnum):
            shown = describe(ddl, Object("membership", membership.oid))
            detail = f'{shown} depends on column "{name}"'
            yield membership.oid, "by a publication WHERE clause", detail


# ---------------------------------------------------------------------------------------------
# Rows


def rewrite_columns(ddl: Ddl, before: Relation, changes: Sequence[TypeChange]) -> bool:
    """Assign new storage to columns whose values will be stored differently, or widen their types.
    Return whether there are such columns in a table with rows.
    """
    plain = partial(without_user_types, ddl.environment)
    changes = [replace(change, value=plain(change.value)) for change in changes]
    moved = [c for c in changes if not _is_stored_alike(before, c)]
    if not moved or before.storage is None:
        return False
    if before.storage.is_adopted:
        moved = [change for change in moved if not has_type(before, change.column)]
        if not moved:  # the owner of the Delta table has already changed it
            return False
        raise FeatureNotSupported(
            f'changing the type of column "{moved[0].column.name}" is not supported: the'
            " Delta table belongs to others, and would store its values in another form",
            hint="Change its type in the Delta table first.",
        )
    names: Mapping[int, str] = {}
    version = None
    has_rows = ddl.has_rows(before)
    if has_rows:
        ddl.retyped.add(before.oid)
        if _are_widened(ddl, before, moved):
            return True
        context = function_context(ddl.session, ddl.catalog)
        changes = [
            replace(c, value=with_session_values(context, in_form(ddl.session, c.value)))
            for c in moved
        ]
        made = ddl.rewritten(TableRewrite(before.oid, tuple(_new_values(before, changes))))
        if made is not None:
            names, version = made.names, made.version
    for change in moved:
        attnum = change.column.attnum
        column = ddl.relation(before.oid).column_at(attnum)
        update_column(ddl.catalog, before.oid, replace(column, missing_value=None))
        renew_storage_column(
            ddl.catalog, before, before.column_at(attnum), names.get(attnum), version
        )
    return has_rows


def _are_widened(ddl: Ddl, before: Relation, changes: Sequence[TypeChange]) -> bool:
    """Widen the types of columns in the Delta table, and return True; return False if its rows must
    be rewritten.  The change of the Delta table takes effect after all checks.
    """
    columns = [change.column for change in changes]
    if (
        not wants_metadata_changes(before.options)
        or any(change.has_using for change in changes)
        or not all(can_be_widened(before, column) for column in columns)
    ):
        return False
    if all(has_type(before, column) for column in columns):
        return True
    block = ddl.session.block
    if block is not None and block.xids.top is not None:
        # Replication sends rows that the block has written with the types that they had then
        intents = intents_of(ddl.catalog.connection, block.xids.top)
        if any(intent.relid == before.oid for intent in intents):
            return False
    ddl.write_last(before.oid, lambda: widen_columns(ddl.session, before, columns))
    return True


def _new_values(before: Relation, changes: Sequence[TypeChange]) -> list[ColumnRewrite]:
    source = table_source(before)
    result = []
    for change in changes:
        column = change.column
        value = to_sql(change.value, lambda var: column_sql(source.column(var.attnum)))
        sql = stored_sql(value, column.type, column.typmod)
        result.append(ColumnRewrite(column.attnum, column.name, column.type, column.typmod, sql))
    return result


#: Types that store the same text for the same value.
_TEXTS = frozenset(("text", "varchar"))


def _is_stored_alike(before: Relation, change: TypeChange) -> bool:
    """Return whether the stored form of the values remains the same.

    Examples are varchar(5) to text, numeric(40,1) to numeric(50,1), and timestamp(3) to timestamp.
    """
    old, new = before.column_at(change.column.attnum), change.column
    value = change.value
    while True:
        match value:
            case nodes.RelabelType() | nodes.CollateExpr():
                value = value.arg
            case nodes.FuncExpr(form="implicit", args=(arg, *_)) if arg.type == value.type:
                value = arg  # the function that applies the type modifier
            case _:
                break
    if not isinstance(value, nodes.Var) or value.attnum != old.attnum:
        return False
    is_same = old.type == new.type or {old.type, new.type} <= _TEXTS
    return (
        is_same
        and storage_type(old.type, old.typmod) == storage_type(new.type, new.typmod)
        and is_wider(new.type, old.typmod, new.typmod)
    )
