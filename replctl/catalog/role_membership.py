"""Find the roles of which a role is a direct or indirect member (roles_is_member_of in acl.c)."""

from __future__ import annotations

from collections.abc import Callable

from replctl.catalog import schema
from replctl.catalog.pg_authid import DATABASE_OWNER, Membership, memberships
from replctl.catalog.transaction import Catalog


def reachable_roles(
    catalog: Catalog, role_oid: int, counts: Callable[[Membership], bool]
) -> frozenset[int]:
    """Return a role, and the roles that it reaches by memberships for which `counts` returns True.
    A database's owner is also a member of pg_database_owner.
    """
    by_member: dict[int, list[Membership]] = {}
    for membership in memberships(catalog):
        by_member.setdefault(membership.member, []).append(membership)
    found = [role_oid]
    database = schema.pg_database
    row = catalog.first(database, database.c.oid == catalog.database_oid)
    owner = None if row is None else int(row.datdba)
    for oid in found:
        reached = [m.role for m in by_member.get(oid, ()) if counts(m)]
        if oid == owner:
            reached.append(DATABASE_OWNER)
        found.extend(role for role in reached if role not in found)
    return frozenset(found)
