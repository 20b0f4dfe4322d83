"""Build the statements that create user-defined types: enums, domains and composite types."""

from __future__ import annotations

from replctl.catalog.composite_type import composite_of_type
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_type import enum_labels
from replctl.catalog.ruleutils import domain_constraint_definition, domain_default, own_collation
from replctl.types.quote import quote_identifier, quote_string


def enum_statement(environment: CatalogEnvironment, type_name: str) -> str:
    """Return CREATE TYPE for an enum, without its semicolon.

    Args:
        type_name: the type's name in typed expressions, such as `@16384`.
    """
    labels = enum_labels(environment.catalog, type_name)
    items = ",".join(f"\n    {quote_string(label)}" for label in labels)
    return f"CREATE TYPE {environment.format_type(type_name)} AS ENUM ({items}\n)"


def composite_statement(environment: CatalogEnvironment, type_name: str) -> str:
    """Return CREATE TYPE for a composite type, without its semicolon (dumpCompositeType in
    pg_dump.c).

    Args:
        type_name: the type's name in typed expressions, such as `@16384`.
    """
    relation = composite_of_type(environment.catalog, type_name)
    assert relation is not None
    items = []
    for column in relation.columns:
        shown = environment.format_type(column.declared_type, column.declared_typmod)
        item = f"\n\t{quote_identifier(column.name)} {shown}"
        if own_collation(environment, column):
            item += f" COLLATE pg_catalog.{quote_identifier(column.collation or '')}"
        items.append(item)
    return f"CREATE TYPE {environment.format_type(type_name)} AS ({','.join(items)}\n)"


def domain_statements(environment: CatalogEnvironment, type_name: str) -> list[str]:
    """Return CREATE DOMAIN, and an ALTER DOMAIN for each constraint that is not validated, without
    semicolons (dumpDomain in pg_dump.c).

    Args:
        type_name: the type's name in typed expressions, such as `@16384`.
    """
    domain = get_domain(environment.catalog, type_name)
    own, base = environment.type(domain.name), environment.type(domain.base)
    name = environment.format_type(type_name)
    text = f"CREATE DOMAIN {name} AS {environment.format_type(domain.base, domain.typmod)}"
    if own.collation is not None and own.collation != base.collation:
        text += f" COLLATE pg_catalog.{quote_identifier(own.collation)}"
    not_null = next((item for item in domain.constraints if item.check is None), None)
    if not_null is not None:
        is_usual = not_null.name == f"{own.sql_name}_not_null"
        text += "" if is_usual else f" CONSTRAINT {quote_identifier(not_null.name)}"
        text += " NOT NULL"
    if domain.default is not None:
        text += f" DEFAULT {domain_default(environment, domain.default)}"
    later = []
    for item in domain.constraints:
        if item.check is None:
            continue
        definition = domain_constraint_definition(environment, item)
        constraint = f"CONSTRAINT {quote_identifier(item.name)} {definition}"
        if item.is_validated:
            text += f"\n\t{constraint}"
        else:
            later.append(f"ALTER DOMAIN {name}\n    ADD {constraint}")
    return [text, *later]
