"""Resolve types in statements to a type and its modifier: `numeric(10,2)[]` is _numeric, 655366.
PostgreSQL's parse_type.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.does_not_exist import no_schema
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidSchemaName,
    PostgresError,
    SqlSyntaxError,
    UndefinedObject,
)
from replctl.types.builtin import Type
from replctl.types.text import typmod_in

if TYPE_CHECKING:
    from replctl.expr.environment import Environment
    from replctl.parser import ast


def type_of(environment: Environment, type_name: ast.TypeName) -> tuple[Type, int]:
    """Return the type of `type_name`, and its modifier (-1: none).

    Raises:
        UndefinedObject: there is no such type.
        InvalidSchemaName: the schema before its name does not exist.
        InsufficientPrivilege: the role may not use the schema.
        SqlSyntaxError, DataError: the type does not allow the modifiers.
    """
    try:
        type_ = _find(environment, type_name)
    except (InvalidSchemaName, InsufficientPrivilege) as error:
        error.position = type_name.pos
        raise
    if type_ is None:
        raise UndefinedObject(f'type "{_shown(type_name)}" does not exist', position=type_name.pos)
    return type_, _modifier(environment, type_, type_name)


def split_name(environment: Environment, names: tuple[str, ...]) -> tuple[str | None, str]:
    """Return the schema and the name in (catalog, schema, name), (schema, name) or (name,).

    Raises:
        FeatureNotSupported: the catalog is another database.
        SqlSyntaxError: there are more than three parts.
    """
    if len(names) > 3:
        raise SqlSyntaxError(f"improper qualified name (too many dotted names): {'.'.join(names)}")
    if len(names) == 3 and names[0] != environment.database:
        raise FeatureNotSupported(
            f"cross-database references are not implemented: {'.'.join(names)}"
        )
    return (names[-2] if len(names) > 1 else None), names[-1]


def split_relation_name(
    environment: Environment, names: tuple[str, ...], position: int = -1
) -> tuple[str | None, str]:
    """Split a name like split_name, but with the error messages for relations
    (RangeVarGetRelidExtended).
    """
    shown = ".".join(names)
    if len(names) > 3:
        raise SqlSyntaxError(f"improper relation name (too many dotted names): {shown}")
    if len(names) == 3 and names[0] != environment.database:
        raise FeatureNotSupported(
            f'cross-database references are not implemented: "{shown}"', position=position
        )
    return (names[-2] if len(names) > 1 else None), names[-1]


def schema_of_relation(
    environment: Environment, name: ast.RangeVar, position: int = -1
) -> str | None:
    """Return the schema in a relation's name; None if it has none.

    Raises:
        FeatureNotSupported: the name has another database; the error has `position`.
    """
    if name.catalog is None:
        return name.schema
    parts = (name.catalog, name.schema or "", name.name)
    return split_relation_name(environment, parts, position)[0]


def check_schema(environment: Environment, schema: str | None) -> None:
    """Check that a schema exists; accept None.

    Raises:
        InvalidSchemaName: the schema does not exist.
    """
    if schema is not None and environment.schema_oid(schema) is None:
        raise no_schema(schema)


def _find(environment: Environment, type_name: ast.TypeName) -> Type | None:
    schema, name = split_name(environment, type_name.names)
    check_schema(environment, schema)
    type_ = environment.find_type(schema, name)
    if type_ is None or not type_name.array_bounds:
        return type_
    return None if type_.array is None else environment.type(type_.array)


def _modifier(environment: Environment, type_: Type, type_name: ast.TypeName) -> int:
    if not type_name.modifiers:
        return -1
    if not type_.has_typmod:
        raise SqlSyntaxError(
            f'type modifier is not allowed for type "{_shown(type_name)}"', position=type_name.pos
        )
    modifiers = tuple(_modifier_text(item, type_name.pos) for item in type_name.modifiers)
    try:
        return typmod_in(type_.name, modifiers)
    except PostgresError as error:
        error.position = type_name.pos
        raise


def _modifier_text(raw: ast.RawExpr, pos: int) -> str:
    from replctl.parser import ast  # loading its classes takes a tenth of a second

    match raw:
        case ast.Constant(kind="integer" | "float" | "string", value=value) if value is not None:
            return value
        case ast.ColumnRef(fields=(name,), is_star=False):
            return name
    raise SqlSyntaxError("type modifiers must be simple constants or identifiers", position=pos)


def _shown(type_name: ast.TypeName) -> str:
    return ".".join(type_name.names) + ("[]" if type_name.array_bounds else "")


def find_collation(environment: Environment, names: tuple[str, ...], position: int = -1) -> str:
    """Return the internal name of the collation with a name (LookupCollation).

    Raises:
        UndefinedObject: there is no such collation for the encoding.
        InvalidSchemaName, FeatureNotSupported, SqlSyntaxError: the qualified name is wrong.
    """
    try:
        schema, short = split_name(environment, names)
        check_schema(environment, schema)
        found = environment.collation(schema, short)
    except PostgresError as error:
        error.position = position
        raise
    if found is None:
        shown = ".".join(names)
        raise UndefinedObject(
            f'collation "{shown}" for encoding "UTF8" does not exist', position=position
        )
    return found
