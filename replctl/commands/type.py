"""CREATE TYPE ... AS ENUM, ALTER TYPE ... ADD VALUE and RENAME VALUE (typecmds.c, pg_enum.c)."""

from __future__ import annotations

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_class import Column, Relation, load_relations, relation_oids
from replctl.catalog.pg_enum import rename_label
from replctl.catalog.pg_type import (
    find_type,
    insert_enum_label,
    insert_enum_labels,
    insert_type,
    type_oid,
)
from replctl.catalog.relation_kind import WITH_DELTA_TABLE
from replctl.commands.alter_type import TypeChange, rewrite_columns
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_object import find_type_of_name
from replctl.commands.naming import Schema, creation_schema
from replctl.commands.own_table import move_array_type
from replctl.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidName,
    InvalidParameterValue,
    UniqueViolation,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.composite_text import is_composite
from replctl.expr.type_facts import TypeFacts
from replctl.expr.type_names import split_name
from replctl.expr.user_type import base_type
from replctl.parser import ast
from replctl.relation_name import RelationName
from replctl.session import Session
from replctl.types.builtin import Type
from replctl.types.identifier import MAX_BYTES
from replctl.types.type_kind import TypeKind

_TEXTEQ = 98  # the operator text = text
_ARRAY_REPLACE = 3168


def create_enum(session: Session, statement: ast.CreateEnum) -> str:
    """Create an enum.

    Raises:
        DuplicateObject: a type of that name already exists.
        InvalidName, UniqueViolation: a label is too long, or occurs twice.
    """
    return carry_out(session, lambda ddl: _create_enum(ddl, statement))


def _create_enum(ddl: Ddl, statement: ast.CreateEnum) -> str:
    schema_name, name = split_name(ddl.environment, statement.names)
    place = creation_schema(ddl.environment, schema_name, name)
    take_type_name(ddl, place, name)
    made = insert_type(ddl.catalog, name, place.oid, ddl.session.role_oid, kind=TypeKind.ENUM)
    seen: set[str] = set()
    for label in statement.labels:
        _check_length(label)
        if label in seen:
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumtypid, enumlabel)=({type_oid(made)}, {label}) already exists.",
                constraint="pg_enum_typid_label_index",
                table=RelationName("pg_catalog", "pg_enum"),
            )
        seen.add(label)
    insert_enum_labels(ddl.catalog, made, statement.labels)
    return "CREATE TYPE"


def take_type_name(ddl: Ddl, place: Schema, name: str) -> None:
    """Check that a name is free for a new type.  Rename an array type that has it.

    Raises:
        DuplicateObject: another type has the name.
    """
    existing = find_type(ddl.catalog, place.oid, name)
    if existing is not None:
        if existing.element is None:
            raise DuplicateObject(f'type "{name}" already exists')
        move_array_type(ddl, place, existing)


def check_type_owner(ddl: Ddl, type_: Type) -> None:
    """Check that the current role owns a user-defined type.

    Raises:
        InsufficientPrivilege: another role owns the type.
    """
    owner = owner_of(ddl.catalog, "pg_type", type_oid(type_.name))
    ddl.privileges.check_owner(owner, "type", type_.sql_name)


def _owned_enum(ddl: Ddl, names: tuple[str, ...]) -> Type:
    type_ = find_type_of_name(ddl, names)
    if type_.is_builtin or type_.kind != TypeKind.ENUM:
        raise WrongObjectType(f"{ddl.environment.format_type(type_.name)} is not an enum")
    check_type_owner(ddl, type_)
    return type_


def rename_enum_value(session: Session, statement: ast.RenameEnumValue) -> str:
    """Rename a value of an enum (RenameEnumLabel).

    Raises:
        DuplicateObject: the enum already has the new value.
        InvalidName: the new value is too long.
        InvalidParameterValue: the enum does not have the old value.
        WrongObjectType: the type is not an enum.
    """
    return carry_out(session, lambda ddl: _rename_enum_value(ddl, statement))


def add_enum_value(session: Session, statement: ast.AddEnumValue) -> str:
    """Add a value to an enum.

    Raises:
        DuplicateObject: the enum already has the value.
        InvalidName: the value is too long.
        InvalidParameterValue: the value after BEFORE or AFTER does not exist.
        WrongObjectType: the type is not an enum.
    """
    return carry_out(session, lambda ddl: _add_enum_value(ddl, statement))


def _add_enum_value(ddl: Ddl, statement: ast.AddEnumValue) -> str:
    type_, label = _owned_enum(ddl, statement.names), statement.label
    _check_length(label)
    labels = ddl.environment.enum_labels(type_)
    if label in labels:
        message = f'enum label "{label}" already exists'
        if not statement.if_not_exists:
            raise DuplicateObject(message)
        ddl.session.notice(f"{message}, skipping", sqlstate=DuplicateObject.sqlstate)
        return "ALTER TYPE"
    if statement.neighbor is not None and statement.neighbor not in labels:
        raise InvalidParameterValue(f'"{statement.neighbor}" is not an existing enum label')
    insert_enum_label(
        ddl.catalog, type_.name, label, statement.neighbor, is_after=statement.is_after
    )
    return "ALTER TYPE"


def _check_length(label: str) -> None:
    if len(label.encode()) > MAX_BYTES:
        raise InvalidName(
            f'invalid enum label "{label}"', detail=f"Labels must be {MAX_BYTES} bytes or less."
        )


def _rename_enum_value(ddl: Ddl, statement: ast.RenameEnumValue) -> str:
    type_ = _owned_enum(ddl, statement.names)
    old, new = statement.label, statement.new_label
    _check_length(new)
    labels = ddl.environment.enum_labels(type_)
    if old not in labels:
        raise InvalidParameterValue(f'"{old}" is not an existing enum label')
    if new in labels:
        raise DuplicateObject(f'enum label "{new}" already exists')
    for relation in load_relations(
        ddl.catalog, relation_oids(ddl.catalog, WITH_DELTA_TABLE)
    ).values():
        _check_no_row(ddl, type_, relation)
        changes = [
            TypeChange(relation.oid, column, _renamed(column, old, new))
            for column in relation.columns
            if _enum_of(ddl, column) == type_.name
        ]
        if changes and relation.storage is not None and relation.storage.is_adopted:
            raise FeatureNotSupported(
                f'renaming a value of an enum is not supported: table "{relation.name}", which'
                " belongs to others, has a column of it"
            )
        if changes:
            rewrite_columns(ddl, relation, changes)
    rename_label(ddl.catalog, type_.name, old, new)
    return "ALTER TYPE"


def _check_no_row(ddl: Ddl, enum: Type, relation: Relation) -> None:
    """Check that no column has rows with values of an enum."""
    types = TypeFacts(ddl.environment)
    for column in relation.columns:
        is_row = is_composite(ddl.environment, types.base(column.declared_type))
        if is_row and enum.name in types.contained(column.declared_type):
            raise FeatureNotSupported(
                "renaming a value of an enum is not supported: column"
                f' "{relation.name}.{column.name}" has rows with it'
            )


def _enum_of(ddl: Ddl, column: Column) -> str | None:
    """Return the enum whose labels a column stores, even in arrays or in domains; else None."""
    base, _typmod = base_type(ddl.environment, column.declared_type)
    type_ = ddl.environment.type(base)
    return (type_.element or base) if base.startswith("@") else None


def _renamed(column: Column, old: str, new: str) -> nodes.Expr:
    """Return the expression of a column's new text: one label is replaced by another."""
    labels = [nodes.Const("text", label, collation="default") for label in (old, new)]
    is_array = column.type == "_text"
    type_ = "_text" if is_array else "text"
    value = nodes.RelabelType(
        nodes.Var(column.attnum, column.type, column.typmod), type_, collation="default"
    )
    if is_array:
        args: tuple[nodes.Expr, ...] = (value, *labels)
        return nodes.FuncExpr(_ARRAY_REPLACE, "array_replace", "_text", args)
    is_old = nodes.OpExpr(_TEXTEQ, "=", "texteq", "bool", (value, labels[0]), "default")
    return nodes.CaseExpr("text", None, (nodes.CaseWhen(is_old, labels[1]),), value)
