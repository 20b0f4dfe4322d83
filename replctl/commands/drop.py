"""DROP (dropcmds.c, RemoveRelations() in tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_proc import list_functions, list_operators
from replctl.catalog.pg_sequence import get_sequence
from replctl.catalog.pg_type import type_oid
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.dependency import Object, describe, drop_objects, indexed_relation
from replctl.commands.index import constraint_of
from replctl.errors import (
    AmbiguousFunction,
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidSchemaName,
    PostgresError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from replctl.expr.environment import SYSTEM_SCHEMA
from replctl.expr.type_names import split_name
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID

#: Kinds of relations that there are none of yet: their names can only be missing.
_WITHOUT_OBJECTS = ("view", "materialized view", "foreign table")
_RELKINDS = {"table": "rp", "index": "iI", "sequence": "S"}
_WORD = {"r": "table", "p": "table", "i": "index", "I": "index", "S": "sequence"}


def drop(session: Session, statement: ast.Drop) -> str:
    """Remove objects.

    Raises:
        PostgresError: one of them does not exist, or others depend on it.
        FeatureNotSupported: a kind of object that there is none of.
    """
    if statement.object_type == "publication":
        from replctl.commands.publication import drop_publications

        return drop_publications(session, statement)
    return carry_out(session, lambda ddl: _drop(ddl, statement))


def _drop(ddl: Ddl, statement: ast.Drop) -> str:
    objects: list[Object] = []
    for name in statement.names:
        found = _find(ddl, statement, name)
        if found is not None and found not in objects:
            objects.append(found)
    drop_objects(ddl, objects, statement.behavior)
    return f"DROP {statement.object_type.upper()}"


def _find(ddl: Ddl, statement: ast.Drop, name: tuple[str, ...]) -> Object | None:
    """The object that a name means; None, with a notice, if it is missing and may be."""
    try:
        match statement.object_type:
            case "table" | "index" | "view" | "materialized view" | "sequence" | "foreign table":
                return _relation(ddl, statement.object_type, name)
            case "schema":
                return _schema(ddl, name[-1])
            case "type" | "domain":
                return _type(ddl, name)
            case "function":
                return _function(ddl, name)
            case "operator":
                return _operator(ddl, name)
            case "role":
                raise FeatureNotSupported("DROP ROLE is not supported")
            case other:
                raise FeatureNotSupported(f"DROP {other.upper()} is not supported")
    except _Missing as missing:
        if not statement.missing_ok:
            raise missing.error from None
        ddl.notice(f"{missing.shown} does not exist, skipping")
        return None


class _Missing(Exception):
    """Something that does not exist: the error that it is, and how a notice names it."""

    def __init__(self, error: PostgresError, shown: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.shown = shown


def _split(ddl: Ddl, name: tuple[str, ...]) -> tuple[str | None, str]:
    schema_name, last = split_name(ddl.environment, name)
    if schema_name is not None and not ddl.environment.has_schema(schema_name):
        message = f'schema "{schema_name}" does not exist'
        raise _Missing(InvalidSchemaName(message), f'schema "{schema_name}"')
    return schema_name, last


def _relation(ddl: Ddl, kind: str, name: tuple[str, ...]) -> Object:
    schema_name, last = _split(ddl, name)
    oid = ddl.environment.relation_oid(schema_name, last)
    if oid is None:
        shown = f'{kind} "{last}"'
        error = UndefinedTable if kind != "index" else UndefinedObject
        raise _Missing(error(f"{shown} does not exist"), shown)
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{last}" is a system catalog')
    relation = get_relation(ddl.catalog, oid)
    assert relation is not None
    if kind in _WITHOUT_OBJECTS or relation.kind not in _RELKINDS[kind]:
        actual = _WORD[relation.kind]
        article = "an" if kind == "index" else "a"
        raise WrongObjectType(
            f'"{last}" is not {article} {kind}',
            hint=f"Use DROP {actual.upper()} to remove {'an' if actual == 'index' else 'a'}"
            f" {actual}.",
        )
    if kind == "index":
        _check_index(ddl, relation)
    if kind == "sequence":
        _check_sequence(ddl, oid)
    return Object(kind, oid)  # type: ignore[arg-type]


def _check_sequence(ddl: Ddl, oid: int) -> None:
    """
    Raises:
        DependentObjectsStillExist: the sequence is an identity column's.
    """
    sequence = get_sequence(ddl.catalog, oid)
    if sequence is not None and sequence.ownership == "i":
        column = Object("column", sequence.owner_relid, sequence.owner_attnum)
        raise _required(describe(ddl, Object("sequence", oid)), describe(ddl, column))


def _check_index(ddl: Ddl, index_relation: Relation) -> None:
    """
    Raises:
        DependentObjectsStillExist: the index is a constraint's, or belongs to a partitioned
            table's.
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


def _schema(ddl: Ddl, name: str) -> Object:
    oid = find_schema(ddl.catalog, name)
    if oid is None:
        shown = f'schema "{name}"'
        raise _Missing(InvalidSchemaName(f"{shown} does not exist"), shown)
    if name in (SYSTEM_SCHEMA, "information_schema"):
        raise DependentObjectsStillExist(
            f"cannot drop schema {name} because it is required by the database system"
        )
    return Object("schema", oid)


def _type(ddl: Ddl, name: tuple[str, ...]) -> Object:
    schema_name, last = _split(ddl, name)
    type_ = ddl.environment.find_type(schema_name, last)
    if type_ is None:
        shown = f'type "{".".join(name)}"'
        raise _Missing(UndefinedObject(f"{shown} does not exist"), shown)
    if type_.is_builtin:
        shown = ddl.environment.format_type(type_.name)
        raise DependentObjectsStillExist(
            f"cannot drop type {shown} because it is required by the database system"
        )
    target = Object("type", type_oid(type_.name))
    if type_.kind == "c":
        relid = _row_type_relation(ddl, target.oid)
        raise _required(describe(ddl, target), describe(ddl, Object("table", relid)))
    if type_.element is not None:
        element = Object("type", type_oid(type_.element))
        raise _required(describe(ddl, target), describe(ddl, element))
    return target


def _row_type_relation(ddl: Ddl, oid: int) -> int:
    from replctl.catalog import schema

    row = ddl.catalog.first(schema.pg_type, schema.pg_type.c.oid == oid)
    assert row is not None
    return int(row.typrelid)


def _function(ddl: Ddl, name: tuple[str, ...]) -> Object:
    schema_name, last = _split(ddl, name)
    found = [
        function
        for function in list_functions(ddl.catalog)
        if function.name == last and function.schema_oid in _places(ddl.environment, schema_name)
    ]
    if not found:
        shown = ".".join(name)
        raise _Missing(
            UndefinedFunction(f'could not find a function named "{shown}"'), f"function {shown}()"
        )
    if len(found) > 1:
        raise AmbiguousFunction(
            f'function name "{".".join(name)}" is not unique',
            hint="Specify the argument list to select the function unambiguously.",
        )
    return Object("function", found[0].oid)


def _operator(ddl: Ddl, name: tuple[str, ...]) -> Object:
    schema_name, last = _split(ddl, name)
    found = [
        operator
        for operator in list_operators(ddl.catalog)
        if operator.name == last and operator.schema_oid in _places(ddl.environment, schema_name)
    ]
    if not found:
        shown = ".".join(name)
        raise _Missing(UndefinedFunction(f"operator does not exist: {shown}"), f"operator {shown}")
    if len(found) > 1:
        raise AmbiguousFunction(f'operator name "{".".join(name)}" is not unique')
    return Object("operator", found[0].oid)


def _places(environment: CatalogEnvironment, schema_name: str | None) -> Sequence[int]:
    """The OIDs of the schemas in which a name may be found."""
    if schema_name is None:
        return [oid for _name, oid in environment.path]
    oid = environment.schema_oid(schema_name)
    return [] if oid is None else [oid]
