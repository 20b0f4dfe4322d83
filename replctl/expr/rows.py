"""Analyse comparisons of rows, IS DISTINCT FROM, NULLIF, IN, BETWEEN (PostgreSQL's
parse_expr.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.errors import DatatypeMismatch, FeatureNotSupported, SqlSyntaxError
from replctl.expr import nodes
from replctl.expr.coerce import Coercion, returns_set
from replctl.expr.common_type import common_type_of
from replctl.expr.operators import check_built_in, make_operator, make_scalar_array_operator
from replctl.parser import ast
from replctl.types.builtin import FIRST_USER_OID

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer

#: The meaning of operators for rows, by name: the B-tree comparison that they stand for.
_INTERPRETATIONS = {
    name: plain
    for plain, names in {
        "<": ("<", "~<~", "*<"),
        "<=": ("<=", "~<=~", "*<="),
        "=": ("=", "*="),
        ">=": (">=", "~>=~", "*>="),
        ">": (">", "~>~", "*>"),
        "<>": ("<>", "*<>"),
    }.items()
    for name in names
}


def compare_rows(
    coercion: Coercion,
    name: tuple[str, ...],
    left: Sequence[nodes.Expr],
    right: Sequence[nodes.Expr],
    pos: int,
) -> nodes.Expr:
    """Compare rows: `(a, b) = (1, 2)` becomes `a = 1 AND b = 2`, and `(a, b) < (1, 2)` a
    RowCompareExpr.

    Raises:
        SqlSyntaxError: the rows differ in length.
        FeatureNotSupported: the rows are empty, or the operators do not order their types.
        PostgresError: see `make_operator`.
    """
    if len(left) != len(right):
        raise SqlSyntaxError("unequal number of entries in row expressions", position=pos)
    if not left:
        raise FeatureNotSupported("cannot compare rows of zero length", position=pos)
    pairs = [
        _boolean_pair(coercion, name, first, second, pos)
        for first, second in zip(left, right, strict=True)
    ]
    if len(pairs) == 1:
        return pairs[0]
    meaning = _INTERPRETATIONS.get(name[-1])
    if meaning is None or not all(_is_in_btree_family(coercion, pair) for pair in pairs):
        raise FeatureNotSupported(
            f"could not determine interpretation of row comparison operator {name[-1]}",
            hint="Row comparison operators must be associated with btree operator families.",
            position=pos,
        )
    if meaning == "=":
        return nodes.BoolExpr("and", tuple(pairs), pos=pos)
    if meaning == "<>":
        return nodes.BoolExpr("or", tuple(pairs), pos=pos)
    return nodes.RowCompareExpr(
        name[-1],
        tuple(pair.operator_oid for pair in pairs),
        tuple(pair.function for pair in pairs),
        tuple(pair.args[0] for pair in pairs),
        tuple(pair.args[1] for pair in pairs),
    )


def distinct(analyzer: Analyzer, raw: ast.AExpr) -> nodes.Expr:
    """Return `a IS [NOT] DISTINCT FROM b`; a test for NULL if one side is NULL."""
    assert raw.left is not None
    assert not isinstance(raw.right, tuple)
    for one, other in ((raw.right, raw.left), (raw.left, raw.right)):
        if isinstance(one, ast.Constant) and one.kind == "null":
            is_null = raw.kind == "not_distinct"
            return nodes.NullTest(analyzer.expr(other), is_null, pos=raw.pos)
    left, right = analyzer.expr(raw.left), analyzer.expr(raw.right)
    result: nodes.Expr
    if isinstance(left, nodes.RowExpr) and isinstance(right, nodes.RowExpr):
        result = _distinct_rows(analyzer.coercion, raw.name, left, right, raw.pos)
    else:
        result = _distinct_values(analyzer.coercion, raw.name, left, right, raw.pos)
    if raw.kind == "not_distinct":
        return nodes.BoolExpr("not", (result,), pos=raw.pos)
    return result


def nullif(analyzer: Analyzer, raw: ast.AExpr) -> nodes.NullIfExpr:
    """Return NULLIF(a, b); it has the type that the operator `=` requires for `a`."""
    assert raw.left is not None
    assert not isinstance(raw.right, tuple)
    left, right = analyzer.expr(raw.left), analyzer.expr(raw.right)
    equal = make_operator(analyzer.coercion, raw.name, left, right, raw.pos)
    if equal.type != "bool":
        raise DatatypeMismatch("NULLIF requires = operator to yield boolean", position=raw.pos)
    check_built_in(equal.operator_oid, "NULLIF and IS DISTINCT FROM", raw.pos)
    first, second = equal.args
    return nodes.NullIfExpr(
        equal.operator_oid, equal.function, first.type, (first, second), pos=raw.pos
    )


def in_list(analyzer: Analyzer, raw: ast.AExpr) -> nodes.Expr:
    """Return IN: `a IN (1, 2, b)` becomes `a = ANY (ARRAY[1, 2]) OR a = b`.  NOT IN becomes `<>
    ALL` and AND.

    Two or more items without columns become an array, if they have a common type.
    """
    assert raw.left is not None
    assert isinstance(raw.right, tuple)
    coercion = analyzer.coercion
    use_or = raw.name[0] != "<>"
    left = analyzer.expr(raw.left)
    items = [analyzer.expr(item) for item in raw.right]
    result: nodes.Expr | None = None
    plain = [item for item in items if not has_variables(item)]
    array = _as_array(coercion, left, plain) if len(plain) > 1 else None
    if array is not None:
        result = make_scalar_array_operator(coercion, raw.name, use_or, left, array, raw.pos)
        items = [item for item in items if has_variables(item)]
    for item in items:
        test: nodes.Expr
        if isinstance(left, nodes.RowExpr) and isinstance(item, nodes.RowExpr):
            test = compare_rows(coercion, raw.name, left.args, item.args, raw.pos)
        else:
            test = make_operator(coercion, raw.name, left, item, raw.pos)
        test = coercion.to_specific(test, "bool", "IN")
        if result is None:
            result = test
        else:
            result = nodes.BoolExpr("or" if use_or else "and", (result, test), pos=raw.pos)
    assert result is not None
    return result


def between(raw: ast.AExpr) -> ast.BoolExpr:
    """Return raw comparisons: `a BETWEEN b AND c` becomes `a >= b AND a <= c`."""
    assert raw.left is not None
    assert isinstance(raw.right, tuple)
    arg = raw.left
    low, high = raw.right

    def compare(name: str, right: ast.RawExpr) -> ast.AExpr:
        return ast.AExpr("op", (name,), arg, right, pos=raw.pos)

    def inside(start: ast.RawExpr, end: ast.RawExpr) -> ast.BoolExpr:
        return ast.BoolExpr("and", (compare(">=", start), compare("<=", end)), pos=raw.pos)

    def outside(start: ast.RawExpr, end: ast.RawExpr) -> ast.BoolExpr:
        return ast.BoolExpr("or", (compare("<", start), compare(">", end)), pos=raw.pos)

    match raw.kind:
        case "between":
            return inside(low, high)
        case "not_between":
            return outside(low, high)
        case "between_symmetric":
            return ast.BoolExpr("or", (inside(low, high), inside(high, low)), pos=raw.pos)
        case _:
            return ast.BoolExpr("and", (outside(low, high), outside(high, low)), pos=raw.pos)


def has_variables(expr: nodes.Expr) -> bool:
    """Return whether an expression uses a column of its own query level."""
    return any(isinstance(node, nodes.Var) and node.levels_up == 0 for node in nodes.walk(expr))


def _boolean_pair(
    coercion: Coercion, name: tuple[str, ...], left: nodes.Expr, right: nodes.Expr, pos: int
) -> nodes.OpExpr:
    pair = make_operator(coercion, name, left, right, pos)
    if pair.type != "bool":
        raise DatatypeMismatch(
            "row comparison operator must yield type boolean, "
            f"not type {coercion.types.format(pair.type)}",
            position=pos,
        )
    if returns_set(pair):
        raise DatatypeMismatch("row comparison operator must not return a set", position=pos)
    return pair


def _is_in_btree_family(coercion: Coercion, pair: nodes.OpExpr) -> bool:
    """Return whether the operator is built-in, and the B-tree order exists for its left type."""
    operator = coercion.environment.operator(pair.operator_oid)
    return (
        operator.oid < FIRST_USER_OID
        and operator.left is not None
        and coercion.types.get(operator.left).has_btree
    )


def _distinct_rows(
    coercion: Coercion,
    name: tuple[str, ...],
    left: nodes.RowExpr,
    right: nodes.RowExpr,
    pos: int,
) -> nodes.Expr:
    if len(left.args) != len(right.args):
        raise SqlSyntaxError("unequal number of entries in row expressions", position=pos)
    result: nodes.Expr | None = None
    for first, second in zip(left.args, right.args, strict=True):
        test = _distinct_values(coercion, name, first, second, pos)
        result = test if result is None else nodes.BoolExpr("or", (result, test), pos=pos)
    return result or nodes.Const("bool", "f")


def _distinct_values(
    coercion: Coercion, name: tuple[str, ...], left: nodes.Expr, right: nodes.Expr, pos: int
) -> nodes.DistinctExpr:
    equal = make_operator(coercion, name, left, right, pos)
    if equal.type != "bool":
        raise DatatypeMismatch(
            "IS DISTINCT FROM requires = operator to yield boolean", position=pos
        )
    check_built_in(equal.operator_oid, "NULLIF and IS DISTINCT FROM", pos)
    first, second = equal.args
    return nodes.DistinctExpr(equal.operator_oid, equal.function, (first, second), pos=pos)


def _as_array(
    coercion: Coercion, left: nodes.Expr, items: Sequence[nodes.Expr]
) -> nodes.ArrayExpr | None:
    type_ = common_type_of(coercion, [left.type, *(item.type for item in items)])
    if type_ is None or type_ == "record":
        return None
    array = coercion.types.array(type_)
    if array is None:
        return None
    elements = tuple(coercion.to_common(item, type_, "IN") for item in items)
    return nodes.ArrayExpr(array, type_, elements)
