"""`\\l`, `\\du`, `\\drg`, `\\dp`, `\\dd`: databases, roles, privileges, comments (describe.c)."""

from __future__ import annotations

from replctl.catalog import pg_authid, schema
from replctl.catalog.acl import Privilege, decode_acl
from replctl.catalog.aclchk import acl_items, column_acls, relation_acl
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_database import COLLATION
from replctl.catalog.pg_description import get_comment, get_shared_comment
from replctl.catalog.pg_policy import policies_of
from replctl.catalog.relation_kind import READABLE, TABLE_KINDS, RelKind
from replctl.psql.described import (
    RELATION_TYPES,
    SYSTEM_SCHEMAS,
    Described,
    described,
    find_relations,
    policy_roles,
    shown_acl,
)
from replctl.psql.pattern import NamePattern, parse_pattern
from replctl.psql.print_content import Table
from replctl.psql.psql_settings import PsqlSettings


def list_databases(settings: PsqlSettings, pattern: str | None, *, verbose: bool = False) -> bool:
    """Run `\\l`: list databases.  All of them have the same encoding and collation."""
    with described(settings) as target:
        parsed = parse_pattern(pattern, "", max_parts=1)
        owners = pg_authid.role_names(target.catalog)
        columns = [
            "Name", "Owner", "Encoding", "Locale Provider", "Collate", "Ctype", "Locale",
            "ICU Rules", "Access privileges",
        ]  # fmt: skip
        if verbose:
            columns += ["Size", "Tablespace", "Description"]
        rows: list[list[str | None]] = []
        found = target.catalog.select(schema.pg_database, order_by=[schema.pg_database.c.datname])
        for row in found:
            if parsed.matches("", str(row.datname)):
                rows.append(
                    [
                        str(row.datname), owners.get(int(row.datdba)), "UTF8", "libc", COLLATION,
                        COLLATION, None, None, shown_acl(target, decode_acl(row.datacl)),
                    ]
                )  # fmt: skip
                if verbose:
                    description = get_shared_comment(target.catalog, "pg_database", int(row.oid))
                    rows[-1] += [_size(target, int(row.oid)), "pg_default", description]
        target.print(Table(columns, rows, title="List of databases"))
    return True


def _size(target: Described, oid: int) -> str:
    """Return the size of a database, if the role may connect to it."""
    from replctl.adt.dbsize import pretty_size
    from replctl.query.size import database_size

    if not target.environment.privileges.has_on_database(Privilege.CONNECT, oid):
        return "No Access"
    return pretty_size(database_size(target.catalog, oid))


def list_roles(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\du`: list roles (describeRoles)."""
    parsed = parse_pattern(pattern, "", max_parts=1)
    rows: list[list[str | None]] = []
    for role in target.catalog.select(schema.pg_authid, order_by=[schema.pg_authid.c.rolname]):
        name = str(role.rolname)
        if not parsed.matches("", name):
            continue
        if name.startswith("pg_") and pattern is None and not show_system:
            continue
        words = [
            word
            for flag, word in (
                (role.rolsuper, "Superuser"),
                (not role.rolinherit, "No inheritance"),
                (role.rolcreaterole, "Create role"),
                (role.rolcreatedb, "Create DB"),
                (not role.rolcanlogin, "Cannot login"),
                (role.rolreplication, "Replication"),
                (role.rolbypassrls, "Bypass RLS"),
            )
            if flag
        ]
        lines = [", ".join(words)] if words else []
        if role.rolconnlimit >= 0:
            count = "No" if role.rolconnlimit == 0 else str(role.rolconnlimit)
            lines.append(f"{count} connection{'' if role.rolconnlimit == 1 else 's'}")
        if role.rolvaliduntil:
            lines.append(f"Password valid until {role.rolvaliduntil}")
        rows.append([name, "\n".join(lines)])
        if verbose:
            rows[-1].append(get_shared_comment(target.catalog, "pg_authid", int(role.oid)) or "")
    columns = ["Role name", "Attributes", *(["Description"] if verbose else [])]
    target.print(Table(columns, rows, title="List of roles", footers=()))
    return True


def list_role_grants(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\drg`: list memberships of roles (describeRoleGrants)."""
    parsed = parse_pattern(pattern, "", max_parts=1)
    names = pg_authid.role_names(target.catalog)
    rows: list[list[str | None]] = []
    for grant in pg_authid.memberships(target.catalog):
        member = names[grant.member]
        if not parsed.matches("", member):
            continue
        if member.startswith("pg_") and pattern is None and not show_system:
            continue
        options = (
            (grant.is_admin, "ADMIN"),
            (grant.inherits, "INHERIT"),
            (grant.may_set, "SET"),
        )
        shown = ", ".join(word for is_on, word in options if is_on)
        rows.append([member, names.get(grant.role), shown, names.get(grant.grantor)])
    rows.sort(key=lambda row: (row[0] or "", row[1] or "", row[3] or ""))
    columns = ["Role name", "Member of", "Options", "Grantor"]
    target.print(Table(columns, rows, title="List of role grants"))
    return True


def list_comments(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\dd`: list comments that no other command shows, on constraints (objectDescription)."""
    parsed = parse_pattern(pattern, target.session.database_name)
    found: set[tuple[str, str, str]] = set()  # psql prints equal rows once
    for relation in find_relations(
        target, (*TABLE_KINDS, RelKind.FOREIGN_TABLE), NamePattern(parsed.schema, None, True)
    ):
        if pattern is None and not show_system and relation.schema in SYSTEM_SCHEMAS:
            continue
        if not parsed.has_schema and not target.is_visible(relation.oid, relation.name):
            continue
        for constraint in relation.constraints:
            text = get_comment(target.catalog, "pg_constraint", constraint.oid)
            if text is not None and parsed.matches(relation.schema, constraint.name):
                found.add((relation.schema, constraint.name, text))
    rows: list[list[str | None]] = [
        [schema, name, "table constraint", text] for schema, name, text in sorted(found)
    ]
    columns = ["Schema", "Name", "Object", "Description"]
    target.print(Table(columns, rows, title="Object descriptions"))
    return True


def list_privileges(settings: PsqlSettings, pattern: str | None, *, show_system: bool) -> bool:
    """Run `\\z`: list privileges."""
    with described(settings) as target:
        return list_privileges_of(target, pattern, False, show_system)


def list_privileges_of(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\dp`: list privileges (permissionsList)."""
    parsed = parse_pattern(pattern, target.session.database_name)
    rows: list[list[str | None]] = [
        [
            relation.schema,
            relation.name,
            RELATION_TYPES[relation.kind],
            shown_acl(target, relation_acl(target.catalog, relation.oid)),
            _column_privileges(target, relation),
            _policies(target, relation),
        ]
        for relation in find_relations(
            target, (*READABLE, RelKind.FOREIGN_TABLE, RelKind.SEQUENCE), parsed
        )
        if show_system or pattern is not None or relation.schema not in SYSTEM_SCHEMAS
    ]
    columns = ["Schema", "Name", "Type", "Access privileges", "Column privileges", "Policies"]
    target.print(Table(columns, rows, title="Access privileges"))
    return True


def _policies(target: Described, relation: Relation) -> str:
    """Return lines for each policy: its name and command, and then its conditions and roles."""
    from replctl.query.pg_get_expr import condition_text
    # not for \\l and \\du

    lines = []
    policies = policies_of(target.catalog, relation.oid)
    for policy in sorted(policies, key=lambda policy: policy.oid):
        kind = "" if policy.is_permissive else " (RESTRICTIVE)"
        command = "" if policy.command is None else f" ({policy.command})"
        lines.append(f"{policy.name}{kind}{command}:")
        for letter, text in (("u", policy.using), ("c", policy.check)):
            if text is not None:
                shown = condition_text(target.environment, relation, text)
                lines.append(f"  ({letter}): {shown}")
        roles = policy_roles(target, policy)
        lines += [f"  to: {', '.join(roles)}"] if roles else []
    return "\n".join(lines)


def _column_privileges(target: Described, relation: Relation) -> str:
    """Return lines for each column with its own privileges: its name, and then the privileges."""
    lists = column_acls(target.catalog, relation.oid)
    lines = []
    for column in relation.columns:
        if column.attnum in lists:
            items = acl_items(target.catalog, lists[column.attnum]) or []
            lines += [f"{column.name}:", *(f"  {item}" for item in items)]
    return "\n".join(lines)
