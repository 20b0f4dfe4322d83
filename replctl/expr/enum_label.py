"""Build the expressions that replace enums: their labels as text, and the positions of labels."""

from __future__ import annotations

from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.types import builtin, text
from replctl.types.type_kind import TypeKind

_ARRAY_POSITION = 3277
_TEXTS, _POSITIONS = "_text", "_int4"
#: An element of an array of texts, in the expression of an ArrayCoerceExpr.
ITEM = nodes.Param(0, "text", collation="default")


def is_enum(environment: Environment, type_: str) -> bool:
    """Return whether a type is an enum."""
    found = environment.type(type_)
    return not found.is_builtin and found.kind == TypeKind.ENUM


def is_enum_array(environment: Environment, type_: str) -> bool:
    """Return whether a type is an array of an enum."""
    found = environment.type(type_)
    element = None if found.is_builtin else found.element
    return element is not None and is_enum(environment, element)


def label(expr: nodes.Expr) -> nodes.Expr:
    """Return an enum's value as text."""
    return _relabelled(expr, "text")


def labels(expr: nodes.Expr) -> nodes.Expr:
    """Return an array of an enum as an array of text."""
    return _relabelled(expr, _TEXTS)


def position(environment: Environment, enum: str, value: nodes.Expr) -> nodes.Expr:
    """Return the position of a value among its enum's labels, from 1."""
    args = (all_labels(environment, enum), label(value))
    return nodes.FuncExpr(
        _ARRAY_POSITION, "array_position", "int4", args, input_collation="default"
    )


def positions(environment: Environment, array: str, value: nodes.Expr) -> nodes.Expr:
    """Return the positions of the elements of an array of an enum."""
    found = position(environment, element_of(environment, array), ITEM)
    return nodes.ArrayCoerceExpr(labels(value), found, _POSITIONS)


def label_at(environment: Environment, enum: str, place: nodes.Expr) -> nodes.Expr:
    """Return the label of an enum at a position, as text."""
    known = all_labels(environment, enum)
    return nodes.SubscriptingRef(known, "text", (place,), collation="default")


def labels_at(environment: Environment, array: str, places: nodes.Expr) -> nodes.Expr:
    """Return the labels at the positions in an array."""
    found = label_at(environment, element_of(environment, array), nodes.Param(0, "int4"))
    return nodes.ArrayCoerceExpr(places, found, _TEXTS, collation="default")


def all_labels(environment: Environment, enum: str) -> nodes.Const:
    """Return the labels of an enum as an array of text."""
    known = environment.enum_labels(environment.type(enum))
    return nodes.Const(_TEXTS, text.render(_TEXTS, list(known)), collation="default")


def operator(name: str, type_: str) -> builtin.Operator:
    """Return the operator of that name that compares two values of a built-in type."""
    return next(o for o in builtin.operators()[name] if (o.left, o.right) == (type_, type_))


def source_of(found: builtin.Operator) -> str:
    """Return the name of an operator's implementation."""
    return builtin.function_by_oid()[found.function_oid].source


def _relabelled(expr: nodes.Expr, type_: str) -> nodes.Expr:
    if isinstance(expr, nodes.Const):
        return nodes.Const(type_, expr.value, collation="default")
    if expr.type == type_ and nodes.collation(expr) == "default":
        return expr
    return nodes.RelabelType(expr, type_, collation="default")


def element_of(environment: Environment, array: str) -> str:
    """Return the enum of the elements of an array."""
    element = environment.type(array).element
    assert element is not None
    return element
