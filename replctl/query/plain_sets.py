"""Replace some set-returning calls by calls of functions that the engines have.

regexp_split_to_table(a, b)  becomes  unnest(regexp_split_to_array(a, b))
string_to_table(a, b)        becomes  unnest(string_to_array(a, b))
generate_subscripts(a, 1)    becomes  generate_series(array_lower(a, 1), array_upper(a, 1))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replctl.expr import nodes
from replctl.query.tree import Query, transform
from replctl.types import builtin

_UNNEST, _SERIES = 2331, 1067
_LOWER, _UPPER = 2091, 2092
_SUBSCRIPTS = 1192
#: Functions that return a set, and those that return the set as an array (OIDs in pg_proc).
_ARRAYS = {2765: 2767, 2766: 2768, 6160: 394, 6161: 376}


def with_plain_sets(query: Query) -> Query:
    """Return a query that calls set-returning functions of the engines."""
    result: Query = transform(query, _replaced)
    return result


def _replaced(node: Any) -> Any:
    if not isinstance(node, nodes.FuncExpr):
        return None
    if node.function_oid in _ARRAYS:
        array = _called(node, _ARRAYS[node.function_oid], "_text")
        return replace(_called(node, _UNNEST, node.type), args=(array,), returns_set=True)
    if node.function_oid == _SUBSCRIPTS:
        bounds = _called(node, _LOWER, "int4"), _called(node, _UPPER, "int4")
        return replace(_called(node, _SERIES, "int4"), args=bounds, returns_set=True)
    return None


def _called(call: nodes.FuncExpr, oid: int, type_: str) -> nodes.FuncExpr:
    """Return `call` with another function, which gets the same arguments."""
    name = builtin.function_by_oid()[oid].name
    return replace(call, function_oid=oid, name=name, type=type_, returns_set=False)
