"""CREATE SCHEMA (schemacmds.c)."""

from __future__ import annotations

from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_namespace import find_schema, insert_schema
from replctl.catalog.transaction import Catalog
from replctl.commands.ddl import Ddl, carry_out
from replctl.errors import DuplicateSchema, ReservedName, UndefinedObject
from replctl.parser import ast
from replctl.session import Session


def create_schema(session: Session, statement: ast.CreateSchema) -> str:
    """Make a schema.

    Raises:
        DuplicateSchema, ReservedName: it is there already, or its name is the system's.
        UndefinedObject: the role that is to own it does not exist.
    """
    return carry_out(session, lambda ddl: _create_schema(ddl, statement))


def _create_schema(ddl: Ddl, statement: ast.CreateSchema) -> str:
    owner = ddl.session.role_oid
    if statement.authorization is not None:
        owner = role_oid(ddl.catalog, statement.authorization)
    name = statement.name or statement.authorization or ""
    check_schema_name(name)
    if find_schema(ddl.catalog, name) is not None:
        if not statement.if_not_exists:
            raise DuplicateSchema(f'schema "{name}" already exists')
        ddl.notice(f'schema "{name}" already exists, skipping', sqlstate="42P06")
    else:
        insert_schema(ddl.catalog, name, owner)
    return "CREATE SCHEMA"


def check_schema_name(name: str) -> None:
    """
    Raises:
        ReservedName: it begins as the system's own.
    """
    if name.startswith("pg_"):
        raise ReservedName(
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )


def role_oid(catalog: Catalog, name: str) -> int:
    """The OID of a role.

    Raises:
        UndefinedObject: there is none of that name.
    """
    role = find_role(catalog, name)
    if role is None:
        raise UndefinedObject(f'role "{name}" does not exist')
    return role.oid
