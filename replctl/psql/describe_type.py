"""`\\\\dD`: domains (describe.c)."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.acl import decode_acl
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_domain import Domain, get_domain
from replctl.catalog.pg_namespace import schema_names
from replctl.catalog.pg_type import type_name
from replctl.catalog.ruleutils import domain_constraint_definition
from replctl.psql.described import Described, shown_acl
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_content import Table


def list_domains(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\dD`: list user-defined domains (listDomains)."""
    parsed = parse_pattern(pattern, target.session.database_name)
    environment, places = target.environment, schema_names(target.catalog)
    table = schema.pg_type
    rows: list[list[str | None]] = []
    for row in target.catalog.select(table, table.c.typtype == "d"):
        place, name = places[int(row.typnamespace)], str(row.typname)
        found = environment.find_type(None, name)
        is_visible = found is not None and found.oid == int(row.oid)
        if not parsed.matches(place, name) or not (parsed.has_schema or is_visible):
            continue
        rows.append([place, name, *_domain(target, get_domain(target.catalog, type_name(row.oid)))])
        if verbose:
            rows[-1].append(shown_acl(target, decode_acl(row.typacl)))
            rows[-1].append(get_comment(target.catalog, "pg_type", int(row.oid)))
    rows.sort(key=lambda row: (row[0] or "", row[1] or ""))
    columns = ["Schema", "Name", "Type", "Collation", "Nullable", "Default", "Check"]
    columns += ["Access privileges", "Description"] if verbose else []
    target.print(Table(columns, rows, title="List of domains"))
    return True


def _domain(target: Described, domain: Domain) -> list[str | None]:
    environment = target.environment
    own, base = environment.type(domain.name), environment.type(domain.base)
    checks = [
        domain_constraint_definition(environment, item, is_pretty=True)
        for item in domain.constraints
        if item.check is not None
    ]
    return [
        environment.format_type(domain.base, domain.typmod),
        own.collation if own.collation != base.collation else None,
        "not null" if domain.not_null else None,
        domain.default_text,
        " ".join(checks),
    ]
