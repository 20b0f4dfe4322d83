"""Dump policies and default privileges (dumpPolicy(), dumpDefaultACL())."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replctl.catalog import schema
from replctl.catalog.acl import PUBLIC, Acl, decode_acl, default_acl
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_default_acl import EVERYWHERE, OBJECT_TYPES
from replctl.catalog.pg_policy import Policy, policies_of
from replctl.dump.dumped_privilege import acl_statements
from replctl.dump.entry import Entry
from replctl.dump.source import Source
from replctl.query.pg_get_expr import condition_text
from replctl.types.quote import quote_identifier


def policies(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the policies of tables, and the statements that enable row-level security."""
    for table in relations.values():
        owner = source.role_name(table.owner)
        if table.has_row_security:
            text = f"ALTER TABLE {table.quoted_name} ENABLE ROW LEVEL SECURITY;\n"
            yield Entry("ROW SECURITY", table.name, text, table.schema, owner)
        for policy in policies_of(source.catalog, table.oid):
            yield Entry(
                "POLICY", f"{table.name} {policy.name}", _policy(source, table, policy),
                table.schema, owner, order=(policy.name, table.name),
            )  # fmt: skip


def _policy(source: Source, table: Relation, policy: Policy) -> str:
    text = f"CREATE POLICY {quote_identifier(policy.name)} ON {table.quoted_name}"
    text += "" if policy.is_permissive else " AS RESTRICTIVE"
    text += "" if policy.command is None else f" FOR {policy.command_word}"
    if PUBLIC not in policy.roles:
        names = sorted(quote_identifier(source.role_name(oid)) for oid in policy.roles)
        text += f" TO {', '.join(names)}"
    for word, condition in (("USING", policy.using), ("WITH CHECK", policy.check)):
        if condition is not None:
            text += f" {word} ({condition_text(source.environment, table, condition)})"
    return f"{text};\n"


def default_privileges(source: Source) -> Iterator[Entry]:
    """Yield the default privileges."""
    kinds = {letter: kind for kind, letter in OBJECT_TYPES.items()}
    table = schema.pg_default_acl
    for row in source.catalog.select(table, order_by=[table.c.oid]):
        role, kind = int(row.defaclrole), kinds[row.defaclobjtype]
        is_everywhere = row.defaclnamespace == EVERYWHERE
        place = None if is_everywhere else source.schema_name(int(row.defaclnamespace))
        base: Acl = default_acl(kind, role) if is_everywhere else ()
        owner = source.role_name(role)
        head = f"ALTER DEFAULT PRIVILEGES FOR ROLE {quote_identifier(owner)} "
        head += "" if place is None else f"IN SCHEMA {quote_identifier(place)} "
        objects = f"{kind.upper()}S"
        statements = acl_statements(
            source, kind, decode_acl(row.defaclacl) or (), role, objects, base=base
        )
        text = "".join(head + statement for statement in statements)
        yield Entry("DEFAULT ACL", f"DEFAULT PRIVILEGES FOR {objects}", text, place, owner)
