"""The stored form of typed expressions (pg_node_tree): JSON, an object for each node."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from replctl.expr import nodes
from replctl.relation_name import DomainName


def dumps(expr: nodes.Expr) -> str:
    """Return the stored form of an expression."""
    return json.dumps(_encode(expr), ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> nodes.Expr:
    """Return the expression that `dumps` wrote."""
    return _decode(json.loads(text))  # type: ignore[no-any-return]


def _encode(value: Any) -> Any:
    if isinstance(value, nodes.Node):
        body = {
            item.name: _encode(getattr(value, item.name))
            for item in dataclasses.fields(value)
            if item.name != "pos" and getattr(value, item.name) != item.default
        }
        return {"node": type(value).__name__, **body}
    if isinstance(value, DomainName):
        return {"node": DomainName.__name__, **value._asdict()}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        is_domain = value["node"] == DomainName.__name__
        node_class: Any = DomainName if is_domain else getattr(nodes, value["node"])
        return node_class(**{key: _decode(item) for key, item in value.items() if key != "node"})
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    return value
