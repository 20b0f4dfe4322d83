"""Arrays of enums in queries: engines store them as arrays of text.

a @> '{ok}'      stays     a @> '{ok}', with arrays of text
a || 'ok'        becomes   a || 'ok'::text
a < '{ok}'       becomes   array of positions < '{2}'
'ok' < ANY (a)   becomes   2 < ANY (array of positions)
ORDER BY a       becomes   ORDER BY array of positions
t::mood[]        becomes   t::text[], with an error for an element that is not a label
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.enum_label import (
    ITEM,
    element_of,
    is_enum,
    is_enum_array,
    label,
    labels,
    labels_at,
    operator,
    position,
    positions,
    source_of,
)
from replctl.expr.environment import Environment

#: Functions that compare two arrays by the order of their elements, by their names in pg_proc.
_ORDERED = frozenset(("array_lt", "array_le", "array_gt", "array_ge", "btarraycmp"))
_HASHED = ("hash_array", "hash_array_extended")
_CALLS = (
    nodes.FuncExpr | nodes.OpExpr | nodes.Aggref | nodes.WindowFunc
    | nodes.DistinctExpr | nodes.NullIfExpr | nodes.ScalarArrayOpExpr
)  # fmt: skip
#: Returns an expression, or expressions, in which nodes have been replaced.
Inner: TypeAlias = Callable[[Any], Any]


def without_enum_array(environment: Environment, inner: Inner, node: Any) -> Any:
    """Return the replacement of a node over arrays of an enum; None for other nodes.

    Args:
        inner: replaces nodes in the parts of the node.

    Raises:
        FeatureNotSupported: the node hashes an array.
    """
    if isinstance(node, _CALLS):
        found = _call(environment, inner, node)
        if found is not None:
            return found
    match node:
        case nodes.SortKey() if _is_array(environment, node.expr):
            return replace(node, expr=ordered(environment, inner, node.expr))
        case nodes.MinMaxExpr(args=args) if _is_array(environment, node):
            places = tuple(ordered(environment, inner, arg) for arg in args)
            return labels_at(environment, node.type, replace(node, type="_int4", args=places))
        case nodes.SubscriptingRef(arg=arg, lower=None) if _is_array(environment, arg):
            item = replace(node, type="text", collation="default", **parts(inner, node))
            return nodes.RelabelType(item, node.type)
        case nodes.CoerceViaIO(arg=arg) if _is_array(environment, node):
            read = nodes.CoerceViaIO(inner(arg), "_text", collation="default")
            cast = nodes.CoerceViaIO(ITEM, element_of(environment, node.type))
            return nodes.ArrayCoerceExpr(read, label(inner(cast)), "_text", collation="default")
        case nodes.ArrayCoerceExpr(arg=arg, element=checked) if _is_array(environment, node):
            whole, checked = inner(arg), label(inner(checked))
            return replace(node, arg=whole, element=checked, type="_text", collation="default")
        case nodes.Const() if _is_array(environment, node):
            return labels(node)
        case nodes.ArrayExpr(elements=elements) if _is_array(environment, node):
            texts = tuple(_as_text(environment, inner, item) for item in elements)
            element = "_text" if node.is_multidimensional else "text"
            changed = replace(node, element_type=element, elements=texts)
            return replace(changed, type="_text", collation="default")
    if not _is_array(environment, node):
        return None
    changes = {"collation": "default"} if hasattr(node, "collation") else {}
    return inner(replace(node, type="_text", **changes))


def _call(environment: Environment, inner: Inner, node: Any) -> Any:
    """Return the replacement of a call or an operator whose arguments or result are such arrays."""
    arrays = [arg for arg in node.args if _is_array(environment, arg)]
    if not arrays and not _is_array(environment, node):
        return None
    name = node.function if isinstance(node, nodes.OpExpr) else getattr(node, "name", "")
    if isinstance(node, nodes.ScalarArrayOpExpr):
        return _any(environment, inner, node)
    if name in _HASHED:
        raise FeatureNotSupported(f"{name}() of an array of an enum is not supported")
    if name == "pg_typeof" and isinstance(arrays[0], nodes.Var | nodes.Const):
        return nodes.Const("regtype", str(environment.type(arrays[0].type).oid))
    if name == "pg_typeof":
        return replace(node, args=(nodes.RelabelType(inner(arrays[0]), arrays[0].type),))
    changes = parts(inner, node)
    if name in _ORDERED or name == "width_bucket":
        return replace(node, args=tuple(ordered(environment, inner, arg) for arg in node.args))
    if name in ("min", "max", "array_larger", "array_smaller"):
        places = tuple(ordered(environment, inner, arg) for arg in node.args)
        chosen = replace(node, **{**changes, "type": "_int4", "args": places})
        return labels_at(environment, node.type, chosen)
    changes["args"] = tuple(_as_text(environment, inner, arg) for arg in node.args)
    if _is_array(environment, node):
        return replace(node, **{**changes, "type": "_text", "collation": "default"})
    if not is_enum(environment, node.type):
        return replace(node, **changes)
    item = replace(node, **{**changes, "type": "text", "collation": "default"})
    return item if getattr(node, "returns_set", False) else nodes.RelabelType(item, node.type)


def _any(environment: Environment, inner: Inner, node: nodes.ScalarArrayOpExpr) -> nodes.Expr:
    """Return `value operator ANY (array)` over texts, or over positions if the order matters."""
    left, right = node.args
    if node.name in ("=", "<>"):
        pair, type_ = (label(inner(left)), labels(inner(right))), "text"
    else:
        pair = ordered(environment, inner, left), ordered(environment, inner, right)
        type_ = "int4"
    found = operator(node.name, type_)
    return replace(node, operator_oid=found.oid, function=source_of(found), args=pair)


def ordered(environment: Environment, inner: Inner, value: nodes.Expr) -> nodes.Expr:
    """Return a value that compares like `value`: for an enum the position of its label, for an
    array of an enum the array of positions, for other types the value itself.
    """
    plain: nodes.Expr = inner(value)
    if is_enum(environment, value.type):
        return position(environment, value.type, plain)
    return positions(environment, value.type, plain) if _is_array(environment, value) else plain


def _as_text(environment: Environment, inner: Inner, value: nodes.Expr) -> nodes.Expr:
    plain: nodes.Expr = inner(value)
    return label(plain) if is_enum(environment, value.type) else plain


def parts(inner: Inner, node: Any) -> dict[str, Any]:
    """Return the replaced expressions directly under a node, by their fields."""
    values = {name: getattr(node, name) for name in nodes.field_names(node)}
    return {
        name: inner(value)
        for name, value in values.items()
        if isinstance(value, nodes.Node)
        or (isinstance(value, tuple) and all(isinstance(v, nodes.Node) for v in value))
    }


def _is_array(environment: Environment, node: Any) -> bool:
    type_ = getattr(node, "type", "")
    return type_.startswith("@") and is_enum_array(environment, type_)
