"""Enums in queries: engines store their labels as text, and the catalog defines the labels' order.

m < 'ok'         becomes  array_position('{sad,ok,happy}', m::text) < 2
m = 'ok'         becomes  m::text = 'ok'
max(m)           becomes  ('{sad,ok,happy}'::text[])[max(array_position(...))]
ORDER BY m       becomes  ORDER BY array_position(...)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.types import builtin, text

_ARRAY_POSITION = 3277
_TEXTEQ = 98  # the operator text = text
_SUPPORT_FUNCTIONS = (3528, 3529, 3530, 3531)  # enum_first, enum_last, enum_range (two and one)
#: The operators of comparisons of enums, by their names in pg_proc.
_COMPARISONS = {
    "enum_eq": "=", "enum_ne": "<>", "enum_lt": "<", "enum_le": "<=", "enum_gt": ">",
    "enum_ge": ">=",
}  # fmt: skip
_Inner: TypeAlias = Callable[[Any], Any]
_TEXTS = ("text", "varchar", "bpchar", "name")


#: nodes.transform or query.tree.transform: returns a copy of an expression or a query in which a
#: function has replaced nodes.
Transform: TypeAlias = Callable[[Any, Callable[[Any], Any]], Any]


def with_enum_order(
    environment: Environment, part: Any, transform: Transform = nodes.transform
) -> Any:
    """Return an expression or a query that compares and sorts enums by the order of their labels.

    Raises:
        FeatureNotSupported: the expression uses an enum's order in another way.
        ObjectNotInPrerequisiteState: it uses the first or last value of an enum without values.
    """

    def inner(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(inner, part))
        return transform(part, partial(_replaced, environment, inner))

    return inner(part)


def sorted_by_order(environment: Environment, key: nodes.SortKey) -> nodes.SortKey:
    """Return an item of ORDER BY that sorts an enum by the order of its labels."""
    if not _is_enum(environment, key.expr.type):
        return key
    return replace(key, expr=_position(environment, key.expr))


def _is_enum(environment: Environment, type_: str) -> bool:
    return not environment.type(type_).is_builtin and environment.type(type_).kind == "e"


def _is_enum_array(environment: Environment, type_: str) -> bool:
    found = environment.type(type_)
    element = None if found.is_builtin else found.element
    return element is not None and _is_enum(environment, element)


def _replaced(environment: Environment, inner: _Inner, node: Any) -> Any:
    """Return the replacement of a node, or None to keep it; `inner` replaces nodes in its parts."""
    match node:
        case nodes.Const() | nodes.ArrayExpr() if _is_enum_array(environment, node.type):
            return _labels_of(node, inner)
        case nodes.Aggref(name="array_agg", args=(arg,)) if _is_enum(environment, arg.type):
            condition = None if node.filter is None else inner(node.filter)
            keys = inner(node.order_by)
            labels = (_label(inner(arg)),)
            return replace(node, type="_text", args=labels, order_by=keys, filter=condition)
        case nodes.OpExpr(function=function, args=(left, right)) if function in _COMPARISONS:
            return _comparison(environment, _COMPARISONS[function], inner(left), inner(right))
        case nodes.DistinctExpr(function="enum_eq", args=(left, right)):
            pair = _label(inner(left)), _label(inner(right))
            return replace(node, operator_oid=_TEXTEQ, function="texteq", args=pair)
        case nodes.NullIfExpr(function="enum_eq", args=(left, right)):
            pair = _label(inner(left)), _label(inner(right))
            found = replace(node, operator_oid=_TEXTEQ, function="texteq", type="text", args=pair)
            return nodes.RelabelType(found, node.type)
        case nodes.ScalarArrayOpExpr(function="enum_eq" | "enum_ne", args=(left, right)):
            operator = _operator(node.name, "text")
            pair = _label(inner(left)), inner(right)
            name = builtin.function_by_oid()[operator.function_oid].source
            return replace(node, operator_oid=operator.oid, function=name, args=pair)
        case nodes.RowCompareExpr(functions=functions) if _COMPARISONS.keys() & set(functions):
            return _row_comparison(environment, node, inner)
        case nodes.MinMaxExpr(args=args) if _is_enum(environment, node.type):
            positions = tuple(_position(environment, inner(arg)) for arg in args)
            return _at(environment, node.type, replace(node, type="int4", args=positions))
        case nodes.Aggref(name="min" | "max", args=(arg,)) if _is_enum(environment, arg.type):
            return _extreme(environment, node, inner)
        case nodes.SortKey() if _is_enum(environment, node.expr.type):
            return sorted_by_order(environment, replace(node, expr=inner(node.expr)))
        case nodes.CoerceViaIO(arg=arg) if _is_enum(environment, arg.type):
            label = _label(inner(arg))
            as_text = nodes.RelabelType(label, node.type, collation=node.collation)
            return as_text if node.type in _TEXTS[:2] else replace(node, arg=label)
        case nodes.FuncExpr(function_oid=oid, args=args) if oid in _SUPPORT_FUNCTIONS:
            return _support_function(environment, node, args)
    return None


def _comparison(
    environment: Environment, name: str, left: nodes.Expr, right: nodes.Expr
) -> nodes.Expr:
    if name in ("=", "<>"):
        operator, args = _operator(name, "text"), (_label(left), _label(right))
    else:
        operator = _operator(name, "int4")
        args = (_position(environment, left), _position(environment, right))
    source = builtin.function_by_oid()[operator.function_oid].source
    return nodes.OpExpr(operator.oid, name, source, "bool", args, input_collation="default")


def _row_comparison(
    environment: Environment, row: nodes.RowCompareExpr, inner: _Inner
) -> nodes.Expr:
    """Return `(m, a) < (...)` with positions instead of enums."""
    columns = []
    operators = zip(row.operator_oids, row.functions, row.left, row.right, strict=True)
    for oid, function, left, right in operators:
        left, right = inner(left), inner(right)
        if function in _COMPARISONS:
            operator = _operator(_COMPARISONS[function], "int4")
            source = builtin.function_by_oid()[operator.function_oid].source
            pair = _position(environment, left), _position(environment, right)
            columns.append((operator.oid, source, *pair))
        else:
            columns.append((oid, function, left, right))
    oids, functions, lefts, rights = zip(*columns, strict=True)
    return replace(row, operator_oids=oids, functions=functions, left=lefts, right=rights)


def _extreme(environment: Environment, call: nodes.Aggref, inner: _Inner) -> nodes.Expr:
    """Return min() or max() of an enum as the label at the lowest or highest position."""
    of_integers = next(
        function.oid
        for function in builtin.functions()[call.name]
        if function.argument_types == ("int4",)
    )
    position = _position(environment, inner(call.args[0]))
    condition = None if call.filter is None else inner(call.filter)
    chosen = replace(
        call, function_oid=of_integers, type="int4", args=(position,), filter=condition
    )
    return _at(environment, call.args[0].type, chosen)


def _support_function(
    environment: Environment, call: nodes.FuncExpr, args: tuple[nodes.Expr, ...]
) -> nodes.Expr:
    """Return enum_first(), enum_last() or enum_range() as a constant; it depends only on the
    type.
    """
    enum = next((arg.type for arg in args if _is_enum(environment, arg.type)), None)
    if enum is None or len(args) != 1:
        raise FeatureNotSupported(f"{call.name}() with two arguments is not supported")
    labels = environment.enum_labels(environment.type(enum))
    used = {"enum_first": labels[:1], "enum_last": labels[-1:]}.get(call.name, labels)
    environment.check_enum_labels(environment.type(enum), used)
    if call.name == "enum_range":
        return nodes.Const(call.type, text.render("_text", list(labels)))
    if not labels:
        raise ObjectNotInPrerequisiteState(
            f"enum {environment.format_type(enum)} contains no values"
        )
    return nodes.Const(enum, labels[0 if call.name == "enum_first" else -1])


def _label(expr: nodes.Expr) -> nodes.Expr:
    """Return an enum's value as text."""
    if isinstance(expr, nodes.Const):
        return nodes.Const("text", expr.value, collation="default")
    return nodes.RelabelType(expr, "text", collation="default")


def _labels_of(array: nodes.Const | nodes.ArrayExpr, inner: _Inner) -> nodes.Expr:
    """Return an array of an enum as an array of text."""
    if isinstance(array, nodes.Const):
        return nodes.Const("_text", array.value, collation="default")
    labels = tuple(_label(inner(element)) for element in array.elements)
    return nodes.ArrayExpr("_text", "text", labels, array.is_multidimensional, collation="default")


def _position(environment: Environment, expr: nodes.Expr) -> nodes.Expr:
    """Return the position of a value among its enum's labels, from 1."""
    args = (_labels(environment, expr.type), _label(expr))
    return nodes.FuncExpr(
        _ARRAY_POSITION, "array_position", "int4", args, input_collation="default"
    )


def _at(environment: Environment, enum: str, position: nodes.Expr) -> nodes.Expr:
    """Return the label of an enum at a position."""
    labels = _labels(environment, enum)
    chosen = nodes.SubscriptingRef(labels, "text", (position,), collation="default")
    return nodes.RelabelType(chosen, enum)


def _labels(environment: Environment, enum: str) -> nodes.Const:
    labels = environment.enum_labels(environment.type(enum))
    return nodes.Const("_text", text.render("_text", list(labels)), collation="default")


def _operator(name: str, type_: str) -> builtin.Operator:
    return next(o for o in builtin.operators()[name] if (o.left, o.right) == (type_, type_))
