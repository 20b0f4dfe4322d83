"""Find the conditions for received values of user-defined types, even in arrays and rows, and for
values of the publisher's time zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_namespace import schema_names
from replctl.catalog.pg_type import type_schema_oid
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.environment import Column, element_of
from replctl.expr.type_facts import TypeFacts
from replctl.expr.user_type import (
    about_value,
    base_type,
    domain_check,
    domain_rules,
    stored_type,
)
from replctl.replication.node import RemoteRelation
from replctl.spark import DomainTest, EnumType, RowField, RowType, Target
from replctl.types.builtin import Type
from replctl.types.quote import quote_qualified_identifier
from replctl.types.shown import depends
from replctl.types.type_kind import TypeKind
from replctl.types.value_format import ValueFormat

_BOOL_EQUAL = 91  # the operator boolean = boolean


def received_types(
    environment: CatalogEnvironment, relation: Relation
) -> dict[int, EnumType | RowType]:
    """Return the enum or composite type of each column that has one, by attnum.  The column may
    also be an array of the type.

    Raises:
        FeatureNotSupported: an attribute of a composite type has a domain with constraints.
    """
    found = {}
    for column in relation.columns:
        known = _received_type(environment, column.declared_type)
        if known is not None:
            found[column.attnum] = known
    return found


def check_zone(relation: Relation, remote: RemoteRelation) -> None:
    """Check that the publisher's TimeZone does not affect values that are converted to another
    type.  PostgreSQL converts them through text in this zone.

    Raises:
        FeatureNotSupported: the zone affects a column (0A000).
    """
    zoned = ValueFormat(zone=remote.zone)
    for sent in remote.columns:
        column = relation.column(sent.name)
        if column is None or column.type == sent.type or zoned.is_utc:
            continue
        if depends(sent.type, zoned):
            raise FeatureNotSupported(
                f"conversion of type {sent.type} to type {column.type} is not supported with"
                f' TimeZone "{remote.zone}" of the publisher',
                detail=f'Column "{column.name}" of logical replication target relation'
                f' "{relation.qualified_name}" differs in its type from the published column.',
                hint="Add options=-ctimezone=UTC to the connection string of the subscription.",
            )


def _received_type(environment: CatalogEnvironment, declared: str) -> EnumType | RowType | None:
    name, _typmod = base_type(environment, declared)
    type_ = environment.type(name)
    if type_.element is not None:
        type_ = environment.type(type_.element)
    if type_.kind == TypeKind.ENUM:
        labels = environment.enum_labels(type_)
        return EnumType(_qualified_name(environment.catalog, type_), labels)
    if not type_.is_composite:
        return None
    columns = environment.columns(type_) or ()
    return RowType(tuple(_row_field(environment, column) for column in columns))


def _row_field(environment: CatalogEnvironment, column: Column) -> RowField:
    _check_unconstrained(environment, column.type)
    stored, typmod = stored_type(environment, column.type, column.typmod)
    plain = "text" if stored.startswith("@") else stored  # an enum
    return RowField(plain, typmod, _received_type(environment, column.type))


def _check_unconstrained(environment: CatalogEnvironment, name: str) -> None:
    """Check that values of an attribute need no test of a domain."""
    types = TypeFacts(environment)
    for part in (name, types.base_element(name)):
        rules = None if part is None else domain_rules(environment, part)
        if rules is not None and (rules.checks or rules.not_null):
            shown = environment.format_type(part or "")
            raise FeatureNotSupported(
                "replication into attributes of composite types is not supported for domain"
                f" {shown}, which has constraints"
            )


def domain_tests(
    environment: CatalogEnvironment, relation: Relation, target: Target
) -> tuple[DomainTest, ...]:
    """Return the tests of domains that received values must pass."""
    found: list[DomainTest] = []
    for column in relation.columns:
        if target.column(column.attnum).sent is None:
            continue
        value = nodes.Var(column.attnum, column.type, column.typmod, column.collation)
        array, _typmod = TypeFacts(environment).base_and_typmod(column.declared_type, -1)
        element = element_of(environment.type(array))
        if element is not None and environment.type(element).kind == TypeKind.DOMAIN:
            base, typmod = base_type(environment, element)
            item = nodes.Param(0, base, typmod, column.collation)
            for test in _tests(environment, column.attnum, element, item):
                found.append(replace(test, condition=_holds_for_all(value, test.condition)))
        if column.domain:
            found += _tests(environment, column.attnum, column.domain, value)
    return tuple(found)


def _tests(
    environment: CatalogEnvironment, attnum: int, domain: str, value: nodes.Expr
) -> Iterator[DomainTest]:
    """Yield the tests of a domain for a value in a column."""
    checked = domain_check(environment, domain, value)
    if not isinstance(checked, nodes.CoerceToDomain):
        return
    assert checked.domain is not None
    shown = _qualified_name(environment.catalog, environment.type(domain))
    name = checked.domain._replace(shown=shown)
    if checked.not_null:
        not_null = nodes.NullTest(value, is_null=False, is_row=False)
        yield DomainTest(attnum, name, None, not_null)
    for check in checked.checks:
        yield DomainTest(attnum, name, check.name, about_value(check.condition, value))


def _holds_for_all(array: nodes.Expr, condition: nodes.Expr) -> nodes.Expr:
    """Return the condition that no element of an array violates `condition`.  In `condition`, the
    element is Param(0).
    """
    for node in nodes.walk(condition):
        has_operand = isinstance(node, nodes.CaseExpr) and node.arg is not None
        if has_operand or isinstance(node, nodes.ArrayCoerceExpr):
            raise FeatureNotSupported(
                "replication of arrays of a domain whose CHECK has CASE with a value, or casts"
                " arrays, is not supported"
            )
    results = nodes.ArrayCoerceExpr(array, condition, "_bool")
    args = (nodes.Const("bool", "f"), results)
    violates = nodes.ScalarArrayOpExpr(_BOOL_EQUAL, "=", "booleq", use_or=True, args=args)
    return nodes.BoolExpr("not", (violates,))


def _qualified_name(catalog: Catalog, type_: Type) -> str:
    """Return the name of a user-defined type with its schema, because apply has no search path."""
    schema = schema_names(catalog)[type_schema_oid(catalog, type_.name)]
    return quote_qualified_identifier(schema, type_.sql_name)
