"""ATTACH and DETACH PARTITION, INHERIT and NO INHERIT (tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.heap import update_column, update_constraint, update_index, update_relation
from replctl.catalog.native_column import have_one_type
from replctl.catalog.pg_class import Constraint, Relation
from replctl.catalog.pg_inherits import children_of, delete_parent, descendants_of, insert_parent
from replctl.catalog.relation_kind import TABLE_KINDS, ConstraintKind, Identity, RelKind
from replctl.commands.constraint import renumbered_check
from replctl.commands.ddl import Ddl
from replctl.commands.dependency import references_to_rows
from replctl.commands.partition import (
    complete_partition,
    require_default_without,
    require_partition_rows,
)
from replctl.commands.partition_bound import analyze_bound, check_new_bound
from replctl.errors import (
    CollationMismatch,
    DatatypeMismatch,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidObjectDefinition,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    UndefinedTable,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.types.builtin import SystemRelation


def attach_partition(ddl: Ddl, parent: Relation, command: ast.AlterTableCmd) -> None:
    """Make a table a partition of another table (ATExecAttachPartition).

    Raises:
        PostgresError: the table, its bound or one of its rows does not fit the partitioned table.
    """
    assert command.bound is not None
    if not parent.is_partitioned:
        raise InvalidObjectDefinition(f'table "{parent.name}" is not partitioned')
    bound = analyze_bound(ddl, parent, command.bound)
    partition = _own_table(ddl, command, "ATTACH PARTITION")
    if partition.is_partition:
        raise WrongObjectType(f'"{partition.name}" is already a partition')
    if partition.parents:
        raise WrongObjectType("cannot attach inheritance child as partition")
    if children_of(ddl.catalog, partition.oid) and not partition.is_partitioned:
        raise WrongObjectType("cannot attach inheritance parent as partition")
    _check_circle(ddl, partition, parent)
    for column in partition.columns:
        if column.identity:
            raise ObjectNotInPrerequisiteState(
                f'table "{partition.name}" being attached contains an identity column'
                f' "{column.name}"',
                detail="The new partition may not contain an identity column.",
            )
        if parent.column(column.name) is None:
            raise DatatypeMismatch(
                f'table "{partition.name}" contains column "{column.name}" not found in parent'
                f' "{parent.name}"',
                detail="The new partition may contain only the columns present in parent.",
            )
    _merge_into(ddl, partition, parent)
    check_new_bound(ddl, parent, partition.name, bound, command.bound)
    require_default_without(ddl, parent, bound)
    insert_parent(ddl.catalog, partition.oid, parent.oid, 1)
    current = replace(ddl.relation(partition.oid), is_partition=True, partition_bound=bound)
    update_relation(ddl.catalog, current)
    complete_partition(ddl, parent, ddl.relation(partition.oid))
    require_partition_rows(ddl, ddl.relation(partition.oid))


def detach_partition(ddl: Ddl, parent: Relation, command: ast.AlterTableCmd) -> None:
    """Make a partition an independent table (ATExecDetachPartition).

    Raises:
        UndefinedTable: the table is not a partition of the partitioned table.
        FeatureNotSupported: the statement has CONCURRENTLY, or foreign keys refer to the
            partitioned table.
    """
    if command.value is not None:
        raise FeatureNotSupported(f"DETACH PARTITION ... {command.value.upper()} is not supported")
    if not parent.is_partitioned:
        raise InvalidObjectDefinition(f'table "{parent.name}" is not partitioned')
    partition = _table(ddl, command)
    if parent.oid not in partition.parents:
        raise UndefinedTable(
            f'relation "{partition.name}" is not a partition of relation "{parent.name}"'
        )
    if references_to_rows(ddl, parent):
        raise FeatureNotSupported(
            "DETACH PARTITION of a table that foreign keys refer to is not supported"
        )
    _release(ddl, partition, parent)
    delete_parent(ddl.catalog, partition.oid, parent.oid)
    for index in partition.indexes:
        if index.parent_oid:
            update_index(ddl.catalog, replace(index, parent_oid=0))
    detached = replace(ddl.relation(partition.oid), is_partition=False, partition_bound=None)
    update_relation(ddl.catalog, detached)


def add_parent(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd) -> None:
    """Make a table inherit from another table (ATExecAddInherit).

    Raises:
        WrongObjectType, DuplicateTable: the table cannot inherit from the other table, or already
            does.
        DatatypeMismatch: the table lacks a column or a constraint of the parent.
    """
    _check_own_inheritance(relation)
    parent = _own_table(ddl, command, "INHERIT")
    if parent.is_partition:
        raise WrongObjectType("cannot inherit from a partition")
    if parent.is_partitioned:
        raise WrongObjectType(f'cannot inherit from partitioned table "{parent.name}"')
    if parent.oid in relation.parents:
        raise DuplicateTable(f'relation "{parent.name}" would be inherited from more than once')
    _check_circle(ddl, relation, parent)
    _merge_into(ddl, relation, parent)
    insert_parent(ddl.catalog, relation.oid, parent.oid, len(relation.parents) + 1)


def remove_parent(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd) -> None:
    """End the inheritance of a table from another table (ATExecDropInherit).

    Raises:
        WrongObjectType: the table is a partition.
        UndefinedTable: the other table is not its parent.
    """
    if relation.is_partition:
        raise WrongObjectType("cannot change inheritance of a partition")
    parent = _table(ddl, command)
    if parent.oid not in relation.parents:
        raise UndefinedTable(
            f'relation "{parent.name}" is not a parent of relation "{relation.name}"'
        )
    _release(ddl, relation, parent)
    delete_parent(ddl.catalog, relation.oid, parent.oid)


def _check_own_inheritance(relation: Relation) -> None:
    if relation.is_partition:
        raise WrongObjectType("cannot change inheritance of a partition")
    if relation.is_partitioned:
        raise WrongObjectType("cannot change inheritance of partitioned table")


def _table(ddl: Ddl, command: ast.AlterTableCmd) -> Relation:
    return _user_relation(_opened(ddl, command))


def _own_table(ddl: Ddl, command: ast.AlterTableCmd, action: str) -> Relation:
    """Return the other table of an action, which must belong to the current role
    (ATSimplePermissions).

    Args:
        action: the words of the action, for the error message.

    Raises:
        WrongObjectType: the relation is not a table.
        InsufficientPrivilege: the role does not own it, or it is a system catalog.
    """
    found = _opened(ddl, command)
    kind = RelKind(found.kind)
    if kind not in TABLE_KINDS:
        raise WrongObjectType(
            f'ALTER action {action} cannot be performed on relation "{found.name}"',
            detail=f"This operation is not supported for {kind.plural}.",
        )
    table = _user_relation(found)
    ddl.privileges.check_relation_owner(table)
    return table


def _opened(ddl: Ddl, command: ast.AlterTableCmd) -> Relation | SystemRelation:
    assert command.relation is not None
    return open_relation(ddl.environment, replace(command.relation, pos=-1), or_sequence=True)


def _user_relation(relation: Relation | SystemRelation) -> Relation:
    if isinstance(relation, SystemRelation):
        raise InsufficientPrivilege(f'permission denied: "{relation.name}" is a system catalog')
    return relation


def _check_circle(ddl: Ddl, child: Relation, parent: Relation) -> None:
    if parent.oid in descendants_of(ddl.catalog, child.oid):
        raise DuplicateTable(
            "circular inheritance not allowed",
            detail=f'"{parent.name}" is already a child of "{child.name}".',
        )


# ---------------------------------------------------------------------------------------------
# Columns and constraints that a table and its new parent share


def _merge_into(ddl: Ddl, child: Relation, parent: Relation) -> None:
    """Record the columns and checks that a table shares with its new parent
    (MergeAttributesIntoExisting and similar functions).
    """
    for column in parent.columns:
        own = child.column(column.name)
        if own is None:
            raise DatatypeMismatch(f'child table is missing column "{column.name}"')
        if not have_one_type(own, column):
            raise DatatypeMismatch(
                f'child table "{child.name}" has different type for column "{column.name}"'
            )
        if own.collation != column.collation:
            raise CollationMismatch(
                f'child table "{child.name}" has different collation for column "{column.name}"'
            )
        if column.not_null and not own.not_null:
            raise DatatypeMismatch(f'column "{column.name}" in child table must be marked NOT NULL')
        if bool(column.generated) != bool(own.generated):
            negation = "" if column.generated else "not "
            raise DatatypeMismatch(
                f'column "{column.name}" in child table must {negation}be a generated column'
            )
        merged = replace(
            own,
            inherited_count=own.inherited_count + 1,
            is_local=own.is_local and not parent.is_partitioned,
        )
        if column.identity and parent.is_partitioned:
            merged = replace(merged, identity=column.identity, default=column.default)
        update_column(ddl.catalog, child.oid, merged)
    for check in parent.checks():
        if not check.no_inherit:
            _merge_check(ddl, child, parent, check)


def _merge_check(ddl: Ddl, child: Relation, parent: Relation, check: Constraint) -> None:
    own = next((c for c in child.checks() if c.name == check.name), None)
    if own is None:
        raise DatatypeMismatch(f'child table is missing constraint "{check.name}"')
    if own.check != renumbered_check(check, parent, child).check:
        raise DatatypeMismatch(
            f'child table "{child.name}" has different definition for check constraint'
            f' "{check.name}"'
        )
    if own.no_inherit:
        raise InvalidTableDefinition(
            f'constraint "{check.name}" conflicts with non-inherited constraint on child table'
            f' "{child.name}"'
        )
    merged = replace(
        own,
        inherited_count=own.inherited_count + 1,
        is_local=own.is_local and not parent.is_partitioned,
    )
    update_constraint(ddl.catalog, merged)


def _release(ddl: Ddl, child: Relation, parent: Relation) -> None:
    """Make the columns and constraints that a table inherits from a parent its own
    (RemoveInheritance).
    """
    for column in child.columns:
        if parent.column(column.name) is not None and column.inherited_count:
            left = column.inherited_count - 1
            released = replace(column, inherited_count=left, is_local=column.is_local or left == 0)
            if column.identity:
                released = replace(released, identity=Identity.NONE, default=None)
            update_column(ddl.catalog, child.oid, released)
    names: Sequence[str] = [check.name for check in parent.checks()]
    for constraint in child.constraints:
        is_shared = constraint.parent_oid or (
            constraint.kind == ConstraintKind.CHECK and constraint.name in names
        )
        if is_shared and constraint.inherited_count:
            left = constraint.inherited_count - 1
            update_constraint(
                ddl.catalog,
                replace(
                    constraint,
                    inherited_count=left,
                    is_local=constraint.is_local or left == 0,
                    parent_oid=0,
                ),
            )
