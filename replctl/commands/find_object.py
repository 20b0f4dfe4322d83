"""Find the objects named in statements (objectaddress.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_database import find_database
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_proc import UserFunction, get_function
from replctl.catalog.pg_publication import Publication, find_publication
from replctl.catalog.pg_subscription import Subscription, find_subscription
from replctl.commands.ddl import Ddl
from replctl.does_not_exist import no_schema
from replctl.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    InvalidCatalogName,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.environment import SYSTEM_SCHEMA
from replctl.expr.type_names import split_name, type_of
from replctl.parser import ast
from replctl.types.builtin import FIRST_USER_OID, Function, Operator, Type


def find_schema_oid(ddl: Ddl, name: str) -> int:
    """Return the OID of a schema.

    Raises:
        InvalidSchemaName: there is no such schema.
    """
    oid = find_schema(ddl.catalog, name)
    if oid is None:
        raise no_schema(name)
    return oid


def find_new_schema(ddl: Ddl, name: str) -> int:
    """Return the OID of a schema that objects can move to (CheckSetNamespace).

    Raises:
        InvalidSchemaName: there is no such schema.
        FeatureNotSupported: the schema is pg_toast or pg_catalog.
    """
    if name == "pg_toast":
        raise FeatureNotSupported("cannot move objects into or out of TOAST schema")
    if name == SYSTEM_SCHEMA:
        raise FeatureNotSupported("objects of users in schema pg_catalog are not supported")
    return find_schema_oid(ddl, name)


def find_database_oid(ddl: Ddl, name: str) -> int:
    """Return the OID of a database.

    Raises:
        InvalidCatalogName: there is no such database.
    """
    oid = find_database(ddl.catalog, name)
    if oid is None:
        raise InvalidCatalogName(f'database "{name}" does not exist')
    return oid


def find_user_type(ddl: Ddl, name: tuple[str, ...]) -> Type:
    """Return a user-defined type.

    Raises:
        UndefinedObject: there is no such type.
    """
    type_ = find_type_of_name(ddl, name)
    if type_.is_builtin:
        raise UndefinedObject(f'type "{".".join(name)}" does not exist')
    return type_


def find_type_of_name(ddl: Ddl, name: tuple[str, ...]) -> Type:
    """Return a type.

    Raises:
        UndefinedObject: there is no such type.
    """
    schema_name, last = split_name(ddl.environment, name)
    type_ = ddl.environment.find_type(schema_name, last)
    if type_ is None:
        raise UndefinedObject(f'type "{".".join(name)}" does not exist')
    return type_


def publication_of_name(ddl: Ddl, name: str) -> Publication:
    """Return the publication of that name.

    Raises:
        UndefinedObject: there is no such publication.
    """
    publication = find_publication(ddl.catalog, name)
    if publication is None:
        raise UndefinedObject(f'publication "{name}" does not exist')
    return publication


def subscription_of_name(ddl: Ddl, name: str) -> Subscription:
    """Return the subscription of that name.

    Raises:
        UndefinedObject: there is no such subscription.
    """
    subscription = find_subscription(ddl.catalog, name)
    if subscription is None:
        raise UndefinedObject(f'subscription "{name}" does not exist')
    return subscription


def find_function(
    ddl: Ddl,
    name: tuple[str, ...],
    arguments: Sequence[ast.TypeName | None] | None,
    kind: str = "function",
) -> Function:
    """Return the function with exactly these argument types (LookupFuncWithArgs).  If `arguments`
    is None, return the only function of that name.

    Args:
        kind: function, routine, or procedure. There are no procedures.

    Raises:
        UndefinedFunction, AmbiguousFunction: there is no such function, or there are several of
            that name.
        WrongObjectType: the function is not a procedure.
        InvalidSchemaName: there is no such schema.
    """
    schema_name, last = split_name(ddl.environment, name)
    if schema_name is not None and ddl.environment.schema_oid(schema_name) is None:
        raise no_schema(schema_name)
    functions = [found for _place, found in ddl.environment.functions(schema_name, last)]
    shown = ".".join(name)
    wanted = "procedure" if kind == "procedure" else "function"
    if arguments is None:
        if not functions or kind == "procedure":
            raise UndefinedFunction(f'could not find a {wanted} named "{shown}"')
        if len(functions) > 1:
            raise AmbiguousFunction(
                f'{kind} name "{shown}" is not unique',
                hint=f"Specify the argument list to select the {kind} unambiguously.",
            )
        return functions[0]
    types = tuple(_type_name(ddl, argument) or "" for argument in arguments)
    signature = f"{shown}({', '.join(ddl.environment.format_type(type_) for type_ in types)})"
    for function in functions:
        if function.argument_types == types:
            if kind == "procedure":
                raise WrongObjectType(f"{signature} is not a procedure")
            return function
    raise UndefinedFunction(f"{wanted} {signature} does not exist")


def input_types(
    parameters: Sequence[ast.FunctionParameter] | None,
) -> Sequence[ast.TypeName] | None:
    """Return the types that identify a function, which OUT parameters do not; None without a list
    of parameters (extractArgTypes in gram.y).
    """
    if parameters is None:
        return None
    return [parameter.type_name for parameter in parameters if parameter.mode != "out"]


def owned_function(
    ddl: Ddl,
    name: tuple[str, ...],
    arguments: Sequence[ast.TypeName | None] | None,
    kind: str,
) -> UserFunction:
    """Return a function that the current role may change.

    Raises:
        UndefinedFunction, AmbiguousFunction, WrongObjectType: see `find_function`.
        InsufficientPrivilege: another role owns the function.
        FeatureNotSupported: the function is built in.
    """
    oid = find_function(ddl, name, arguments, kind).oid
    ddl.privileges.check_owner(owner_of(ddl.catalog, "pg_proc", oid), kind, name[-1])
    check_not_builtin(oid, "functions")
    return get_function(ddl.catalog, oid)


def check_not_builtin(oid: int, what: str) -> None:
    """Check that an object does not belong to the system.

    Args:
        what: the kind of the object in the plural.
    """
    if oid < FIRST_USER_OID:
        raise FeatureNotSupported(f"changing built-in {what} is not supported")


def find_operator(
    ddl: Ddl, name: tuple[str, ...], arguments: Sequence[ast.TypeName | None]
) -> Operator:
    """Return the operator with exactly these operand types (LookupOperWithArgs).

    Raises:
        UndefinedFunction: there is no such operator.
        SqlSyntaxError: the operator would be a postfix operator.
    """
    schema_name, last = split_name(ddl.environment, name)
    left, right = (_type_name(ddl, argument) for argument in arguments)
    for _place, operator in ddl.environment.operators(schema_name, last):
        if (operator.left, operator.right) == (left, right):
            return operator
    if right is None:
        raise SqlSyntaxError("postfix operators are not supported")
    words = [ddl.environment.format_type(left)] if left else []
    words += [".".join(name), ddl.environment.format_type(right or "")]
    raise UndefinedFunction(f"operator does not exist: {' '.join(words)}")


def _type_name(ddl: Ddl, raw: ast.TypeName | None) -> str | None:
    return None if raw is None else type_of(ddl.environment, replace(raw, pos=-1))[0].name
