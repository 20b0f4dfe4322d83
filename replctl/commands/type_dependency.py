"""Find the objects that use a type, and protect the values of composite types in tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from replctl.catalog.pg_class import Column, Relation, load_relations, relation_oids
from replctl.catalog.pg_domain import domain_bases, get_domain
from replctl.catalog.pg_proc import list_functions
from replctl.catalog.pg_type import type_oid
from replctl.catalog.relation_kind import WITH_ROWS, RelKind
from replctl.commands.ddl import Ddl
from replctl.commands.expression_dependency import all_tables, users_in_expressions
from replctl.commands.named_dependency import users_with
from replctl.commands.object_address import Object, relation_object
from replctl.commands.view_dependency import policies_of_types, views_of_types
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.type_facts import TypeFacts


def users_of_types(ddl: Ddl, names: Collection[str]) -> Iterator[Object]:
    """Yield the objects that depend on one of these types."""
    for domain in domain_bases(ddl.catalog):
        if get_domain(ddl.catalog, domain).base in names:
            yield Object("type", type_oid(domain))
    for relation in (*all_tables(ddl), *_composites(ddl)):
        for column in relation.columns:
            if column.declared_type not in names or _is_key_above(ddl, relation, column.name):
                continue
            if _is_partition_key(relation, column.name):
                yield relation_object(relation)
            else:
                yield Object("column", relation.oid, column.attnum)
    yield from _users_in_expressions(ddl, names)
    for function in list_functions(ddl.catalog):
        if {function.result, *function.arguments}.intersection(names):
            yield Object("function", function.oid)


def _users_in_expressions(ddl: Ddl, names: Collection[str]) -> Iterator[Object]:
    yield from users_in_expressions(ddl, lambda node: getattr(node, "type", None) in names, names)
    for view in views_of_types(ddl.catalog, names):
        yield relation_object(ddl.relation(view))
    for policy in policies_of_types(ddl.catalog, names):
        yield Object("policy", policy)


def _composites(ddl: Ddl) -> Collection[Relation]:
    """Return the composite types that are not row types of tables."""
    kinds = [RelKind.COMPOSITE_TYPE]
    return load_relations(ddl.catalog, relation_oids(ddl.catalog, kinds)).values()


def _is_partition_key(relation: Relation, name: str) -> bool:
    """Return whether a column belongs to the partition key of a table.  If so, the table is dropped
    with the type of the column.
    """
    key = relation.partition_key
    return key is not None and any(
        attnum and relation.column_at(attnum).name == name for attnum in key.attnums
    )


def _is_key_above(ddl: Ddl, relation: Relation, name: str) -> bool:
    """Return whether the column belongs to the partition key of an ancestor.  If so, the partition
    is dropped with the ancestor.
    """
    parents = map(ddl.relation, relation.parents) if relation.is_partition else ()
    return any(
        _is_partition_key(parent, name) or _is_key_above(ddl, parent, name) for parent in parents
    )


# ---------------------------------------------------------------------------------------------
# Composite types


def columns_containing(ddl: Ddl, name: str) -> list[tuple[Relation, Column]]:
    """Return the columns of tables that store values of a type, alone or within other values, in
    the order in which PostgreSQL finds them (find_composite_type_dependencies).
    """
    oids = sorted(relation_oids(ddl.catalog, [*WITH_ROWS, RelKind.COMPOSITE_TYPE]))
    relations = load_relations(ddl.catalog, oids)
    domains = domain_bases(ddl.catalog)
    found: dict[tuple[int, int], tuple[Relation, Column]] = {}

    def find(type_: str) -> None:
        array = ddl.environment.type(type_).array
        if array is not None:
            find(array)
        for domain in domains:
            if get_domain(ddl.catalog, domain).base == type_:
                find(domain)
        for oid in oids:
            relation = relations[oid]
            for column in relation.columns:
                if column.declared_type != type_:
                    continue
                if relation.kind == RelKind.COMPOSITE_TYPE:
                    find(relation.row_type)
                else:
                    found.setdefault((oid, column.attnum), (relation, column))

    find(name)
    return list(found.values())


def check_no_column(ddl: Ddl, name: str) -> None:
    """Check that no table has values of a type.

    Raises:
        FeatureNotSupported: a column of a table uses the type.
    """
    for relation, column in columns_containing(ddl, name):
        raise FeatureNotSupported(
            f'cannot alter type "{ddl.environment.type(name).sql_name}" because column'
            f' "{relation.name}.{column.name}" uses it'
        )


def check_attributes_unused(ddl: Ddl, relation: Relation, dropped: Collection[Object] = ()) -> None:
    """Check that a composite type may get or lose an attribute.

    Args:
        dropped: objects that the statement drops.

    Raises:
        FeatureNotSupported: a table has values of the type, or an expression uses the type.
    """
    for table, column in columns_containing(ddl, relation.row_type):
        users = {Object("column", table.oid, column.attnum), relation_object(table)}
        if users.isdisjoint(dropped):
            used_by = f'column "{table.name}.{column.name}" uses it'
            raise _unchangeable(ddl, relation, used_by)
    if any(user not in dropped for user in _users_in_expressions(ddl, {relation.row_type})):
        raise _unchangeable(ddl, relation, "an expression uses it")


def check_no_fixed_rows(ddl: Ddl, relation: Relation, first: int) -> None:
    """Check that attributes of a composite type may change although expressions use the type.

    Args:
        first: the number of the first attribute whose number changes.

    Raises:
        FeatureNotSupported: an expression makes a row of the type or of a type that contains it, or
            uses an attribute from `first` on.
    """
    name, types = relation.row_type, TypeFacts(ddl.environment)

    def is_use(node: Any) -> bool:
        match node:
            case nodes.FieldSelect(arg=arg, field_number=number):
                return types.base(arg.type) == name and number >= first
            case nodes.RowExpr() | nodes.Const():
                return node.type.startswith("@") and name in types.contained(node.type)
        return False

    if any(users_with(ddl, is_use)):
        raise _unchangeable(ddl, relation, "an expression uses it")


def _unchangeable(ddl: Ddl, relation: Relation, why: str) -> FeatureNotSupported:
    shown = ddl.environment.format_type(relation.row_type)
    return FeatureNotSupported(
        f"changing the attributes of type {shown} is not supported because {why}"
    )
