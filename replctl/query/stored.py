"""Store query trees (pg_rewrite.ev_action) and expressions with subqueries as JSON: an object for
each node.

A relation is stored as its OID, so that readers of the tree get the relation's current definition.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.transaction import Catalog
from replctl.errors import InternalError
from replctl.expr import nodes
from replctl.query import tree
from replctl.types.builtin import SystemRelation, system_relations_by_oid

_CLASSES: dict[str, Any] = {
    item.__name__: item
    for module in (nodes, tree)
    for item in vars(module).values()
    if isinstance(item, type) and dataclasses.is_dataclass(item)
}


def dumps(tree_: tree.Query | nodes.Expr) -> str:
    """Return a query tree, or an expression, as JSON text."""
    return json.dumps(_encode(tree_), ensure_ascii=False, separators=(",", ":"))


def loads(catalog: Catalog, text: str) -> tree.Query:
    """Return the query tree that `dumps` wrote."""
    found: tree.Query = _decode(catalog, json.loads(text))
    return found


def expression(catalog: Catalog, text: str) -> nodes.Expr:
    """Return the expression that `dumps` wrote."""
    found: nodes.Expr = _decode(catalog, json.loads(text))
    return found


def _encode(value: Any) -> Any:
    if isinstance(value, Relation | SystemRelation):
        return {"oid": value.oid}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    body = {
        field.name: _encode(content)
        for field in dataclasses.fields(value)
        if field.name != "pos" and (content := getattr(value, field.name)) != field.default
    }
    return {"node": type(value).__name__, **body}


def _decode(catalog: Catalog, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(catalog, item) for item in value)
    if not isinstance(value, dict):
        return value
    if "node" not in value:
        return _relation(catalog, int(value["oid"]))
    fields = {name: _decode(catalog, item) for name, item in value.items() if name != "node"}
    return _CLASSES[value["node"]](**fields)


def _relation(catalog: Catalog, oid: int) -> Relation | SystemRelation:
    found = system_relations_by_oid().get(oid) or get_relation(catalog, oid)
    if found is None:
        raise InternalError(f"could not open relation with OID {oid}")
    return found
