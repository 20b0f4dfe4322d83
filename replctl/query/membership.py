"""Translate IN and NOT IN with a subquery to Spark SQL.

Inside an expression, Spark's IN is FALSE where PostgreSQL's is NULL, and so is its NOT IN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from replctl.expr import nodes
from replctl.query.sql import WriteQuery
from replctl.spark import SqlValue, equality_operands

#: The kinds of subqueries for IN and NOT IN, with their operators.
_MEMBERSHIPS = (("any", "="), ("all", "<>"))

#: Translates an expression.
_Translate: TypeAlias = Callable[[nodes.Expr], SqlValue]


def is_membership(link: nodes.SubLink) -> bool:
    """Return whether a subquery is that of `a IN (query)` or NOT IN."""
    test = link.test
    return isinstance(test, nodes.OpExpr) and (link.kind, test.name) in _MEMBERSHIPS


def filter_sql(expr: nodes.Expr, value: _Translate, write: WriteQuery, *, is_conjunct: bool) -> str:
    """Return a condition that may be FALSE where PostgreSQL's is NULL.  It keeps Spark's IN where
    only TRUE matters.

    Args:
        value: translates the other parts of the condition.
        is_conjunct: the condition is a part of WHERE or HAVING that ANDs connect.  Only for such a
            part, Spark's NOT IN is exact.
    """
    match expr:
        case nodes.BoolExpr(op="and" | "or") if _has_membership(expr):
            is_conjunct = is_conjunct and expr.op == "and"
            args = [filter_sql(arg, value, write, is_conjunct=is_conjunct) for arg in expr.args]
            return f"({f' {expr.op.upper()} '.join(args)})"
        case nodes.BoolExpr(op="not", args=(nodes.SubLink() as link,)) if is_membership(link):
            word = "IN" if link.kind == "all" else "NOT IN"
        case nodes.SubLink() as link if is_membership(link):
            word = "NOT IN" if link.kind == "all" else "IN"
        case _:
            return value(expr).text
    if word == "NOT IN" and not is_conjunct:
        return value(expr).text
    left, rows = _compared(link, value, write)
    return f"({left} {word} ({rows}))"


def membership_value(link: nodes.SubLink, value: _Translate, write: WriteQuery) -> SqlValue:
    """Return `a IN (query)` or NOT IN as a value.  The SQL repeats both sides, so they must not be
    volatile.

    Args:
        value: translates the compared values.
    """
    left, rows = _compared(link, value, write)
    found, missing = ("FALSE", "TRUE") if link.kind == "all" else ("TRUE", "FALSE")
    text = (
        f"(CASE WHEN {left} IN ({rows}) THEN {found}"
        f" WHEN EXISTS (SELECT 1 FROM ({rows}) AS q WHERE q.c1 IS NULL)"
        f" OR ({left} IS NULL AND EXISTS ({rows})) THEN NULL ELSE {missing} END)"
    )
    return SqlValue(text, "bool", "BOOLEAN")


def _compared(link: nodes.SubLink, value: _Translate, write: WriteQuery) -> tuple[str, str]:
    """Return the left side of IN in a form that Spark can compare, and SQL of the query with the
    same form of its column; Param(1) in the test means this column.
    """

    def column_of_query(node: nodes.Node) -> nodes.Node | None:
        if not isinstance(node, nodes.Param) or node.number != 1:
            return None
        return nodes.Var(1, node.type, node.typmod, node.collation, varno=0)

    assert isinstance(link.test, nodes.OpExpr)
    left, right = link.test.args
    found = nodes.transform(right, column_of_query)
    a, b = equality_operands(value(left), value(found))
    query = write(link.query)
    return a, query if b == "c1" else f"SELECT {b} AS c1 FROM ({query}) AS q"


def _has_membership(expr: nodes.Expr) -> bool:
    links = (node for node in nodes.walk(expr) if isinstance(node, nodes.SubLink))
    return any(map(is_membership, links))
