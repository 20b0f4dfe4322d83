"""DROP (dropcmds.c, RemoveRelations() in tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog import schema, schema_table
from replctl.catalog.aclchk import owner_of
from replctl.catalog.composite_type import composite_of_type
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_collation import list_collations
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_policy import find_policy
from replctl.catalog.pg_sequence import get_sequence
from replctl.catalog.pg_type import type_oid
from replctl.catalog.relation_kind import (
    DependencyType,
    RelKind,
    RelPersistence,
)
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.dependency import describe, drop_objects, indexed_relation
from replctl.commands.find_object import find_function, find_operator, input_types
from replctl.commands.find_relation import RELATION_KINDS
from replctl.commands.index import constraint_of
from replctl.commands.object_address import Object, relation_object
from replctl.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidSchemaName,
    PostgresError,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from replctl.expr.environment import SYSTEM_SCHEMA, user_collation
from replctl.expr.type_names import split_name, split_relation_name, type_of
from replctl.parser import ast
from replctl.session import Session
from replctl.transaction_block import prevent_in_block
from replctl.types import builtin
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.quote import quote_identifier
from replctl.types.type_kind import TypeKind


def drop(session: Session, statement: ast.Drop) -> str:
    """Drop objects.

    Raises:
        PostgresError: an object does not exist, or other objects depend on it.
        FeatureNotSupported: replctl does not support the kind of object.
    """
    if statement.object_type == "publication":
        from replctl.commands.publication import drop_publications

        return drop_publications(session, statement)
    if statement.concurrently:
        prevent_in_block(session.block, "DROP INDEX CONCURRENTLY")
        _check_concurrently(statement)
    return carry_out(session, lambda ddl: _drop(ddl, statement))


def _check_concurrently(statement: ast.Drop) -> None:
    """Check that DROP INDEX CONCURRENTLY drops one index only.

    Raises:
        FeatureNotSupported: the statement names several indexes, or has CASCADE.
    """
    refused = "DROP INDEX CONCURRENTLY does not support"
    if len(statement.names) > 1:
        raise FeatureNotSupported(f"{refused} dropping multiple objects")
    if statement.behavior == "cascade":
        raise FeatureNotSupported(f"{refused} CASCADE")


def _drop(ddl: Ddl, statement: ast.Drop) -> str:
    objects: list[Object] = []
    for number in range(len(statement.names)):
        found = _find(ddl, statement, number)
        if found is not None and found not in objects:
            _check_owner(ddl, found, statement.object_type, statement.names[number][-1])
            objects.append(found)
    if statement.concurrently:
        _check_not_partitioned(ddl, objects)
    drop_objects(ddl, objects, statement.behavior)
    return f"DROP {statement.object_type.upper()}"


def _check_not_partitioned(ddl: Ddl, indexes: Sequence[Object]) -> None:
    for index in indexes:
        relation = ddl.relation(index.oid)
        is_partitioned = relation.kind == RelKind.PARTITIONED_INDEX
        if is_partitioned and relation.persistence != RelPersistence.TEMPORARY:
            raise FeatureNotSupported(
                f'cannot drop partitioned index "{relation.name}" concurrently'
            )


_CLASSES = {
    "schema": "pg_namespace",
    "type": "pg_type",
    "function": "pg_proc",
    "operator": "pg_operator",
    "collation": "pg_collation",
}


def _check_owner(ddl: Ddl, target: Object, kind: str, name: str) -> None:
    """Check that the current role may drop an object.

    Raises:
        InsufficientPrivilege: the current role owns neither the object nor its schema.
    """
    privileges = ddl.privileges
    if privileges.is_superuser:
        return
    if target.kind == "policy":
        row = ddl.catalog.first(schema.pg_policy, schema.pg_policy.c.oid == target.oid)
        assert row is not None
        relation = ddl.relation(int(row.polrelid))
        privileges.check_owner(relation.owner, "relation", relation.name)
        return
    class_name = _CLASSES.get(target.kind, "pg_class")
    if target.kind != "schema":
        table = schema_table.metadata.tables[class_name]
        column = next(c for c in table.c if c.name.endswith("namespace"))
        row = ddl.catalog.first(table, table.c.oid == target.oid)
        place = 0 if row is None else int(row._mapping[column.name])
        if row is not None and privileges.acts_for(owner_of(ddl.catalog, "pg_namespace", place)):
            return
    shown = kind if target.kind == "function" else target.kind
    privileges.check_owner(owner_of(ddl.catalog, class_name, target.oid), shown, name)


def _find(ddl: Ddl, statement: ast.Drop, number: int) -> Object | None:
    """Return the object that a name refers to.  If there is none and IF EXISTS was given, report a
    notice and return None.
    """
    name = statement.names[number]
    try:
        match statement.object_type:
            case "table" | "index" | "view" | "materialized view" | "sequence" | "foreign table":
                return _relation(ddl, statement.object_type, name)
            case "policy" | "trigger" as kind:
                return _on_table(ddl, kind, name)
            case "extension":
                raise _no_extension(name[-1])
            case "cast":
                raise _no_cast(ddl, *statement.operands[number])
            case "schema":
                return _schema(ddl, name[-1])
            case "type" | "domain":
                return _type(ddl, name, statement.object_type)
            case "function" | "routine" | "procedure" as kind:
                return _function(ddl, name, statement.arguments[number], kind)
            case "collation":
                return _collation(ddl, name)
            case "operator":
                return _operator(ddl, name, statement.operands[number])
            case other:
                raise FeatureNotSupported(f"DROP {other.upper()} is not supported")
    except _Missing as missing:  # IF EXISTS allows it
        if not statement.missing_ok:
            raise missing.error from None
        ddl.notice(f"{missing.shown} does not exist, skipping")
        return None


class _Missing(Exception):
    """A missing object: the error to raise, and the name to show in a notice."""

    def __init__(self, error: PostgresError, shown: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.shown = shown


def _split(ddl: Ddl, name: tuple[str, ...], *, is_relation: bool = False) -> tuple[str | None, str]:
    split = split_relation_name if is_relation else split_name
    schema_name, last = split(ddl.environment, name)
    if schema_name is not None and ddl.environment.schema_oid(schema_name) is None:
        message = f'schema "{schema_name}" does not exist'
        raise _Missing(InvalidSchemaName(message), f'schema "{schema_name}"')
    return schema_name, last


def _relation(ddl: Ddl, kind: str, name: tuple[str, ...]) -> Object:
    schema_name, last = _split(ddl, name, is_relation=True)
    oid = ddl.environment.relation_oid(schema_name, last)
    if oid is None:
        shown = f'{kind} "{last}"'
        error = UndefinedTable if kind != "index" else UndefinedObject
        raise _Missing(error(f"{shown} does not exist"), shown)
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{last}" is a system catalog')
    relation = get_relation(ddl.catalog, oid)
    assert relation is not None
    if relation.kind not in RELATION_KINDS[kind]:
        actual = relation_object(relation).kind
        article = "an" if kind == "index" else "a"
        raise WrongObjectType(
            f'"{last}" is not {article} {kind}',
            hint=f"Use DROP {actual.upper()} to remove {'an' if actual == 'index' else 'a'}"
            f" {actual}.",
        )
    found = relation_object(relation)
    _check_owner(ddl, found, kind, last)  # before its dependencies, which others need not know
    if kind == "index":
        _check_index(ddl, relation)
    if kind == "sequence":
        _check_sequence(ddl, oid)
    return found


def _check_sequence(ddl: Ddl, oid: int) -> None:
    """Check that a sequence does not belong to an identity column.

    Raises:
        DependentObjectsStillExist: the sequence belongs to an identity column.
    """
    sequence = get_sequence(ddl.catalog, oid)
    if sequence is not None and sequence.ownership == DependencyType.INTERNAL:
        column = Object("column", sequence.owner_relid, sequence.owner_attnum)
        raise _required(describe(ddl, Object("sequence", oid)), describe(ddl, column))


def _check_index(ddl: Ddl, index_relation: Relation) -> None:
    """Check that an index can be dropped without a constraint or another index.

    Raises:
        DependentObjectsStillExist: the index belongs to a constraint, or is attached to an index
            of a partitioned table.
    """
    parent = next(iter(index_relation.parents), None)
    if parent is not None:
        above = describe(ddl, Object("index", parent))
        raise _required(describe(ddl, Object("index", index_relation.oid)), above)
    relation = indexed_relation(ddl, index_relation.oid)
    index = next(index for index in relation.indexes if index.oid == index_relation.oid)
    constraint = constraint_of(relation, index)
    if constraint is not None:
        above = describe(ddl, Object("constraint", constraint.oid))
        raise _required(describe(ddl, Object("index", index.oid)), above)


def _required(shown: str, above: str) -> DependentObjectsStillExist:
    return DependentObjectsStillExist(
        f"cannot drop {shown} because {above} requires it", hint=f"You can drop {above} instead."
    )


def _on_table(ddl: Ddl, kind: str, name: tuple[str, ...]) -> Object:
    """Return a policy or trigger.  `name` has the name of the table, and then its own name.
    Triggers do not exist.
    """
    *table, own = name
    schema_name, last = _split(ddl, tuple(table))
    oid = ddl.environment.relation_oid(schema_name, last)
    if oid is None:
        shown = f'relation "{".".join(table)}"'
        raise _Missing(UndefinedTable(f"{shown} does not exist"), shown)
    policy = find_policy(ddl.catalog, oid, own) if kind == "policy" else None
    if policy is None:
        message = f'{kind} "{own}" for table "{last}" does not exist'
        shown = f'{kind} "{own}" for relation "{".".join(table)}"'
        raise _Missing(UndefinedObject(message), shown)
    return Object("policy", policy.oid)


def _no_extension(name: str) -> Exception:
    """Return the error of DROP EXTENSION.  plpgsql, the only extension of PostgreSQL's new
    databases, cannot be dropped here.
    """
    if name == "plpgsql":
        return FeatureNotSupported("DROP EXTENSION plpgsql is not supported")
    shown = f'extension "{name}"'
    return _Missing(UndefinedObject(f"{shown} does not exist"), shown)


def _no_cast(ddl: Ddl, source: ast.TypeName | None, target: ast.TypeName | None) -> Exception:
    """Return the error of DROP CAST.  Only the casts of the system exist."""
    assert source is not None
    assert target is not None
    names = (replace(source, pos=-1), replace(target, pos=-1))
    try:
        types = [type_of(ddl.environment, name)[0].name for name in names]
    except (UndefinedObject, InvalidSchemaName) as missing:
        return _missing_type(missing)
    shown = [ddl.environment.format_type(name) for name in types]
    if (types[0], types[1]) in builtin.casts():
        return _required_by_system(f"cast from {shown[0]} to {shown[1]}")
    error = UndefinedObject(f"cast from type {shown[0]} to type {shown[1]} does not exist")
    written = [_written(name) for name in names]
    return _Missing(error, f"cast from type {written[0]} to type {written[1]}")


def _schema(ddl: Ddl, name: str) -> Object:
    oid = find_schema(ddl.catalog, name)
    if oid is None:
        shown = f'schema "{name}"'
        raise _Missing(InvalidSchemaName(f"{shown} does not exist"), shown)
    if name in (SYSTEM_SCHEMA, "information_schema"):
        raise _required_by_system(f"schema {name}")
    return Object("schema", oid)


def _type(ddl: Ddl, name: tuple[str, ...], kind: str) -> Object:
    schema_name, last = _split(ddl, name)
    type_ = ddl.environment.find_type(schema_name, last)
    if type_ is None:
        shown = f'type "{".".join(name)}"'
        raise _Missing(UndefinedObject(f"{shown} does not exist"), shown)
    if kind == "domain" and type_.kind != TypeKind.DOMAIN:
        raise WrongObjectType(f'"{".".join(name)}" is not a domain')
    if type_.is_builtin:
        shown = ddl.environment.format_type(type_.name)
        raise _required_by_system(f"type {shown}")
    target = Object("type", type_oid(type_.name))
    if type_.kind == TypeKind.COMPOSITE and composite_of_type(ddl.catalog, type_.name) is None:
        relation = ddl.relation(_row_type_relation(ddl, target.oid))
        raise _required(describe(ddl, target), describe(ddl, relation_object(relation)))
    if type_.element is not None:
        element = Object("type", type_oid(type_.element))
        raise _required(describe(ddl, target), describe(ddl, element))
    return target


def _row_type_relation(ddl: Ddl, oid: int) -> int:
    row = ddl.catalog.first(schema.pg_type, schema.pg_type.c.oid == oid)
    assert row is not None
    return int(row.typrelid)


def _function(
    ddl: Ddl,
    name: tuple[str, ...],
    parameters: Sequence[ast.FunctionParameter] | None,
    kind: str,
) -> Object:
    arguments = input_types(parameters)
    _split(ddl, name)
    try:
        function = find_function(ddl, name, arguments, kind)
    except UndefinedFunction as error:
        listed = "" if arguments is None else ",".join(map(_written, arguments))
        raise _Missing(error, f"{kind} {'.'.join(name)}({listed})") from None
    except (UndefinedObject, InvalidSchemaName) as error:
        raise _missing_type(error) from None
    if function.oid < FIRST_USER_OID:
        listed = ",".join(ddl.environment.format_type(item) for item in function.argument_types)
        raise _required_by_system(f"function {function.name}({listed})")
    return Object("function", function.oid)


def _written(type_name: ast.TypeName) -> str:
    """Return a type's name as notices show it (TypeNameToString)."""
    return ".".join(type_name.names) + ("[]" if type_name.array_bounds else "")


def _missing_type(error: PostgresError) -> _Missing:
    """Return the missing type of an argument, or its missing schema
    (type_in_list_does_not_exist_skipping).
    """
    return _Missing(error, error.message.removesuffix(" does not exist"))


def _collation(ddl: Ddl, name: tuple[str, ...]) -> Object:
    found = ddl.environment.collation(*_split(ddl, name))
    shown = ".".join(name)
    if found is None:
        error = UndefinedObject(f'collation "{shown}" for encoding "UTF8" does not exist')
        raise _Missing(error, f'collation "{shown}"')
    for collation in list_collations(ddl.catalog):
        if user_collation(collation.oid) == found:
            return Object("collation", collation.oid)
    raise _required_by_system(f"collation {quote_identifier(found)}")


def _operator(ddl: Ddl, name: tuple[str, ...], operands: Sequence[ast.TypeName | None]) -> Object:
    _split(ddl, name)
    try:
        operator = find_operator(ddl, name, operands)
    except (UndefinedFunction, SqlSyntaxError) as error:  # or a postfix operator
        raise _Missing(error, f"operator {'.'.join(name)}") from None
    except (UndefinedObject, InvalidSchemaName) as error:
        raise _missing_type(error) from None
    if operator.oid < FIRST_USER_OID:
        types = (operator.left, operator.right)
        shown = ",".join(ddl.environment.format_type(t) if t else "NONE" for t in types)
        raise _required_by_system(f"operator {operator.name}({shown})")
    return Object("operator", operator.oid)


def _required_by_system(shown: str) -> DependentObjectsStillExist:
    return DependentObjectsStillExist(
        f"cannot drop {shown} because it is required by the database system"
    )
