"""`\\l`, `\\du` and `\\dp`: databases, roles and privileges (describe.c)."""

from __future__ import annotations

from replctl.catalog import pg_authid, schema
from replctl.psql.describe import (
    RELATION_TYPES,
    SYSTEM_SCHEMAS,
    Described,
    described,
    find_relations,
)
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_table import Table
from replctl.psql.settings import PsqlSettings


def list_databases(settings: PsqlSettings, pattern: str | None, *, verbose: bool = False) -> bool:
    """`\\l`; every database has the encoding and the collation that design and tests rely on."""
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
                        str(row.datname), owners.get(int(row.datdba)), "UTF8", "libc", "C.utf8",
                        "C.utf8", None, None, None,
                    ]
                )  # fmt: skip
                if verbose:
                    rows[-1] += [None, "pg_default", None]
        target.print(Table(columns, rows, title="List of databases"))
    return True


def list_roles(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """`\\du` (describeRoles)"""
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
        text = ", ".join(words)
        if role.rolconnlimit >= 0:
            count = "No" if role.rolconnlimit == 0 else str(role.rolconnlimit)
            text += f"\n{count} connection{'' if role.rolconnlimit == 1 else 's'}"
        if role.rolvaliduntil:
            text += f"\nPassword valid until {role.rolvaliduntil}"
        rows.append([name, text, *([""] if verbose else [])])
    columns = ["Role name", "Attributes", *(["Description"] if verbose else [])]
    target.print(Table(columns, rows, title="List of roles", footers=()))
    return True


def list_privileges(settings: PsqlSettings, pattern: str | None, *, show_system: bool) -> bool:
    """`\\z`"""
    with described(settings) as target:
        return list_privileges_of(target, pattern, False, show_system)


def list_privileges_of(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """`\\dp` (permissionsList); nothing is granted yet, so that all privileges are the owners'."""
    parsed = parse_pattern(pattern, target.session.database_name)
    rows: list[list[str | None]] = [
        [relation.schema, relation.name, RELATION_TYPES[relation.kind], None, "", ""]
        for relation in find_relations(target, "rpvmfS", parsed)
        if show_system or pattern is not None or relation.schema not in SYSTEM_SCHEMAS
    ]
    columns = ["Schema", "Name", "Type", "Access privileges", "Column privileges", "Policies"]
    target.print(Table(columns, rows, title="Access privileges"))
    return True
