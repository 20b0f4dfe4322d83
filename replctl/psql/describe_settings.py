"""Run `\\ddp` and `\\drds`: list default privileges and settings of roles (describe.c)."""

from __future__ import annotations

import json

from replctl.catalog import schema
from replctl.catalog.acl import decode_acl
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_default_acl import OBJECT_TYPES
from replctl.catalog.pg_namespace import schema_names
from replctl.psql.described import Described, described, shown_acl
from replctl.psql.pattern import NamePattern, parse_pattern
from replctl.psql.print_content import Table
from replctl.psql.psql_settings import PsqlSettings


def list_default_privileges(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\ddp`: list the default privileges of matching schemas or owners (listDefaultACLs)."""
    parsed = parse_pattern(pattern, "", max_parts=1)
    owners, schemas = role_names(target.catalog), schema_names(target.catalog)
    kinds = {letter: kind for kind, letter in OBJECT_TYPES.items()}
    rows: list[list[str | None]] = []
    for row in target.catalog.select(schema.pg_default_acl):
        owner = owners[int(row.defaclrole)]
        place = schemas.get(int(row.defaclnamespace))
        if parsed.matches("", owner) or (place is not None and parsed.matches("", place)):
            acl = shown_acl(target, decode_acl(row.defaclacl))
            rows.append([owner, place, kinds[row.defaclobjtype], acl])
    rows.sort(key=lambda row: (row[0], row[1] is None, row[1] or "", row[2]))
    columns = ["Owner", "Schema", "Type", "Access privileges"]
    target.print(Table(columns, rows, title="Default access privileges"))
    return True


def list_role_settings(settings: PsqlSettings, role: str | None, database: str | None) -> bool:
    """Run `\\drds`: list the settings of roles and databases (listDbRoleSettings)."""
    with described(settings) as target:
        by_role = parse_pattern(role, "", max_parts=1)
        by_database = parse_pattern(database, "", max_parts=1)
        roles = role_names(target.catalog)
        table = schema.pg_database
        databases = {int(row.oid): str(row.datname) for row in target.catalog.select(table)}
        rows: list[list[str | None]] = []
        for row in target.catalog.select(schema.pg_db_role_setting):
            name, place = roles.get(int(row.setrole)), databases.get(int(row.setdatabase))
            if _is_meant(role, by_role, name) and _is_meant(database, by_database, place):
                rows.append([name, place, "\n".join(json.loads(row.setconfig))])
        rows.sort(key=lambda row: (row[0] is None, row[0] or "", row[1] is None, row[1] or ""))
        if not rows and not settings.is_quiet:
            tail = "" if role is None else f' for role "{role}"'
            tail += "" if database is None else f' and database "{database}"'
            settings.messages.error(f"Did not find any settings{tail}.")
            return True
        target.print(Table(["Role", "Database", "Settings"], rows, title="List of settings"))
    return True


def _is_meant(text: str | None, pattern: NamePattern, name: str | None) -> bool:
    """Return whether a pattern matches a name.  A missing name matches only if the pattern is
    missing or matches everything.
    """
    return text in (None, "*") or (name is not None and pattern.matches("", name))
