"""The common part of both directions of COPY (copy.c)."""

from __future__ import annotations

from replctl.catalog.pg_authid import (
    EXECUTE_SERVER_PROGRAM,
    PREDEFINED_ROLES,
    READ_SERVER_FILES,
    WRITE_SERVER_FILES,
)
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
)
from replctl.parser import ast
from replctl.query.copy_from import copy_from
from replctl.query.copy_to import copy_to
from replctl.result import Result
from replctl.session import Session


def copy(session: Session, statement: ast.Copy) -> Result:
    """Run a COPY statement.

    Raises:
        PostgresError: the statement or a row is wrong.
    """
    if statement.is_program or statement.file is not None:
        _check_privilege(session, statement)
    if statement.is_program:
        raise FeatureNotSupported(
            "COPY with PROGRAM is not supported",
            hint="psql's \\copy command has PROGRAM.",
        )
    if statement.is_from:
        return copy_from(session, statement)
    return copy_to(session, statement)


def _check_privilege(session: Session, statement: ast.Copy) -> None:
    """Check that the role may use files or programs of the server.

    Raises:
        InsufficientPrivilege: the role may not use files, or programs, of the server (42501).
    """
    if statement.is_program:
        role, what = EXECUTE_SERVER_PROGRAM, "to or from an external program"
    elif statement.is_from:
        role, what = READ_SERVER_FILES, "from a file"
    else:
        role, what = WRITE_SERVER_FILES, "to a file"
    with session.read() as catalog:
        if session.privileges(catalog).acts_for(role):
            return
    raise InsufficientPrivilege(
        f"permission denied to COPY {what}",
        detail=f'Only roles with privileges of the "{PREDEFINED_ROLES[role]}" role may COPY'
        f" {what}.",
        hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for"
        " anyone.",
    )
