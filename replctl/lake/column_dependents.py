"""Find out if something in the catalog depends on a column of an adopted table.  If so, replctl
does not follow the owner's changes to this column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_policy import list_policies
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
    if relation.parents or children_of(catalog, relation.oid):
        return True
    if _is_stored(catalog, relation, attnum):
        return True
    if any(0 in i.key or i.predicate is not None for i in relation.indexes):
        return True
    used = chain.from_iterable(map(nodes.walk, _expressions(catalog, relation)))
    return any(isinstance(node, nodes.Var) and node.attnum in (attnum, 0) for node in used)


def _is_stored(catalog: Catalog, relation: Relation, attnum: int) -> bool:
    """Return whether a view or a policy may read a column: it reads the relation, and has a column
    with this number, or a whole row.
    """
    named = f'{{"oid":{relation.oid}}}'  # how query.stored writes a relation
    readers = [text for text in view_rules(catalog).values() if named in text]
    for policy in list_policies(catalog):
        parts = [part for part in (policy.using, policy.check) if part is not None]
        if policy.relid == relation.oid or any(named in part for part in parts):
            readers += parts
    variables = (node for text in readers for node in _objects(json.loads(text)))
    return any(node.get("node") == "Var" and node["attnum"] in (attnum, 0) for node in variables)


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a JSON document."""
    parts: Any = tree if isinstance(tree, list) else ()
    if isinstance(tree, dict):
        yield tree
        parts = tree.values()
    for part in parts:
        yield from _objects(part)


def _expressions(catalog: Catalog, relation: Relation) -> Iterator[nodes.Expr]:
    """Yield the expressions over a relation's columns."""
    parts = [check.check for check in relation.checks()]
    parts += [column.default for column in relation.columns]
    parts += [m.row_filter for m in published_tables(catalog, relids=[relation.oid])]
    return (part for part in parts if part is not None)
