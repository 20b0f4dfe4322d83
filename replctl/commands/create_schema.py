"""CREATE SCHEMA (schemacmds.c), and the statements in it (transformCreateSchemaStmtElements() in
parse_utilcmd.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.pg_namespace import find_schema, insert_schema
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.role import role_oid
from replctl.errors import DuplicateSchema, InvalidSchemaDefinition, ReservedName
from replctl.parser import ast
from replctl.record import dataclass
from replctl.result import Result
from replctl.session import Session
from replctl.types.quote import quote_identifier

#: The classes of the statements in CREATE SCHEMA, in the order of their execution.
_ORDER = (ast.CreateSequence, ast.CreateTable, ast.CreateView, ast.CreateIndex, ast.Grant)


@dataclass(frozen=True, slots=True)
class _Made:
    """A new schema, and the name of its owner."""

    name: str
    owner_oid: int
    owner: str


def create_schema(
    session: Session, statement: ast.CreateSchema, run: Callable[[ast.Statement], Result]
) -> str:
    """Create a schema, and then the objects that the statement lists.

    Args:
        run: runs a statement within the open transaction.

    Raises:
        DuplicateSchema, ReservedName: the schema exists, or its name is reserved for the system.
        InvalidSchemaDefinition: the statement lists an object of another schema (42P15).
        UndefinedObject: the new owner does not exist.
        PostgresError: a statement in the list fails.
    """
    made = carry_out(session, lambda ddl: _create_schema(ddl, statement))
    elements = [_within(made.name, element) for element in statement.elements]
    with _as_owner(session, made):
        for kind in _ORDER:
            for element in elements:
                if isinstance(element, kind):
                    run(element)
    return "CREATE SCHEMA"


def _create_schema(ddl: Ddl, statement: ast.CreateSchema) -> _Made:
    owner = ddl.session.role_oid
    if statement.authorization is not None:
        owner = role_oid(ddl.session, ddl.catalog, statement.authorization)
    owner_name = ddl.environment.role_name(owner) or ""
    name = statement.name or owner_name
    ddl.privileges.check_database(ddl.session.database_name, Privilege.CREATE)
    ddl.privileges.check_become(owner, owner_name)
    check_schema_name(name)
    if find_schema(ddl.catalog, name) is not None:
        if not statement.if_not_exists:
            raise DuplicateSchema(f'schema "{name}" already exists')
        ddl.notice(f'schema "{name}" already exists, skipping', sqlstate="42P06")
    else:
        insert_schema(ddl.catalog, name, owner)
    return _Made(name, owner, owner_name)


def _within(name: str, element: ast.SchemaElement) -> ast.SchemaElement:
    """Return a statement that creates its object in the schema `name` (setSchemaName)."""
    if isinstance(element, ast.Grant):
        return element
    found = element.relation.schema
    if found not in (None, name):
        raise InvalidSchemaDefinition(
            f"CREATE specifies a schema ({found}) different from the one being created ({name})"
        )
    return replace(element, relation=replace(element.relation, schema=name))


@contextmanager
def _as_owner(session: Session, made: _Made) -> Iterator[None]:
    """Run statements as the owner of the new schema, and put it first in the search path."""
    kept = session.settings
    path = [quote_identifier(made.name), session.setting("search_path")]
    session.settings = {
        **kept,
        "search_path": ", ".join(part for part in path if part.strip()),
        "role": f"{made.owner_oid} {made.owner}",
    }
    try:
        yield
    finally:
        session.settings = kept


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
