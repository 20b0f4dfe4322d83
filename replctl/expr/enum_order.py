"""Enums in queries: engines store their labels as text, and the catalog defines the labels' order.

m < 'ok'         becomes  array_position('{sad,ok,happy}', m::text) < 2
m = 'ok'         becomes  m::text = 'ok'
m || 'x'         becomes  m::text || 'x'
t::mood          becomes  t, with an error if it is not a label
max(m)           becomes  ('{sad,ok,happy}'::text[])[max(array_position(...))]
array_agg(DISTINCT m)     the labels at the positions in array_agg(DISTINCT array_position(...))
ORDER BY m       becomes  ORDER BY array_position(...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeAlias

from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.expr import nodes
from replctl.expr.enum_array import Inner, ordered, parts, without_enum_array
from replctl.expr.enum_label import (
    is_enum,
    label,
    label_at,
    labels_at,
    operator,
    position,
    source_of,
)
from replctl.expr.environment import Environment
from replctl.types import builtin, text

_TEXTEQ = 98  # the operator text = text
_SUPPORT_FUNCTIONS = (3528, 3529, 3530, 3531)  # enum_first, enum_last, enum_range (two and one)
_BOUNDS = 2  # arguments of enum_range(first, last)
#: The operators of comparisons of enums, by their names in pg_proc.
_COMPARISONS = {
    "enum_eq": "=", "enum_ne": "<>", "enum_lt": "<", "enum_le": "<=", "enum_gt": ">",
    "enum_ge": ">=",
}  # fmt: skip
#: The functions that call others of enums' positions, by their names in pg_proc.
_OF_POSITIONS = {
    "enum_cmp": "btint4cmp", "enum_smaller": "int4smaller", "enum_larger": "int4larger",
}  # fmt: skip
#: PostgreSQL hashes the OID of a value, which differs between databases.
_HASHED = ("hashenum", "hashenumextended")
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
        ObjectNotInPrerequisiteState: the expression uses the first or last value of an enum
            without values.
    """

    def inner(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(inner, part))
        return transform(part, partial(_replaced, environment, inner))

    return inner(part)


def _replaced(environment: Environment, inner: Inner, node: Any) -> Any:
    """Return the replacement of a node, or None to keep it; `inner` replaces nodes in its parts."""
    match node:
        case nodes.OpExpr(function=function, args=(left, right)) if function in _COMPARISONS:
            return _comparison(environment, function, left.type, inner(left), inner(right))
        case nodes.OpExpr(function="textanycat" | "anytextcat", args=args):
            texts = (label(a) if is_enum(environment, a.type) else a for a in map(inner, args))
            return replace(node, args=tuple(texts))
        case nodes.FuncExpr(function_oid=oid, name=name, args=args) if oid in _comparing():
            return _compared(environment, name, args[0].type, tuple(map(inner, args)))
        case nodes.DistinctExpr(function="enum_eq", args=(left, right)):
            return _equal_labels(node, inner(left), inner(right))
        case nodes.NullIfExpr(function="enum_eq", args=(left, right)):
            found = _equal_labels(node, inner(left), inner(right))
            return nodes.RelabelType(replace(found, type="text"), node.type)
        case nodes.RowCompareExpr():
            return _row_comparison(environment, node, inner)
        case nodes.MinMaxExpr(args=args) if is_enum(environment, node.type):
            places = tuple(position(environment, node.type, inner(arg)) for arg in args)
            return _at(environment, node.type, replace(node, type="int4", args=places))
        case (
            nodes.Aggref(name="min" | "max", args=(arg,))
            | nodes.WindowFunc(name="min" | "max", args=(arg,))
        ) if is_enum(environment, arg.type):
            return _extreme(environment, node, inner)
        case nodes.Aggref(name="array_agg" | "count", is_distinct=True, args=(arg,)) if is_enum(
            environment, arg.type
        ):
            return _over_distinct(environment, node, inner)
        case nodes.SortKey() if is_enum(environment, node.expr.type):
            return replace(node, expr=position(environment, node.expr.type, inner(node.expr)))
        case nodes.CoerceViaIO(arg=arg) if is_enum(environment, arg.type):
            value = label(inner(arg))
            as_text = nodes.RelabelType(value, node.type, collation=node.collation)
            return as_text if node.type in _TEXTS[:2] else replace(node, arg=value)
        case nodes.CoerceViaIO(arg=arg) if is_enum(environment, node.type) and node.enum is None:
            labels = environment.enum_labels(environment.type(node.type))
            shown = environment.format_type(node.type), labels
            return replace(node, arg=inner(arg), enum=shown)
        case nodes.FuncExpr(function_oid=oid, args=args) if oid in _SUPPORT_FUNCTIONS:
            return _support_function(environment, node, args)
    return without_enum_array(environment, inner, node)


def _equal_labels(node: Any, left: nodes.Expr, right: nodes.Expr) -> Any:
    """Return a node that tells equal values from others, with the values' labels."""
    pair = label(left), label(right)
    return replace(node, operator_oid=_TEXTEQ, function="texteq", args=pair)


@cache
def _comparing() -> frozenset[int]:
    """Return the OIDs of the functions that compare or hash enums."""
    names = (*_COMPARISONS, *_OF_POSITIONS, *_HASHED)
    return frozenset(found.oid for name in names for found in builtin.functions()[name])


def _compared(
    environment: Environment, name: str, enum: str, args: tuple[nodes.Expr, ...]
) -> nodes.Expr:
    """Return the call of a function that compares enums, without enums."""
    if name in _HASHED:
        raise FeatureNotSupported(f"{name}() is not supported")
    if name in _COMPARISONS:
        return _comparison(environment, name, enum, *args)
    (function,) = builtin.functions()[_OF_POSITIONS[name]]
    places = tuple(position(environment, enum, arg) for arg in args)
    found = nodes.FuncExpr(function.oid, function.name, "int4", places)
    return found if name == "enum_cmp" else _at(environment, enum, found)


def _comparison(
    environment: Environment, function: str, enum: str, left: nodes.Expr, right: nodes.Expr
) -> nodes.Expr:
    name = _COMPARISONS[function]
    if name in ("=", "<>"):
        found, args = operator(name, "text"), (label(left), label(right))
    else:
        found = operator(name, "int4")
        args = position(environment, enum, left), position(environment, enum, right)
    return nodes.OpExpr(found.oid, name, source_of(found), "bool", args, input_collation="default")


def _row_comparison(
    environment: Environment, row: nodes.RowCompareExpr, inner: Inner
) -> nodes.Expr:
    """Return `(m, a) < (...)` with positions instead of enums."""
    columns = []
    operators = zip(row.operator_oids, row.functions, row.left, row.right, strict=True)
    for oid, function, left, right in operators:
        pair = ordered(environment, inner, left), ordered(environment, inner, right)
        if function in _COMPARISONS:
            found = operator(_COMPARISONS[function], "int4")
            columns.append((found.oid, source_of(found), *pair))
        else:
            columns.append((oid, function, *pair))
    oids, functions, lefts, rights = zip(*columns, strict=True)
    return replace(row, operator_oids=oids, functions=functions, left=lefts, right=rights)


def _extreme(
    environment: Environment, call: nodes.Aggref | nodes.WindowFunc, inner: Inner
) -> nodes.Expr:
    """Return min() or max() of an enum as the label at the lowest or highest position."""
    of_integers = next(
        function.oid
        for function in builtin.functions()[call.name]
        if function.argument_types == ("int4",)
    )
    enum = call.args[0].type
    place = position(environment, enum, inner(call.args[0]))
    changes = {**parts(inner, call), "args": (place,), "type": "int4", "function_oid": of_integers}
    return _at(environment, enum, replace(call, **changes))


def _over_distinct(environment: Environment, call: nodes.Aggref, inner: Inner) -> nodes.Expr:
    """Return count() or array_agg() of distinct enums as an aggregate of distinct positions. Such
    an aggregate sorts its values.
    """
    place = position(environment, call.args[0].type, inner(call.args[0]))
    changes = {**parts(inner, call), "args": (place,)}
    if call.name == "count":
        return replace(call, **changes)
    return labels_at(environment, call.type, replace(call, **{**changes, "type": "_int4"}))


def _at(environment: Environment, enum: str, place: nodes.Expr) -> nodes.Expr:
    """Return the label of an enum at a position."""
    return nodes.RelabelType(label_at(environment, enum, place), enum)


def _between(labels: tuple[str, ...], bounds: Sequence[nodes.Expr]) -> tuple[str, ...]:
    """Return the labels from the first bound to the last; NULL stands for an open end."""
    values = [bound.value for bound in bounds if isinstance(bound, nodes.Const)]
    if len(values) != _BOUNDS:
        raise FeatureNotSupported("enum_range() of values that are not constants is not supported")
    first, last = values
    start = 0 if first is None else labels.index(first)
    end = len(labels) if last is None else labels.index(last) + 1
    return labels[start:end]


def _support_function(
    environment: Environment, call: nodes.FuncExpr, args: tuple[nodes.Expr, ...]
) -> nodes.Expr:
    """Return enum_first(), enum_last() or enum_range() as a constant.

    Raises:
        FeatureNotSupported: an end of enum_range() is not a constant.
    """
    enum = next((arg.type for arg in args if is_enum(environment, arg.type)), None)
    if enum is None:
        raise FeatureNotSupported(f"{call.name}() of this type is not supported")
    labels = environment.enum_labels(environment.type(enum))
    used = {"enum_first": labels[:1], "enum_last": labels[-1:]}.get(call.name, labels)
    if len(args) == _BOUNDS:
        used = _between(labels, args)
    environment.check_enum_labels(environment.type(enum), used)
    if call.name == "enum_range":
        return nodes.Const("_text", text.render("_text", list(used)), collation="default")
    if not labels:
        raise ObjectNotInPrerequisiteState(
            f"enum {environment.format_type(enum)} contains no values"
        )
    return nodes.Const(enum, labels[0 if call.name == "enum_first" else -1])
