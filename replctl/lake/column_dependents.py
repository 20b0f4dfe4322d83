"""Find out if something in the catalog depends on a column of an adopted table.  If so, replctl
does not follow the owner's changes to this column.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_policy import policies_of
from replctl.catalog.pg_publication import published_tables
from replctl.catalog.pg_rewrite import view_rules
from replctl.catalog.pg_subscription import subscriptions_of_relation
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes


def has_type_dependents(catalog: Catalog, relation: Relation, attnum: int) -> bool:
    """Return whether something may depend on a column's type, like alter_type._check_unused."""
    column = relation.column_at(attnum)
    return (
        _has_dependents(catalog, relation, attnum)
        or bool(relation.foreign_keys() or column.identity)
        or column.default is not None
    )


def has_dependents(catalog: Catalog, relation: Relation, attnum: int) -> bool:
    """Return whether something may depend on a column: a key, an index, a publication's row filter
    or column list, or a subscription that writes it.  The column's own constant default does not
    count.
    """
    column = relation.column_at(attnum)
    default = () if column.default is None else nodes.walk(column.default)
    return (
        len(relation.columns) == 1
        or bool(column.identity)
        or any(isinstance(node, nodes.FuncExpr) for node in default)
        or any(attnum in (*index.key, *index.including) for index in relation.indexes)
        or any(attnum in constraint.columns for constraint in relation.constraints)
        or bool(subscriptions_of_relation(catalog, relation.oid))
        or any(
            attnum in (table.columns or ())
            for table in published_tables(catalog, relids=[relation.oid])
        )
        or _has_dependents(catalog, relation, attnum)
    )


def _has_dependents(catalog: Catalog, relation: Relation, attnum: int) -> bool:
    if relation.parents or children_of(catalog, relation.oid) or policies_of(catalog, relation.oid):
        return True
    if any(str(relation.oid) in text for text in view_rules(catalog).values()):
        return True
    if any(0 in i.key or i.predicate is not None for i in relation.indexes):
        return True
    used = chain.from_iterable(map(nodes.walk, _expressions(catalog, relation)))
    return any(isinstance(node, nodes.Var) and node.attnum in (attnum, 0) for node in used)


def _expressions(catalog: Catalog, relation: Relation) -> Iterator[nodes.Expr]:
    """Yield the expressions over a relation's columns."""
    parts = [check.check for check in relation.checks()]
    parts += [column.default for column in relation.columns]
    parts += [m.row_filter for m in published_tables(catalog, relids=[relation.oid])]
    return (part for part in parts if part is not None)
