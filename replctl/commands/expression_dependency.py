"""Find the objects whose expressions use an object: defaults, CHECKs, indexes and domains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.pg_domain import domain_bases, get_domain
from replctl.catalog.pg_type import type_oid
from replctl.catalog.relation_kind import TABLE_KINDS
from replctl.commands.ddl import Ddl
from replctl.commands.object_address import Kind, Object
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes


def users_in_expressions(
    ddl: Ddl, is_use: Callable[[nodes.Node], bool], own_types: Collection[str | None] = ()
) -> Iterator[Object]:
    """Yield the objects whose expressions contain a matching node.

    Args:
        own_types: leave out objects that depend on columns of these types.  They are dropped with
            the columns.

    Raises:
        FeatureNotSupported: the CHECK of a domain has a matching node.
    """

    def uses(expr: nodes.Expr | None) -> bool:
        return expr is not None and any(map(is_use, nodes.walk(expr)))

    for relation in all_tables(ddl):
        own = {c.attnum for c in relation.columns if c.declared_type in own_types}
        for column in relation.columns:
            is_own = column.attnum in own or _reads(column.default, own)
            if not is_own and uses(column.default):
                kind: Kind = "column" if column.generated else "default"
                yield Object(kind, relation.oid, column.attnum)
        for constraint in relation.checks():
            if uses(constraint.check) and not _reads(constraint.check, own):
                yield Object("constraint", constraint.oid)
        yield from _indexes(relation, uses, own)
    for name in domain_bases(ddl.catalog):
        domain = get_domain(ddl.catalog, name)
        if domain.base not in own_types and uses(domain.default):
            yield Object("type", type_oid(name))
        if domain.base not in own_types and any(uses(c.check) for c in domain.constraints):
            shown = ddl.environment.format_type(name)
            raise FeatureNotSupported(
                f"dropping an object that a CHECK of domain {shown} uses is not supported"
            )


def all_tables(ddl: Ddl) -> Collection[Relation]:
    """Return the tables of the database, which are cached until the transaction writes."""
    catalog = ddl.catalog
    return catalog.cached(
        ("all tables",),
        lambda: load_relations(catalog, relation_oids(catalog, TABLE_KINDS)).values(),
    )


def _indexes(
    relation: Relation, uses: Callable[[nodes.Expr | None], bool], own: Collection[int]
) -> Iterator[Object]:
    for index in relation.indexes:
        exprs = [*index.exprs, index.predicate]
        if any(map(uses, exprs)) and not any(_reads(expr, own) for expr in exprs):
            yield Object("index", index.oid)


def _reads(expr: nodes.Expr | None, attnums: Collection[int]) -> bool:
    found = () if expr is None else nodes.walk(expr)
    return any(isinstance(node, nodes.Var) and node.attnum in attnums for node in found)
