"""Analyse subscripts: `a[1]`, `a[1:2]`, `jb['k']` (PostgreSQL's transformContainerSubscripts() in
parse_node.c, arraysubs.c and jsonbsubs.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.errors import DatatypeMismatch, ProgramLimitExceeded
from replctl.expr import nodes
from replctl.expr.cast_path import UNKNOWN
from replctl.expr.coerce import ASSIGNMENT, IMPLICIT
from replctl.expr.error_location import expr_location, raw_location
from replctl.parser import ast

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer

_MAX_DIMENSIONS = 6  # MAXDIM in array.h
#: int2vector and oidvector have subscripts like these arrays.
_VECTORS = {"int2vector": "_int2", "oidvector": "_oid"}
#: Types of fixed length that have subscripts like arrays, and their elements' types (typelem).
_FIXED_LENGTH = {
    "name": "char",
    "point": "float8",
    "lseg": "point",
    "box": "point",
    "line": "float8",
}


def subscripting(
    analyzer: Analyzer, arg: nodes.Expr, subscripts: Sequence[ast.Subscript]
) -> nodes.SubscriptingRef:
    """Return a part of an array or a jsonb value.

    Raises:
        DatatypeMismatch: the type has no subscripts, or does not allow such subscripts.
    """
    types = analyzer.coercion.types
    container, typmod = types.base_and_typmod(arg.type, nodes.typmod(arg))
    container = _VECTORS.get(container, container)
    element = types.element(container) or _FIXED_LENGTH.get(container)
    if container == "jsonb":
        upper = tuple(_jsonb_subscript(analyzer, item, subscripts) for item in subscripts)
        return nodes.SubscriptingRef(arg, "jsonb", upper, pos=arg.pos)
    if element is None:
        raise DatatypeMismatch(
            f"cannot subscript type {types.format(container)} because it does not support "
            "subscripting",
            position=expr_location(arg),
        )
    if not any(item.is_slice for item in subscripts):
        indexes = tuple(_array_subscript(analyzer, item.upper) for item in subscripts)
        _check_dimensions(len(subscripts))
        return nodes.SubscriptingRef(arg, element, indexes, None, typmod, pos=arg.pos)
    lower, uppers = [], []
    for item in subscripts:
        if item.is_slice:
            lower.append(_array_subscript(analyzer, item.lower))
        else:
            lower.append(nodes.Const("int4", "1"))
        uppers.append(_array_subscript(analyzer, item.upper))
    _check_dimensions(len(subscripts))
    return nodes.SubscriptingRef(arg, container, tuple(uppers), tuple(lower), typmod, pos=arg.pos)


def _check_dimensions(count: int) -> None:
    if count > _MAX_DIMENSIONS:
        raise ProgramLimitExceeded(
            f"number of array dimensions ({count}) exceeds the maximum allowed ({_MAX_DIMENSIONS})"
        )


def _array_subscript(analyzer: Analyzer, raw: ast.RawExpr | None) -> nodes.Expr | None:
    if raw is None:
        return None
    index = analyzer.expr(raw)
    result = analyzer.coercion.to_target(index, "int4", -1, ASSIGNMENT)
    if result is None:
        raise DatatypeMismatch("array subscript must have type integer", position=raw_location(raw))
    return result


def _jsonb_subscript(
    analyzer: Analyzer, item: ast.Subscript, subscripts: Sequence[ast.Subscript]
) -> nodes.Expr:
    """Return a subscript as text (a key) or int4 (an index).

    Raises:
        DatatypeMismatch: the expression can be cast to both types or to neither, or is a slice.
    """
    if any(other.is_slice for other in subscripts):
        bound = item.upper or item.lower
        raise DatatypeMismatch(
            "jsonb subscript does not support slices",
            position=-1 if bound is None else raw_location(bound),
        )
    assert item.upper is not None
    key = analyzer.expr(item.upper)
    coercion = analyzer.coercion
    target = "text"
    if key.type != UNKNOWN:
        targets = [
            type_ for type_ in ("int4", "text") if coercion.can_coerce_implicitly(key.type, type_)
        ]
        if len(targets) != 1:
            how = "only one type, integer or text" if targets else "either integer or text"
            raise DatatypeMismatch(
                f"subscript type {coercion.types.format(key.type)} is not supported",
                hint=f"jsonb subscript must be coercible to {how}.",
                position=expr_location(key),
            )
        target = targets[0]
    return coercion.to_type(key, target, -1, IMPLICIT)
