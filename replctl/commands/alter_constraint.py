"""ALTER TABLE: add and drop constraints (tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.heap import insert_constraint, update_column, update_constraint, update_index
from replctl.catalog.pg_class import Constraint, Index, Relation, find_relation_oid
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import ConstraintKind
from replctl.commands.alter_column import set_not_null
from replctl.commands.constraint import (
    add_check_below,
    add_checks,
    check_key_distinct,
    sorted_constraints,
)
from replctl.commands.ddl import Ddl, without_position
from replctl.commands.dependency import drop_objects
from replctl.commands.foreign_key import add_foreign_key
from replctl.commands.index import constraint_of, define_index, require_not_null
from replctl.commands.object_address import Object
from replctl.does_not_exist import no_column
from replctl.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.types.builtin import system_columns


def add_constraint(ddl: Ddl, relation: Relation, raw: ast.Constraint, *, recurses: bool) -> None:
    """Add a constraint to a table and its child tables (ATExecAddConstraint).

    Raises:
        PostgresError: PostgreSQL refuses the constraint, or a row violates it.
    """
    if raw.kind in ("primary", "unique") and raw.index_name is not None:
        _add_using_index(ddl, relation, raw)
        return
    if raw.kind in ("primary", "unique"):
        check_key_distinct(raw, raw.columns)
    names = [column.name for column in relation.columns]
    if raw.kind == "primary":
        for name in raw.columns:
            if name not in names and name not in system_columns():
                raise no_column(name, relation.name)
    with without_position():
        drafts = sorted_constraints(relation.name, [raw], names)
    if raw.kind == "primary" and recurses and not relation.is_partitioned:
        _forbid_null_below(ddl, relation, raw.columns)
    for index in drafts.indexes:
        define_index(ddl, relation, index, recurses=recurses)
    for constraint in drafts.foreign_keys:
        add_foreign_key(ddl, relation, constraint)
    for check in drafts.checks:
        if check.skip_validation:
            raise FeatureNotSupported("NOT VALID constraints are not supported", position=check.pos)
        children = children_of(ddl.catalog, relation.oid)
        if children and not recurses and not check.no_inherit:
            raise InvalidTableDefinition("constraint must be added to child tables too")
        with without_position():
            (made,) = add_checks(ddl, relation, [check], merges=False)
        add_check_below(ddl, relation, made)


def _forbid_null_below(ddl: Ddl, relation: Relation, names: Sequence[str]) -> None:
    """Forbid NULL in the columns of a primary key in child tables, which do not inherit the key."""
    for oid in children_of(ddl.catalog, relation.oid):
        for name in names:
            set_not_null(ddl, ddl.own_child(oid), name, recurses=True)


# ---------------------------------------------------------------------------------------------
# USING INDEX (transformIndexConstraint)


def _add_using_index(ddl: Ddl, relation: Relation, raw: ast.Constraint) -> None:
    index = _usable_index(ddl, relation, raw)
    kind = ConstraintKind.PRIMARY_KEY if raw.kind == "primary" else ConstraintKind.UNIQUE
    name = raw.name or index.name
    if any(constraint.name == name for constraint in relation.constraints):
        raise DuplicateObject(f'constraint "{name}" for relation "{relation.name}" already exists')
    if name != index.name:
        ddl.notice(
            f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{index.name}" to "{name}"'
        )
    if kind == ConstraintKind.PRIMARY_KEY:
        if relation.primary_key is not None:
            raise InvalidTableDefinition(
                f'multiple primary keys for table "{relation.name}" are not allowed'
            )
        for column in relation.index_columns(index):
            if not column.not_null:
                require_not_null(ddl, relation, column)
                update_column(ddl.catalog, relation.oid, replace(column, not_null=True))
    update_index(
        ddl.catalog,
        replace(
            index,
            name=name,
            is_primary=kind == ConstraintKind.PRIMARY_KEY,
            is_deferrable=raw.deferrable,
        ),
    )
    insert_constraint(
        ddl.catalog,
        relation,
        Constraint(
            ddl.catalog.new_oid(),
            name,
            kind,
            index.key,
            index.oid,
            no_inherit=True,
            is_deferrable=raw.deferrable,
        ),
    )


def _usable_index(ddl: Ddl, relation: Relation, raw: ast.Constraint) -> Index:
    """Return the index that will become the index of a constraint.

    Raises:
        UndefinedObject: the table has no index of that name.
        WrongObjectType, ObjectNotInPrerequisiteState: a constraint cannot use the index.
    """
    name, pos = raw.index_name or "", raw.pos
    if relation.is_partitioned:
        raise FeatureNotSupported(
            "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables",
            position=pos,
        )
    oid = find_relation_oid(ddl.catalog, name, relation.schema_oid)
    if oid is None:
        raise UndefinedObject(f'index "{name}" does not exist', position=pos)
    index = next((index for index in relation.indexes if index.oid == oid), None)
    if index is None:
        raise ObjectNotInPrerequisiteState(
            f'index "{name}" does not belong to table "{relation.name}"', position=pos
        )
    if constraint_of(relation, index) is not None:
        raise ObjectNotInPrerequisiteState(
            f'index "{name}" is already associated with a constraint', position=pos
        )
    reason = "Cannot create a primary key or unique constraint using such an index."
    if not index.is_unique:
        raise WrongObjectType(f'"{name}" is not a unique index', detail=reason, position=pos)
    if index.predicate is not None:
        raise WrongObjectType(f'"{name}" is a partial index', detail=reason, position=pos)
    for number, detail in enumerate(index.details, start=1):
        if detail.collation or detail.opclass or detail.option:
            raise WrongObjectType(
                f'index "{name}" column number {number} does not have default sorting behavior',
                detail=reason,
                position=pos,
            )
    return index


# ---------------------------------------------------------------------------------------------
# VALIDATE, DROP CONSTRAINT


def validate_constraint(relation: Relation, name: str) -> None:
    """Check that a constraint can be validated (ATExecValidateConstraint).  That is all, because
    replctl refuses NOT VALID: the constraints of tables are always valid.

    Raises:
        UndefinedObject: there is no such constraint.
        WrongObjectType: the constraint is neither a foreign key nor a CHECK.
    """
    constraint = next((c for c in relation.constraints if c.name == name), None)
    of_relation = f'constraint "{name}" of relation "{relation.name}"'
    if constraint is None:
        raise UndefinedObject(f"{of_relation} does not exist")
    if constraint.kind not in (ConstraintKind.FOREIGN_KEY, ConstraintKind.CHECK):
        raise WrongObjectType(f"{of_relation} is not a foreign key or check constraint")


def drop_constraint(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Drop a constraint of a table and of its child tables (ATExecDropConstraint).

    Raises:
        UndefinedObject: there is no such constraint.
        InvalidTableDefinition: the constraint is inherited.
        DependentObjectsStillExist: a foreign key needs the constraint.
    """
    name = command.name or ""
    constraint = next((c for c in relation.constraints if c.name == name), None)
    if constraint is None:
        message = f'constraint "{name}" of relation "{relation.name}" does not exist'
        if not command.missing_ok:
            raise UndefinedObject(message)
        ddl.notice(f"{message}, skipping")
        return
    if constraint.inherited_count > 0:
        raise InvalidTableDefinition(
            f'cannot drop inherited constraint "{name}" of relation "{relation.name}"'
        )
    objects: list[Object] = []
    _collect_drops(ddl, relation, constraint, objects, recurses=recurses)
    drop_objects(ddl, objects, command.behavior)


def _collect_drops(
    ddl: Ddl,
    relation: Relation,
    constraint: Constraint,
    objects: list[Object],
    *,
    recurses: bool,
) -> None:
    if constraint.kind == ConstraintKind.CHECK and not constraint.no_inherit:
        children = [ddl.relation(oid) for oid in children_of(ddl.catalog, relation.oid)]
        if children and not recurses and relation.is_partitioned:
            raise InvalidTableDefinition(
                "cannot remove constraint from only the partitioned table when partitions exist",
                hint="Do not specify the ONLY keyword.",
            )
        for child in children:
            below = next(c for c in child.constraints if c.name == constraint.name)
            if recurses and below.inherited_count == 1 and not below.is_local:
                _collect_drops(ddl, ddl.own_child(child.oid), below, objects, recurses=True)
                continue
            left = replace(
                below,
                inherited_count=below.inherited_count - 1,
                is_local=below.is_local or not recurses,
            )
            update_constraint(ddl.catalog, left)
    objects.append(Object("constraint", constraint.oid))
