"""Check privileges on built-in relations and functions.  Most of them are open to all roles (see
the REVOKE statements in system_views.sql and system_functions.sql).
"""

from __future__ import annotations

from collections.abc import Collection

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import PREDEFINED_OIDS
from replctl.types import builtin
from replctl.types.builtin import SystemRelation


def has_on_system_relation(
    privileges: Privileges,
    relation: SystemRelation,
    privilege: Privilege,
    attnums: Collection[int] = (),
) -> bool:
    """Return whether a role has a privilege on a system relation, or on all its columns in
    `attnums`.
    """
    if privileges.is_superuser or privileges.has_on_all_relations(privilege):
        return True
    if privilege != Privilege.SELECT:
        return False
    restricted = builtin.restricted_relations().get(relation.name)
    if restricted is None:
        return True
    names = [name for name, _type in relation.columns]
    is_readable = bool(attnums) and all(
        a > 0 and names[a - 1] in restricted.readable for a in attnums
    )
    return is_readable or _acts_for_any(privileges, restricted.roles)


def may_call_builtin(privileges: Privileges, oid: int) -> bool:
    """Return whether a role may call a built-in function."""
    roles = builtin.restricted_functions().get(oid)
    return privileges.is_superuser or roles is None or _acts_for_any(privileges, roles)


def _acts_for_any(privileges: Privileges, predefined: Collection[str]) -> bool:
    return any(privileges.acts_for(PREDEFINED_OIDS[name]) for name in predefined)
