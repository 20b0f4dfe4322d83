"""Read and write policies: rules about the rows of a table that a role may see and write."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from replctl.catalog import schema
from replctl.catalog.acl import PUBLIC, Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import TABLE_KINDS
from replctl.catalog.transaction import Catalog
from replctl.errors import InsufficientPrivilege
from replctl.record import dataclass

#: pg_policy.polcmd of a policy for all commands; a policy for one has its privilege's letter.
_ALL_COMMANDS = "*"


@dataclass(frozen=True, slots=True)
class Policy:
    """A row of pg_policy.

    Attributes:
        command: SELECT, INSERT, UPDATE or DELETE; None for all of them.
        roles: OIDs of the affected roles; 0 is PUBLIC.
        using, check: conditions as stored expressions, which may contain query trees
            (query.stored).
    """

    oid: int
    name: str
    relid: int
    command: Privilege | None
    is_permissive: bool
    roles: tuple[int, ...]
    using: str | None
    check: str | None

    @property
    def reads_other_tables(self) -> bool:
        """Return whether the USING condition contains a subquery, which only `replctl.query` can
        read.
        """
        return self.using is not None and '{"node":"SubLink"' in self.using

    @property
    def command_word(self) -> str:
        """Return the command as statements name it: SELECT, ALL."""
        return "ALL" if self.command is None else self.command.word

    def concerns(self, command: Privilege, privileges: Privileges) -> bool:
        """Return whether the policy applies to a command of a role."""
        is_for = PUBLIC in self.roles or any(role in privileges.roles for role in self.roles)
        return self.command in (command, None) and is_for


def policies_of(catalog: Catalog, relid: int) -> list[Policy]:
    """Return the policies of a table, by name."""
    table = schema.pg_policy
    return [
        _policy(row)
        for row in catalog.select(table, table.c.polrelid == relid, order_by=[table.c.polname])
    ]


def list_policies(catalog: Catalog) -> list[Policy]:
    """Return all policies of the database, in their order of creation."""
    table = schema.pg_policy
    return [_policy(row) for row in catalog.select(table, order_by=[table.c.oid])]


def find_policy(catalog: Catalog, relid: int, name: str) -> Policy | None:
    """Return the policy of that name on a table; None if there is none."""
    return next((p for p in policies_of(catalog, relid) if p.name == name), None)


def put_policy(catalog: Catalog, policy: Policy) -> None:
    """Add a policy, or replace its stored state."""
    table = schema.pg_policy
    values = {
        "polname": policy.name,
        "polrelid": policy.relid,
        "polcmd": policy.command or _ALL_COMMANDS,
        "polpermissive": policy.is_permissive,
        "polroles": json.dumps(policy.roles),
        "polqual": policy.using,
        "polwithcheck": policy.check,
    }
    if catalog.update(table, table.c.oid == policy.oid, **values) == 0:
        catalog.insert(table, oid=policy.oid, **values)


def delete_policies(catalog: Catalog, oids: Collection[int]) -> None:
    """Remove policies."""
    catalog.delete(schema.pg_policy, schema.pg_policy.c.oid.in_(oids))


def is_row_security_active(
    privileges: Privileges, relation: Relation, row_security: str = "on"
) -> bool:
    """Return whether policies restrict the rows of a table for a role (check_enable_rls).

    Args:
        row_security: the setting row_security.

    Raises:
        InsufficientPrivilege: policies restrict the rows, and row_security is off (42501).
    """
    if not relation.has_row_security or relation.kind not in TABLE_KINDS:
        return False
    if privileges.is_superuser or privileges.role.bypasses_rls:
        return False
    is_owner = privileges.acts_for(relation.owner)
    if is_owner and not relation.forces_row_security:
        return False
    if row_security == "off":
        raise InsufficientPrivilege(
            f'query would be affected by row-level security policy for table "{relation.name}"',
            hint="To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL"
            " SECURITY."
            if is_owner
            else None,
        )
    return True


def _policy(row: Any) -> Policy:
    return Policy(
        int(row.oid),
        str(row.polname),
        int(row.polrelid),
        None if row.polcmd == _ALL_COMMANDS else Privilege(row.polcmd),
        bool(row.polpermissive),
        tuple(json.loads(row.polroles)),
        row.polqual,
        row.polwithcheck,
    )
