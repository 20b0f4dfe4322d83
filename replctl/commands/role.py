"""CREATE, ALTER and DROP ROLE, and membership in roles (user.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.aclchk import Privileges, privileges_of
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_authid import (
    DATABASE_OWNER,
    Membership,
    Role,
    delete_membership,
    delete_role,
    find_role,
    insert_role,
    memberships,
    put_membership,
    update_role,
)
from replctl.catalog.pg_db_role_setting import delete_settings_of_role
from replctl.catalog.scram import scram_verifier
from replctl.catalog.transaction import Catalog
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.role_dependency import dependency_lines
from replctl.errors import (
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidGrantOperation,
    InvalidParameterValue,
    ObjectInUse,
    ReservedName,
    SqlSyntaxError,
    UndefinedObject,
)
from replctl.parser import ast
from replctl.session import Session
from replctl.types import text

#: Attributes of roles in SQL, and the fields of `Role` that hold them.
_ATTRIBUTES = {
    "superuser": "is_superuser",
    "createrole": "may_create_roles",
    "replication": "can_replicate",
    "createdb": "may_create_databases",
    "login": "can_login",
    "bypassrls": "bypasses_rls",
    "inherit": "inherits",
}
_GUARDED = ("SUPERUSER", "CREATEDB", "REPLICATION", "BYPASSRLS")


def role_oid(session: Session, catalog: Catalog, name: str) -> int:
    """Return the OID of a role.  The name may be CURRENT_USER or a similar word.

    Raises:
        UndefinedObject: there is no such role.
    """
    if isinstance(name, ast.SpecialRole):
        return session.session_user[0] if name == "session_user" else session.role_oid
    return _found(catalog, name).oid


def named_role(ddl: Ddl, name: str) -> Role:
    """Return a role; see `role_oid` for its name."""
    return _by_oid(ddl, role_oid(ddl.session, ddl.catalog, name))


def _found(catalog: Catalog, name: str) -> Role:
    role = find_role(catalog, name)
    if role is None:
        raise UndefinedObject(f'role "{name}" does not exist')
    return role


# ---------------------------------------------------------------------------------------------
# CREATE, ALTER, DROP


def create_role(session: Session, statement: ast.CreateRole) -> str:
    """Create a role.

    Raises:
        DuplicateObject, ReservedName: the name is taken or reserved.
        InsufficientPrivilege: the current role may not create such a role.
    """
    options = [option for option in statement.options if option.name != "sysid"]
    for _sysid in range(len(statement.options) - len(options)):
        session.notice("SYSID can no longer be specified")
    return carry_out(session, lambda ddl: _create_role(ddl, statement, _options(options)))


def _create_role(ddl: Ddl, statement: ast.CreateRole, options: dict[str, ast.RoleOption]) -> str:
    role = Role(0, statement.name, can_login=statement.kind == "user")
    role = _with_options(ddl, role, options)
    _check_creator(ddl, role)
    _check_name(statement.name)
    if find_role(ddl.catalog, role.name) is not None:
        raise DuplicateObject(f'role "{role.name}" already exists')
    role = replace(role, oid=ddl.catalog.new_oid())
    insert_role(ddl.catalog, role)
    creator = ddl.privileges
    if not creator.is_superuser:
        own = Membership(
            ddl.catalog.new_oid(), role.oid, creator.role_oid, BOOTSTRAP_SUPERUSER,
            is_admin=True, inherits=False, may_set=False,
        )  # fmt: skip
        put_membership(ddl.catalog, own)
    for name in options["in"].roles if "in" in options else ():
        group = named_role(ddl, name)
        _check_may_grant(ddl, group, "grant")
        add_member(ddl, group, role, {})
    for name in options["role"].roles if "role" in options else ():
        add_member(ddl, role, named_role(ddl, name), {})
    for name in options["admin"].roles if "admin" in options else ():
        add_member(ddl, role, named_role(ddl, name), {"admin": True})
    return "CREATE ROLE"


def alter_role(session: Session, statement: ast.AlterRole) -> str:
    """Change a role's attributes.

    Raises:
        UndefinedObject: there is no such role.
        InsufficientPrivilege: the current role may not change the role.
    """
    return carry_out(session, lambda ddl: _alter_role(ddl, statement))


def _alter_role(ddl: Ddl, statement: ast.AlterRole) -> str:
    options = _options(statement.options)
    oid = role_oid(ddl.session, ddl.catalog, statement.name)
    role = next(r for r in [_by_oid(ddl, oid)] if r is not None)
    changed = _with_options(ddl, role, options)
    privileges = ddl.privileges
    if role.name.startswith("pg_"):
        raise ReservedName(
            f'role name "{role.name}" is reserved', detail="Cannot alter reserved roles."
        )
    if not privileges.is_superuser:
        _check_alteration(ddl, role, options)
    if role.oid == BOOTSTRAP_SUPERUSER and not changed.is_superuser:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="The bootstrap user must have the SUPERUSER attribute.",
        )
    update_role(ddl.catalog, changed)
    for name in options["role"].roles if "role" in options else ():
        add_member(ddl, role, named_role(ddl, name), {})
    return "ALTER ROLE"


def _by_oid(ddl: Ddl, oid: int) -> Role:
    return privileges_of(ddl.environment.catalog, oid).role


def _check_alteration(ddl: Ddl, role: Role, options: dict[str, ast.RoleOption]) -> None:
    privileges = ddl.privileges
    if role.is_superuser or _flag(options, "superuser") is not None:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="Only roles with the SUPERUSER attribute may alter roles with the SUPERUSER"
            " attribute."
            if role.is_superuser
            else "Only roles with the SUPERUSER attribute may change the SUPERUSER attribute.",
        )
    may_alter = privileges.role.may_create_roles and is_admin(ddl, role.oid)
    if not may_alter and set(options) - {"password"}:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="Only roles with the CREATEROLE attribute and the ADMIN option on role"
            f' "{role.name}" may alter this role.',
        )
    if not may_alter and options and role.oid != privileges.role_oid:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="To change another role's password, the current user must have the CREATEROLE"
            " attribute and the ADMIN option on the role.",
        )
    for word in _GUARDED[1:]:
        has_it = getattr(privileges.role, _ATTRIBUTES[word.lower()])
        if _flag(options, word.lower()) is not None and not has_it:
            raise InsufficientPrivilege(
                "permission denied to alter role",
                detail=f"Only roles with the {word} attribute may change the {word} attribute.",
            )


def rename_role(ddl: Ddl, name: str, new: str) -> None:
    """Rename a role.

    Raises:
        UndefinedObject, DuplicateObject, ReservedName: there is no such role, or the new name
            cannot be used.
    """
    oid = role_oid(ddl.session, ddl.catalog, name)
    role = _by_oid(ddl, oid)
    if oid in (ddl.session.role_oid, ddl.session.session_user[0]):
        what = "session" if oid == ddl.session.session_user[0] else "current"
        raise FeatureNotSupported(f"{what} user cannot be renamed")
    _check_name(role.name)
    _check_name(new)
    if find_role(ddl.catalog, new) is not None:
        raise DuplicateObject(f'role "{new}" already exists')
    if role.is_superuser and not ddl.privileges.is_superuser:
        raise InsufficientPrivilege(
            "permission denied to rename role",
            detail="Only roles with the SUPERUSER attribute may rename roles with the SUPERUSER"
            " attribute.",
        )
    if not ddl.privileges.is_superuser and not (
        ddl.privileges.role.may_create_roles and is_admin(ddl, oid)
    ):
        raise InsufficientPrivilege(
            "permission denied to rename role",
            detail="Only roles with the CREATEROLE attribute and the ADMIN option on role"
            f' "{role.name}" may rename this role.',
        )
    update_role(ddl.catalog, replace(role, name=new))


def drop_role(session: Session, statement: ast.DropRole) -> str:
    """Drop roles.

    Raises:
        UndefinedObject: a role does not exist.
        DependentObjectsStillExist: a role owns objects or has privileges.
    """
    return carry_out(session, lambda ddl: _drop_roles(ddl, statement))


def _drop_roles(ddl: Ddl, statement: ast.DropRole) -> str:
    privileges = ddl.privileges
    if not privileges.is_superuser and not privileges.role.may_create_roles:
        raise InsufficientPrivilege(
            "permission denied to drop role",
            detail="Only roles with the CREATEROLE attribute and the ADMIN option on the target"
            " roles may drop roles.",
        )
    roles = []
    for name in statement.names:
        if name == "public" or isinstance(name, ast.SpecialRole):
            raise InvalidParameterValue("cannot use special role specifier in DROP ROLE")
        role = find_role(ddl.catalog, name)
        if role is None:
            if not statement.missing_ok:
                raise UndefinedObject(f'role "{name}" does not exist')
            ddl.notice(f'role "{name}" does not exist, skipping')
            continue
        _check_droppable(ddl, role)
        roles.append(role)
    for role in roles:
        for membership in memberships(ddl.catalog):
            if role.oid in (membership.role, membership.member):
                delete_membership(ddl.catalog, membership.oid)
    for role in roles:
        lines = dependency_lines(ddl, role.oid)
        if lines:
            raise DependentObjectsStillExist(
                f'role "{role.name}" cannot be dropped because some objects depend on it',
                detail="\n".join(lines),
            )
        delete_settings_of_role(ddl.catalog, role.oid)
        delete_role(ddl.catalog, role.oid)
    return "DROP ROLE"


def _check_droppable(ddl: Ddl, role: Role) -> None:
    if role.oid == ddl.session.role_oid:
        raise ObjectInUse("current user cannot be dropped")
    if role.oid == ddl.session.session_user[0]:
        raise ObjectInUse("session user cannot be dropped")
    privileges = ddl.privileges
    if role.is_superuser and not privileges.is_superuser:
        raise InsufficientPrivilege(
            "permission denied to drop role",
            detail="Only roles with the SUPERUSER attribute may drop roles with the SUPERUSER"
            " attribute.",
        )
    if not privileges.is_superuser and not is_admin(ddl, role.oid):
        raise InsufficientPrivilege(
            "permission denied to drop role",
            detail="Only roles with the CREATEROLE attribute and the ADMIN option on role"
            f' "{role.name}" may drop this role.',
        )
    if role.oid == BOOTSTRAP_SUPERUSER or role.oid < 16384:
        raise DependentObjectsStillExist(
            f"cannot drop role {role.name} because it is required by the database system"
        )


# ---------------------------------------------------------------------------------------------
# Attributes


def _options(options: Sequence[ast.RoleOption]) -> dict[str, ast.RoleOption]:
    """Return the options of a statement by their names."""
    result: dict[str, ast.RoleOption] = {}
    for option in options:
        name = option.name.removeprefix("no")
        if name in result:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        result[name] = option
    return result


def _flag(options: dict[str, ast.RoleOption], name: str) -> bool | None:
    option = options.get(name)
    return None if option is None else not option.name.startswith("no")


def _with_options(ddl: Ddl, role: Role, options: dict[str, ast.RoleOption]) -> Role:
    flags = {
        field: value
        for name, field in _ATTRIBUTES.items()
        if (value := _flag(options, name)) is not None
    }
    role = replace(role, **flags)  # type: ignore[arg-type]
    if "connection" in options:
        limit = int(options["connection"].value or "-1")
        if limit < -1:
            raise InvalidParameterValue(f"invalid connection limit: {limit}")
        role = replace(role, connection_limit=limit)
    if "valid" in options:
        until = options["valid"].value or "infinity"
        until = text.render("timestamptz", text.parse("timestamptz", until))
        role = replace(role, valid_until=until)
    if "password" in options:
        password = options["password"].value
        if password == "":
            ddl.notice("empty string is not a valid password, clearing password")
        iterations = int(ddl.session.setting("scram_iterations"))
        verifier = scram_verifier(password, iterations) if password else None
        role = replace(role, password=verifier)
    return role


def _check_name(name: str) -> None:
    if name.startswith("pg_"):
        raise ReservedName(
            f'role name "{name}" is reserved',
            detail='Role names starting with "pg_" are reserved.',
        )


def _check_creator(ddl: Ddl, role: Role) -> None:
    """Check that the current role may create such a role (CreateRole)."""
    privileges = ddl.privileges
    if privileges.is_superuser:
        return
    if not privileges.role.may_create_roles:
        raise InsufficientPrivilege(
            "permission denied to create role",
            detail="Only roles with the CREATEROLE attribute may create roles.",
        )
    for word in _GUARDED:
        field = _ATTRIBUTES[word.lower()]
        if getattr(role, field) and not getattr(privileges.role, field):
            raise InsufficientPrivilege(
                "permission denied to create role",
                detail=f"Only roles with the {word} attribute may create roles with the {word}"
                " attribute.",
            )


# ---------------------------------------------------------------------------------------------
# Membership


def grant_role(session: Session, statement: ast.GrantRole) -> str:
    """Add or remove members of roles.

    Raises:
        UndefinedObject: there is no such role.
        InvalidGrantOperation: a role would become a member of itself.
        InsufficientPrivilege: the current role may not grant a role.
    """
    return carry_out(session, lambda ddl: _grant_role(ddl, statement))


def _grant_role(ddl: Ddl, statement: ast.GrantRole) -> str:
    options = dict(statement.options)
    verb = "grant" if statement.is_grant else "revoke"
    if statement.granted_by is not None:
        named_role(ddl, statement.granted_by)
    members = [named_role(ddl, name) for name in statement.members]
    for granted in statement.granted:
        role = _found(ddl.catalog, granted)
        _check_may_grant(ddl, role, verb)
        grantor = _grantor(ddl, role, statement.granted_by, verb)
        for member in members:
            if statement.is_grant:
                add_member(ddl, role, member, options, grantor)
            else:
                _remove_member(ddl, role, member, grantor, options, statement.behavior)
    if statement.alters_group:
        return "ALTER ROLE"
    return "GRANT ROLE" if statement.is_grant else "REVOKE ROLE"


def _check_may_grant(ddl: Ddl, role: Role, verb: str) -> None:
    if role.oid == DATABASE_OWNER:
        raise InvalidGrantOperation(f'role "{role.name}" cannot have explicit members')
    privileges = ddl.privileges
    if role.is_superuser and not privileges.is_superuser:
        raise InsufficientPrivilege(
            f'permission denied to {verb} role "{role.name}"',
            detail=f"Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER"
            " attribute.",
        )
    if not privileges.is_superuser and not is_admin(ddl, role.oid):
        raise InsufficientPrivilege(
            f'permission denied to {verb} role "{role.name}"',
            detail=f'Only roles with the ADMIN option on role "{role.name}" may {verb} this role.',
        )


def is_admin(ddl: Ddl, oid: int) -> bool:
    """Return whether the current role is a superuser or has the ADMIN option on another role."""
    privileges = ddl.privileges
    return privileges.is_superuser or any(
        m.role == oid and m.is_admin and m.member in privileges.roles
        for m in memberships(ddl.catalog)
    )


def _grantor(ddl: Ddl, role: Role, granted_by: str | None, verb: str) -> int:
    """Return the grantor of a membership.  If the statement does not name it and a superuser
    grants, it is the bootstrap superuser (check_role_grantor).

    Raises:
        InsufficientPrivilege: the current role does not have the privileges of the named grantor,
            or the named grantor may not grant the role.
    """
    privileges = ddl.privileges
    if granted_by is None:
        if privileges.is_superuser:
            return BOOTSTRAP_SUPERUSER
        return _best_admin(privileges, role) or privileges.role_oid
    named = named_role(ddl, granted_by)
    if verb == "revoke":
        if not privileges.acts_for(named.oid):
            raise InsufficientPrivilege(
                f'permission denied to revoke privileges granted by role "{named.name}"',
                detail=f'Only roles with privileges of role "{named.name}" may revoke privileges'
                " granted by this role.",
            )
        return named.oid
    message = f'permission denied to grant privileges as role "{named.name}"'
    if not privileges.acts_for(named.oid):
        raise InsufficientPrivilege(
            message,
            detail=f'Only roles with privileges of role "{named.name}" may grant privileges as'
            " this role.",
        )
    best = _best_admin(privileges_of(ddl.environment.catalog, named.oid), role)
    if named.oid not in (BOOTSTRAP_SUPERUSER, best):
        raise InsufficientPrivilege(
            message, detail=f'The grantor must have the ADMIN option on role "{role.name}".'
        )
    return named.oid


def _best_admin(privileges: Privileges, role: Role) -> int | None:
    """Return a role that has the ADMIN option on `role`, among the roles whose privileges are in
    `privileges`; None if there is none.  Prefer the role that `privileges` belong to
    (select_best_admin).
    """
    admins = [
        m.member
        for m in memberships(privileges.catalog)
        if m.role == role.oid and m.is_admin and m.member in privileges.roles
    ]
    own = privileges.role_oid
    return own if own in admins else next(iter(admins), None)


def add_member(
    ddl: Ddl, role: Role, member: Role, options: dict[str, bool], grantor: int | None = None
) -> None:
    """Make a role a member of another role.

    Args:
        grantor: the grantor of the membership; None for the default.

    Raises:
        InvalidGrantOperation: a role would become a member of itself, or the ADMIN option would be
            granted back to the grantor.
    """
    known = memberships(ddl.catalog)
    if member.oid in privileges_of(ddl.environment.catalog, role.oid).memberships:
        raise InvalidGrantOperation(f'role "{role.name}" is a member of role "{member.name}"')
    if grantor is None:
        grantor = _grantor(ddl, role, None, "grant")
    if options.get("admin") and grantor != BOOTSTRAP_SUPERUSER:
        kept = [m for m in known if m not in _granted_by(known, role.oid, member.oid)]
        if not any(m.role == role.oid and m.member == grantor and m.is_admin for m in kept):
            raise InvalidGrantOperation("ADMIN option cannot be granted back to your own grantor")
    for found in known:
        if (found.role, found.member, found.grantor) != (role.oid, member.oid, grantor):
            continue
        changed = replace(
            found,
            is_admin=options.get("admin", found.is_admin),
            inherits=options.get("inherit", found.inherits),
            may_set=options.get("set", found.may_set),
        )
        put_membership(ddl.catalog, changed)
        if changed == found:
            by = ddl.environment.role_name(grantor)
            ddl.notice(
                f'role "{member.name}" has already been granted membership in role'
                f' "{role.name}" by role "{by}"'
            )
        return
    put_membership(
        ddl.catalog,
        Membership(
            ddl.catalog.new_oid(),
            role.oid,
            member.oid,
            grantor,
            options.get("admin", False),
            options.get("inherit", member.inherits),
            options.get("set", True),
        ),
    )


def _remove_granted(ddl: Ddl, dependent: Sequence[Membership], behavior: str) -> None:
    """Remove memberships granted by a member that has lost the ADMIN option.  Without CASCADE,
    raise an error instead.
    """
    if dependent and behavior == "restrict":
        raise DependentObjectsStillExist(
            "dependent privileges exist", hint="Use CASCADE to revoke them too."
        )
    for item in dependent:
        delete_membership(ddl.catalog, item.oid)


def _granted_by(known: Sequence[Membership], role_oid: int, member: int) -> list[Membership]:
    """Return the memberships in a role that a member has granted, and the memberships that these
    members have granted in turn.
    """
    found: list[Membership] = []
    grantors = [member]
    for grantor in grantors:
        for item in known:
            if (item.role, item.grantor) == (role_oid, grantor) and item not in found:
                found.append(item)
                grantors.append(item.member)
    return found


def _remove_member(
    ddl: Ddl,
    role: Role,
    member: Role,
    grantor: int,
    options: dict[str, bool],
    behavior: str,
) -> None:
    """Remove a membership or one of its options.  With CASCADE, also remove the memberships that
    the member has granted.

    Raises:
        DependentObjectsStillExist: the member has granted memberships, and CASCADE was not given
            (2BP01).
    """
    known = memberships(ddl.catalog)
    own = [m for m in known if (m.role, m.member) == (role.oid, member.oid)]
    found = next((m for m in own if m.grantor == grantor), None)
    if found is None:
        by = ddl.environment.role_name(grantor)
        ddl.notice(
            f'role "{member.name}" has not been granted membership in role "{role.name}" by role'
            f' "{by}"',
            severity="WARNING",
            sqlstate="01000",
        )
        return
    loses_admin = found.is_admin and (not options or "admin" in options)
    if loses_admin and not any(m.is_admin for m in own if m != found):
        _remove_granted(ddl, _granted_by(known, role.oid, member.oid), behavior)
    if not options:
        delete_membership(ddl.catalog, found.oid)
        return
    changed = replace(
        found,
        is_admin=found.is_admin and "admin" not in options,
        inherits=found.inherits and "inherit" not in options,
        may_set=found.may_set and "set" not in options,
    )
    put_membership(ddl.catalog, changed)
