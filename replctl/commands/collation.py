"""CREATE COLLATION ... FROM (collationcmds.c).

replctl refuses user-defined collations in expressions.  In row filters, PostgreSQL also refuses
them, so the error there is PostgreSQL's.
"""

from __future__ import annotations

from replctl.catalog.pg_collation import UserCollation, insert_collation, list_collations
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.naming import creation_schema
from replctl.errors import DuplicateObject, InvalidObjectDefinition
from replctl.expr.environment import user_collation
from replctl.expr.type_names import find_collation, split_name
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import builtin_rows

_DEFAULT = "default"


def create_collation(session: Session, statement: ast.CreateCollation) -> str:
    """Copy a collation.

    Raises:
        UndefinedObject: the collation to copy does not exist.
        InvalidObjectDefinition: the collation to copy is the default collation.
        DuplicateObject: the new name is taken.
    """
    return carry_out(session, lambda ddl: _create_collation(ddl, statement))


def _create_collation(ddl: Ddl, statement: ast.CreateCollation) -> str:
    schema_name, name = split_name(ddl.environment, statement.names)
    place = creation_schema(ddl.environment, schema_name, name)
    source = _source(ddl, statement.source)
    for other in list_collations(ddl.catalog):
        if (other.name, other.schema_oid) == (name, place.oid):
            if statement.if_not_exists:
                message = f'collation "{name}" already exists, skipping'
                ddl.notice(message, sqlstate=DuplicateObject.sqlstate)
                return "CREATE COLLATION"
            encoding = "" if _is_for_all_encodings(other.source) else ' for encoding "UTF8"'
            raise DuplicateObject(f'collation "{name}"{encoding} already exists')
    oid = ddl.catalog.new_oid()
    insert_collation(ddl.catalog, UserCollation(oid, name, place.oid, ddl.session.role_oid, source))
    return "CREATE COLLATION"


def _source(ddl: Ddl, names: tuple[str, ...]) -> str:
    """Return the collation to copy.  If it is a copy, return its built-in original."""
    found = find_collation(ddl.environment, names)
    if found == _DEFAULT:
        raise InvalidObjectDefinition(f'collation "{_DEFAULT}" cannot be copied')
    copies = {user_collation(made.oid): made.source for made in list_collations(ddl.catalog)}
    return copies.get(found, found)


def _is_for_all_encodings(name: str) -> bool:
    return any(
        row["collname"] == name and row["collencoding"] == "-1"
        for row in builtin_rows("pg_collation")
    )
