"""Analyse ORDER BY items, and find the operators for sorting and equality: PostgreSQL's
addTargetToSortList() in parse_clause.c and get_sort_group_operators() in parse_oper.c.
"""

from __future__ import annotations

from collections.abc import Callable

from replctl.errors import UndefinedFunction, WrongObjectType
from replctl.expr import nodes
from replctl.expr.cast_path import UNKNOWN, CastContext, CastPaths
from replctl.expr.coerce import IMPLICIT, Coercion
from replctl.expr.error_location import expr_location, raw_location
from replctl.expr.operators import find_operator
from replctl.parser import ast
from replctl.types.builtin import Type

_HINT = "Use an explicit ordering operator or modify the query."


def sort_key(coercion: Coercion, expr: nodes.Expr, raw: ast.SortBy) -> nodes.SortKey:
    """Return an ORDER BY item for the analysed expression `expr`.

    Raises:
        UndefinedFunction: the expression's type has no order.
        WrongObjectType: the operator after USING does not sort.
    """
    expr = known_type(coercion, expr)
    descending = raw.direction == "desc"
    using = None
    if raw.using:
        operator = find_operator(coercion, raw.using, expr.type, expr.type)
        if operator.name not in ("<", ">", "~<~", "~>~") or not is_sortable(coercion, expr.type):
            raise WrongObjectType(
                f"operator {'.'.join(raw.using)} is not a valid ordering operator",
                hint='Ordering operators must be "<" or ">" members of btree operator families.',
                position=raw.pos,
            )
        descending = ">" in operator.name
        using = operator.name if operator.name.startswith("~") else None
    elif not is_sortable(coercion, expr.type):
        raise UndefinedFunction(
            f"could not identify an ordering operator for type {coercion.types.format(expr.type)}",
            hint=_HINT,
            position=raw_location(raw.expr),
        )
    nulls_first = descending if raw.nulls == "default" else raw.nulls == "first"
    return nodes.SortKey(expr, descending, nulls_first, using, pos=raw.pos)


def known_type(coercion: Coercion, expr: nodes.Expr) -> nodes.Expr:
    """Return `expr`; a literal whose type is unknown becomes text."""
    if expr.type != UNKNOWN:
        return expr
    return coercion.to_type(expr, "text", -1, IMPLICIT)


def check_equality(coercion: Coercion, expr: nodes.Expr, raw: ast.RawExpr | None = None) -> None:
    """Check that values of an expression's type can be sorted or hashed.

    Args:
        raw: the item of the clause, which errors show.  It may be the name or number of `expr`.

    Raises:
        UndefinedFunction: values of its type can neither be sorted nor hashed.
    """
    if not is_hashable(coercion, expr.type) and not is_sortable(coercion, expr.type):
        raise UndefinedFunction(
            f"could not identify an equality operator for type {coercion.types.format(expr.type)}",
            position=expr_location(expr) if raw is None else raw_location(raw),
        )


def is_sortable(paths: CastPaths, type_: str) -> bool:
    """Return whether the type has a btree operator class."""
    return _supports(paths, type_, lambda found: found.has_btree)


def is_hashable(paths: CastPaths, type_: str) -> bool:
    """Return whether the type has a hash operator class."""
    return _supports(paths, type_, lambda found: found.has_hash)


def _supports(paths: CastPaths, name: str, has_class: Callable[[Type], bool]) -> bool:
    """Return whether a type has an operator class: its own, that of its elements or columns, or
    that of a binary-compatible type.
    """
    type_ = paths.types.get(paths.types.base(name))
    columns = paths.types.columns(name)
    if columns is not None:
        return all(_supports(paths, column.type, has_class) for column in columns)
    element = paths.types.element(type_.name)
    if element is not None:
        return _supports(paths, element, has_class)
    if has_class(type_) or type_.kind.has_operator_classes:
        return True
    return any(has_class(paths.types.get(target)) for target in _stored_like(paths, type_.name))


def _stored_like(paths: CastPaths, name: str) -> list[str]:
    """Return the types to which a type is binary-compatible: text for varchar, inet for cidr, oid
    for regclass.
    """
    return [
        target
        for target in ("text", "inet", "oid", "bit", "varbit")
        if (path := paths.path(target, name, CastContext.IMPLICIT)) and path.kind == "relabel"
    ]
