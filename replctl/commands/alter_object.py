"""ALTER ... RENAME TO, OWNER TO, SET SCHEMA (alter.c, tablecmds.c).

Names are the catalog's alone: storage keeps the first name of a column, and the place of a table.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog import schema
from replctl.catalog.pg_class import (
    Relation,
    children_of,
    find_relation_oid,
    get_relation,
    update_column,
    update_constraint,
    update_relation,
)
from replctl.catalog.pg_namespace import find_schema, rename_schema
from replctl.catalog.pg_publication import find_publication, update_publication
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.pg_subscription import find_subscription, update_subscription
from replctl.catalog.pg_type import find_type, type_oid, type_schema_oid
from replctl.commands.alter_table import change_owner
from replctl.commands.column import check_column_name
from replctl.commands.database import find_database
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.schema import check_schema_name, role_oid
from replctl.errors import (
    DuplicateColumn,
    DuplicateDatabase,
    DuplicateObject,
    DuplicateSchema,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidCatalogName,
    InvalidSchemaName,
    InvalidTableDefinition,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from replctl.expr.type_names import split_name
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID, Type

_RELATIONS = ("table", "index", "view", "materialized view", "sequence", "foreign table")


def rename(session: Session, statement: ast.Rename) -> str:
    """Give an object another name.

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
        InvalidSchemaName, DuplicateTable: there is no such schema, or the name is taken in it.
    """
    return carry_out(session, lambda ddl: _alter_schema(ddl, statement))


# ---------------------------------------------------------------------------------------------
# RENAME


def _rename(ddl: Ddl, statement: ast.Rename) -> str:
    kind, new = statement.object_type, statement.new_name
    match kind:
        case "table" | "index" | "view" | "materialized view" | "sequence" | "foreign table":
            relation = _relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                _check_kind(relation, kind)
                rename_relation(ddl, relation, new)
        case "column":
            relation = _relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                _rename_column(ddl, relation, statement.sub_name or "", new, parents=0)
            return "ALTER TABLE"
        case "constraint":
            relation = _relation(ddl, statement.name, missing_ok=statement.missing_ok)
            if relation is not None:
                _rename_constraint(ddl, relation, statement.sub_name or "", new, parents=0)
            return "ALTER TABLE"
        case "schema":
            _rename_schema(ddl, statement.name[-1], new)
        case "database":
            _rename_database(ddl, statement.name[-1], new)
        case "publication":
            publication = find_publication(ddl.catalog, statement.name[-1])
            if publication is None:
                raise UndefinedObject(f'publication "{statement.name[-1]}" does not exist')
            if find_publication(ddl.catalog, new) is not None:
                raise DuplicateObject(f'publication "{new}" already exists')
            update_publication(ddl.catalog, replace(publication, name=new))
        case "subscription":
            subscription = find_subscription(ddl.catalog, statement.name[-1])
            if subscription is None:
                raise UndefinedObject(f'subscription "{statement.name[-1]}" does not exist')
            if find_subscription(ddl.catalog, new) is not None:
                raise DuplicateObject(f'subscription "{new}" already exists')
            update_subscription(ddl.catalog, replace(subscription, name=new))
        case "type":
            _rename_type(ddl, statement.name, new)
        case _:
            raise FeatureNotSupported(f"ALTER {kind.upper()} ... RENAME TO is not supported")
    return f"ALTER {kind.upper()}"


def rename_relation(ddl: Ddl, relation: Relation, new: str) -> None:
    """Give a table or an index another name, and with it its row type or constraint.

    Raises:
        DuplicateTable: it is taken.
    """
    if find_relation_oid(ddl.catalog, new, relation.schema_oid) is not None:
        raise DuplicateTable(f'relation "{new}" already exists')
    update_relation(ddl.catalog, replace(relation, name=new))
    if relation.row_type:
        _set_type_name(ddl, ddl.environment.type(relation.row_type), new)
    if relation.kind in "iI":
        table = schema.pg_constraint
        ddl.catalog.update(
            table, table.c.conindid == relation.oid, table.c.contype.in_(["p", "u"]), conname=new
        )


def _rename_column(ddl: Ddl, relation: Relation, old: str, new: str, *, parents: int) -> None:
    """
    Args:
        parents: how many of the tables above rename theirs, too.
    """
    column = relation.column(old)
    if column is None:
        raise UndefinedColumn(f'column "{old}" does not exist')
    if column.inherited_count > parents:
        raise InvalidTableDefinition(f'cannot rename inherited column "{old}"')
    check_column_name(new)
    if relation.column(new) is not None:
        raise DuplicateColumn(f'column "{new}" of relation "{relation.name}" already exists')
    update_column(ddl.catalog, relation.oid, replace(column, name=new))
    for oid in children_of(ddl.catalog, relation.oid):
        child = ddl.relation(oid)
        _rename_column(ddl, child, old, new, parents=len(child.parents))


def _rename_constraint(ddl: Ddl, relation: Relation, old: str, new: str, *, parents: int) -> None:
    constraint = next((c for c in relation.constraints if c.name == old), None)
    if constraint is None:
        raise UndefinedObject(f'constraint "{old}" for table "{relation.name}" does not exist')
    if constraint.kind == "c" and constraint.inherited_count > parents:
        raise InvalidTableDefinition(f'cannot rename inherited constraint "{old}"')
    if any(other.name == new for other in relation.constraints):
        raise DuplicateObject(f'constraint "{new}" for relation "{relation.name}" already exists')
    if constraint.kind in "pu":
        rename_relation(ddl, ddl.relation(constraint.index_oid), new)
        return
    update_constraint(ddl.catalog, replace(constraint, name=new))
    if constraint.kind == "c" and not constraint.no_inherit:
        for oid in children_of(ddl.catalog, relation.oid):
            child = ddl.relation(oid)
            _rename_constraint(ddl, child, old, new, parents=len(child.parents))


def _rename_schema(ddl: Ddl, old: str, new: str) -> None:
    oid = _schema(ddl, old)
    if find_schema(ddl.catalog, new) is not None:
        raise DuplicateSchema(f'schema "{new}" already exists')
    check_schema_name(new)
    rename_schema(ddl.catalog, oid, new)


def _rename_database(ddl: Ddl, old: str, new: str) -> None:
    oid = _database(ddl, old)
    if find_database(ddl.catalog, new) is not None:
        raise DuplicateDatabase(f'database "{new}" already exists')
    if oid == ddl.session.database_oid:
        raise FeatureNotSupported("current database cannot be renamed")
    ddl.catalog.update(schema.pg_database, schema.pg_database.c.oid == oid, datname=new)


def _rename_type(ddl: Ddl, name: tuple[str, ...], new: str) -> None:
    type_ = _type(ddl, name)
    if type_.kind == "c":
        shown = ddl.environment.format_type(type_.name)
        raise WrongObjectType(f"{shown} is a table's row type", hint="Use ALTER TABLE instead.")
    if find_type(ddl.catalog, type_schema_oid(ddl.catalog, type_.name), new) is not None:
        raise DuplicateObject(f'type "{new}" already exists')
    _set_type_name(ddl, type_, new)


def _set_type_name(ddl: Ddl, type_: Type, new: str) -> None:
    """Give a type another name; the type of its arrays follows (RenameTypeInternal)."""
    pg_type = schema.pg_type
    place = type_schema_oid(ddl.catalog, type_.name)
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
    owner = role_oid(ddl.catalog, statement.new_owner)
    catalog = ddl.catalog
    match kind:
        case "table":
            relation = _relation(ddl, name)
            assert relation is not None
            change_owner(ddl, relation, owner)
        case "schema":
            oid = _schema(ddl, name[-1])
            catalog.update(schema.pg_namespace, schema.pg_namespace.c.oid == oid, nspowner=owner)
        case "database":
            oid = _database(ddl, name[-1])
            catalog.update(schema.pg_database, schema.pg_database.c.oid == oid, datdba=owner)
        case "publication":
            publication = find_publication(catalog, name[-1])
            if publication is None:
                raise UndefinedObject(f'publication "{name[-1]}" does not exist')
            update_publication(catalog, replace(publication, owner=owner))
        case "subscription":
            subscription = find_subscription(catalog, name[-1])
            if subscription is None:
                raise UndefinedObject(f'subscription "{name[-1]}" does not exist')
            update_subscription(catalog, replace(subscription, owner=owner))
        case "type":
            oid = type_oid(_type(ddl, name).name)
            catalog.update(schema.pg_type, schema.pg_type.c.oid == oid, typowner=owner)
        case _:
            raise FeatureNotSupported(f"ALTER {kind.upper()} ... OWNER TO is not supported")
    return f"ALTER {kind.upper()}"


def _alter_schema(ddl: Ddl, statement: ast.AlterObjectSchema) -> str:
    relation = _relation(ddl, statement.name, missing_ok=statement.missing_ok)
    if relation is None:
        return "ALTER TABLE"
    _check_kind(relation, "table")
    if relation.kind == "S":
        raise FeatureNotSupported("ALTER SEQUENCE ... SET SCHEMA is not supported")
    place = _schema(ddl, statement.new_schema)
    if place == relation.schema_oid:
        return "ALTER TABLE"
    if find_relation_oid(ddl.catalog, relation.name, place) is not None:
        raise DuplicateTable(
            f'relation "{relation.name}" already exists in schema "{statement.new_schema}"'
        )
    update_relation(ddl.catalog, replace(relation, schema_oid=place))
    pg_type, pg_constraint = schema.pg_type, schema.pg_constraint
    row_type = ddl.environment.type(relation.row_type)
    for name in (row_type.name, row_type.array or ""):
        if name:
            ddl.catalog.update(pg_type, pg_type.c.oid == type_oid(name), typnamespace=place)
    sequences = owned_sequences(ddl.catalog, relation.oid)
    for oid in [*(index.oid for index in relation.indexes), *(s.relid for s in sequences)]:
        member = ddl.relation(oid)
        if find_relation_oid(ddl.catalog, member.name, place) is not None:
            raise DuplicateTable(
                f'relation "{member.name}" already exists in schema "{statement.new_schema}"'
            )
        update_relation(ddl.catalog, replace(member, schema_oid=place))
    ddl.catalog.update(pg_constraint, pg_constraint.c.conrelid == relation.oid, connamespace=place)
    return "ALTER TABLE"


# ---------------------------------------------------------------------------------------------
# Objects by name


def _relation(ddl: Ddl, name: tuple[str, ...], *, missing_ok: bool = False) -> Relation | None:
    schema_name, last = split_name(ddl.environment, name)
    oid = ddl.environment.relation_oid(schema_name, last)
    if oid is None:
        shown = last if schema_name is None else f"{schema_name}.{last}"
        if not missing_ok:
            raise UndefinedTable(f'relation "{shown}" does not exist')
        ddl.notice(f'relation "{last}" does not exist, skipping')
        return None
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{last}" is a system catalog')
    return get_relation(ddl.catalog, oid)


def _check_kind(relation: Relation, kind: str) -> None:
    """ALTER TABLE takes indexes, too; the others take their own kind only."""
    if kind == "index" and relation.kind not in "iI":
        raise WrongObjectType(f'"{relation.name}" is not an index')
    if kind not in ("table", "index") and (kind, relation.kind) != ("sequence", "S"):
        article = "an" if kind[0] in "aeiou" else "a"
        raise WrongObjectType(f'"{relation.name}" is not {article} {kind}')


def _schema(ddl: Ddl, name: str) -> int:
    oid = find_schema(ddl.catalog, name)
    if oid is None:
        raise InvalidSchemaName(f'schema "{name}" does not exist')
    return oid


def _database(ddl: Ddl, name: str) -> int:
    oid = find_database(ddl.catalog, name)
    if oid is None:
        raise InvalidCatalogName(f'database "{name}" does not exist')
    return oid


def _type(ddl: Ddl, name: tuple[str, ...]) -> Type:
    schema_name, last = split_name(ddl.environment, name)
    type_ = ddl.environment.find_type(schema_name, last)
    if type_ is None or type_.is_builtin:
        raise UndefinedObject(f'type "{".".join(name)}" does not exist')
    return type_
