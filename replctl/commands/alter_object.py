"""ALTER ... RENAME TO, OWNER TO, SET SCHEMA (alter.c, tablecmds.c).

A rename changes only the catalog.  A Delta table keeps its location.  Its columns are renamed
before the next write (lake/schema_rewrite.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from replctl.catalog import schema
from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import owner_of
from replctl.catalog.composite_type import composite_of_type
from replctl.catalog.heap import update_column, update_constraint, update_relation
from replctl.catalog.pg_class import Constraint, Relation, find_relation_oid
from replctl.catalog.pg_database import find_database
from replctl.catalog.pg_inherits import children_of, descendants_of
from replctl.catalog.pg_namespace import find_schema, rename_schema
from replctl.catalog.pg_publication import (
    find_publication,
    update_publication,
)
from replctl.catalog.pg_sequence import get_sequence, owned_sequences
from replctl.catalog.pg_subscription import change_subscription, find_subscription
from replctl.catalog.pg_type import find_type, type_oid, type_schema_oid
from replctl.catalog.relation_kind import (
    INDEX_CONSTRAINTS,
    INDEX_KINDS,
    ConstraintKind,
    RelKind,
    RelPersistence,
)
from replctl.catalog.worker import client_name, rename_walsender
from replctl.commands.alter_table import change_owner, give_relation
from replctl.commands.column_definition import check_column_name
from replctl.commands.composite import check_not_composite
from replctl.commands.create_schema import check_schema_name
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.domain import rename_domain_constraint
from replctl.commands.file_layout import renamed_in_layout
from replctl.commands.find_object import (
    check_not_builtin,
    find_database_oid,
    find_function,
    find_new_schema,
    find_operator,
    find_schema_oid,
    find_user_type,
    publication_of_name,
    subscription_of_name,
)
from replctl.commands.find_relation import check_kind, find_relation
from replctl.commands.function import move_function, rename_function
from replctl.commands.object_owner import check_given, give_object
from replctl.commands.policy import rename_policy
from replctl.commands.role import rename_role, role_oid
from replctl.commands.subscription_permission import (
    check_password_option,
    check_subscription_owner,
)
from replctl.commands.type import check_type_owner
from replctl.conninfo import application_name
from replctl.errors import (
    DuplicateColumn,
    DuplicateDatabase,
    DuplicateObject,
    DuplicateSchema,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidTableDefinition,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import Type, system_columns
from replctl.types.type_kind import TypeKind


class _RenameIn(Protocol):
    """A function that renames a column or constraint of one relation."""

    def __call__(
        self, ddl: Ddl, relation: Relation, old: str, new: str, *, parents: int
    ) -> None: ...


def rename(session: Session, statement: ast.Rename) -> str:
    """Rename an object.

    Raises:
        PostgresError: there is no such object, or the name is taken.
    """
    return carry_out(session, lambda ddl: _rename(ddl, statement))


def alter_owner(session: Session, statement: ast.AlterOwner) -> str:
    """Give an object to a role.

    Raises:
        UndefinedObject: there is no such role, or no such object.
    """
    return carry_out(session, lambda ddl: _alter_owner(ddl, statement))


def alter_schema(session: Session, statement: ast.AlterObjectSchema) -> str:
    """Move a table to another schema, with its indexes, constraints and row type.

    Raises:
        InvalidSchemaName, DuplicateTable: there is no such schema, or it already has a relation of
            that name.
    """
    return carry_out(session, lambda ddl: _alter_schema(ddl, statement))


# ---------------------------------------------------------------------------------------------
# RENAME


def _rename(ddl: Ddl, statement: ast.Rename) -> str:
    kind, new = statement.object_type, statement.new_name
    match kind:
        case "table" | "index" | "view" | "materialized view" | "sequence" | "foreign table":
            relation = find_relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                if kind in ("table", "index"):
                    check_not_composite(relation)
                if kind != "index":  # ALTER INDEX also renames a table
                    check_kind(relation, kind)
                _check_renamed(ddl, relation)
                rename_relation(ddl, relation, new)
        case "column":
            relation = find_relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                _check_has_named_columns(relation)
                ddl.privileges.check_relation_owner(relation)
                _rename_inherited(ddl, relation, statement, _rename_column, is_inherited=True)
            return f"ALTER {statement.relation_type.upper()}"
        case "constraint" if statement.relation_type == "domain":
            rename_domain_constraint(ddl, statement)
            return "ALTER DOMAIN"
        case "constraint":
            relation = find_relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                ddl.privileges.check_relation_owner(relation)
                constraint = _constraint(relation, statement.sub_name or "")
                is_inherited = constraint.kind == ConstraintKind.CHECK and not constraint.no_inherit
                _rename_inherited(
                    ddl, relation, statement, _rename_constraint, is_inherited=is_inherited
                )
            return "ALTER TABLE"
        case "schema":
            _rename_schema(ddl, statement.name[-1], new)
        case "database":
            _rename_database(ddl, statement.name[-1], new)
        case "publication":
            publication = publication_of_name(ddl, statement.name[-1])
            ddl.privileges.check_owner(publication.owner, "publication", publication.name)
            if find_publication(ddl.catalog, new) is not None:
                raise DuplicateObject(f'publication "{new}" already exists')
            update_publication(ddl.catalog, replace(publication, name=new))
        case "subscription":
            subscription = subscription_of_name(ddl, statement.name[-1])
            check_subscription_owner(ddl.privileges, subscription)
            ddl.privileges.check_database(ddl.session.database_name, Privilege.CREATE)
            check_password_option(ddl.privileges, subscription)
            if find_subscription(ddl.catalog, new) is not None:
                raise DuplicateObject(f'subscription "{new}" already exists')
            change_subscription(ddl.catalog, subscription.oid, lambda s: replace(s, name=new))
            client = client_name(ddl.session.cluster.system_identifier, subscription.oid)
            application = application_name(subscription.conninfo, new)
            rename_walsender(ddl.catalog.connection, client, subscription.slot_name, application)
        case "policy":
            rename_policy(ddl, statement)
        case "role":
            rename_role(ddl, statement.name[-1], new)
        case "function" | "routine" | "procedure":
            rename_function(ddl, statement)
        case "type" | "domain":
            _rename_type(ddl, _user_type(ddl, kind, statement.name), new)
        case _:
            raise FeatureNotSupported(f"ALTER {kind.upper()} ... RENAME TO is not supported")
    return f"ALTER {kind.upper()}"


def rename_relation(ddl: Ddl, relation: Relation, new: str) -> None:
    """Rename a table with its row type, or an index with its constraint.

    Raises:
        DuplicateTable: the new name is taken.
    """
    if find_relation_oid(ddl.catalog, new, relation.schema_oid) is not None:
        raise DuplicateTable(f'relation "{new}" already exists')
    update_relation(ddl.catalog, replace(relation, name=new))
    if relation.row_type:
        _set_type_name(ddl, ddl.environment.type(relation.row_type), new)
    if relation.kind in INDEX_KINDS:
        table = schema.pg_constraint
        ddl.catalog.update(
            table,
            table.c.conindid == relation.oid,
            table.c.contype.in_(INDEX_CONSTRAINTS),
            conname=new,
        )


def _rename_inherited(
    ddl: Ddl, relation: Relation, statement: ast.Rename, rename: _RenameIn, *, is_inherited: bool
) -> None:
    """Rename a column or constraint in a table, and before that in its descendants.

    A descendant may also inherit it from a table outside of the renamed tree.  `rename` finds this
    by the number of parents inside the tree (find_all_inheritors).

    Args:
        is_inherited: descendants of the table inherit it.
    """
    kind, old, new = statement.object_type, statement.sub_name or "", statement.new_name
    if is_inherited and statement.inherit:
        tree = descendants_of(ddl.catalog, relation.oid)
        for oid in tree[1:]:
            child = ddl.own_child(oid)
            parents = sum(parent in tree for parent in child.parents)
            rename(ddl, child, old, new, parents=parents)
    elif is_inherited and children_of(ddl.catalog, relation.oid):
        raise InvalidTableDefinition(
            f'inherited {kind} "{old}" must be renamed in child tables too'
        )
    rename(ddl, relation, old, new, parents=0)


def _check_has_named_columns(relation: Relation) -> None:
    """Check that the columns of a relation can be renamed.  As in PostgreSQL, ALTER VIEW also
    renames columns of tables (renameatt_check).
    """
    if relation.kind == RelKind.SEQUENCE:
        raise WrongObjectType(
            f'cannot rename columns of relation "{relation.name}"',
            detail=f"This operation is not supported for {relation.kind.plural}.",
        )


def _rename_column(ddl: Ddl, relation: Relation, old: str, new: str, *, parents: int) -> None:
    """Rename a column of one relation (renameatt_internal).

    Args:
        parents: the number of its parents in which the column is also renamed.
    """
    column = relation.column(old)
    has_system_columns = relation.kind not in (RelKind.VIEW, RelKind.COMPOSITE_TYPE)
    if column is None:
        if has_system_columns and old in system_columns():
            raise FeatureNotSupported(f'cannot rename system column "{old}"')
        raise UndefinedColumn(f'column "{old}" does not exist')
    if column.inherited_count > parents:
        raise InvalidTableDefinition(f'cannot rename inherited column "{old}"')
    if has_system_columns:
        check_column_name(new)
    if relation.column(new) is not None:
        raise DuplicateColumn(f'column "{new}" of relation "{relation.name}" already exists')
    update_column(ddl.catalog, relation.oid, replace(column, name=new))
    options = renamed_in_layout(relation, old, new)
    if options != relation.options:
        update_relation(ddl.catalog, replace(ddl.relation(relation.oid), options=options))


def _rename_constraint(ddl: Ddl, relation: Relation, old: str, new: str, *, parents: int) -> None:
    """Rename a constraint of one relation (rename_constraint_internal)."""
    constraint = _constraint(relation, old)
    if constraint.kind == ConstraintKind.CHECK and constraint.inherited_count > parents:
        raise InvalidTableDefinition(f'cannot rename inherited constraint "{old}"')
    if any(other.name == new for other in relation.constraints):
        raise DuplicateObject(f'constraint "{new}" for relation "{relation.name}" already exists')
    if constraint.kind in INDEX_CONSTRAINTS:
        rename_relation(ddl, ddl.relation(constraint.index_oid), new)
    else:
        update_constraint(ddl.catalog, replace(constraint, name=new))


def _constraint(relation: Relation, name: str) -> Constraint:
    constraint = next((c for c in relation.constraints if c.name == name), None)
    if constraint is None:
        raise UndefinedObject(f'constraint "{name}" for table "{relation.name}" does not exist')
    return constraint


def _rename_schema(ddl: Ddl, old: str, new: str) -> None:
    oid = find_schema_oid(ddl, old)
    ddl.privileges.check_owner(owner_of(ddl.catalog, "pg_namespace", oid), "schema", old)
    ddl.privileges.check_database(ddl.session.database_name, Privilege.CREATE)
    if find_schema(ddl.catalog, new) is not None:
        raise DuplicateSchema(f'schema "{new}" already exists')
    check_schema_name(new)
    rename_schema(ddl.catalog, oid, new)


def _rename_database(ddl: Ddl, old: str, new: str) -> None:
    oid = find_database_oid(ddl, old)
    ddl.privileges.check_owner(owner_of(ddl.catalog, "pg_database", oid), "database", old)
    if not ddl.privileges.is_superuser and not ddl.privileges.role.may_create_databases:
        raise InsufficientPrivilege("permission denied to rename database")
    if find_database(ddl.catalog, new) is not None:
        raise DuplicateDatabase(f'database "{new}" already exists')
    if oid == ddl.session.database_oid:
        raise FeatureNotSupported("current database cannot be renamed")
    ddl.catalog.update(schema.pg_database, schema.pg_database.c.oid == oid, datname=new)


def _user_type(ddl: Ddl, kind: str, name: tuple[str, ...]) -> Type:
    """Return the type named in a statement about types or domains."""
    type_ = find_user_type(ddl, name)
    if kind == "domain" and type_.kind != TypeKind.DOMAIN:
        raise WrongObjectType(f"{ddl.environment.format_type(type_.name)} is not a domain")
    return type_


def _rename_type(ddl: Ddl, type_: Type, new: str) -> None:
    check_type_owner(ddl, type_)
    _check_not_row_type(ddl, type_)
    composite = composite_of_type(ddl.catalog, type_.name)
    if composite is not None:
        rename_relation(ddl, composite, new)
    else:
        _set_type_name(ddl, type_, new)


def _check_not_row_type(ddl: Ddl, type_: Type) -> None:
    if type_.kind == TypeKind.COMPOSITE and composite_of_type(ddl.catalog, type_.name) is None:
        shown = ddl.environment.format_type(type_.name)
        raise WrongObjectType(f"{shown} is a table's row type", hint="Use ALTER TABLE instead.")


def _set_type_name(ddl: Ddl, type_: Type, new: str) -> None:
    """Rename a type and its array type (RenameTypeInternal).

    Raises:
        DuplicateObject: the schema has a type of that name.
    """
    pg_type = schema.pg_type
    place = type_schema_oid(ddl.catalog, type_.name)
    if find_type(ddl.catalog, place, new) is not None:
        raise DuplicateObject(f'type "{new}" already exists')
    ddl.catalog.update(pg_type, pg_type.c.oid == type_oid(type_.name), typname=new)
    if type_.array is not None:
        array_name = f"_{new}"
        while find_type(ddl.catalog, place, array_name) is not None:
            array_name = f"_{array_name}"
        oid = type_oid(type_.array)
        ddl.catalog.update(pg_type, pg_type.c.oid == oid, typname=array_name)


# ---------------------------------------------------------------------------------------------
# OWNER TO, SET SCHEMA


def _alter_owner(ddl: Ddl, statement: ast.AlterOwner) -> str:
    kind, name = statement.object_type, statement.name
    catalog = ddl.catalog
    if kind in ("table", "view", "materialized view", "sequence"):  # looked up before the role
        relation = find_relation(ddl, name, missing_ok=statement.missing_ok)
        if relation is not None:
            check_kind(relation, kind)
            change_owner(ddl, relation, role_oid(ddl.session, catalog, statement.new_owner))
        return f"ALTER {kind.upper()}"
    owner = role_oid(ddl.session, catalog, statement.new_owner)
    match kind:
        case "schema":
            oid = find_schema_oid(ddl, name[-1])
            _give(ddl, "pg_namespace", oid, kind, name[-1], owner)
        case "database":
            _give_database(ddl, name[-1], owner)
        case "publication":
            publication = publication_of_name(ddl, name[-1])
            _give(ddl, "pg_publication", publication.oid, kind, publication.name, owner)
        case "subscription":
            subscription = subscription_of_name(ddl, name[-1])
            _give(ddl, "pg_subscription", subscription.oid, kind, subscription.name, owner)
        case "type" | "domain":
            type_ = _user_type(ddl, kind, name)
            _check_not_row_type(ddl, type_)
            oid = type_oid(type_.name)
            composite = composite_of_type(catalog, type_.name)
            if composite is None:
                _give(ddl, "pg_type", oid, "type", name[-1], owner)
            else:
                _check_giver(ddl, "pg_type", oid, "type", name[-1], owner)
                give_relation(ddl, composite, owner)
        case "function" | "routine" | "procedure":
            oid = find_function(ddl, name, statement.arguments, kind).oid
            _check_giver(ddl, "pg_proc", oid, kind, name[-1], owner)
            check_not_builtin(oid, "functions")
            give_object(ddl, "pg_proc", oid, owner)
        case "operator":
            oid = find_operator(ddl, name, statement.arguments or ()).oid
            _check_giver(ddl, "pg_operator", oid, kind, name[-1], owner)
            check_not_builtin(oid, "operators")
            give_object(ddl, "pg_operator", oid, owner)
        case _:
            raise FeatureNotSupported(f"ALTER {kind.upper()} ... OWNER TO is not supported")
    return f"ALTER {kind.upper()}"


def _give(ddl: Ddl, class_name: str, oid: int, word: str, name: str, owner: int) -> None:
    _check_giver(ddl, class_name, oid, word, name, owner)
    give_object(ddl, class_name, oid, owner)


def _check_giver(ddl: Ddl, class_name: str, oid: int, word: str, name: str, owner: int) -> None:
    """Check that the current role may give an object to another role.  Each role may give it to its
    owner, which changes nothing.

    Raises:
        InsufficientPrivilege: the current role does not own the object, or may not give it to that
            role.
    """
    old = owner_of(ddl.catalog, class_name, oid)
    if owner != old:
        ddl.privileges.check_owner(old, word, name)
        check_given(ddl, class_name, oid, owner)


def _give_database(ddl: Ddl, name: str, owner: int) -> None:
    oid, privileges = find_database_oid(ddl, name), ddl.privileges
    _check_giver(ddl, "pg_database", oid, "database", name, owner)
    if (
        owner != owner_of(ddl.catalog, "pg_database", oid)
        and not privileges.is_superuser
        and not privileges.role.may_create_databases
    ):
        raise InsufficientPrivilege("permission denied to change owner of database")
    give_object(ddl, "pg_database", oid, owner)


def _check_renamed(ddl: Ddl, relation: Relation) -> None:
    """Check that the current role may rename a relation.

    Raises:
        InsufficientPrivilege: another role owns the relation, or the current role may not create
            objects in the relation's schema.
    """
    ddl.privileges.check_relation_owner(relation)
    ddl.privileges.check_schema(relation.schema_oid, relation.schema, Privilege.CREATE)


def _alter_schema(ddl: Ddl, statement: ast.AlterObjectSchema) -> str:
    tag = f"ALTER {statement.object_type.upper()}"
    if statement.object_type in ("type", "domain"):
        _move_type(ddl, statement)
        return tag
    if statement.object_type in ("function", "routine", "procedure"):
        move_function(ddl, statement)
        return tag
    relation = find_relation(ddl, statement.name, missing_ok=statement.missing_ok)
    if relation is None:
        return tag
    check_not_composite(relation)
    check_kind(relation, statement.object_type)
    ddl.privileges.check_relation_owner(relation)
    _check_moved(ddl, relation)
    place = find_new_schema(ddl, statement.new_schema)
    ddl.privileges.check_schema(place, statement.new_schema, Privilege.CREATE)
    if place == relation.schema_oid:
        return tag
    is_temporary = relation.persistence == RelPersistence.TEMPORARY
    if is_temporary or statement.new_schema.startswith("pg_temp"):
        raise FeatureNotSupported("cannot move objects into or out of temporary schemas")
    if find_relation_oid(ddl.catalog, relation.name, place) is not None:
        raise DuplicateTable(
            f'relation "{relation.name}" already exists in schema "{statement.new_schema}"'
        )
    update_relation(ddl.catalog, replace(relation, schema_oid=place))
    pg_constraint = schema.pg_constraint
    if relation.row_type:
        row_type = ddl.environment.type(relation.row_type)
        _put_types(ddl, row_type, place, statement.new_schema)
    sequences = owned_sequences(ddl.catalog, relation.oid)
    for oid in [*(index.oid for index in relation.indexes), *(s.relid for s in sequences)]:
        member = ddl.relation(oid)
        if find_relation_oid(ddl.catalog, member.name, place) is not None:
            raise DuplicateTable(
                f'relation "{member.name}" already exists in schema "{statement.new_schema}"'
            )
        update_relation(ddl.catalog, replace(member, schema_oid=place))
    ddl.catalog.update(pg_constraint, pg_constraint.c.conrelid == relation.oid, connamespace=place)
    return tag


def _move_type(ddl: Ddl, statement: ast.AlterObjectSchema) -> None:
    """Move a type, its array type and its constraints to another schema (AlterTypeNamespace)."""
    type_ = _user_type(ddl, statement.object_type, statement.name)
    place = find_new_schema(ddl, statement.new_schema)
    check_type_owner(ddl, type_)
    ddl.privileges.check_schema(place, statement.new_schema, Privilege.CREATE)
    shown = ddl.environment.format_type(type_.name)
    _check_not_row_type(ddl, type_)
    if type_.element is not None:
        element = ddl.environment.format_type(type_.element)
        raise WrongObjectType(
            f"cannot alter array type {shown}",
            hint=f"You can alter type {element}, which will alter the array type as well.",
        )
    if place == type_schema_oid(ddl.catalog, type_.name):
        return
    composite = composite_of_type(ddl.catalog, type_.name)
    if composite is not None and find_relation_oid(ddl.catalog, composite.name, place) is not None:
        raise DuplicateTable(
            f'relation "{composite.name}" already exists in schema "{statement.new_schema}"'
        )
    _put_types(ddl, type_, place, statement.new_schema)
    if composite is not None:
        update_relation(ddl.catalog, replace(composite, schema_oid=place))
    pg_constraint = schema.pg_constraint
    ddl.catalog.update(
        pg_constraint, pg_constraint.c.contypid == type_oid(type_.name), connamespace=place
    )


def _put_types(ddl: Ddl, type_: Type, place: int, schema_name: str) -> None:
    """Move a type and its array type to a schema (AlterTypeNamespaceInternal).

    Raises:
        DuplicateObject: the schema has a type with one of these names.
    """
    pg_type = schema.pg_type
    for moved in (type_, *([ddl.environment.type(type_.array)] if type_.array else ())):
        if find_type(ddl.catalog, place, moved.sql_name) is not None:
            raise DuplicateObject(
                f'type "{moved.sql_name}" already exists in schema "{schema_name}"'
            )
        ddl.catalog.update(pg_type, pg_type.c.oid == type_oid(moved.name), typnamespace=place)


def _check_moved(ddl: Ddl, relation: Relation) -> None:
    """Check that a relation may be moved to another schema.

    Raises:
        FeatureNotSupported: the relation is a sequence that a table's column owns.
        WrongObjectType: the relation is an index.
    """
    sequence = get_sequence(ddl.catalog, relation.oid)
    if sequence is not None and sequence.owner_relid:
        owner = ddl.relation(sequence.owner_relid).name
        raise FeatureNotSupported(
            "cannot move an owned sequence into another schema",
            detail=f'Sequence "{relation.name}" is linked to table "{owner}".',
        )
    if relation.kind in INDEX_KINDS:
        raise WrongObjectType(
            f'cannot change schema of index "{relation.name}"',
            hint="Change the schema of the table instead.",
        )
