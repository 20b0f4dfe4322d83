"""CREATE SCHEMA (schemacmds.c)."""

from __future__ import annotations

from replctl.catalog.pg_namespace import find_schema, insert_schema
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.role import role_oid
from replctl.errors import DuplicateSchema, ReservedName
from replctl.parser import ast
from replctl.session import Session


def create_schema(session: Session, statement: ast.CreateSchema) -> str:
    """Create a schema.

    Raises:
        DuplicateSchema, ReservedName: the schema exists, or its name is reserved for the system.
        UndefinedObject: the new owner does not exist.
    """
    return carry_out(session, lambda ddl: _create_schema(ddl, statement))


def _create_schema(ddl: Ddl, statement: ast.CreateSchema) -> str:
    owner = ddl.session.role_oid
    if statement.authorization is not None:
        owner = role_oid(ddl.session, ddl.catalog, statement.authorization)
    name = statement.name or ddl.environment.role_name(owner) or ""
    ddl.privileges.check_database(ddl.session.database_name, "C")
    ddl.privileges.check_become(owner, ddl.environment.role_name(owner) or "")
    check_schema_name(name)
    if find_schema(ddl.catalog, name) is not None:
        if not statement.if_not_exists:
            raise DuplicateSchema(f'schema "{name}" already exists')
        ddl.notice(f'schema "{name}" already exists, skipping', sqlstate="42P06")
    else:
        insert_schema(ddl.catalog, name, owner)
    return "CREATE SCHEMA"


def check_schema_name(name: str) -> None:
    """Check that a schema name does not have the system's prefix.

    Raises:
        ReservedName: the name begins with that prefix.
    """
    if name.startswith("pg_"):
        raise ReservedName(
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
