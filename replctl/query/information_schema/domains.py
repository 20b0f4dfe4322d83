"""information_schema: domains."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_domain import Domain, domain_bases, get_domain
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.columns import collation_row, domain_place, type_row
from replctl.query.information_schema.visibility import TABLES_AND_VIEWS, Row, place, relations


def domains(context: FunctionContext, *, owned: bool = False) -> Iterator[Domain]:
    """Yield the domains that the current role may use; with `owned`, only those that it owns."""
    privileges = context.environment.privileges
    for name in domain_bases(context.catalog):
        oid = context.environment.type(name).oid
        owner = owner_of(context.catalog, "pg_type", oid)
        if privileges.acts_for(owner) or (not owned and privileges.has_on_type(oid)):
            yield get_domain(context.catalog, name)


def _domains(context: FunctionContext) -> Iterator[Row]:
    for domain in domains(context):
        yield {
            **domain_place(context, domain.name),
            **type_row(context, domain.base, domain.typmod),
            **collation_row(context, context.environment.type(domain.name).collation),
            "domain_default": domain.default_text,
            "dtd_identifier": "1",
        }


def _domain_constraints(context: FunctionContext) -> Iterator[Row]:
    for domain in domains(context):
        found = domain_place(context, domain.name)
        for constraint in domain.constraints:
            yield {
                "constraint_catalog": found["domain_catalog"],
                "constraint_schema": found["domain_schema"],
                "constraint_name": constraint.name,
                **found,
                "is_deferrable": "NO",
                "initially_deferred": "NO",
            }


def _column_domain_usage(context: FunctionContext) -> Iterator[Row]:
    own = {domain.name for domain in domains(context, owned=True)}
    for relation in relations(context, TABLES_AND_VIEWS):
        for column in relation.columns:
            if column.domain in own:
                yield {
                    **domain_place(context, column.domain),
                    **place(context, relation),
                    "column_name": column.name,
                }


def _domain_udt_usage(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for name in domain_bases(context.catalog):
        domain = get_domain(context.catalog, name)
        base = context.environment.type(domain.base)
        owner = 10 if base.is_builtin else owner_of(context.catalog, "pg_type", base.oid)
        if privileges.acts_for(owner):
            udt = type_row(context, domain.base, domain.typmod)
            names = ("udt_catalog", "udt_schema", "udt_name")
            yield {**{key: udt[key] for key in names}, **domain_place(context, name)}


VIEWS = {
    "domains": _domains,
    "domain_constraints": _domain_constraints,
    "column_domain_usage": _column_domain_usage,
    "domain_udt_usage": _domain_udt_usage,
}
