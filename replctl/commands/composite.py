"""CREATE TYPE ... AS (...) (DefineCompositeType in typecmds.c), and ALTER TYPE for attributes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from replctl.catalog.heap import insert_relation
from replctl.catalog.pg_class import Relation, find_relation_oid
from replctl.catalog.relation_kind import RelKind, ReplicaIdentity
from replctl.commands.alter_column import existing_column
from replctl.commands.alter_type import TypeChange, rewrite_columns
from replctl.commands.column_definition import check_column_count, check_type, column_draft
from replctl.commands.ddl import Ddl, carry_out, without_position
from replctl.commands.find_relation import find_relation
from replctl.commands.inherit import check_own_columns
from replctl.commands.naming import creation_schema
from replctl.commands.own_table import new_relation
from replctl.commands.type import take_type_name
from replctl.commands.type_dependency import (
    check_attributes_unused,
    check_no_column,
    check_no_fixed_rows,
    columns_containing,
)
from replctl.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidTableDefinition,
    WrongObjectType,
)
from replctl.expr import nodes, object_identifier
from replctl.expr.composite_text import with_attributes
from replctl.expr.type_facts import TypeFacts
from replctl.expr.type_names import split_name, type_of
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import Type


def create_composite(session: Session, statement: ast.CreateComposite) -> str:
    """Create a composite type.

    Raises:
        DuplicateObject, DuplicateTable: a type or a relation of that name already exists.
        PostgresError: an attribute is wrong.
    """
    return carry_out(session, lambda ddl: _create(ddl, statement))


def _create(ddl: Ddl, statement: ast.CreateComposite) -> str:
    environment = ddl.environment
    schema_name, name = split_name(environment, statement.names)
    place = creation_schema(environment, schema_name, name)
    take_type_name(ddl, place, name)
    with without_position():
        drafts = [column_draft(environment, column, name) for column in statement.columns]
        check_own_columns(drafts)
        check_column_count(len(drafts))
        for column in statement.columns:
            check_type(environment, column)
        for draft in drafts:
            _check_attribute_type(ddl, draft.column.declared_type)
    if find_relation_oid(ddl.catalog, name, place.oid) is not None:
        raise DuplicateTable(f'relation "{name}" already exists')
    columns = tuple(replace(draft.column, attnum=i) for i, draft in enumerate(drafts, start=1))
    relation = new_relation(ddl, place, name, RelKind.COMPOSITE_TYPE)
    insert_relation(
        ddl.catalog, replace(relation, columns=columns, replica_identity=ReplicaIdentity.NOTHING)
    )
    return "CREATE TYPE"


def find_altered_composite(ddl: Ddl, statement: ast.AlterTable) -> Relation:
    """Return the composite type whose attributes a statement changes.

    Raises:
        UndefinedTable: there is no such type.
        WrongObjectType: the relation is not a composite type.
        InvalidTableDefinition: the type would contain itself.
        FeatureNotSupported: the type of an attribute changes, and a table has values of the
            composite type, or an expression uses it.
    """
    name = statement.relation
    parts = (name.name,) if name.schema is None else (name.schema, name.name)
    relation = find_relation(ddl, parts)
    assert relation is not None
    if relation.kind != RelKind.COMPOSITE_TYPE:
        raise WrongObjectType(f'"{relation.name}" is not a composite type')
    ddl.privileges.check_relation_owner(relation)
    for command in statement.commands:
        type_name = command.type_name if command.column is None else command.column.type_name
        if type_name is not None and command.kind == "alter_type":
            type_name = replace(type_name, pos=-1)
        if type_name is not None:
            type_, _typmod = type_of(ddl.environment, type_name)
            _check_no_member(ddl, relation, type_)
            _check_attribute_type(ddl, type_.name)
        if command.kind == "alter_type":
            existing_column(relation, command.name or "")
            check_no_column(ddl, relation.row_type)
            check_attributes_unused(ddl, relation)
    return relation


def rewrite_values(ddl: Ddl, before: Relation) -> None:
    """Convert the values in tables after a composite type has lost or got attributes.

    Args:
        before: the type before the change.

    Raises:
        FeatureNotSupported: an expression depends on the attributes.
    """
    after = ddl.relation(before.oid)
    numbers = {column.attnum: i for i, column in enumerate(before.columns, start=1)}
    places = [numbers.get(column.attnum) for column in after.columns]
    kept = [place for place in places if place is not None]
    pairs = enumerate([*kept, None], start=1)
    first = next(number for number, place in pairs if place != number)
    check_no_fixed_rows(ddl, before, first)
    by_table: dict[int, list[TypeChange]] = defaultdict(list)
    for table, column in columns_containing(ddl, before.row_type):
        if not ddl.has_rows(table):
            continue
        var = nodes.Var(column.attnum, "text", collation="default")
        value = with_attributes(ddl.environment, var, column.declared_type, before.row_type, places)
        by_table[table.oid].append(TypeChange(table.oid, column, value))
    for oid, changes in by_table.items():
        rewrite_columns(ddl, ddl.relation(oid), changes)


def _check_no_member(ddl: Ddl, relation: Relation, type_: Type) -> None:
    """Check that an attribute's type does not contain the composite type itself."""
    if relation.row_type in TypeFacts(ddl.environment).contained(type_.name):
        raise InvalidTableDefinition(
            f"composite type {relation.name} cannot be made a member of itself"
        )


def _check_attribute_type(ddl: Ddl, name: str) -> None:
    """Check that the text of an attribute's values does not depend on the names of objects.

    Raises:
        FeatureNotSupported: the type is regclass or a similar type.
    """
    if TypeFacts(ddl.environment).contained(name) & object_identifier.TYPES:
        shown = ddl.environment.format_type(name)
        raise FeatureNotSupported(f"attributes of type {shown} are not supported")


def check_not_composite(relation: Relation) -> None:
    """Check that a statement about tables is not about a composite type.

    Raises:
        WrongObjectType: the relation is a composite type.
    """
    if relation.kind == RelKind.COMPOSITE_TYPE:
        raise WrongObjectType(
            f'"{relation.name}" is a composite type', hint="Use ALTER TYPE instead."
        )
