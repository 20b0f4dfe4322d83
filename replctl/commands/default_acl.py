"""ALTER DEFAULT PRIVILEGES (ExecAlterDefaultPrivilegesStmt() in aclchk.c)."""

from __future__ import annotations

from replctl.catalog.acl import AclKind, default_acl
from replctl.catalog.pg_default_acl import EVERYWHERE, put_default_acl, stored_default_acl
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_object import find_schema_oid
from replctl.commands.grant import changed_acl, grantee_oids, letters_of
from replctl.commands.role import role_oid
from replctl.errors import InsufficientPrivilege, InvalidGrantOperation
from replctl.parser import ast
from replctl.session import Session

#: The names of kinds of objects in errors.
_WORDS: dict[AclKind, str] = {"table": "relation"}


def alter_default_privileges(session: Session, statement: ast.AlterDefaultPrivileges) -> str:
    """Change the privileges on objects that roles will create.

    Raises:
        UndefinedObject, InvalidSchemaName: there is no such role or schema.
        InvalidGrantOperation: the kind of object has no such privilege.
        InsufficientPrivilege: the current role does not have the privileges of a role.
    """
    return carry_out(session, lambda ddl: _alter(ddl, statement))


def _alter(ddl: Ddl, statement: ast.AlterDefaultPrivileges) -> str:
    grant = statement.grant
    kind: AclKind = grant.target  # type: ignore[assignment]
    grantees = grantee_oids(ddl, grant)
    if any(privilege.columns for privilege in grant.privileges):
        raise InvalidGrantOperation("default privileges cannot be set for columns")
    letters = letters_of(grant, kind, _WORDS.get(kind, kind))
    privileges = ddl.privileges
    roles = [role_oid(ddl.session, ddl.catalog, name) for name in statement.roles]
    for role in roles or [privileges.role_oid]:
        if not privileges.acts_for(role):
            raise InsufficientPrivilege("permission denied to change default privileges")
        if statement.schemas and kind == "schema":
            raise InvalidGrantOperation(
                "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"
            )
        places = [find_schema_oid(ddl, name) for name in statement.schemas] or [EVERYWHERE]
        for place in places:
            by_itself = default_acl(kind, role) if place == EVERYWHERE else ()
            stored = stored_default_acl(ddl.catalog, role, place, kind)
            old = by_itself if stored is None else stored
            new = changed_acl(old, grant, role, grantees, role, letters)
            kept = None if set(new) == set(by_itself) else new
            put_default_acl(ddl.catalog, role, place, kind, kept)
    return "ALTER DEFAULT PRIVILEGES"
