"""DROP OWNED and REASSIGN OWNED (shdepDropOwned() and shdepReassignOwned() in pg_shdepend.c)."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from replctl.catalog import schema
from replctl.catalog.acl import Acl, decode_acl, default_acl, encode_acl, without_role
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_authid import Role, delete_membership
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_default_acl import EVERYWHERE, OBJECT_TYPES
from replctl.catalog.pg_policy import delete_policies, list_policies, put_policy
from replctl.catalog.pg_publication import delete_publication
from replctl.commands.alter_table import give_relation
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.dependency import drop_objects
from replctl.commands.grant import revoke_all
from replctl.commands.object_address import Object, relation_object
from replctl.commands.object_owner import check_given, give_object
from replctl.commands.role import named_role
from replctl.commands.role_dependency import RoleDependency, role_dependencies
from replctl.errors import DependentObjectsStillExist, InsufficientPrivilege
from replctl.parser import ast
from replctl.session import Session


def drop_owned(session: Session, statement: ast.DropOwned) -> str:
    """Drop the objects of roles in this database, and revoke the privileges granted to the roles.

    Raises:
        InsufficientPrivilege: the current role does not have the privileges of a role.
        DependentObjectsStillExist: there are dependent objects, and CASCADE was not given.
    """
    return carry_out(session, lambda ddl: _drop_owned(ddl, statement))


def reassign_owned(session: Session, statement: ast.ReassignOwned) -> str:
    """Give the objects of roles in this database, and the databases of the roles, to another role.

    Raises:
        InsufficientPrivilege: the current role does not have the privileges of a role, or may not
            give one of the objects to the new owner.
    """
    return carry_out(session, lambda ddl: _reassign_owned(ddl, statement))


def _drop_owned(ddl: Ddl, statement: ast.DropOwned) -> str:
    roles = [named_role(ddl, name) for name in statement.roles]
    for role in roles:
        _check(ddl, role, "drop objects", "drop objects owned by it")
    for role in roles:
        _check_not_pinned(role, "drop objects owned by")
    objects: list[Object] = []
    publications: list[int] = []
    for role in roles:
        revoked: set[tuple[str, int]] = set()
        for item in role_dependencies(ddl, role.oid):
            if item.database_oid not in (0, ddl.catalog.database_oid):
                continue
            if item.kind == "policy":
                _leave_policy(ddl, item.oid, role.oid)
            elif item.kind == "acl" or item.class_name == "pg_default_acl":
                _revoke_all(ddl, item, role.oid, revoked)
            elif item.class_name == "pg_publication":
                publications.append(item.oid)
            elif item.database_oid:
                objects.append(_object(ddl, item))
    objects.sort(key=attrgetter("oid"), reverse=True)  # as sort_object_addresses()
    drop_objects(ddl, objects, statement.behavior)
    for oid in publications:
        delete_publication(ddl.catalog, oid)
    return "DROP OWNED"


def _object(ddl: Ddl, item: RoleDependency) -> Object:
    match item.class_name:
        case "pg_class":
            return relation_object(ddl.relation(item.oid))
        case "pg_namespace":
            return Object("schema", item.oid)
        case "pg_type":
            return Object("type", item.oid)
        case "pg_proc":
            return Object("function", item.oid)
        case "pg_operator":
            return Object("operator", item.oid)
        case "pg_collation":
            return Object("collation", item.oid)
    raise AssertionError(item.class_name)


def _leave_policy(ddl: Ddl, oid: int, role_oid: int) -> None:
    """Remove a role from a policy.  Drop the policy if it has no other roles
    (RemoveRoleFromObjectPolicy).
    """
    policy = next(p for p in list_policies(ddl.catalog) if p.oid == oid)
    kept = tuple(role for role in policy.roles if role != role_oid)
    if kept:
        put_policy(ddl.catalog, replace(policy, roles=kept))
    else:
        delete_policies(ddl.catalog, [oid])


def _revoke_all(
    ddl: Ddl, item: RoleDependency, role_oid: int, revoked: set[tuple[str, int]]
) -> None:
    """Revoke a role's privileges on an object, as far as the current role may do this.  Drop a
    membership that the role has granted.

    Args:
        revoked: catalogs and OIDs of the objects for which this was done.
    """
    catalog = ddl.catalog
    if item.class_name == "pg_auth_members":
        delete_membership(catalog, item.oid)
        return
    if item.class_name != "pg_default_acl":
        # The privileges on a column are revoked together with those on its relation
        class_name = "pg_class" if item.class_name == "pg_attribute" else item.class_name
        if (class_name, item.oid) not in revoked:
            revoked.add((class_name, item.oid))
            revoke_all(ddl, class_name, item.oid, role_oid)
        return
    table = schema.pg_default_acl
    row = catalog.first(table, table.c.oid == item.oid)
    assert row is not None
    acl = without_role(decode_acl(row.defaclacl) or (), role_oid)
    by_itself: Acl = ()
    if row.defaclnamespace == EVERYWHERE:
        kind = next(k for k, letter in OBJECT_TYPES.items() if letter == row.defaclobjtype)
        by_itself = default_acl(kind, int(row.defaclrole))
    if int(row.defaclrole) == role_oid or set(acl) == set(by_itself):
        catalog.delete(table, table.c.oid == item.oid)
    else:
        catalog.update(table, table.c.oid == item.oid, defaclacl=encode_acl(acl))


def _reassign_owned(ddl: Ddl, statement: ast.ReassignOwned) -> str:
    roles = [named_role(ddl, name) for name in statement.roles]
    for role in roles:
        _check(ddl, role, "reassign objects", "reassign objects owned by it")
    new = named_role(ddl, statement.new_owner)
    _check(ddl, new, "reassign objects", "reassign objects to it")
    for role in roles:
        _check_not_pinned(role, "reassign ownership of objects owned by")
    for role in roles:
        for item in role_dependencies(ddl, role.oid):
            is_here = item.database_oid in (0, ddl.catalog.database_oid)
            if item.kind == "owner" and is_here and item.class_name != "pg_default_acl":
                _give(ddl, item, role.oid, new.oid)
    return "REASSIGN OWNED"


def _give(ddl: Ddl, item: RoleDependency, old: int, new: int) -> None:
    """Give an object to a role.  As in PostgreSQL, relations and types need no further rights."""
    if old == new:
        return
    if item.class_name == "pg_class":
        relation = get_relation(ddl.catalog, item.oid)
        if relation is not None and relation.owner == old:  # a part moves with its table
            give_relation(ddl, relation, new)
        return
    if item.class_name != "pg_type":
        check_given(ddl, item.class_name, item.oid, new)
    give_object(ddl, item.class_name, item.oid, new)


def _check(ddl: Ddl, role: Role, what: str, may: str) -> None:
    if not ddl.privileges.acts_for(role.oid):
        raise InsufficientPrivilege(
            f"permission denied to {what}",
            detail=f'Only roles with privileges of role "{role.name}" may {may}.',
        )


def _check_not_pinned(role: Role, what: str) -> None:
    if role.oid == BOOTSTRAP_SUPERUSER or role.oid < 16384:
        raise DependentObjectsStillExist(
            f"cannot {what} role {role.name} because they are required by the database system"
        )
